"""What is shown of a crawl that runs: as values, which are sent, and why a host waits."""

import math
from enum import StrEnum

import msgspec

from crawlkit.engine.pace import Pace
from crawlkit.state.checkpoint import Summary
from crawlkit.state.hosts import HostRecord


class HostState(StrEnum):
    """Why a host is asked nothing now, or that it is; the first that holds counts."""

    DROPPED = "dropped"  # by the user: its URLs end without a request
    GIVEN_UP = "given_up"  # it failed too often: likewise
    HELD = "held"  # by the user
    BUDGET = "budget"  # it has all the pages that max_pages_per_host allows
    IN_FLIGHT = "in_flight"
    BREAKER = "breaker"  # it failed often, and is left alone for a while
    RETRY_AFTER = "retry_after"  # it asked to be left alone
    GAP = "gap"
    RETRY = "retry"  # all it has are URLs that are tried again later
    READY = "ready"
    IDLE = "idle"  # it has no URLs left


class HostFigures(msgspec.Struct, frozen=True, kw_only=True):
    """A host as `status` and `hosts` show it. `next_s` is in how many seconds it may be asked, null where that is open."""

    host: str
    state: HostState
    queued: int
    timed: int
    pages: int
    in_flight: int
    next_s: float | None


class Live(msgspec.Struct, frozen=True):
    """A running crawl at this moment."""

    summary: Summary
    pace: Pace
    paused: bool
    hosts: list[HostFigures]


def first_hosts(hosts: list[HostFigures], most: int) -> list[HostFigures]:
    """Return those of `hosts` that have work or are steered: up to `most`, those with most URLs first, then by name."""
    shown = [host for host in hosts if host.state is not HostState.IDLE]
    return sorted(shown, key=lambda host: (-host.queued - host.timed, host.host))[:most]


def host_figures(record: HostRecord, *, in_flight: int, next_s: float, now: float, is_spent: bool) -> HostFigures:
    """Return what is shown of a host; it may be asked in `next_s` seconds (infinity for: not before something is done)."""
    state = _state_of(record, in_flight=in_flight, next_s=next_s, now=now, is_spent=is_spent)
    waits = state in (HostState.HELD, HostState.BREAKER, HostState.RETRY_AFTER, HostState.GAP, HostState.READY)
    return HostFigures(
        host=record.name,
        state=state,
        queued=record.queued,
        timed=record.timed,
        pages=record.pages,
        in_flight=in_flight,
        next_s=round(max(0.0, next_s), 3) if waits and math.isfinite(next_s) else None,
    )


def _state_of(record: HostRecord, *, in_flight: int, next_s: float, now: float, is_spent: bool) -> HostState:  # noqa: PLR0911
    if record.dropped:
        return HostState.DROPPED
    if record.held_until_s > now:
        return HostState.HELD
    if record.queued + record.timed + record.sitemaps == 0:
        return HostState.IDLE
    if record.health.given_up:
        return HostState.GIVEN_UP
    if is_spent:
        return HostState.BUDGET
    if in_flight:
        return HostState.IN_FLIGHT
    if record.queued + record.sitemaps == 0:
        return HostState.RETRY
    if next_s <= 0:
        return HostState.READY
    if record.hold_until_s > now:
        return HostState.BREAKER if record.health.opens else HostState.RETRY_AFTER
    return HostState.GAP
