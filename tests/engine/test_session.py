"""Runs of a crawl from their making or opening to their end: what is refused, what is frozen, what a resume does."""

import asyncio
import gc
import json
from collections.abc import Coroutine
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from crawlkit.config import Config
from crawlkit.engine.ending import Ending
from crawlkit.engine.loop import Loop
from crawlkit.engine.session import Hooks, Outcome, Surroundings, begin, default_directory, go_on, read_seeds
from crawlkit.errors import ConfigError, ExitStatus, StateError, StateExists, UsageError
from crawlkit.model import Kind, Reason, Record
from crawlkit.state.crawl import CrawlState
from crawlkit.state.hosts import HOSTS_IN_MEMORY, Host
from crawlkit.state.layout import CHECKPOINT
from crawlkit.testing.fakeweb import FakeWeb
from crawlkit.testing.server import SiteServer
from crawlkit.testing.site import Reply, Site, page, redirect, robots, status

SITE = Site(
    {
        "/": page("Home", ["/a", "/gone", "http://b.test/"]),
        "/a": page("A", ["/", "/deep"]),
        "/deep": page("Deep"),
        "/robots.txt": robots("User-agent: *\nDisallow: /no"),
    }
)


def settings(**values: Any) -> Config:
    return Config(**{"delay": 0, "retries": 0, **values})


def run(main: Coroutine[Any, Any, Outcome]) -> Outcome:
    return asyncio.run(asyncio.wait_for(main, 60))


def start(web: FakeWeb, directory: Path, *seeds: str, **values: Any) -> Outcome:
    return run(begin(seeds or ["http://a.test/"], directory, settings(**values), Hooks(), Surroundings(transport=web)))


def resume(web: FakeWeb, directory: Path, **changes: object) -> Outcome:
    return run(go_on(directory, changes, Hooks(), Surroundings(transport=web)))


def records(directory: Path) -> dict[str, Record]:
    with CrawlState.open(directory) as state:
        return {record.url: record for record in state.pages.walk()}


# Beginning ------------------------------------------------------------------------------------------------------------


def test_a_long_list_of_seeds_does_not_hold_all_their_hosts_in_memory(tmp_path: Path) -> None:
    seeds = [f"http://h{number}.test/" for number in range(HOSTS_IN_MEMORY + 1_000)]
    held: list[int] = []

    def stop_at_once(loop: Loop) -> nullcontext[None]:
        loop.stop(Ending.SIGTERM)
        held.append(hosts() - before)
        return nullcontext()

    def hosts() -> int:
        return sum(isinstance(found, Host) for found in gc.get_objects())

    gc.collect()
    before = hosts()
    run(begin(seeds, tmp_path / "crawl", settings(), Hooks(around=stop_at_once), Surroundings(transport=FakeWeb(SITE))))

    assert 1_000 < held[0] <= HOSTS_IN_MEMORY + 1


def test_a_crawl_ends_with_a_record_of_every_url_in_scope(tmp_path: Path) -> None:
    outcome = start(FakeWeb(SITE), tmp_path / "crawl")

    assert (outcome.how, outcome.status) == (Ending.FINISHED, ExitStatus.PAGES_FAILED)
    assert {url: record.kind for url, record in records(tmp_path / "crawl").items()} == {
        "http://a.test/": Kind.PAGE,
        "http://a.test/a": Kind.PAGE,
        "http://a.test/deep": Kind.PAGE,
        "http://a.test/gone": Kind.FAILURE,
    }
    assert outcome.counters.finished


def test_several_seeds_are_crawled_each_once_and_span_the_scope(tmp_path: Path) -> None:
    web = FakeWeb(SITE)

    outcome = start(web, tmp_path / "crawl", "http://a.test", "HTTP://A.test:80/#x", "http://b.test/a")

    found = records(tmp_path / "crawl")
    assert {url for url, record in found.items() if record.depth == 0} == {"http://a.test/", "http://b.test/a"}
    assert found["http://b.test/"].depth == 1
    assert outcome.counters.hosts == 2
    assert len([request for request in web.log if request.target != "/robots.txt"]) == len(found)
    with CrawlState.open(tmp_path / "crawl") as state:
        assert list(state.seeds()) == ["http://a.test/", "http://b.test/a"]


@pytest.mark.parametrize("seeds", [[], ["ftp://a.test/"], ["http://a.test/", "nonsense"], ["http://u:p@a.test/"]])
def test_bad_seeds_are_refused_before_anything_is_made(tmp_path: Path, seeds: list[str]) -> None:
    web = FakeWeb(SITE)
    with pytest.raises(UsageError):
        run(begin(seeds, tmp_path / "crawl", settings(), Hooks(), Surroundings(transport=web)))

    assert not (tmp_path / "crawl").exists()
    assert not len(web.log)


def test_a_directory_that_holds_a_crawl_is_refused_naming_resume(tmp_path: Path) -> None:
    start(FakeWeb(SITE), tmp_path / "crawl")

    with pytest.raises(StateExists, match=r"crawlkit resume .*crawl"):
        start(FakeWeb(SITE), tmp_path / "crawl")


def test_a_crawl_that_was_never_sealed_is_begun_again_and_not_resumed(tmp_path: Path) -> None:
    directory = tmp_path / "crawl"
    with CrawlState.create(directory, settings()) as state:
        state.begin_run(0.0)
        state.checkpoint()

    with pytest.raises(StateError, match="crawlkit run"):
        resume(FakeWeb(SITE), directory)
    assert start(FakeWeb(SITE), directory).how is Ending.FINISHED


def test_the_default_directory_is_named_after_the_first_seeds_host() -> None:
    assert default_directory(["http://Example.COM:8080/x", "http://b.test/"]) == Path("example.com.crawl")
    with pytest.raises(UsageError):
        default_directory([])


def test_seeds_are_read_in_normal_form_each_once() -> None:
    assert read_seeds(["http://a.test", "http://a.test/#top", "http://b.test/"]) == ["http://a.test/", "http://b.test/"]


# Resuming -------------------------------------------------------------------------------------------------------------


def test_a_finished_crawl_resumed_makes_no_request_and_ends_as_it_did(tmp_path: Path) -> None:
    web = FakeWeb(SITE)
    before = start(web, tmp_path / "crawl")
    found = records(tmp_path / "crawl")
    asked = len(web.log)

    after = resume(web, tmp_path / "crawl")

    assert len(web.log) == asked
    assert (after.how, after.status, after.counters.finished) == (before.how, before.status, True)
    assert records(tmp_path / "crawl") == found
    with CrawlState.open(tmp_path / "crawl") as state:
        assert [run.how for run in state.runs] == ["finished", "finished"]


def test_a_crawl_whose_limit_is_still_reached_makes_no_request(tmp_path: Path) -> None:
    web = FakeWeb(SITE)
    start(web, tmp_path / "crawl", max_pages=1)
    asked = len(web.log)

    outcome = resume(web, tmp_path / "crawl")

    assert (outcome.how, outcome.status) == (Ending.LIMIT_PAGES, ExitStatus.DONE)
    assert len(web.log) == asked
    assert not outcome.counters.finished

    assert resume(web, tmp_path / "crawl", max_pages=3).counters.pages == 3


def test_a_run_is_in_the_ledger_on_disk_before_it_makes_a_request(tmp_path: Path) -> None:
    directory = tmp_path / "crawl"
    on_disk: list[tuple[int, float | None]] = []

    def look() -> Reply:
        runs = json.loads((directory / CHECKPOINT).read_bytes().splitlines()[0])["runs"]
        on_disk.append((len(runs), runs[-1]["ended_s"]))
        return page("looked")

    web = FakeWeb(Site({"/": page("Home", ["/look"]), "/look": look}))
    start(web, directory, max_pages=1)
    resume(web, directory, max_pages=None)

    assert on_disk == [(2, None)]


@pytest.mark.parametrize(
    "changes",
    [{"scope": "any"}, {"user_agent": "x/1"}, {"exclude": ["a"]}, {"resolve": ["a.test=127.0.0.1"]}, {"max_pages": 1}],
)
def test_settings_that_the_report_rests_on_are_refused_and_nothing_changes(tmp_path: Path, changes: dict[str, object]) -> None:
    web = FakeWeb(SITE)
    start(web, tmp_path / "crawl", max_pages=2)
    asked = len(web.log)

    with pytest.raises(ConfigError, match=next(iter(changes))):
        run(go_on(tmp_path / "crawl", changes, Hooks(), Surroundings(transport=web)))

    assert len(web.log) == asked
    with CrawlState.open(tmp_path / "crawl") as state:
        assert state.config() == settings(max_pages=2)
        assert len(state.runs) == 1


def test_changed_settings_are_kept_with_the_run_that_changed_them(tmp_path: Path) -> None:
    start(FakeWeb(SITE), tmp_path / "crawl", max_pages=1)

    resume(FakeWeb(SITE), tmp_path / "crawl", max_pages=2, workers=3)

    with CrawlState.open(tmp_path / "crawl") as state:
        assert (state.config().max_pages, state.config().workers) == (2, 3)
        assert [run.changes for run in state.runs] == [{}, {"max_pages": 2, "workers": 3}]


def test_a_directory_without_a_crawl_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StateError, match="crawlkit run"):
        resume(FakeWeb(SITE), tmp_path / "nothing")


# Seeds that lead nowhere ----------------------------------------------------------------------------------------------


def test_a_seed_that_redirected_out_of_scope_is_told(tmp_path: Path) -> None:
    outcome = start(FakeWeb(Site({"a.test/": redirect("http://www.a.test/")})), tmp_path / "crawl")

    (barren,) = outcome.barren
    assert barren.left_scope
    assert barren.record.redirect_to == "http://www.a.test/"
    assert outcome.status is ExitStatus.PAGES_FAILED


def test_a_seed_that_redirected_within_the_scope_did_not_leave_it(tmp_path: Path) -> None:
    outcome = start(FakeWeb(Site({"/": redirect("/x"), "/x": status(404)})), tmp_path / "crawl")

    (barren,) = outcome.barren
    assert not barren.left_scope


def test_seeds_that_failed_are_told_with_why(tmp_path: Path) -> None:
    outcome = start(FakeWeb(Site({})), tmp_path / "crawl", "http://a.test/1", "http://a.test/2")

    assert [(barren.record.url, barren.record.reason) for barren in outcome.barren] == [
        ("http://a.test/1", Reason.CLIENT_ERROR),
        ("http://a.test/2", Reason.CLIENT_ERROR),
    ]


def test_a_crawl_with_a_page_has_no_barren_seeds(tmp_path: Path) -> None:
    web = FakeWeb(Site({"/": redirect("http://b.test/"), "/2": page("two")}))

    assert start(web, tmp_path / "crawl", "http://a.test/", "http://a.test/2").barren == ()


# Private addresses ----------------------------------------------------------------------------------------------------


def test_a_seed_keeps_its_private_address_over_resumes_and_its_links_get_no_other(tmp_path: Path) -> None:
    directory = tmp_path / "crawl"
    with SiteServer(Site({})) as other, SiteServer(Site({})) as server:
        server.site = Site({"/": page("Home", ["/a", f"{other.url}/private"]), "/a": page("A")})

        first = run(begin([server.url], directory, settings(max_pages=1), Hooks(), Surroundings()))
        assert first.how is Ending.LIMIT_PAGES
        with CrawlState.open(directory) as state:
            assert state.private_addresses() == {f"127.0.0.1:{server.port}": frozenset({"127.0.0.1"})}
        second = run(go_on(directory, {"max_pages": None}, Hooks(), Surroundings()))

    assert second.how is Ending.FINISHED
    found = records(directory)
    assert found[f"{server.url}/a"].kind is Kind.PAGE
    assert found[f"{other.url}/private"].reason is Reason.ADDRESS
    assert not len(other.log)
