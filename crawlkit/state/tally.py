"""Counts by host in bounded memory: a slice of the hosts at a time, 32 bytes a host."""

from array import array
from bisect import bisect_left
from collections.abc import Iterator
from itertools import islice

from crawlkit.state import keys
from crawlkit.state.store import Store

HOSTS_A_SLICE = 1 << 20


class HostTally:
    """What was counted of the hosts that have a record, for ids from `first` up to, not including, `end`."""

    def __init__(self, first: int, end: int, ids: "array[int]") -> None:
        self.first = first
        self.end = end
        self._ids = ids
        zeros = bytes(8 * len(ids))
        self.queued = array("Q", zeros)
        self.timed = array("Q", zeros)
        self.pages = array("Q", zeros)

    def index(self, host: bytes) -> int | None:
        """Return the place of a host's counts, None if it has no record here."""
        number = int.from_bytes(host)
        at = bisect_left(self._ids, number)
        return at if at < len(self._ids) and self._ids[at] == number else None

    def covers(self, host: bytes) -> bool:
        """Whether the record of this host would be in this slice."""
        return self.first <= int.from_bytes(host) < self.end


def slices(store: Store, hosts: int = HOSTS_A_SLICE) -> Iterator[HostTally]:
    """Yield empty tallies that together cover every host id, at least one, each of at most `hosts` hosts."""
    found = (int.from_bytes(key[1:9]) for key in store.walk_keys(keys.HOST, keys.after(keys.HOST)))
    first = 0
    while True:
        ids = array("Q", islice(found, hosts))
        if len(ids) < hosts:
            yield HostTally(first, 1 << 64, ids)
            return
        yield HostTally(first, ids[-1] + 1, ids)
        first = ids[-1] + 1
