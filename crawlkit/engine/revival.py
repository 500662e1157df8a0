"""Failures that are to be tried again: taken back from the records into the queue, as if they had never been fetched."""

import itertools
from collections.abc import Iterable

from crawlkit.engine.coordinator import Coordinator
from crawlkit.errors import UsageError
from crawlkit.exchange import Role
from crawlkit.model import Health, Kind, OrderReason, Reason, Record
from crawlkit.policy.disposition import is_transient
from crawlkit.policy.urls import host_of, origin_of
from crawlkit.state.crawl import CrawlState
from crawlkit.state.pages import reported_kind

RECORDS_A_BATCH = 1_000


def read_reasons(text: str) -> frozenset[Reason]:
    """Return the reasons named in a list with commas, all for an empty one; UsageError names the nearest to an unknown one."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    for name in names:
        if name not in set(Reason):
            from difflib import get_close_matches  # noqa: PLC0415  (1 ms of a start, which few need)

            near = get_close_matches(name, list(Reason), n=1, cutoff=0.0)[0]
            raise UsageError(f"--retry-failed: unknown reason {name!r}; the nearest known one is {near}")
    return frozenset(map(Reason, names)) if names else frozenset(Reason)


def revive(state: CrawlState, coordinator: Coordinator, reasons: frozenset[Reason], now: float) -> int:
    """Queue the URLs whose records are failures for one of `reasons`; return how many.

    Their hosts start anew: breaker closed, verdicts on an unreachable robots.txt forgotten. Each batch is a checkpoint of its
    own, so a kill leaves some revived and the others as they were; calling this again goes on.
    """
    left: set[Reason] = set()
    revived = 0
    records = state.pages.walk()
    while batch := list(itertools.islice(records, RECORDS_A_BATCH)):
        chosen = [r for r in batch if r.kind is Kind.FAILURE and r.redirect_to is None and r.reason in reasons]
        left.update(r.reason for r in batch if r.reason is not None and r not in chosen)
        revived += len(chosen)
        if chosen:
            _revive(state, chosen)
            coordinator.freeze(now).write()
            state.installed()
    if revived:
        _keep_reasons(state, left)
        coordinator.look_again()
    return revived


def _revive(state: CrawlState, records: Iterable[Record]) -> None:
    for record in records:
        host = state.hosts.get(host_of(record.url)).record
        host.health = Health()
        if record.reason is Reason.HOST_DROPPED:
            host.dropped = False
        requeue(state, record)
        state.origins.forget_outage(origin_of(record.url))


def requeue(state: CrawlState, record: Record) -> None:
    """Take a record back: its URL is queued at the distances it has, as if it had never been fetched."""
    host = state.hosts.get(host_of(record.url))
    state.frontier.revive(record.url, host, record.via)
    state.pages.remove(record.url)
    for extent in state.extents.of_url(record.url):
        if extent.role is Role.RECORD:
            state.extents.supersede(extent)
    state.counters.settled(reported_kind(record), -1)
    state.counters.body_bytes -= record.body_bytes or 0
    if record.kind is Kind.PAGE:
        host.record.pages -= 1
    state.hosts.changed(host)
    state.counters.finished = False


def _keep_reasons(state: CrawlState, left: Iterable[Reason]) -> None:
    """Forget what made the report depend on time, where no record is left that does."""
    counters = state.counters
    if not any(is_transient(reason) for reason in left):
        counters.reasons.discard(OrderReason.TRANSIENT)
    if Reason.HOST_GIVEN_UP not in set(left):
        counters.reasons.discard(OrderReason.HOST_GIVEN_UP)
