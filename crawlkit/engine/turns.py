"""When a host may be asked next, by its record and the settings: one answer for who asks it and for who explains."""

from collections.abc import Iterable

from crawlkit.config import Config
from crawlkit.policy import politeness
from crawlkit.policy.health import slowed_gap_s
from crawlkit.rendering import Contact
from crawlkit.state.crawl import CrawlState
from crawlkit.state.hosts import HostRecord


def gap_in_force_s(record: HostRecord, config: Config) -> float:
    """Return the gap between requests to a host: ours, its Crawl-delay, or a longer one if it complained."""
    return slowed_gap_s(politeness.gap_s(config.delay, record.crawl_delay_s), record.health)


def earliest_start_s(record: HostRecord, config: Config, quiet_from_s: float | None, now: float) -> float:
    """Return the earliest time for the next request: at once for a host of which nothing is asked any more, never for one held.

    A full gap after `quiet_from_s` passes first (None for no such time).
    """
    if record.is_over:
        return now
    gap_s = gap_in_force_s(record, config)
    floor = record.held_until_s if quiet_from_s is None else max(record.held_until_s, quiet_from_s + gap_s)
    return politeness.next_start_s(record, gap_s, config.host_concurrency, floor)


def is_spent(record: HostRecord, config: Config, claims: int = 0) -> bool:
    """Whether the limit on a host's pages is reached, by records and claims together. A dropped host is to end all the same."""
    limit = config.max_pages_per_host
    return limit is not None and record.pages + claims >= limit and not record.dropped


def contact_of(record: HostRecord) -> politeness.Contact:
    """Return what a host's record says of when it was asked and asked to be left alone."""
    return politeness.Contact(record.last_start_s, record.last_end_s, record.hold_until_s)


def note_contacts(state: CrawlState, contacts: Iterable[Contact]) -> None:
    """Take in that hosts were asked for what a page needed to be rendered; when, only of hosts that are the crawl's own."""
    for contact in contacts:
        state.counters.requests += contact.requests
        if state.hosts.peek(contact.host) is None:
            continue
        host = state.hosts.get(contact.host)
        record = host.record
        record.last_start_s = max(record.last_start_s, contact.started_s)
        record.last_end_s = max(record.last_end_s, contact.ended_s)
        if contact.hold_s:
            record.hold_until_s = max(record.hold_until_s, contact.ended_s + contact.hold_s)
        state.hosts.changed(host)
