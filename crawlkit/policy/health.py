"""How a host is doing, and what we owe it: the circuit breaker and the slowed rate.

The breaker opens after consecutive connection-level failures, or when most of the latest answers are server errors. Open, the
host is left alone for a pause; then one request probes it (half-open). If that fails too the pause doubles; after a bound the
host is given up and its remaining URLs end. This spares a host that is down, and us the waiting (Nygard, Release It!, 2007).

429 and 503 halve the rate; each good answer takes back a little of that, so a host that complains is asked slowly for long,
and error answers, which come fast, never speed it up.
"""

from enum import Enum, auto

import msgspec

from crawlkit.model import Health, Reason

STRIKES_TO_OPEN = 5
"""Consecutive connection-level failures that open the breaker; one URL with the default retries makes four."""

ERROR_SHARE_TO_OPEN = 0.8
ERROR_SHARE_STEP = 0.05
"""Share of server errors among the latest answers (a moving average over about twenty) that opens it too."""

FIRST_PAUSE_S = 30.0
LONGEST_PAUSE_S = 3600.0
OPENS_TO_GIVE_UP = 6
"""Pauses of 30 s to 8 minutes without one good answer between them, a quarter of an hour in all, before a host is given up."""

MOST_SLOWDOWN = 64.0
RECOVERY = 0.95
MOST_SLOWED_GAP_S = 60.0
LEAST_SLOWED_GAP_S = 0.25
"""What a slowed rate is measured from where there is no gap at all, and the gap that slowing down ends at."""


class Signal(Enum):
    """What one request says of its host."""

    GOOD = auto()  # an answer below 400
    REFUSAL = auto()  # another answer: the host is there, but is asked no faster for it
    COMPLAINT = auto()  # 429 or 503
    ERROR = auto()  # another server error
    NO_CONTACT = auto()  # no answer: the connection failed or broke, or time ran out
    NOTHING = auto()  # it was not asked, or its answer was not what failed


class Change(msgspec.Struct, frozen=True):
    """A host's health after a request, and for how many seconds the breaker holds it."""

    health: Health
    pause_s: float = 0.0


_GOOD = Signal.GOOD  # looked up once (`model`)
_WELL = Health()
_STAYS_WELL = Change(_WELL)

_NOT_ASKED = frozenset({Reason.ADDRESS, Reason.HOOK_FAILED})

# A proxy that is down is no host's fault; but pausing for it is what spares the URLs until it is back.
_NO_CONTACT = frozenset(
    {Reason.DNS, Reason.NAME_NOT_FOUND, Reason.CONNECT, Reason.TLS, Reason.RESET, Reason.TIMEOUT, Reason.PROXY}
)


def signal_of(status: int | None, reason: Reason | None) -> Signal:
    """Return what an answer's status, or the reason that there was none, says of the host."""
    if reason is not None and reason in _NOT_ASKED:
        return Signal.NOTHING
    if status is None:
        return Signal.NO_CONTACT if reason in _NO_CONTACT else Signal.REFUSAL
    if status < 400:
        return _GOOD
    if status in (429, 503):
        return Signal.COMPLAINT
    return Signal.ERROR if 500 <= status < 600 else Signal.REFUSAL


def after(health: Health, signal: Signal) -> Change:
    """Return what becomes of a host's health with one more signal."""
    if signal is _GOOD and health == _WELL:
        return _STAYS_WELL
    match signal:
        case Signal.NOTHING:
            return Change(health)
        case Signal.GOOD | Signal.REFUSAL:
            slowdown = max(1.0, health.slowdown * RECOVERY) if signal is Signal.GOOD else health.slowdown
            return Change(Health(error_share=health.error_share * (1 - ERROR_SHARE_STEP), slowdown=slowdown))
        case Signal.COMPLAINT:
            slowdown = min(MOST_SLOWDOWN, health.slowdown * 2)
            return Change(Health(error_share=health.error_share, slowdown=slowdown))
        case Signal.ERROR:
            share = health.error_share + (1 - health.error_share) * ERROR_SHARE_STEP
            failing = share > ERROR_SHARE_TO_OPEN
            now = Health(strikes=0, error_share=share, opens=health.opens if failing else 0, slowdown=health.slowdown)
            return _open(now) if failing else Change(now)
        case Signal.NO_CONTACT:
            strikes = health.strikes + 1
            now = Health(strikes, health.error_share, health.opens, health.slowdown)
            return _open(now) if strikes >= STRIKES_TO_OPEN or health.opens else Change(now)


def _open(health: Health) -> Change:
    """Open the breaker (again): a pause twice as long as the last one, or the end of patience."""
    opens = health.opens + 1
    given_up = opens > OPENS_TO_GIVE_UP
    pause_s = 0.0 if given_up else min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2 ** (opens - 1))
    return Change(Health(0, health.error_share, opens, health.slowdown, given_up), pause_s)


def slowed_gap_s(gap_s: float, health: Health) -> float:
    """Return the gap in force for a host whose rate was lowered."""
    return (
        max(gap_s, min(MOST_SLOWED_GAP_S, max(gap_s, LEAST_SLOWED_GAP_S) * health.slowdown)) if health.slowdown > 1 else gap_s
    )


def concurrency_of(health: Health, most: int) -> int:
    """Return how many requests may be in flight to the host: one while the breaker is half-open."""
    return 1 if health.opens else most
