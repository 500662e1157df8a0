"""How far a crawl is: what `status` shows, from a running crawl's own answer or from what its last checkpoint says."""

import os
from enum import StrEnum
from pathlib import Path
from typing import Any

import msgspec

from crawlkit.engine.figures import HostFigures, Live
from crawlkit.state.checkpoint import Run, Summary
from crawlkit.state.counters import SitemapCounts, sitemap_counts
from crawlkit.state.space import free_bytes

BASIS = "URLs that wait / URLs settled a second over the last {over:.0f} s; new ones still come, so no sooner than that"

_STEERED_SHOWN = 5
"""Orders that are shown of each run, the latest."""


class CrawlCondition(StrEnum):
    """What a crawl is doing."""

    RUNNING = "running"
    STOPPED = "stopped"
    FINISHED = "finished"


class PartitionStatus(msgspec.Struct, frozen=True, kw_only=True):
    """A partition in figures like those of `Status`; `nodes` are the virtual nodes that it owns."""

    number: int
    state: CrawlCondition
    live: bool
    nodes: int
    pages: int
    failures: int
    queued: int
    in_flight: int
    seen: int
    hosts: int
    requests: int


class Status(msgspec.Struct, frozen=True, kw_only=True):
    """What `status --json` prints: figures over all runs, of this moment if `live`, else as of the last checkpoint.

    `recent_per_s` counts URLs of any kind that settled lately, `eta_s` is null where nothing can be said, `disk_bytes` is
    what the directory takes, `waiting` names hosts. `partitions` is there only for a crawl that has some.
    """

    state: CrawlCondition
    live: bool
    paused: bool
    pages: int
    redirects: int
    failures: int
    excluded: int
    queued: int
    in_flight: int
    seen: int
    hosts: int
    bytes: int
    archive_bytes: int
    disk_bytes: int
    disk_free_bytes: int
    requests: int
    sitemaps: SitemapCounts
    pages_per_s: float
    recent_per_s: float | None
    eta_s: float | None
    eta_basis: str | None
    elapsed_s: float
    deterministic: bool
    reasons: list[str]
    refused: dict[str, int]
    runs: list[Run]
    waiting: list[HostFigures]
    partitions: list[PartitionStatus] | msgspec.UnsetType = msgspec.UNSET


def live_status(live: Live, directory: Path) -> Status:
    """Return the status of a crawl that runs, by its own answer."""
    status = status_of(live.summary, directory, running=True)
    pace = live.pace
    recent_per_s = pace.settled / pace.over_s if pace.over_s > 0 else None
    left = status.queued + status.in_flight
    can_tell = bool(recent_per_s) and not live.paused
    return msgspec.structs.replace(
        status,
        live=True,
        paused=live.paused,
        recent_per_s=None if recent_per_s is None else round(recent_per_s, 3),
        eta_s=round(left / recent_per_s, 1) if recent_per_s and can_tell else None,
        eta_basis=BASIS.format(over=pace.over_s) if can_tell else None,
        waiting=live.hosts,
    )


def status_of(summary: Summary, directory: Path, *, running: bool) -> Status:
    """Return what a checkpoint's summary says of a crawl that runs or not."""
    counters = summary.counters
    at_rest = CrawlCondition.FINISHED if counters.finished else CrawlCondition.STOPPED
    in_flight = summary.in_flight if running else 0
    return Status(
        state=CrawlCondition.RUNNING if running else at_rest,
        live=False,
        paused=False,
        pages=counters.pages,
        redirects=counters.redirects,
        failures=counters.failures,
        excluded=counters.excluded,
        queued=counters.queued - in_flight,
        in_flight=in_flight,
        seen=counters.seen,
        hosts=counters.hosts,
        bytes=counters.body_bytes,
        archive_bytes=summary.archive_bytes,
        disk_bytes=_bytes_in(directory),
        disk_free_bytes=free_bytes(directory),
        requests=counters.requests,
        sitemaps=sitemap_counts(counters),
        pages_per_s=round(counters.pages / counters.elapsed_s, 3) if counters.elapsed_s > 0 else 0.0,
        recent_per_s=None,
        eta_s=None,
        eta_basis=None,
        elapsed_s=round(counters.elapsed_s, 3),
        deterministic=not counters.reasons,
        reasons=sorted(counters.reasons),
        refused=dict(sorted(counters.refused.items())),
        runs=summary.runs,
        waiting=[],
    )


def _bytes_in(directory: Path) -> int:
    """Return how much the files of a crawl take; one that is removed while we look counts for nothing."""
    total = 0
    for place, _, names in os.walk(directory):
        for name in names:
            try:
                total += (Path(place) / name).stat().st_blocks * 512  # the filter is a sparse file
            except OSError:
                continue
    return total


def as_text(status: Status) -> str:
    """Return a status for people: a line a figure, then the runs, then the hosts."""
    values: dict[str, Any] = msgspec.structs.asdict(status)
    runs: list[Run] = values.pop("runs")
    waiting: list[HostFigures] = values.pop("waiting")
    partitions: list[PartitionStatus] | msgspec.UnsetType = values.pop("partitions")
    values["live"] = "yes" if status.live else "no, as of the last checkpoint"
    values["paused"] = "yes: crawlkit continue goes on" if status.paused else "no"
    values["sitemaps"] = ", ".join(f"{name} {count}" for name, count in status.sitemaps.items())
    values["deterministic"] = "yes" if status.deterministic else "no"
    values["reasons"] = ", ".join(status.reasons) or "-"
    values["refused"] = ", ".join(f"{code} {count}" for code, count in status.refused.items()) or "-"
    lines = [f"{name.replace('_', ' '):15} {'-' if value is None else value}" for name, value in values.items()]
    for run in runs:
        going_on = "running" if run is runs[-1] and status.state is CrawlCondition.RUNNING else "killed"
        ended = going_on if run.ended_s is None else run.how
        lines.append(f"run {run.number:<11} {ended}; {run.requests} requests, {run.checkpoints} checkpoints")
        lines += [f"  {event.action} {event.what or ''}".rstrip() for event in run.steered[-_STEERED_SHOWN:]]
    lines += [f"partition {_partition_text(part)}" for part in partitions or ()]
    lines += [f"host {host_text(host)}" for host in waiting]
    return "\n".join(lines)


def _partition_text(part: PartitionStatus) -> str:
    share = f"{part.nodes} virtual nodes" if part.nodes else "owns nothing any more"
    figures = f"{part.pages} pages, {part.queued} queued, {part.in_flight} in flight, {part.seen} seen, {part.hosts} hosts"
    return f"{part.number:03} {part.state}; {figures}; {share}"


def as_line(status: Status) -> str:
    """Return a status as one line, for a log."""
    figures = [
        f"{status.pages:,} pages",
        f"{status.queued:,} queued",
        f"{status.in_flight} in flight",
        f"{status.failures:,} failures",
        f"{'-' if status.recent_per_s is None else f'{status.recent_per_s:.1f}'}/s",
        f"eta {'-' if status.eta_s is None else f'{status.eta_s:.0f} s'}",
    ]
    return f"{status.state}{' (paused)' if status.paused else ''}: {', '.join(figures)}"


def host_text(host: HostFigures) -> str:
    """Return a host for people: its name, what it waits for and for how long, and its URLs."""
    wait = "" if host.next_s is None else f" {host.next_s:.1f} s"
    flight = f", {host.in_flight} in flight" if host.in_flight else ""
    return f"{host.host} {host.state}{wait}; {host.queued} queued, {host.timed} to be tried again, {host.pages} pages{flight}"
