"""Rows that move from one partition of a crawl to another.

`Arrivals` takes them in; once they are owned there `Departures` removes them from where they were. Either is done again from
its start if a kill cuts it short, with the same outcome.

Rows move as they are, but for the numbers of those that wait, which count within a partition only: they get new ones, in the
same order. What arrives is counted in the last batch, which says that all is there.
"""

from collections.abc import Callable

import msgspec

from crawlkit.errors import StateDamaged
from crawlkit.model import Kind
from crawlkit.state import keys
from crawlkit.state.codec import UrlState, decode_seen, encode_seen
from crawlkit.state.counters import Counters
from crawlkit.state.hosts import HostRecord, decode_host
from crawlkit.state.leaving import HostRow, Leaving, Lot, Plain, RecordRow, RefusedRow, Row, WaitingRow
from crawlkit.state.pages import reported_kind
from crawlkit.state.reading import RESCAN, Rescan, read_rescan, walk_seeds
from crawlkit.state.refusals import Refusals
from crawlkit.state.seen import SeenSet
from crawlkit.state.store import Store

ROWS_A_BATCH = 20_000
BYTES_A_BATCH = 8 * 1024 * 1024

INCOMING = keys.meta_key("incoming")

_ARRIVING = ("seen", "queued", "pages", "redirects", "failures", "excluded", "body_bytes", "held", "sitemaps")
_LEAVING = (*_ARRIVING, "hosts", "hosts_held", "noted")
"""Counters that say how many rows there are: they go with these. The others tell what happened, and stay."""


class Incoming(msgspec.Struct, frozen=True, array_like=True):
    """How rows come in with table `version`: the last number of a row before, how many seeds, and whether all are there."""

    version: int
    sequence: int
    seeds: int
    complete: bool = False


class Tally:
    """Counts rows that move, and compares that with what their hosts say."""

    def __init__(self) -> None:
        self.sums = Counters()
        self._found = {"queued": 0, "timed": 0, "pages": 0, "sitemaps": 0}
        self._said = dict(self._found)

    def add(self, row: Row) -> None:
        """Count a row."""
        match row:
            case RecordRow():
                self.sums.seen += 1
                self.sums.settled(reported_kind(row.record))
                self.sums.body_bytes += row.record.body_bytes or 0
                self._found["pages"] += row.record.kind is Kind.PAGE
            case WaitingRow():
                self.sums.seen += 1
                self.sums.queued += 1
                self._found["queued" if row.key[:1] == keys.QUEUE else "timed"] += 1
            case HostRow():
                self.sums.hosts += row.host.admitted
                self.sums.hosts_held += row.host.held
                for name in self._said:
                    self._said[name] += getattr(row.host, name)
            case RefusedRow():
                self.sums.noted += 1
            case Plain(key=key) if key[:1] == keys.WAITING_SITEMAP:
                self.sums.sitemaps += 1
                self._found["sitemaps"] += 1
            case Plain(key=key) if key[:1] == keys.HELD:
                self.sums.held += 1
            case Plain():
                pass

    def check(self, lost: str) -> None:
        """StateDamaged, which begins with `lost`, if hosts have other numbers of rows than were counted."""
        if self._said != self._found:
            raise StateDamaged(f"{lost}: hosts say {self._said}, found are {self._found}")


class Batches:
    """Makes checkpoints of what is staged, by `write`, whenever that is enough."""

    def __init__(self, store: Store, write: Callable[[], object]) -> None:
        self._store = store
        self._write = write
        self._bytes = 0

    def stage(self, key: bytes, value: bytes) -> None:
        """Stage a row."""
        self._store.stage(key, value)
        self._bytes += len(key) + len(value)

    @property
    def full(self) -> bool:
        """Whether what is staged is enough."""
        return self._store.staged_rows >= ROWS_A_BATCH or self._bytes >= BYTES_A_BATCH

    def write(self) -> None:
        """Make a checkpoint."""
        self._write()
        self._bytes = 0


class Arrivals:
    """Takes in what moves to a partition with table `version`."""

    def __init__(self, store: Store, seen: SeenSet, refusals: Refusals, counters: Counters, batches: Batches) -> None:
        self._store = store
        self._seen = seen
        self._refusals = refusals
        self._counters = counters
        self._batches = batches
        self._sums: list[Counters] = []
        self._rescan = read_rescan(store)

    def begin(self, version: int) -> bool:
        """Begin a move, or do it again; False if all is there from before a kill."""
        value = self._store.get(INCOMING)
        before = None if value is None else msgspec.msgpack.decode(value, type=Incoming)
        if before is None or before.version != version:
            before = Incoming(version, self._counters.sequence, sum(1 for _ in walk_seeds(self._store)))
            self._batches.stage(INCOMING, msgspec.msgpack.encode(before))
            self._batches.write()
        self._incoming = before
        self._sequence, self._seeds = before.sequence, before.seeds
        return not before.complete

    def take(self, leaving: Leaving, lost: str) -> None:
        """Take in what leaves another partition; StateDamaged, which begins with `lost`, if some of it is not there."""
        for url in leaving.seeds():
            self._batches.stage(keys.numbered_key(keys.SEED, self._seeds), url.encode())
            self._seeds += 1
            self._write_if_full()
        tally = Tally()
        for row in leaving.rows():
            tally.add(row)
            self._take_row(row, leaving)
            self._write_if_full()
        tally.check(lost)
        self._sums.append(tally.sums)

    def _write_if_full(self) -> None:
        if self._batches.full:
            self._batches.write()

    def _take_row(self, row: Row, leaving: Leaving) -> None:
        match row:
            case WaitingRow():
                self._number_anew(row, leaving)
            case HostRow():
                self._batches.stage(row.key, msgspec.msgpack.encode(self._merged(row)))
            case RefusedRow():
                self._refusals.note(row.key[1:9], row.row)
            case Plain() | RecordRow():
                if row.key[:1] == keys.SEEN:
                    self._seen.expect_row(row.key)
                self._batches.stage(row.key, row.value)

    def _number_anew(self, row: WaitingRow, leaving: Leaving) -> None:
        """Stage a row that waits under the next number, and that its entry points to it, if that pointed to it before."""
        self._sequence += 1
        key = row.key[:-8] + self._sequence.to_bytes(8)
        self._batches.stage(key, row.value)
        state, at = (UrlState.QUEUED, 9) if key[:1] == keys.QUEUE else (UrlState.TIMED, 1)
        seen, value = leaving.entry_of(row.row)
        entry = None if value is None else decode_seen(value)
        if entry is not None and (entry.state, entry.tail) == (state, row.key[at:]):
            self._batches.stage(seen, encode_seen(entry._replace(tail=key[at:])))

    def _merged(self, row: HostRow) -> HostRecord:
        """Return what both know of a host: it may have been asked from here for the robots.txt of another one."""
        value = self._store.get(row.key)
        here = HostRecord(row.host.name) if value is None else decode_host(value)
        return msgspec.structs.replace(
            row.host,
            cursor=b"",
            last_start_s=max(row.host.last_start_s, here.last_start_s),
            last_end_s=max(row.host.last_end_s, here.last_end_s),
            hold_until_s=max(row.host.hold_until_s, here.hold_until_s),
        )

    def tell_again(self, rescan: Rescan) -> None:
        """Let all records be told of a raised depth limit of which those that come in may not have been."""
        known = rescan if self._rescan is None else self._rescan
        self._rescan = Rescan(min(known.depth, rescan.depth), max(known.deepest, rescan.deepest))

    def finish(self, *, finished: bool) -> None:
        """Count what was taken in, and note that it is all; `finished` says that nothing is left to do with it."""
        self._batches.write()
        counters = self._counters
        for sums in self._sums:
            _count(counters, sums, _ARRIVING, 1)
        counters.hosts = counters.hosts_held = 0  # some may have been known here before: so all are counted anew
        for _, value in self._store.walk(keys.HOST, keys.after(keys.HOST)):
            host = decode_host(value)
            counters.hosts += host.admitted
            counters.hosts_held += host.held
        counters.sequence = self._sequence
        counters.finished = counters.finished and finished and self._rescan is None
        if self._rescan is not None:
            self._batches.stage(RESCAN, msgspec.msgpack.encode(self._rescan))
        complete = msgspec.structs.replace(self._incoming, complete=True)
        self._batches.stage(INCOMING, msgspec.msgpack.encode(complete))
        self._batches.write()


class Departures:
    """Removes from a partition what belongs to another one by now; each batch keeps rows and counters in step."""

    def __init__(self, store: Store, counters: Counters, batches: Batches) -> None:
        self._store = store
        self._counters = counters
        self._batches = batches

    def remove(self, lot: Lot) -> None:
        """Remove all that belongs to a lot."""
        self._remove_seeds(lot)
        tally = Tally()
        for row in Leaving(self._store, lot).rows():
            tally.add(row)
            self._store.unstage(row.key)
            if self._batches.full:
                self._write(tally)
                tally = Tally()
        self._write(tally)

    def retire(self, *, finished: bool) -> None:
        """Note that the partition owns nothing any more; `finished` says that it has nothing to tell either."""
        self._store.unstage(RESCAN)
        self._counters.finished = finished
        self._batches.write()

    def _write(self, tally: Tally) -> None:
        _count(self._counters, tally.sums, _LEAVING, -1)
        self._batches.write()

    def _remove_seeds(self, lot: Lot) -> None:
        """Close the gaps: those that stay move up, so none is passed over if this is done again."""
        kept = 0
        for key, value in self._store.walk(keys.SEED, keys.after(keys.SEED)):
            if lot.has_url(value.decode()):
                self._store.unstage(key)
            else:
                number = keys.numbered_key(keys.SEED, kept)
                kept += 1
                if number != key:
                    self._store.unstage(key)
                    self._store.stage(number, value)
            if self._batches.full:
                self._batches.write()


def _count(counters: Counters, sums: Counters, names: tuple[str, ...], sign: int) -> None:
    for name in names:
        setattr(counters, name, getattr(counters, name) + sign * getattr(sums, name))
