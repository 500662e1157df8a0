"""`crawlkit explain`: what became of one URL and why, without a request."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path as FilePath

import click
import msgspec

from crawlkit.config import ValueKind, format_value
from crawlkit.engine.explain.answer import Explanation, HostStanding, Path
from crawlkit.engine.partitions import Partitions
from crawlkit.state.partitions import is_partitioned
from crawlkit.surfaces.control.explaining import explained, explained_by_partitions
from crawlkit.surfaces.standard_output import standard_output
from crawlkit.surfaces.terminal import printable


@click.command("explain")
@click.argument("directory", metavar="DIR", type=click.Path(path_type=FilePath))
@click.argument("url", metavar="URL")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def explain_command(directory: FilePath, url: str, as_json: bool) -> None:
    """Say why URL was, or was not, crawled by the crawl in DIR, and how to change that; no request is made.

    Ends with 0 whatever the verdict is, also if URL is no URL.
    """
    said = explained_by_partitions(Partitions.read(directory), url) if is_partitioned(directory) else explained(directory, url)
    text = msgspec.json.encode(said).decode() if as_json else "\n".join(map(printable, _lines(said)))
    with standard_output() as out:
        out.write(f"{text}\n".encode())


def _lines(said: Explanation) -> Iterator[str]:
    """Yield the verdict, then why, then how to have it otherwise, then the rest."""
    yield f"{said.url or said.typed}: {said.summary}"
    yield f"  code: {said.code}"
    if said.remedy is not None:
        yield f"  {said.remedy}"
    yield from (f"  {step.step}: {step.before!r} -> {step.after!r}" for step in said.steps)
    if said.url is None:
        return
    yield "rules"
    for ruling in said.rules:
        setting = f"  [{ruling.setting}]" if ruling.setting and not ruling.passed else ""
        yield f"  {ruling.rule}: {ruling.code}: {ruling.detail}{setting}"
    yield from _way_lines(said)
    yield from _history_lines(said)
    if said.host is not None:
        yield f"host {said.host.name}"
        yield from _host_lines(said.host)


def _way_lines(said: Explanation) -> Iterator[str]:
    if said.path is not None:
        yield f"path ({_quality(said.path)})"
        yield from (f"  {step.how}: {step.url}" for step in said.path.steps)
    if said.sources:
        yield f"sources: {', '.join(said.sources)}"
    if said.linked_from is not None:
        whole = "all" if said.linked_from.complete else "the first"
        yield f"linked from ({whole} {said.linked_from.searched:,} records were searched)"
        yield from (f"  {linker.how}: {linker.url}" for linker in said.linked_from.found)


def _quality(path: Path) -> str:
    if not path.complete:
        return "its beginning is not known any more"
    return "none is shorter" if path.shortest else "as first met; there is a shorter one, which was not searched for to its end"


def _history_lines(said: Explanation) -> Iterator[str]:
    attempts, record = said.attempts, said.record
    if attempts is not None:
        due = "" if attempts.due_at is None else f", due again at {_time(attempts.due_at)}"
        reason = "" if attempts.last_reason is None else f", the last one {attempts.last_reason}"
        yield f"attempts: {attempts.made}, {attempts.failed} of them failed{reason}{due}"
    if record is not None and record.fetched_at is not None:
        yield f"fetched: {_time(record.fetched_at)}, in {record.elapsed_ms} ms"
    if record is not None and record.duplicate_of is not None:
        yield f"duplicate of: {record.duplicate_of}"
    if record is not None and record.near_duplicate_of is not None:
        yield f"near duplicate of: {record.near_duplicate_of}"
    for place in said.archive:
        yield f"archived: {place.file}, {place.length} bytes from {place.offset} ({place.role}, {place.status})"


def _host_lines(host: HostStanding) -> Iterator[str]:
    yield f"  {host.pages} pages, {host.queued} queued, {host.waiting} waiting to be retried, {host.in_flight} in flight"
    slowed = f", slowed by {host.slowdown:g}" if host.slowdown > 1 else ""
    yield f"  gap: {format_value(ValueKind.DURATION, round(host.gap_s, 3))}{slowed}; breaker: {host.breaker}"
    if host.hold_until is not None:
        yield f"  asks to be left alone until {_time(host.hold_until)}"
    if host.held or host.dropped:
        yield f"  {'dropped' if host.dropped else 'held until it is released'}"
    if host.next_start is not None:
        yield f"  next request not before {_time(host.next_start)}"


def _time(at_s: float) -> str:
    return datetime.fromtimestamp(at_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
