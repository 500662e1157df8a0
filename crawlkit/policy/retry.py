"""Which failures may pass, and when to try again.

The report's `failure.transient` and the `retries` setting mean the same set: timeouts, connection errors, 429 and 5xx.
"""

import hashlib
import math
import re
from collections.abc import Mapping
from datetime import UTC
from email.utils import parsedate_to_datetime
from types import MappingProxyType

import msgspec

from crawlkit.model import Reason

MAX_BACKOFF_S = 300.0
"""Where the exponential growth of our own waits ends."""


class RetryRule(msgspec.Struct, frozen=True):
    """Whether a failure may pass by itself, and the wait after the first one, in seconds (0 where it may not)."""

    may_pass: bool
    base_s: float = 0.0


_MAY_PASS = RetryRule(may_pass=True, base_s=1.0)
_SLOW_DOWN = RetryRule(may_pass=True, base_s=2.0)
_STAYS = RetryRule(may_pass=False)

RULES: Mapping[Reason, RetryRule] = MappingProxyType(
    {
        Reason.DNS: _MAY_PASS,
        Reason.NAME_NOT_FOUND: _STAYS,
        Reason.CONNECT: _MAY_PASS,
        Reason.RESET: _MAY_PASS,
        Reason.TIMEOUT: _MAY_PASS,
        Reason.PROXY: _MAY_PASS,
        Reason.TOO_MANY_REQUESTS: _SLOW_DOWN,
        Reason.SERVER_ERROR: _MAY_PASS,
        Reason.TLS: _STAYS,  # a certificate is renewed by people, in days
        Reason.PROTOCOL: _STAYS,  # a port that does not speak HTTP will not learn it; one that breaks off is RESET
        Reason.ADDRESS: _STAYS,  # refused by us
        Reason.CLIENT_ERROR: _STAYS,
        Reason.OTHER_STATUS: _STAYS,
        Reason.TOO_MANY_REDIRECTS: _STAYS,
        Reason.NO_LOCATION: _STAYS,
        Reason.HOST_UNREACHABLE: _STAYS,  # this and the next follow from a robots.txt whose own retries are spent
        Reason.ROBOTS_UNREACHABLE: _STAYS,
        Reason.HOST_GIVEN_UP: _STAYS,
        Reason.HOST_DROPPED: _STAYS,
        Reason.ROBOTS_DISALLOW: _STAYS,
        Reason.ROBOTS_DELAY: _STAYS,
        Reason.HOOK_FAILED: _STAYS,  # it is mended by people
    }
)
"""One row for every reason."""


def reason_of_status(status: int) -> Reason | None:
    """Return why an answer with this status is a failure; None below 400."""
    if status < 400:
        return None
    if status == 429:
        return Reason.TOO_MANY_REQUESTS
    if status < 500:
        return Reason.CLIENT_ERROR
    return Reason.SERVER_ERROR if status < 600 else Reason.OTHER_STATUS


def may_retry(reason: Reason, attempts: int, retries: int) -> bool:
    """Return whether to fetch again after `attempts` failed fetches, this one included, with `retries` more allowed."""
    return RULES[reason].may_pass and attempts <= retries


def backoff_s(key: str, attempts: int, base_s: float = 1.0, cap_s: float = MAX_BACKOFF_S) -> float:
    """Return our own wait in seconds after `attempts` failures (from 1): between half and all of the exponential one.

    That is `base_s * 2**(attempts - 1)`, at most `cap_s`. Where between is drawn from `key` (a URL or a host) and
    `attempts`: those that failed together come back apart, and the same failure waits the same time in every run. Until
    the cap is reached the wait never shrinks from one attempt to the next.
    """
    full_s = min(math.ldexp(base_s, min(attempts - 1, 64)), cap_s)
    digest = hashlib.blake2b(f"{attempts} {key}".encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return full_s * (1 + int.from_bytes(digest) / 2**64) / 2


def retry_after_s(value: str, now_s: float, cap_s: float) -> float | None:
    """Return the seconds that a Retry-After header asks to wait from `now_s` (epoch), from 0 to `cap_s`.

    RFC 9110 section 10.2.3: 1*DIGIT, or an HTTP-date in any of its three forms (5.6.7), read as UTC whatever the local
    zone is; a date that is past asks for 0. None where it is neither: fall back to our own wait.
    """
    text = value.strip(" \t")
    if not text.isascii():
        return None
    if re.fullmatch(r"[0-9]+", text):
        asked_s = float(text)
    else:
        try:
            date = parsedate_to_datetime(text)
        except (ValueError, OverflowError):
            return None
        # asctime names no zone, which the library reports as a naive time
        asked_s = (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp() - now_s
    return min(max(asked_s, 0.0), cap_s)


def hold_s(reason: Reason, key: str, attempts: int, asked_s: float | None = None) -> float:
    """Return how long to wait before the next try: what the server asked for (`asked_s`, made by `retry_after_s`).

    But no less than our own wait: a server that says 429 and "0" means it less than its status.
    """
    return max(backoff_s(key, attempts, RULES[reason].base_s), asked_s or 0.0)
