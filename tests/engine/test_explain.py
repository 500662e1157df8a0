"""Every code that an explanation may have, with its golden answer."""

import copy
import tracemalloc
from pathlib import Path

import msgspec
import pytest

from crawlkit.engine.ending import Ending
from crawlkit.engine.explain.answer import Attempts, Explanation, Fate, HostStanding
from crawlkit.engine.steering import Steering
from crawlkit.engine.verify import Thoroughness, verify
from crawlkit.model import Facts, FetchFailure, Reason, Refusal
from crawlkit.policy.url_steps import NoUrl
from crawlkit.state.keys import host_id, refusal_key, template_key
from crawlkit.state.refusals import MOST_A_HOST
from tests.engine.driver import SEED, A, Driver, Web, file, page
from tests.engine.explained import CASES, Explained, X, explain, explain_stopped


def test_every_code_has_a_golden_answer() -> None:
    assert set(CASES) == {*Fate, *Reason, *Refusal, *NoUrl}


@pytest.mark.parametrize("code", CASES, ids=str)
def test_golden_answer(tmp_path: Path, code: str) -> None:
    case = CASES[code]
    with Explained(tmp_path / "crawl", case.web, **case.settings) as driver:
        case.act(driver)
        look = explain if code == Fate.IN_FLIGHT else explain_stopped
        said = look(driver, case.url, case.most_searched)
    remedy = None if case.remedy is None else case.remedy.replace("DIR", str(driver.directory))
    assert (said.code, said.standing, said.summary, said.remedy) == (code, case.standing, case.summary, remedy)
    assert said.typed == case.url


# A crawl that runs ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("code", [code for code in CASES if code != Fate.IN_FLIGHT], ids=str)
def test_of_a_running_crawl_the_same_is_told_as_of_a_stopped_one(tmp_path: Path, code: str) -> None:
    case = CASES[code]
    with Explained(tmp_path / "crawl", case.web, **case.settings) as driver:
        case.act(driver)
        driver.end(Ending.CANCELLED)
        running = explain(driver, case.url, case.most_searched)
        stopped = explain_stopped(driver, case.url, case.most_searched)
    assert msgspec.structs.replace(running, remedy=None) == msgspec.structs.replace(stopped, remedy=None)


def test_what_is_not_checkpointed_yet_is_told_too(tmp_path: Path) -> None:
    with Explained(tmp_path / "crawl", {SEED: page(X), X: page()}) as driver:
        driver.settle(driver.next_job())
        driver.settle(driver.next_job())
        assert explain(driver, X).code == Fate.QUEUED
        driver.settle(driver.next_job())
        assert explain(driver, X).code == Fate.PAGE
        assert explain_stopped(driver, X).code == Fate.NEVER_LINKED  # back to the last checkpoint, as by a kill


def test_looking_changes_nothing(tmp_path: Path) -> None:
    web: Web = {SEED: page(X, "http://b.test/"), X: FetchFailure(Reason.CONNECT, "no")}
    with Explained(tmp_path / "crawl", web, max_depth=0, scope="any", retries=2) as driver:
        driver.drain()
        state = driver.state
        assert state.staged_rows == 0
        before = copy.deepcopy((state.counters, state.runs))
        for url in (SEED, X, "http://b.test/", "http://c.test/", f"{A}/robots.txt", "no url"):
            explain(driver, url)
        assert (state.counters, state.runs) == before
        assert state.staged_rows == 0
        assert state.hosts.loaded("b.test") is None
        assert state.seen.recent("http://c.test/") is None
        assert template_key("c.test") not in state.templates._loaded


# Hosts and limits ----------------------------------------------------------------------------------------------------


def host_of_x(driver: Driver) -> HostStanding:
    host = explain(driver, X).host
    assert host is not None
    return host


def test_a_host_that_asked_to_be_left_alone(tmp_path: Path) -> None:
    web: Web = {SEED: page(X), X: [Facts(429, retry_after="100"), page()]}
    with Explained(tmp_path / "crawl", web, robots=False, retries=2) as driver:
        driver.settle(driver.next_job())
        driver.settle(driver.next_job())
        now = driver.clock.now()
        host = host_of_x(driver)
        assert host.hold_until == pytest.approx(now + 100)
        assert host.next_start == pytest.approx(now + 100)
        assert (host.breaker, host.slowdown, host.gap_s) == ("closed", 2.0, 2.0)
        said = explain(driver, X)
        assert said.code == Fate.RETRY
        assert said.attempts is not None
        assert said.attempts == Attempts(1, 1, said.attempts.due_at, Reason.TOO_MANY_REQUESTS)
        assert said.attempts.due_at == pytest.approx(now + 100)
        driver.clock.advance(101)
        assert host_of_x(driver).hold_until is None
        assert driver.claim() is not None


def test_a_host_that_is_held_or_dropped(tmp_path: Path) -> None:
    with Explained(tmp_path / "crawl", {SEED: page(X), X: page()}, robots=False) as driver:
        driver.settle(driver.next_job())
        steering = Steering.of(driver.coordinator)
        steering.hold("a.test", None, driver.clock.now())
        said = explain(driver, X)
        assert said.summary == "queued: its host is held until it is released (crawlkit hosts DIR release HOST)"
        assert (host_of_x(driver).held, host_of_x(driver).next_start) == (True, None)
        assert msgspec.json.decode(msgspec.json.encode(said), type=Explanation) == said  # as a running crawl sends it
        steering.drop("a.test", driver.clock.now())
        assert explain(driver, X).summary == "queued: its host is dropped, so it ends as host.dropped when its turn comes"
        assert host_of_x(driver).dropped


def test_a_seed_that_was_added_outside_of_the_scope(tmp_path: Path) -> None:
    with Explained(tmp_path / "crawl", {SEED: page(X)}, robots=False) as driver:
        Steering.of(driver.coordinator).add(["http://b.test/"])
        driver.checkpoint()
        said = explain(driver, "http://b.test/")
        assert (said.standing, said.rules[0].passed, said.rules[0].detail) == ("queued", True, "added as a seed")
        assert not explain(driver, "http://b.test/x").rules[0].passed


def test_what_a_running_crawl_tells_of_a_url_does_not_take_reading_all_its_seeds(tmp_path: Path) -> None:
    seeds = [f"{A}/{number}" for number in range(5_000)]
    with Explained(tmp_path / "crawl", {}, seeds=seeds, robots=False) as driver:
        explain(driver, seeds[0])
        tracemalloc.start()
        try:
            said = explain(driver, seeds[1])
            peak_bytes = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    assert (said.standing, said.rules[1].detail) == ("queued", "seeds are exempt")
    assert peak_bytes < 300_000  # the list of them alone takes more


def test_a_breaker_that_opened_and_a_host_that_was_given_up(tmp_path: Path) -> None:
    urls = [f"{A}/{n}" for n in range(30)]
    web: Web = {SEED: page(*urls, X), **{url: FetchFailure(Reason.CONNECT, "no") for url in urls}}
    with Explained(tmp_path / "crawl", web, robots=False, delay=0) as driver:
        driver.settle(driver.next_job())
        for _ in range(5):
            driver.settle(driver.next_job())
        host = host_of_x(driver)
        assert host.breaker == "open"
        assert host.hold_until == host.next_start == pytest.approx(driver.clock.now() + 30)
        driver.clock.advance(31)
        assert host_of_x(driver).breaker == "half_open"
        while driver.state.hosts.get("a.test").record.health.opens < 7:
            driver.settle(driver.next_job())
        host = host_of_x(driver)
        assert (host.breaker, host.next_start) == ("given_up", None)
        assert explain(driver, X).summary == "queued: its host is given up, so it ends as host.given_up when its turn comes"


def test_after_a_kill_every_host_waits_a_gap_from_the_resume_on(tmp_path: Path) -> None:
    with Explained(tmp_path / "crawl", {SEED: page(X), X: page()}, robots=False, delay=7) as driver:
        driver.settle(driver.next_job())
        driver.checkpoint()
        driver.clock.advance(1_000)
        said = explain_stopped(driver, X)
        assert said.host is not None
        assert said.host.next_start == driver.clock.now() + 7


def test_limits_on_pages_are_rules(tmp_path: Path) -> None:
    with Explained(tmp_path / "crawl", {SEED: page(X), X: page()}, max_pages=9, max_pages_per_host=1) as driver:
        driver.drain()
        said = explain_stopped(driver, X)
        assert [(rule.rule, rule.code, rule.detail) for rule in said.rules[-2:]] == [
            ("max_pages", "ok", "1 pages of 9"), ("max_pages_per_host", "limit.host", "1 pages of 1")
        ]  # fmt: skip
        assert said.remedy == f"to go on: crawlkit resume {driver.directory} --set max_pages_per_host=N"


def test_a_crawl_delay_is_in_the_gap(tmp_path: Path) -> None:
    web: Web = {f"{A}/robots.txt": file("Crawl-delay: 12"), SEED: page(X), X: page()}
    with Explained(tmp_path / "crawl", web) as driver:
        driver.drain()
        host = host_of_x(driver)
        assert (host.crawl_delay_s, host.gap_s) == (12.0, 12.0)


def test_a_raised_limit_lets_what_was_refused_in(tmp_path: Path) -> None:
    with Explained(tmp_path / "crawl", {SEED: page(X), X: page()}, max_depth=0) as driver:
        driver.drain()
        assert explain(driver, X).code == Refusal.DEPTH
        driver.reopen(max_depth=1)
        assert explain(driver, X).code == Fate.LINKS
        driver.drain()
        assert explain(driver, X).code == Fate.PAGE


def test_of_a_host_of_which_too_much_was_refused_the_records_tell(tmp_path: Path) -> None:
    urls = [f"{A}/{n:03}" for n in range(MOST_A_HOST + 5)]
    with Explained(tmp_path / "crawl", {SEED: page(*urls)}, max_depth=0) as driver:
        driver.drain()
        assert driver.state.counters.noted == MOST_A_HOST
        look = driver.state.look()
        assert (look.refusal(urls[0], "a.test") is None, look.refusal(urls[-1], "a.test") is None) == (False, True)
        for url in (urls[0], urls[-1]):
            assert explain(driver, url).code == Refusal.DEPTH
        assert explain(driver, urls[0], 0).code == Refusal.DEPTH
        assert explain(driver, urls[-1], 0).code == Fate.NOT_FOUND
    assert verify(tmp_path / "crawl", Thoroughness.FULL).whole


def test_what_the_budget_refused_is_told_by_its_row_alone_and_by_the_page_alone(tmp_path: Path) -> None:
    case = CASES[Refusal.TRAP_TEMPLATE]
    with Explained(tmp_path / "crawl", case.web, **case.settings) as driver:
        driver.drain()
        assert explain(driver, case.url, 0).code == Refusal.TRAP_TEMPLATE
        driver.state._store.unstage(refusal_key(host_id("a.test"), case.url))
        assert explain(driver, case.url, 0).code == Fate.NOT_FOUND
        assert explain(driver, case.url).code == Refusal.TRAP_TEMPLATE


def test_bytes_that_are_no_text_are_shown_and_no_url(tmp_path: Path) -> None:
    with Explained(tmp_path / "crawl", {SEED: page()}) as driver:
        said = explain(driver, "http://a.test/\udcff")
        assert (said.code, said.typed) == (NoUrl.INVALID, "http://a.test/?")
        assert msgspec.json.encode(said)
