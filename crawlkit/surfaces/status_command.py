"""`crawlkit status`: how far a crawl is, from `CHECKPOINT` alone, so that it works while the crawl runs."""

from enum import StrEnum
from pathlib import Path
from typing import Any

import click
import msgspec

from crawlkit.state.checkpoint import Run, Summary, read_summary
from crawlkit.state.counters import SitemapCounts, sitemap_counts
from crawlkit.state.directory import is_held, read_manifest


class CrawlCondition(StrEnum):
    """What a crawl is doing."""

    RUNNING = "running"
    STOPPED = "stopped"
    FINISHED = "finished"


class Status(msgspec.Struct, frozen=True, kw_only=True):
    """What `status --json` prints: figures as of the last checkpoint, over all runs."""

    state: CrawlCondition
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
    requests: int
    sitemaps: SitemapCounts
    pages_per_s: float
    elapsed_s: float
    deterministic: bool
    reasons: list[str]
    refused: dict[str, int]
    runs: list[Run]


@click.command("status")
@click.argument("directory", metavar="DIR", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def status_command(directory: Path, as_json: bool) -> None:
    """Say how far the crawl in DIR is (as of its last checkpoint; works while it runs)."""
    read_manifest(directory)
    status = status_of(read_summary(directory), running=is_held(directory))
    click.echo(msgspec.json.encode(status).decode() if as_json else _as_text(status))


def status_of(summary: Summary, *, running: bool) -> Status:
    """Return what a checkpoint's summary says of a crawl that runs or not."""
    counters = summary.counters
    at_rest = CrawlCondition.FINISHED if counters.finished else CrawlCondition.STOPPED
    in_flight = summary.in_flight if running else 0
    return Status(
        state=CrawlCondition.RUNNING if running else at_rest,
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
        requests=counters.requests,
        sitemaps=sitemap_counts(counters),
        pages_per_s=round(counters.pages / counters.elapsed_s, 3) if counters.elapsed_s > 0 else 0.0,
        elapsed_s=round(counters.elapsed_s, 3),
        deterministic=not counters.reasons,
        reasons=sorted(counters.reasons),
        refused=dict(sorted(counters.refused.items())),
        runs=summary.runs,
    )


def _as_text(status: Status) -> str:
    values: dict[str, Any] = msgspec.structs.asdict(status)
    runs: list[Run] = values.pop("runs")
    values["sitemaps"] = ", ".join(f"{name} {count}" for name, count in status.sitemaps.items())
    values["reasons"] = ", ".join(status.reasons) or "-"
    values["refused"] = ", ".join(f"{code} {count}" for code, count in status.refused.items()) or "-"
    lines = [f"{name.replace('_', ' '):14} {value}" for name, value in values.items()]
    for run in runs:
        ended = "killed, or running" if run.ended_s is None else run.how
        lines.append(f"run {run.number:<10} {ended}; {run.requests} requests, {run.checkpoints} checkpoints")
    return "\n".join(lines)
