"""What is shown of a crawl that does not run, read from its records once: memory does not grow with the crawl."""

import heapq
from collections import Counter
from pathlib import Path

from crawlkit.engine.figures import HostFigures
from crawlkit.engine.lately import MOST_FAILURES, Answers, Failing, Lately
from crawlkit.engine.partitions import open_for_reading
from crawlkit.engine.resting import hosts_at_rest
from crawlkit.model import Kind, Record
from crawlkit.state.reading import CrawlReader


def read_at_rest(directory: Path, most_hosts: int, now: float) -> tuple[Lately, list[HostFigures]]:
    """Return what was met, over all runs (over time: in the last one), and the hosts with most URLs; StateError and kinds."""
    with open_for_reading(directory) as crawl:
        return _lately(crawl), hosts_at_rest(crawl, most_hosts, now)


def _lately(crawl: CrawlReader) -> Lately:
    began_s = crawl.runs[-1].started_s if crawl.runs else 0.0
    answers, statuses = Answers(), Counter[str]()
    failures: list[tuple[float, str, Failing]] = []
    for record in crawl.pages.walk():
        at_s = record.fetched_at or 0.0
        statuses[str(record.status or record.reason)] += 1
        if record.status is not None and at_s >= began_s:
            answers.add(at_s, record.elapsed_ms or 0)
        if record.kind is Kind.FAILURE:
            keep = heapq.heappush if len(failures) < MOST_FAILURES else heapq.heappushpop
            keep(failures, (at_s, record.url, _failing(record, at_s)))
    latest = [failing for _, _, failing in sorted(failures, reverse=True)]
    return Lately(answers.timeline(), dict(sorted(statuses.items())), latest)


def _failing(record: Record, at_s: float) -> Failing:
    assert record.reason is not None
    said = record.message or (None if record.status is None else f"HTTP {record.status}")
    return Failing(at_s=at_s, url=record.url, reason=record.reason, message=said, attempt=record.attempts, again=False)
