"""Counts by host in bounded memory, a slice of the hosts at a time (32 bytes a host), and what hosts say of themselves."""

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from enum import IntEnum
from itertools import islice

from crawlkit.state import keys
from crawlkit.state.findings import Findings, Rule
from crawlkit.state.hosts import HostRecord
from crawlkit.state.store import Store

HOSTS_A_SLICE = 1 << 20


class Counted(IntEnum):
    """What is counted of a host."""

    QUEUED = 0
    TIMED = 1
    PAGES = 2
    SITEMAPS = 3


class HostTally:
    """What was counted of the hosts that have a record, for ids from `first` up to, not including, `end`."""

    def __init__(self, first: int, end: int, ids: "array[int]") -> None:
        self.first = first
        self.end = end
        self._ids = ids
        self._counts = [array("Q", bytes(8 * len(ids))) for _ in Counted]

    def covers(self, host: bytes) -> bool:
        """Whether the record of this host would be in this slice."""
        return self.first <= int.from_bytes(host) < self.end

    def count(self, host: bytes, what: Counted) -> bool:
        """Count one more of a host; False if the host should be in this slice and has no record."""
        at = self._index(host)
        if at is not None:
            self._counts[what][at] += 1
        return at is not None or not self.covers(host)

    def counts(self, host: bytes) -> tuple[int, ...] | None:
        """Return what was counted of a host, in the order of `Counted`; None if it has no record in this slice."""
        at = self._index(host)
        return None if at is None else tuple(counts[at] for counts in self._counts)

    def _index(self, host: bytes) -> int | None:
        number = int.from_bytes(host)
        at = bisect_left(self._ids, number)
        return at if at < len(self._ids) and self._ids[at] == number else None


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


def check_hosts(store: Store, findings: Findings, tally: HostTally, hosts: Iterable[tuple[bytes, HostRecord]]) -> None:
    """Compare what hosts say of themselves with what was counted of those in the tally."""
    for key, host in hosts:
        counted = tally.counts(key[1:])
        if counted is None:
            continue
        findings.checked["admitted"] += host.admitted
        if key[1:] != keys.host_id(host.name):
            findings.broke(Rule.HOSTS_KNOWN, f"the record of {host.name} lies under another id")
            continue
        findings.compare(
            Rule.HOSTS_COUNTS,
            f"{host.name}: queued, timed, pages, sitemaps",
            (host.queued, host.timed, host.pages, host.sitemaps),
            counted,
        )
        bucket = keys.queue_range(key[1:])
        first = next(store.walk_keys(bucket, keys.after(bucket)), None)
        if first is not None and bucket + host.cursor > first:
            findings.broke(Rule.HOSTS_CURSOR, f"the back queue of {host.name} is read from behind its first row")
