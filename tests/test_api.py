"""crawlkit from Python: what `crawl`, `resume` and `report` return, call and raise, and their async twins."""

import asyncio
import os
import signal
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from crawlkit import (
    Config,
    CrawlCancelled,
    CrawlError,
    Kind,
    PageFailed,
    PageTimedOut,
    Record,
    crawl,
    crawl_async,
    report,
    resume,
    resume_async,
)
from crawlkit.errors import ConfigError, StateError, StateExists, StateLocked, UsageError
from crawlkit.state.checkpoint import read_summary
from crawlkit.testing.graph import Features, make_graph
from crawlkit.testing.log import RequestLog
from crawlkit.testing.server import SiteServer
from crawlkit.testing.site import Fault, Reply, Site, page, status

FAST = Config(delay=0, host_concurrency=8, retries=0)
STALLED = Reply(body=b"never sent", fault=Fault.STALL)
GRAPH = make_graph(60, 5, features=Features(redirects=4, chain=2, canonicals=3, missing=2))


class Rejected(Exception):
    """What a caller's `on_page` raises."""


@pytest.fixture
def server() -> Iterator[SiteServer]:
    with SiteServer(GRAPH.site()) as running:
        yield running


@pytest.fixture
def where(tmp_path: Path) -> Path:
    return tmp_path / "x.crawl"


def asked(log: RequestLog, target: str) -> int:
    return [request.target for request in log].count(target)


def test_crawl_returns_counts_and_the_records_when_asked(server: SiteServer, where: Path) -> None:
    answers = GRAPH.at(server.url).answers()
    result = crawl([f"{server.url}/"], where, FAST)
    kinds = [answer.kind for answer in answers.values()]
    counts = (result.page_count, result.redirect_count, result.failure_count, result.excluded_count)
    assert counts == tuple(map(kinds.count, (Kind.PAGE, Kind.REDIRECT, Kind.FAILURE, Kind.EXCLUDED)))
    assert (result.finished, result.directory) == (True, where)
    assert [record.url for record in result.pages()] == sorted(u for u, a in answers.items() if a.kind is Kind.PAGE)
    assert {record.url: record.depth for record in report(where)} == {url: answer.depth for url, answer in answers.items()}
    failures = list(result.failures())
    assert [failure.url for failure in failures] == sorted(u for u, a in answers.items() if a.kind is Kind.FAILURE)
    assert {(type(failure), failure.reason, failure.status) for failure in failures} == {(PageFailed, "http.client_error", 404)}


def test_a_crawl_goes_by_default_where_the_command_line_puts_it(
    server: SiteServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert crawl([f"{server.url}/"], config=Config(delay=0, max_pages=1)).directory == Path("127.0.0.1.crawl")
    assert len(list(report("127.0.0.1.crawl"))) == 1


def test_on_page_gets_each_page_once_and_one_at_a_time(server: SiteServer, where: Path) -> None:
    pages: list[Record] = []
    inside = threading.Lock()

    def on_page(record: Record) -> None:
        assert inside.acquire(blocking=False), "called twice at once"
        pages.append(record)
        inside.release()

    result = crawl([f"{server.url}/"], where, FAST, on_page=on_page)
    assert sorted(record.url for record in pages) == [record.url for record in result.pages()]
    assert {record.kind for record in pages} == {Kind.PAGE}
    assert resume(where, on_page=on_page).page_count == len(pages) == 60


def test_on_page_is_called_before_the_checkpoint_that_holds_the_page(server: SiteServer, where: Path) -> None:
    acknowledged: list[int] = []

    def on_page(_: Record) -> None:
        acknowledged.append(read_summary(where).counters.pages)

    crawl([f"{server.url}/"], where, Config(delay=0, checkpoint_interval=0.001), on_page=on_page)
    assert all(pages <= called for called, pages in enumerate(acknowledged))


@pytest.mark.parametrize("at", [1, 2, 20])
def test_an_exception_of_on_page_stops_in_order_and_leaves_that_page_queued(server: SiteServer, where: Path, at: int) -> None:
    done: list[str] = []
    rejected: list[str] = []

    def on_page(record: Record) -> None:
        if len(done) == at - 1 and not rejected:
            rejected.append(record.url)
            raise Rejected(record.url)
        done.append(record.url)

    with pytest.raises(Rejected) as raised:
        crawl([f"{server.url}/"], where, FAST, on_page=on_page)
    assert [str(raised.value)] == rejected
    assert sorted(done) == [record.url for record in report(where) if record.kind is Kind.PAGE]
    assert read_summary(where).runs[-1].ended_s is not None
    made = len(server.log)
    result = resume(where, on_page=on_page)
    assert result.finished
    assert sorted(done) == [record.url for record in result.pages()]
    again = [server.url + request.target for request in server.log[made:]]
    assert rejected[0] in again
    assert not set(again) & set(done[: done.index(rejected[0])])


def test_a_timeout_is_told_by_its_type(where: Path) -> None:
    site = Site({"/": page("home", ["/slow", "/bad"]), "/slow": STALLED, "/bad": status(500)})
    with SiteServer(site) as server:
        result = crawl([f"{server.url}/"], where, Config(delay=0, retries=0, timeout=0.2, host_concurrency=4))
    bad, slow = result.failures()
    assert isinstance(slow, PageTimedOut)
    assert isinstance(slow, TimeoutError)
    assert not isinstance(bad, TimeoutError)
    assert (bad.reason, bad.status) == ("http.server_error", 500)
    assert (slow.reason, slow.url) == ("net.timeout", f"{server.url}/slow")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_stop_raises_crawl_cancelled_and_the_callers_handlers_come_back(
    server: SiteServer, where: Path, number: signal.Signals
) -> None:
    handled: list[int] = []

    def on_page(record: Record) -> None:
        if record.depth == 0:
            signal.raise_signal(number)

    before = signal.signal(number, lambda *_: handled.append(number))
    try:
        with pytest.raises(CrawlCancelled) as raised:
            crawl([f"{server.url}/"], where, FAST, on_page=on_page)
        assert handled == []
        signal.raise_signal(number)
        assert handled == [number]
    finally:
        signal.signal(number, before)
    assert raised.value.exit_status == 130
    assert len(list(report(where))) == 1
    assert resume(where).page_count == 60
    assert asked(server.log, "/") == 1


def test_a_crawl_in_another_thread_leaves_signals_alone(server: SiteServer, where: Path) -> None:
    results: list[int] = []
    thread = threading.Thread(target=lambda: results.append(crawl([f"{server.url}/"], where, FAST).page_count))
    thread.start()
    thread.join(60)
    assert results == [60]


def test_a_limit_leaves_a_crawl_unfinished_until_it_is_raised(server: SiteServer, where: Path) -> None:
    limited = crawl([f"{server.url}/"], where, Config(delay=0, host_concurrency=8, max_pages=7))
    assert (limited.finished, limited.page_count) == (False, 7)
    assert not resume(where).finished
    result = resume(str(where), changes={"max_pages": None, "workers": 3})
    assert (result.finished, result.page_count) == (True, 60)


def test_wrong_calls_are_told_by_their_type(server: SiteServer, where: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        crawl([], where)
    with pytest.raises(UsageError):
        crawl(["nobody.test"], where)
    with pytest.raises(ConfigError, match="workers"):
        Config(workers=0)
    with pytest.raises(StateError):
        resume(where)
    with pytest.raises(StateError):
        list(report(where))
    assert list(tmp_path.iterdir()) == []
    crawl([f"{server.url}/"], where, Config(delay=0, max_pages=1))
    with pytest.raises(StateExists):
        crawl([f"{server.url}/"], where)
    with pytest.raises(ConfigError, match="scope"):
        resume(where, changes={"scope": "any"})
    with pytest.raises(ConfigError, match="wrokers"):
        resume(where, changes={"wrokers": 3})
    assert issubclass(UsageError, CrawlError)
    assert issubclass(StateError, CrawlError)


def test_a_report_holds_the_crawl_while_it_is_read_and_lets_go(server: SiteServer, where: Path) -> None:
    crawl([f"{server.url}/"], where, Config(delay=0, max_pages=5))
    records = report(where)
    next(records)
    with pytest.raises(StateLocked, match=f"pid {os.getpid()}"):
        resume(where)
    records.close()  # type: ignore[attr-defined]
    assert resume(where).page_count == 5


def test_within_a_running_loop_the_waiting_calls_are_refused_and_leave_nothing(server: SiteServer, where: Path) -> None:
    async def main() -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(RuntimeError, match="running event loop"):
                crawl([f"{server.url}/"], where, FAST)

    asyncio.run(main())
    assert not where.exists()


def test_the_async_twins_do_the_same_beside_other_work(server: SiteServer, where: Path) -> None:
    pages: list[str] = []

    async def main() -> Any:
        ticks = 0

        async def tick() -> None:
            nonlocal ticks
            while True:
                ticks += 1
                await asyncio.sleep(0)

        ticking = asyncio.create_task(tick())
        first = await crawl_async(
            [f"{server.url}/"],
            where,
            Config(delay=0, host_concurrency=8, max_pages=10),
            on_page=lambda record: pages.append(record.url),
        )
        assert (first.page_count, len(pages)) == (10, 10)
        second = await resume_async(where, changes={"max_pages": None}, on_page=lambda record: pages.append(record.url))
        ticking.cancel()
        assert ticks > 10
        return second

    assert asyncio.run(main()).page_count == len(set(pages)) == len(pages) == 60


def test_two_crawls_run_in_one_loop(server: SiteServer, tmp_path: Path) -> None:
    async def main() -> list[int]:
        names = ("a", "b")
        results = await asyncio.gather(*(crawl_async([f"{server.url}/"], tmp_path / name, FAST) for name in names))
        return [result.page_count for result in results]

    assert asyncio.run(main()) == [60, 60]
    first, second = ([record.digest for record in report(tmp_path / name)] for name in ("a", "b"))
    assert first == second


def test_a_cancelled_crawl_checkpoints_what_has_settled(where: Path) -> None:
    routes = {"/": page("home", ["/a", "/stalled"]), "/a": page("a"), "/stalled": STALLED}
    with SiteServer(Site(routes)) as server:
        settled: list[str] = []

        async def main() -> None:
            both = asyncio.Event()

            def on_page(record: Record) -> None:
                settled.append(record.url)
                if len(settled) == 2:
                    both.set()

            config = Config(delay=0, host_concurrency=4, timeout=50, checkpoint_interval=3600)
            running = asyncio.create_task(crawl_async([f"{server.url}/"], where, config, on_page=on_page))
            await asyncio.wait_for(both.wait(), 30)
            assert read_summary(where).counters.pages == 0
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running

        asyncio.run(main())
        assert [record.url for record in report(where)] == sorted(settled)
        server.site = Site(routes | {"/stalled": page("c")})
        assert resume(where).page_count == 3
        assert (asked(server.log, "/"), asked(server.log, "/a"), asked(server.log, "/stalled")) == (1, 1, 2)


def test_a_crawl_cancelled_at_once_can_be_begun_again(server: SiteServer, where: Path) -> None:
    async def main() -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0):
                await crawl_async([f"{server.url}/"], where, FAST)

    asyncio.run(main())
    try:
        assert resume(where).page_count == 60
    except StateError:
        assert crawl([f"{server.url}/"], where, FAST).page_count == 60


def test_reading_results_is_lazy(server: SiteServer, where: Path) -> None:
    result = crawl([f"{server.url}/"], where, FAST)
    pages = result.pages()
    moved = where.with_name("moved.crawl")
    where.rename(moved)
    with pytest.raises(StateError):
        next(pages)
    assert len(list(report(moved))) == len(GRAPH.answers())
