"""When a host may be asked again: the next start follows from what happened and from the settings in force."""

from typing import Protocol

import msgspec


class Contacted(Protocol):
    """Whatever tells when a host was asked, and asked to be left alone, as a `Contact` does."""

    @property
    def last_start_s(self) -> float:
        """When the last request began."""

    @property
    def last_end_s(self) -> float:
        """When it ended."""

    @property
    def hold_until_s(self) -> float:
        """Until when the host wants to be left alone."""


class Contact(msgspec.Struct, frozen=True):
    """What a host has to do with when it may be asked next. Seconds since the epoch, 0 for never."""

    last_start_s: float
    last_end_s: float
    hold_until_s: float


def gap_s(delay_s: float, crawl_delay_s: float) -> float:
    """Return the gap in force: ours or the host's Crawl-delay, whichever is longer."""
    return max(delay_s, crawl_delay_s)


def is_too_long(crawl_delay_s: float | None, most_s: float) -> bool:
    """Whether a Crawl-delay (None for none) is above what is accepted, so that the host is left alone altogether."""
    return crawl_delay_s is not None and crawl_delay_s > most_s


def next_start_s(contact: Contacted, gap: float, concurrency: int, not_before_s: float) -> float:
    """Return the earliest time for the next request to a host.

    A gap after the start of the request before; with one request at a time also a gap after its end, so that a slow host
    is not asked without pause. `not_before_s` holds for every host: a gap after an unclean end.
    """
    earliest = max(contact.last_start_s + gap, contact.hold_until_s, not_before_s)
    return max(earliest, contact.last_end_s + gap) if concurrency == 1 else earliest


def without_jump(contact: Contact, now: float) -> Contact:
    """Return `contact` moved back if it lies ahead of `now`, as after a wall clock that was set back.

    What was to be waited after the last contact is still waited, counted from now, and no longer.
    """
    ahead = max(contact.last_start_s, contact.last_end_s) - now
    if ahead <= 0:
        return contact
    return Contact(min(contact.last_start_s, now), min(contact.last_end_s, now), max(0.0, contact.hold_until_s - ahead))
