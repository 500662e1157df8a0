"""Code as a user writes it, never run: it has to type-check under mypy's strict rules, which `scripts/check` sees to."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import assert_type

import crawlkit
from crawlkit import (
    Config,
    CrawlCancelled,
    CrawlError,
    CrawlResult,
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


def first_steps() -> None:
    result = crawl(["https://example.com/"], dir="example.crawl", config=Config(max_depth=2), on_page=print)
    assert_type(result, CrawlResult)
    for record in report("example.crawl"):
        assert_type(record, Record)
        assert_type(record.url, str)
        assert_type(record.kind, Kind)
        assert_type(record.status, int | None)
        assert_type(record.links, tuple[str, ...])


def results(result: CrawlResult) -> tuple[int, int]:
    assert_type(result.pages(), Iterator[Record])
    timeouts = [failure for failure in result.failures() if isinstance(failure, PageTimedOut)]
    assert_type(timeouts, list[PageTimedOut])
    others: list[PageFailed] = [failure for failure in result.failures() if not isinstance(failure, TimeoutError)]
    assert_type(result.directory, Path)
    assert_type(result.finished, bool)
    return result.page_count, len(timeouts) + len(others)


class Sink:
    def __init__(self) -> None:
        self.titles: list[str] = []

    def take(self, page: Record) -> None:
        if page.title is not None:
            self.titles.append(page.title)


def until_it_is_done(directory: Path, sink: Sink) -> CrawlResult:
    config = Config(workers=8, delay=0.5, timeout=5, include=("/docs/",), max_pages=None, max_body=1024, robots=True)
    try:
        return crawl(["https://example.com/"], directory, config, on_page=sink.take)
    except CrawlCancelled:
        return resume(directory, changes={"workers": 4, "delay": "2s"}, on_page=sink.take)
    except CrawlError as error:
        raise SystemExit(int(error.exit_status)) from error


async def beside_other_work() -> None:
    crawling = asyncio.create_task(crawl_async(["https://example.com/"], "example.crawl"))
    assert_type(await crawling, CrawlResult)
    assert_type(await resume_async("example.crawl"), CrawlResult)


def pages_only(records: Iterator[Record]) -> Iterator[str]:
    return (record.url for record in records if record.kind is crawlkit.Kind.PAGE)
