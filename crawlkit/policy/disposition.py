"""What one fetch leads to, as data: a record, or another try later; and what it means for the host."""

from http import HTTPStatus

import msgspec

from crawlkit.model import Facts, FetchFailure, Kind, Reason
from crawlkit.policy import retry

REDIRECTS = frozenset({301, 302, 303, 307, 308})
"""The statuses that send on to a Location (RFC 9110 section 15.4); 300 and 304 are answers."""


class Done(msgspec.Struct, frozen=True):
    """The URL settles as `kind`; `message` is the library's own words."""

    kind: Kind
    reason: Reason | None = None
    message: str | None = None


class Again(msgspec.Struct, frozen=True):
    """The failure may pass: try once more in `wait_s` seconds."""

    wait_s: float
    reason: Reason


class Disposition(msgspec.Struct, frozen=True):
    """The outcome for the URL, and for how many seconds its host asked to be left alone (0 for not)."""

    outcome: Done | Again
    hold_s: float = 0.0


_IS_PAGE = Disposition(Done(Kind.PAGE))


def dispose(
    url: str, failed_before: int, answer: Facts | FetchFailure, retries: int, now: float, max_retry_after_s: float
) -> Disposition:
    """Decide what `answer` leads to, after `failed_before` failed fetches of `url`, at time `now`."""
    match answer:
        case FetchFailure(reason, message):
            return _failed(url, failed_before + 1, Done(Kind.FAILURE, reason, message), retries, None)
        case Facts(status=status) if status in REDIRECTS:
            done = Done(Kind.REDIRECT) if answer.location else Done(Kind.FAILURE, Reason.NO_LOCATION)
            return Disposition(done)
        case Facts(status=status):
            failed = retry.reason_of_status(status)
            if failed is None:
                return _IS_PAGE
            asked_s = None if answer.retry_after is None else retry.retry_after_s(answer.retry_after, now, max_retry_after_s)
            done = Done(Kind.FAILURE, failed, f"HTTP {status}")
            return _failed(url, failed_before + 1, done, retries, asked_s, status)


def _failed(url: str, attempts: int, done: Done, retries: int, asked_s: float | None, status: int | None = None) -> Disposition:
    assert done.reason is not None
    wait_s = retry.hold_s(done.reason, url, attempts, asked_s)
    # 429 and 503 speak of the whole host (RFC 6585 section 4, RFC 9110 section 15.6.4), not of one URL.
    overloaded = status in (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE)
    hold_s = wait_s if overloaded else 0.0
    if retry.may_retry(done.reason, attempts, retries):
        return Disposition(Again(wait_s, done.reason), hold_s)
    return Disposition(done, hold_s)


def is_transient(reason: Reason | None) -> bool:
    """Whether a record that ends with `reason` might have ended otherwise at another time."""
    if reason is None:
        return False
    return retry.RULES[reason].may_pass or reason in (Reason.HOST_UNREACHABLE, Reason.ROBOTS_UNREACHABLE)
