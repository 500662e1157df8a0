"""The partitions of a crawl read as one store: the rows of one crawl, merged key by key as they are walked over.

A URL and its host are one partition's, and keys are hashes of names, so nearly every row is in one partition only. What is
of a partition alone has no place here: retries by time, marks of batches, letters, the archive's rows (`extents.Archive` has
them).
What every partition has of its own is joined when the store is opened: counters are summed, the ledger is merged run by run,
and the seeds are those that span the scope, then those that were added, partition by partition. Of other rows that lie in
several, as the record of a host does where its robots.txt was redirected to, it is said below which one counts.
"""

import heapq
import itertools
from collections.abc import Callable, Iterator, Sequence
from operator import itemgetter

import msgspec

from crawlkit.state import keys
from crawlkit.state.checkpoint import merged_runs
from crawlkit.state.counters import summed
from crawlkit.state.hosts import decode_host
from crawlkit.state.opening import BATCH
from crawlkit.state.pages import decode_note
from crawlkit.state.reading import (
    CONFIG,
    COUNTERS,
    FIRST_SEEDS,
    RESCAN,
    Rescan,
    read_counters,
    read_rescan,
    read_runs,
    walk_seeds,
)
from crawlkit.state.refusals import decode_refusal
from crawlkit.state.store import Cursor, Store
from crawlkit.state.templates import decode_account

_LEFT_OUT = frozenset(
    {
        keys.TIMED,
        keys.RECENT,
        keys.ARCHIVE_FILE,
        keys.EXTENT,
        keys.ARCHIVED,
        keys.PAYLOAD,
        keys.LETTER,
        keys.NEXT_LETTER,
        keys.HIGH_WATER,
    }
)

_Row = tuple[bytes, bytes]


class MergedStore(Store):
    """Open stores, one a partition, as one that is only read; whoever opened them closes them.

    `owner_of` says which partition a host belongs to, `span` are the seeds that span the scope. A range is of one kind of rows.
    """

    def __init__(self, members: Sequence[Store], span: Sequence[str], owner_of: Callable[[str], int]) -> None:
        self._members = members
        self._span = span
        self._owner_of = owner_of
        self._values = _joined_values(members, len(span))
        runs = merged_runs([read_runs(member) for member in members])
        self._runs = [(keys.numbered_key(keys.RUN, run.number), msgspec.msgpack.encode(run)) for run in runs]

    def close(self) -> None:
        """Do nothing: the stores are not ours."""

    def stage(self, key: bytes, value: bytes) -> None:
        """Refuse: nothing is written here."""
        raise TypeError("the partitions of a crawl are only read together")

    def unstage(self, key: bytes) -> None:
        """Refuse: nothing is written here."""
        raise TypeError("the partitions of a crawl are only read together")

    def get(self, key: bytes) -> bytes | None:
        """Return a value on disk; nothing is ever staged."""
        return self.read(key)

    def read(self, key: bytes) -> bytes | None:
        """Return the value on disk: one look-up a partition."""
        kind = key[:1]
        if kind == keys.META:
            return self._values.get(key)
        if kind in (keys.RUN, keys.SEED):
            return next((value for _, value in self.walk(key, key + b"\0")), None)
        if kind in _LEFT_OUT:
            return None
        found = [(number, value) for number, member in enumerate(self._members) if (value := member.read(key)) is not None]
        return self._one_of(kind, found) if found else None

    def scan(self, bucket: bytes, start: bytes, limit: int) -> list[_Row]:
        """Return up to `limit` rows of one range from `start` on, in key order."""
        return list(itertools.islice(self.walk(start, keys.after(bucket)), limit))

    def walk(self, start: bytes, stop: bytes) -> Iterator[_Row]:
        """Yield the rows in [start, stop), in key order, as they are on disk: memory does not grow."""
        match start[:1]:
            case keys.META:
                yield from _within(iter(sorted(self._values.items())), start, stop)
            case keys.RUN:
                yield from _within(iter(self._runs), start, stop)
            case keys.SEED:
                yield from _within(self._seeds(), start, stop)
            case kind if kind not in _LEFT_OUT:
                yield from self._merged(kind, start, stop)

    def walk_keys(self, start: bytes, stop: bytes) -> Iterator[bytes]:
        """Yield the keys in [start, stop), in order."""
        kind = start[:1]
        if kind in (keys.META, keys.RUN, keys.SEED):
            yield from (key for key, _ in self.walk(start, stop))
        elif kind not in _LEFT_OUT:
            found = heapq.merge(*(member.walk_keys(start, stop) for member in self._members))
            yield from (key for key, _ in itertools.groupby(found))

    def cursor(self) -> Cursor:
        """Return what finds first keys, of all partitions as of now."""
        return _MergedCursor([member.cursor() for member in self._members])

    def _merged(self, kind: bytes, start: bytes, stop: bytes) -> Iterator[_Row]:
        rows = heapq.merge(*(_numbered(number, member, start, stop) for number, member in enumerate(self._members)))
        for key, group in itertools.groupby(rows, itemgetter(0)):
            yield key, self._one_of(kind, [(number, value) for _, number, value in group])

    def _seeds(self) -> Iterator[_Row]:
        known = set(self._span)
        added = (url for member in self._members for url in walk_seeds(member) if url not in known)
        for number, url in enumerate(itertools.chain(self._span, added)):
            yield keys.numbered_key(keys.SEED, number), url.encode()

    def _one_of(self, kind: bytes, found: list[tuple[int, bytes]]) -> bytes:
        """Return which value counts of those that partitions, by number, have under one key: by default that of the first."""
        if len(found) == 1:
            return found[0][1]
        values = [value for _, value in found]
        match kind:
            case keys.HOST:  # its owner counts; the others met it on the way to a robots.txt
                owner = self._owner_of(decode_host(values[0]).name)
                return next((value for number, value in found if number == owner), values[0])
            case keys.REFUSAL:  # where it was met nearest to a seed
                return min(values, key=lambda value: decode_refusal(value).depth)
            case keys.NOTE:  # as if one had read all the sitemaps
                notes = [decode_note(value) for value in values]
                latest = max((lastmod for lastmod, _ in notes if lastmod is not None), default=None)
                highest = max((priority for _, priority in notes if priority is not None), default=None)
                return msgspec.msgpack.encode((latest, highest))
            case keys.TEMPLATE:  # who has fetched its pages
                return max(values, key=lambda value: decode_account(value).pages)
            case _:
                return values[0]


class _MergedCursor(Cursor):
    """Finds the first keys of several stores."""

    def __init__(self, cursors: Sequence[Cursor]) -> None:
        self._cursors = cursors

    def first(self, prefix: bytes) -> bytes | None:
        found = [key for cursor in self._cursors if (key := cursor.first(prefix)) is not None]
        return min(found, default=None)

    def firsts(self, prefix: bytes, length: int) -> Iterator[bytes]:
        found = heapq.merge(*(cursor.firsts(prefix, length) for cursor in self._cursors))
        for _, group in itertools.groupby(found, lambda key: key[:length]):
            yield next(group)


def _numbered(number: int, member: Store, start: bytes, stop: bytes) -> Iterator[tuple[bytes, int, bytes]]:
    return ((key, number, value) for key, value in member.walk(start, stop))


def _within(rows: Iterator[_Row], start: bytes, stop: bytes) -> Iterator[_Row]:
    return ((key, value) for key, value in rows if start <= key < stop)


def _joined_values(members: Sequence[Store], seeds: int) -> dict[bytes, bytes]:
    """Return the single values of the crawl: the settings are those of any partition, as all have the same."""
    values = {
        BATCH: sum(int.from_bytes(member.get(BATCH) or b"") for member in members).to_bytes(8, "big"),
        COUNTERS: msgspec.msgpack.encode(summed([read_counters(member) for member in members])),
        FIRST_SEEDS: seeds.to_bytes(8, "big"),
    }
    config = next((value for member in members if (value := member.get(CONFIG)) is not None), None)
    if config is not None:
        values[CONFIG] = config
    if all(member.get(keys.INDEXED) is not None for member in members):
        values[keys.INDEXED] = b""
    rescans = [rescan for member in members if (rescan := read_rescan(member)) is not None]
    if rescans:
        values[RESCAN] = msgspec.msgpack.encode(_joined_rescan(rescans))
    return values


def _joined_rescan(rescans: Sequence[Rescan]) -> Rescan:
    """Return what concerns every record that any of these concerns."""
    return Rescan(
        min(rescan.depth for rescan in rescans),
        max(rescan.deepest for rescan in rescans),
        min(rescan.cursor for rescan in rescans),
    )
