"""What the template budget pays, who earns, and that links which wait for it are kept."""

import random
from collections.abc import Iterable
from pathlib import Path

import msgspec
import pytest

from crawlkit.config import Config
from crawlkit.engine import budget as pricing
from crawlkit.engine.admission import Admission
from crawlkit.engine.budget import EARNED, WELL_OFF, Budget
from crawlkit.engine.ending import Ending
from crawlkit.engine.growth import FRESH_PAGES_A_ROUND
from crawlkit.engine.verify import Thoroughness, verify
from crawlkit.model import Facts, Kind, Record, Refusal, Source
from crawlkit.policy.edges import Edge
from crawlkit.policy.novelty import sketch_of
from crawlkit.policy.scope import Scope
from crawlkit.state.crawl import CrawlState
from tests.engine.trap_sites import (
    HOST,
    ITEMS,
    calendar,
    crawl,
    drain,
    drive,
    item,
    number_in,
    one_index,
    only_link,
    plain,
    word,
    words,
)

# Rules ----------------------------------------------------------------------------------------------------------------


def test_seeds_are_exempt_what_they_lead_to_is_not(tmp_path: Path) -> None:
    seed = f"{HOST}/a/a/a/a/a/"
    crawled = crawl(only_link("a/"), tmp_path / "crawl", seed)
    assert list(crawled.records) == [seed]
    assert crawled.counters.refused == {Refusal.TRAP_PATH_REPEAT: 1}
    assert crawled.counters.reasons == set()


def test_a_budget_of_nothing_is_no_limit(tmp_path: Path) -> None:
    with drive(calendar, tmp_path / "crawl", template_budget=0, max_pages=1500) as driver:
        assert drain(driver) is Ending.LIMIT_PAGES


def test_a_smaller_budget_ends_sooner(tmp_path: Path) -> None:
    assert crawl(calendar, tmp_path / "crawl", template_budget=100).requests < 200


def test_links_that_wait_are_followed_before_the_queue_runs_dry(tmp_path: Path) -> None:
    with drive(one_index, tmp_path / "crawl") as driver:
        driver.settle(driver.next_job())
        first = driver.state.counters.seen
        for _ in range(first // 2):
            driver.settle(driver.next_job())
            while driver.coordinator.owes_work:
                driver.coordinator.work()
        assert driver.state.counters.seen > first + FRESH_PAGES_A_ROUND


def test_a_canonical_is_met_at_once_where_links_before_it_wait(tmp_path: Path) -> None:
    other = f"{HOST}/about/this"

    def answer(target: str) -> Facts:
        return msgspec.structs.replace(plain(target, "A listing", [f"/{n}" for n in range(60)], "text"), canonical=other)

    with drive(answer, tmp_path / "crawl", template_budget=6) as driver:
        driver.settle(driver.next_job())
        assert driver.state.counters.held == 1
        assert driver.state.seen.recent(other) is not None


def test_links_that_wait_are_verified(tmp_path: Path) -> None:
    with drive(one_index, tmp_path / "crawl") as driver:
        driver.settle(driver.next_job())
        driver.checkpoint()
    report = verify(tmp_path / "crawl", Thoroughness.FULL)
    assert report.whole
    assert report.checked["held"] == 1


def test_many_like_pages_of_a_site_that_ends_are_no_trap(tmp_path: Path) -> None:
    def answer(target: str) -> Facts:
        chosen = random.Random(target)
        return plain(target, "A page", [f"/{chosen.randrange(ITEMS)}" for _ in range(60)], "like all others")

    crawled = crawl(answer, tmp_path / "crawl", f"{HOST}/0")
    assert len(crawled.records) == ITEMS
    assert not crawled.counters.refused


def test_links_that_wait_survive_kills(tmp_path: Path) -> None:
    """A listing of 3,000 items does not fit the budget at once, and the crawl is killed again and again on the way."""

    def answer(target: str) -> Facts:
        return item(target, ["/"]) if target != "/" else plain(target, "All", [f"/item/{n}" for n in range(3_000)])

    with drive(answer, tmp_path / "crawl") as driver:
        for _ in range(5):
            for number in range(400):
                driver.settle(driver.next_job())
                if number == 300:
                    driver.checkpoint()
            assert driver.state.counters.held == 1
            driver.reopen()
        assert drain(driver) is Ending.FINISHED
        assert driver.state.counters.pages == 3_001
        assert driver.state.counters.refused == {}
        assert driver.state.counters.held == 0
    assert verify(tmp_path / "crawl", Thoroughness.FULL).whole


def test_a_shorter_way_is_told_to_pages_whose_links_wait(tmp_path: Path) -> None:
    """The listing that does not fit the budget is reached by a chain of five pages, later found to be linked directly."""

    def answer(target: str) -> Facts:
        number = number_in(target)
        if target.startswith("/item/"):
            return item(target, [])
        if target == "/list":
            return plain(target, "All", [f"/item/{n}" for n in range(3_000)])
        if target == "/":
            return item(target, ["/way/1", "/late"])
        if target == "/late":
            return item(target, ["/list"])
        return item(target, [f"/way/{number + 1}"] if number < 5 else ["/list"])

    with drive(answer, tmp_path / "crawl", host_concurrency=2) as driver:
        driver.settle(driver.next_job())
        late, way = sorted((driver.next_job(), driver.next_job()), key=lambda job: job.url)
        driver.settle(way)
        while not driver.state.counters.held:
            driver.settle(driver.next_job())
        driver.settle(late)
        assert drain(driver) is Ending.FINISHED
        records = driver.records()
    assert len(records) == 3_008
    assert {record.depth for url, record in records.items() if "/item/" in url} == {3}


# The budget -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def state(tmp_path: Path) -> Iterable[CrawlState]:
    with CrawlState.create(tmp_path / "state", Config()) as opened:
        yield opened


def settled(path: str, via: str | None = None) -> Record:
    return Record(url=HOST + path, kind=Kind.PAGE, depth=1, via=None if via is None else HOST + via)


def paid(some: Budget, path: str, times: int) -> int:
    return sum(some.pay(f"{HOST}{path}{number}") for number in range(times))


def test_a_template_draws_three_of_four_that_its_host_can_spare_then_the_next(state: CrawlState) -> None:
    some = Budget(state.templates, 30)
    assert paid(some, "/a/", 100) == 30
    assert paid(some, "/b/", 100) == 8
    assert some.pay("http://other.example/a/1")


def test_a_fresh_page_earns_for_its_template_its_host_and_its_leader(state: CrawlState) -> None:
    some = Budget(state.templates, 3)
    paid(some, "/a/", 100)
    paid(some, "/list/", 100)
    spare = some.host(HOST + "/").credit
    assert some.earn(settled("/a/1", via="/list/1"), sketch_of(words(1, 30), HOST + "/a/1"))
    assert some.host(HOST + "/").credit == spare + 1
    assert paid(some, "/a/", 100) == EARNED
    assert paid(some, "/list/", 100) == 1 + 1
    assert not some.earn(settled("/a/2", via="/list/1"), sketch_of(words(1, 30), HOST + "/a/2"))
    assert paid(some, "/a/", 100) == 0


def test_a_new_shape_without_new_text_is_no_news(state: CrawlState) -> None:
    some = Budget(state.templates, 100)
    fresh = [some.earn(settled(f"/{word(n)}/x"), sketch_of(words("same", 30), HOST + "/")) for n in range(20)]
    assert fresh == [True] + [False] * 19


def test_what_leads_no_further_earns_its_price_back(state: CrawlState) -> None:
    some = Budget(state.templates, 3)
    assert paid(some, "/a/", 100) == 3
    some.earn(settled("/a/1"), None)
    assert paid(some, "/a/", 100) == 1


def test_a_page_is_looked_at_while_its_template_or_its_leader_has_little_credit(state: CrawlState) -> None:
    some = Budget(state.templates, 1000)
    item, listing = HOST + "/a/1", HOST + "/list/1"
    assert some.is_curious(item, listing)
    some.grant(f"{HOST}/a/{n}" for n in range(WELL_OFF - 1))
    assert some.is_curious(item, None)
    some.grant([item])
    assert not some.is_curious(item, None)
    assert some.is_curious(item, listing)
    some.grant(f"{HOST}/list/{n}" for n in range(WELL_OFF))
    assert not some.is_curious(item, listing)
    assert not Budget(state.templates, 0).is_curious(HOST + "/b/1", None)


def test_a_template_that_found_no_credit_pays_once_any_is_given(state: CrawlState) -> None:
    some = Budget(state.templates, 3)
    paid(some, "/a/", 100)
    some.grant([f"{HOST}/a/1", f"{HOST}/a/2"])
    assert paid(some, "/a/", 100) == 2
    some.reward(HOST + "/a/1")
    assert paid(some, "/a/", 100) == 1


def test_some_credit_is_left_to_links_that_wait(state: CrawlState) -> None:
    some = Budget(state.templates, 3)
    paid(some, "/a/", 100)
    some.grant(f"{HOST}/a/{n}" for n in range(10))
    some.keep_back(4)
    assert paid(some, "/a/", 100) == 6
    some.keep_back(0)
    assert paid(some, "/a/", 100) == 4


def test_templates_without_credit_are_remembered_within_bounds(state: CrawlState, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pricing, "MOST_DRY", 2)
    some = Budget(state.templates, 1)
    assert sum(paid(some, f"/{word(n)}/", 3) for n in range(9)) == 1
    assert len(some.dry) <= 2


def test_a_page_that_was_not_looked_at_earns_nothing(state: CrawlState) -> None:
    some = Budget(state.templates, 3)
    paid(some, "/a/", 100)
    assert not some.earn(settled("/a/1"), ())
    assert paid(some, "/a/", 100) == 0


def test_links_without_credit_are_told_apart_unless_they_are_too_deep_anyhow(state: CrawlState) -> None:
    config = Config(template_budget=1, max_depth=2)
    scope = Scope.of([HOST + "/"], config)
    budget = Budget(state.templates, 1)
    admission = Admission(state, scope, config, budget, lambda _: None)
    urls = [f"{HOST}/a/{n}" for n in range(4)]

    def lacking(depth: int) -> list[str]:
        return [url for url, template in admission.unpaid(depth).items() if template in budget.dry]

    assert not lacking(1)
    assert [admission.meet(Edge(url, 1, 0), HOST + "/") for url in urls] == [True, False, False, False]
    assert lacking(1) == urls[1:]
    assert not lacking(3)
    assert admission.meet(Edge(urls[1], 3, 0), HOST + "/")  # refused, and not held
    budget.grant(urls)
    assert not lacking(1)


def test_a_stranger_is_counted_as_if_it_were_met(state: CrawlState) -> None:
    config = Config()
    admission = Admission(state, Scope.of([HOST + "/"], config), config, Budget(state.templates, 0), lambda _: None)
    added = "http://added.example/"
    admission.meet(Edge(added, 0, 0), None, Source.SEED)
    assert [admission.refuse_stranger(url) for url in (HOST + "/a", added, "http://b.example/")] == [False, False, True]
    assert state.counters.refused == {Refusal.SCOPE: 1}
    assert admission.meet(Edge("http://b.example/", 1, 0), HOST + "/")
    assert state.counters.refused == {Refusal.SCOPE: 2}
