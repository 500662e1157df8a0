"""crawlkit from Python: `crawl`, `resume` and `report`, each with an `async` twin where it waits."""

from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crawlkit.config import Config
from crawlkit.engine.ending import Ending
from crawlkit.engine.loop import Loop
from crawlkit.engine.runner import run_async
from crawlkit.engine.session import Hooks, Outcome, Surroundings, begin, default_directory, go_on
from crawlkit.engine.signals import stopping_on_signals
from crawlkit.errors import CrawlCancelled, PageFailed, PageTimedOut
from crawlkit.model import Kind, Reason, Record
from crawlkit.surfaces.control.client import open_crawl
from crawlkit.surfaces.control.server import serving

OnPage = Callable[[Record], object]

_STOPPED = frozenset({Ending.SIGINT, Ending.SIGTERM, Ending.CANCELLED})


@dataclass(frozen=True, slots=True)
class CrawlResult:
    """What a crawl came to: counts of all runs, and the records, read from its directory when asked for.

    `finished` is False where a limit left something to go on with.
    """

    directory: Path
    finished: bool
    page_count: int
    redirect_count: int
    failure_count: int
    excluded_count: int

    def pages(self) -> Iterator[Record]:
        """Yield the pages, sorted by the bytes of their URL."""
        return (record for record in report(self.directory) if record.kind is Kind.PAGE)

    def failures(self) -> Iterator[PageFailed]:
        """Yield what failed, in the order of URLs: `PageTimedOut` (a TimeoutError) where it was the timeout."""
        return (_failure(record) for record in report(self.directory) if record.kind is Kind.FAILURE)


def crawl(
    seeds: Sequence[str], dir: str | Path | None = None, config: Config | None = None, *, on_page: OnPage | None = None
) -> CrawlResult:
    """Crawl from `seeds` into the directory `dir` (by default `<host of the first seed>.crawl`) until it ends.

    `on_page` is called with each page, one at a time, before the checkpoint that holds it: once, and again only over a
    crash. What it raises stops the crawl in order, leaves that page queued, and is raised here.

    Raises:
        UsageError: there is no seed, or one is no URL.
        StateError: the directory cannot be used; StateExists if it holds a crawl.
        StorageError: writing failed.
        CrawlCancelled: SIGINT or SIGTERM stopped it; `resume` goes on.
    """
    return _wait_for(lambda around: _crawl(seeds, dir, config, on_page, around))


async def crawl_async(
    seeds: Sequence[str], dir: str | Path | None = None, config: Config | None = None, *, on_page: OnPage | None = None
) -> CrawlResult:
    """Do as `crawl` within a running event loop. Cancelled, it checkpoints first; signals are the caller's."""
    return await _crawl(seeds, dir, config, on_page, nullcontext)


def resume(dir: str | Path, *, changes: Mapping[str, object] | None = None, on_page: OnPage | None = None) -> CrawlResult:
    """Go on with the crawl in `dir`; `changes` are settings to change, by key.

    Raises what `crawl` raises, and ConfigError for a setting that may not change.
    """
    return _wait_for(lambda around: _resume(dir, changes, on_page, around))


async def resume_async(
    dir: str | Path, *, changes: Mapping[str, object] | None = None, on_page: OnPage | None = None
) -> CrawlResult:
    """Do as `resume` within a running event loop."""
    return await _resume(dir, changes, on_page, nullcontext)


def report(dir: str | Path) -> Iterator[Record]:
    """Yield the records of a crawl, of its last checkpoint if it runs, sorted by the bytes of their URL; memory does not grow.

    Raises:
        StateError: the directory holds no crawl, or is in use and does not answer (StateLocked).
    """
    with open_crawl(Path(dir)) as crawl:
        yield from crawl.pages.walk_marked()


Around = Callable[[Loop], AbstractContextManager[object]]


def _wait_for(session: Callable[[Around], Coroutine[Any, Any, CrawlResult]]) -> CrawlResult:
    with stopping_on_signals(before_exit=lambda: None) as stopper:
        return run_async(session(stopper.around))


async def _crawl(
    seeds: Sequence[str], dir: str | Path | None, config: Config | None, on_page: OnPage | None, around: Around
) -> CrawlResult:
    directory = default_directory(seeds) if dir is None else Path(dir)
    hooks = Hooks(on_page=on_page, around=around, beside=serving)
    return _result(await begin(seeds, directory, config or Config(), hooks, Surroundings()))


async def _resume(dir: str | Path, changes: Mapping[str, object] | None, on_page: OnPage | None, around: Around) -> CrawlResult:
    hooks = Hooks(on_page=on_page, around=around, beside=serving)
    return _result(await go_on(Path(dir), changes or {}, hooks, Surroundings()))


def _result(outcome: Outcome) -> CrawlResult:
    if outcome.how in _STOPPED:
        raise CrawlCancelled(f"the crawl in {outcome.directory} was stopped; resume goes on with it")
    counters = outcome.counters
    return CrawlResult(
        directory=outcome.directory,
        finished=counters.finished,
        page_count=counters.pages,
        redirect_count=counters.redirects,
        failure_count=counters.failures,
        excluded_count=counters.excluded,
    )


def _failure(record: Record) -> PageFailed:
    reason = record.reason
    assert reason is not None
    kind = PageTimedOut if reason is Reason.TIMEOUT else PageFailed
    return kind(record.url, reason, record.status)
