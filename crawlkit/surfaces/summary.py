"""What is said when a run has ended."""

from collections.abc import Iterator

from crawlkit.engine.ending import Ending
from crawlkit.engine.session import BarrenSeed, Outcome
from crawlkit.policy.urls import host_of
from crawlkit.sentences import SENTENCES
from crawlkit.shell import as_argument
from crawlkit.state.counters import sitemap_counts

_HOW = {
    Ending.FINISHED: "finished",
    Ending.LIMIT_PAGES: "stopped: the limit on pages is reached; --set max_pages=N goes beyond it",
    Ending.LIMIT_HOST: "stopped: the limit on pages of a host is reached; --set max_pages_per_host=N goes beyond it",
    Ending.LIMIT_TIME: "stopped: the limit on time is reached; --set max_time=DURATION goes beyond it",
    Ending.SIGINT: "stopped by SIGINT",
    Ending.SIGTERM: "stopped by SIGTERM",
    Ending.CANCELLED: "stopped",
    Ending.HOOK: "stopped by an exception of the caller",
    Ending.HELD: "stopped: all that is left is at hosts that are held (crawlkit hosts DIR release HOST, then resume)",
    Ending.LOW_SPACE: "stopped: the disk has too little space left",
}


def reasons_of_barren(outcome: Outcome) -> list[str]:
    """Return why there is no page, where there is none."""
    return [line for seed in outcome.barren for line in _barren(seed)]


def summary_lines(outcome: Outcome, *, details: bool) -> list[str]:
    """Return the lines that tell how a run ended."""
    counters = outcome.counters
    rate = counters.records / counters.elapsed_s if counters.elapsed_s > 0 else 0.0
    lines = [
        f"crawlkit: {_HOW[outcome.how]}",
        f"  {_count(counters.pages, 'page')}, {_count(counters.redirects, 'redirect')}, "
        f"{_count(counters.failures, 'failure')}, {counters.excluded} excluded, {counters.queued} left; "
        f"{counters.elapsed_s:.1f} s, {rate:.1f}/s",
        *(_details(outcome) if details else ()),
    ]
    if counters.sitemaps_read or counters.sitemaps_failed or counters.sitemaps:
        sitemaps = ", ".join(f"{count} {name}" for name, count in sitemap_counts(counters).items())
        lines.append(f"  sitemaps: {sitemaps}")
    if counters.reasons:
        lines.append(f"  depends on order or time: {', '.join(sorted(counters.reasons))}")
    lines.append(f"  report: crawlkit report {as_argument(outcome.directory)}")
    return lines


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _details(outcome: Outcome) -> Iterator[str]:
    counters = outcome.counters
    yield f"  {_count(counters.requests, 'request')}, {_count(counters.hosts, 'host')}, {counters.body_bytes} bytes of bodies"
    if counters.refused:
        yield "  links not admitted: " + ", ".join(f"{code} {count}" for code, count in sorted(counters.refused.items()))


def _barren(seed: BarrenSeed) -> Iterator[str]:
    """Say why a seed led to no page."""
    record = seed.record
    if seed.left_scope and record.redirect_to is not None:
        same_host = host_of(record.url) == host_of(record.redirect_to)
        remedy = "--scope host" if same_host else "--scope domain"
        yield f"seed {record.url} redirected out of scope to {record.redirect_to}: use that as seed, or {remedy}"
    elif record.reason is not None:
        words = record.reason if record.message is None else f"{record.reason}: {record.message}"
        yield f"seed {record.url} led to no page: {SENTENCES[record.reason]} ({words})"
    elif record.redirect_to is not None:
        yield f"seed {record.url} led to no page: it redirected to {record.redirect_to}"
