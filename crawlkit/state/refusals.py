"""Links that were refused for more than their URL: the first ones of each host, so that it can be told why they have no record.

What scope and the rules against traps refuse can be judged again at any time; what the depth limit or the template budget
refused depends on where and when the link was met. The rows only explain: nothing is decided by them, and one may outlive its
cause, when a shorter way is found or the limit is raised. Their number is bounded, and so is what they cost: about 25 us for
the first one of a host, less for others, and one look into a dict once a bound is reached.
"""

import msgspec

from crawlkit.model import Refusal
from crawlkit.state import keys
from crawlkit.state.counters import Counters
from crawlkit.state.damage import damaged
from crawlkit.state.store import Store

MOST_A_HOST = 100
MOST_REFUSALS = 100_000
"""Rows of a whole crawl: about 15 MB."""

HOSTS_IN_MEMORY = 4_096


class RefusalRow(msgspec.Struct, frozen=True, array_like=True):
    """A URL that was not admitted, by what, and at what depth a link to it was first met, on the page `via`."""

    url: str
    refusal: Refusal
    depth: int
    via: str | None = None


class Refusals:
    """Look-ups and staged rows. `host` arguments are host ids (`keys.host_id`)."""

    def __init__(self, store: Store, counters: Counters) -> None:
        self._store = store
        self._counters = counters
        self._counts: dict[bytes, int] = {}

    def note(self, host: bytes, row: RefusalRow) -> None:
        """Keep a refusal, if there is room for one more of its host and of the crawl."""
        if self._counters.noted >= MOST_REFUSALS:
            return
        count = self._counts.get(host)
        if count is None:
            count = self._count(host)
        if count >= MOST_A_HOST:
            return
        key = keys.refusal_key(host, row.url)
        if self._store.get(key) is None:
            self._store.stage(key, msgspec.msgpack.encode(row))
            self._counts[host] = count + 1
            self._counters.noted += 1

    def _count(self, host: bytes) -> int:
        if len(self._counts) >= HOSTS_IN_MEMORY:
            self._counts.clear()
        bucket = keys.refusal_range(host)
        count = self._counts[host] = len(self._store.scan(bucket, bucket, MOST_A_HOST))
        return count

    def get(self, host: bytes, url: str) -> RefusalRow | None:
        """Return what was kept of a URL, None if nothing was."""
        value = self._store.get(keys.refusal_key(host, url))
        return None if value is None else decode_refusal(value)


def decode_refusal(value: bytes) -> RefusalRow:
    """Return the row of `value`; StateDamaged if it is none."""
    try:
        return msgspec.msgpack.decode(value, type=RefusalRow)
    except msgspec.DecodeError as error:
        raise damaged(f"why a URL was refused cannot be read: {error}") from error
