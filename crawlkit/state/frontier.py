"""The frontier: where every URL that is not settled waits.

A URL is unseen -> queued -> claimed -> settled, and changes state only here: `add` queues it (seen entry and row in one batch),
`take` claims it, `finish` settles it, `postpone` puts it into the timed range, `promote` brings it back. A claim is known in
memory only: its row stays on disk, so a crash voids it.

A row counts only if the seen entry points to it. Where it does not, the row was moved, or the filter wrongly said "unseen" and
the URL was added twice: `take` then drops the row and keeps the least distance.
"""

from collections.abc import Callable
from typing import Any

import msgspec

from crawlkit.model import Reason, Source
from crawlkit.state import keys
from crawlkit.state.codec import Head, QueueRow, SeenEntry, UrlState, decode_row, encode_row
from crawlkit.state.counters import Counters
from crawlkit.state.damage import damaged
from crawlkit.state.head import RangeHead
from crawlkit.state.hosts import Host, Hosts
from crawlkit.state.seen import SeenSet
from crawlkit.state.store import Store

ROWS_IN_MEMORY = 65_536
MOST_ROWS_A_HOST = 1024
NEW_IN_MEMORY = 16_384

_QUEUED, _TIMED = UrlState.QUEUED, UrlState.TIMED  # looked up once (`model`)

LowerDistance = Callable[[str, Host, SeenEntry, Head], None]


class Frontier:
    """Back queues, the timed range and claims over one store."""

    def __init__(self, store: Store, seen: SeenSet, hosts: Hosts, counters: Counters) -> None:
        self._store = store
        self._seen = seen
        self._hosts = hosts
        self._counters = counters
        self._timed = RangeHead(keys.TIMED, keys.TIMED)
        self._new: set[str] = set()
        self._sharing = 0
        self.window_rows = MOST_ROWS_A_HOST
        """Most rows a host's window holds: the fewer the more hosts are in memory."""

    def share_window(self, hosts: int) -> None:
        """Divide the rows in memory between `hosts` hosts."""
        if hosts != self._sharing:
            self._sharing = hosts
            self.window_rows = min(MOST_ROWS_A_HOST, max(16, ROWS_IN_MEMORY // max(1, hosts)))

    # Queued ----------------------------------------------------------------------------------------------------------

    def add(  # noqa: PLR0913  (all that a row says)
        self,
        url: str,
        host: Host,
        depth: int,
        hops: int,
        via: str | None,
        sources: int = Source.LINK,
        *,
        priority: int | None = None,
    ) -> None:
        """Queue a URL that is unseen."""
        if url in host.claims:
            self._meet_claimed(url, host, Head(depth, hops, sources))
            return
        counters = self._counters
        counters.sequence += 1
        counters.seen += 1
        counters.queued += 1
        if not host.record.admitted:
            host.record.admitted = True
            counters.hosts += 1
        row = QueueRow(url, host.record.name, depth, hops, via=via, sources=sources, priority=priority)
        tail = keys.queued_tail(row.rank, counters.sequence)
        if self._seen.add(url, host.id, SeenEntry(_QUEUED, depth, hops, tail, sources)):
            self._note_new(url)
        self._queue(host, tail, row)

    def _note_new(self, url: str) -> None:
        if len(self._new) >= NEW_IN_MEMORY:
            self._new.clear()
        self._new.add(url)

    def is_new(self, url: str) -> bool:
        """Whether a queued URL is known to have no record, without a look: no filter was asked when it was added."""
        return url in self._new

    def _meet_claimed(self, url: str, host: Host, met: Head) -> None:
        """Restore the seen entry of a claimed URL: whatever a filter says of it, it was seen."""
        key = host.claims[url]
        row = self._row(key)
        entry = SeenEntry(_QUEUED, row.depth, row.hops, key[9:], row.sources)
        self._seen.add(url, host.id, entry)
        to = entry.joined(met)
        if to != entry.head:
            self.lower(url, host, entry, to)

    def _queue(self, host: Host, tail: bytes, row: QueueRow) -> None:
        key = keys.queue_key(host.id, tail)
        self._store.stage(key, encode_row(row))
        host.record.queued += 1
        host.head.push(key, row, self.window_rows)
        self._hosts.changed(host)

    def _unqueue(self, host: Host, key: bytes) -> None:
        self._store.unstage(key)
        host.record.queued -= 1
        self._hosts.changed(host)

    def lower(self, url: str, host: Host, entry: SeenEntry, to: Head) -> None:
        """Give a URL that is queued, timed or claimed lesser distances, or more sources; its place follows its depth."""
        old_key = self._row_key(host, entry)
        depth, hops, sources = to
        row = self._row(old_key, depth=depth, hops=hops, sources=sources)
        if entry.state is _TIMED:
            self._store.stage(old_key, encode_row(row))
            self._timed.push(old_key, row, MOST_ROWS_A_HOST)
            self._seen.put(url, host.id, SeenEntry(_TIMED, depth, hops, entry.tail, sources))
            return
        tail = keys.queued_tail(row.rank, keys.sequence_of(entry.tail))
        self._seen.put(url, host.id, SeenEntry(_QUEUED, depth, hops, tail, sources))
        self._unqueue(host, old_key)
        self._queue(host, tail, row)
        if url in host.claims:
            host.claims[url] = keys.queue_key(host.id, tail)

    def _row(self, key: bytes, **changes: Any) -> QueueRow:
        """Return the row that a seen entry points to, with `changes`."""
        value = self._store.get(key)
        if value is None:
            raise damaged("a queued URL has no row in its back queue")
        return msgspec.structs.replace(decode_row(value), **changes)

    @staticmethod
    def _row_key(host: Host, entry: SeenEntry) -> bytes:
        return keys.queue_key(host.id, entry.tail) if entry.state is _QUEUED else keys.timed_key(entry.tail)

    def revive(self, url: str, host: Host, via: str | None) -> None:
        """Queue a URL that had settled, at the distances it has; its record is the caller's to remove."""
        settled = self._seen.entry(url, host.id)
        self._counters.sequence += 1
        self._counters.queued += 1
        tail = keys.queued_tail(settled.depth, self._counters.sequence)
        self._seen.put(url, host.id, settled._replace(state=_QUEUED, tail=tail))
        row = QueueRow(url, host.record.name, settled.depth, settled.hops, via=via, sources=settled.sources)
        self._queue(host, tail, row)

    # Claimed ---------------------------------------------------------------------------------------------------------

    def peek(self, host: Host, lower: LowerDistance) -> QueueRow | None:
        """Return the first row of the host's back queue that counts, dropping those that do not."""
        while True:
            first = host.head.peek(self._store, self.window_rows)
            if first is None:
                if host.waiting > 0 and host.record.cursor:
                    host.reread()  # the cursor was wrong: look at the whole range before believing that it is empty
                    continue
                return None
            key, row = first
            if host.claims.get(row.url) == key:
                host.head.pop()
                continue
            entry = self._seen.known(row.url, host.id)
            if entry is not None and entry.state is _QUEUED and entry.tail == key[9:]:
                return row
            host.head.pop()
            self._drop(host, key, row, entry, lower)

    def _drop(self, host: Host, key: bytes, row: QueueRow, entry: SeenEntry | None, lower: LowerDistance) -> None:
        """Forget a row that the seen entry does not point to; if it is live on disk the URL was added twice."""
        if self._store.get(key) is None:
            return
        self._unqueue(host, key)
        self._forget_twin(host, row, entry, lower)

    def _forget_twin(self, host: Host, row: QueueRow, entry: SeenEntry | None, lower: LowerDistance) -> None:
        """Take back what adding a URL twice counted twice, and keep the least distance of the row that was removed."""
        self._counters.queued -= 1
        self._counters.seen -= 1
        if entry is None:
            return
        to = entry.joined(Head(row.depth, row.hops, row.sources))
        if to != entry.head:
            lower(row.url, host, entry, to)

    def discard(self, host: Host, row: QueueRow, entry: SeenEntry, lower: LowerDistance) -> None:
        """Drop the row that `peek` returned: its URL had settled before as `entry`, the filter was wrong."""
        found = self._seen.entry(row.url, host.id)
        self._seen.put(row.url, host.id, entry)
        host.head.pop()
        self._drop(host, keys.queue_key(host.id, found.tail), row, entry, lower)

    def take(self, host: Host, row: QueueRow) -> None:
        """Claim the row that `peek` returned."""
        first = host.head.peek(self._store, self.window_rows)
        assert first is not None
        assert first[1].url == row.url
        host.claims[row.url] = first[0]
        host.head.pop()
        self._new.discard(row.url)

    def release(self, url: str, host: Host) -> None:
        """Give a claim back: the URL is queued as before."""
        key = host.claims.pop(url)
        host.head.push(key, self._row(key), self.window_rows)

    # Settled, or later -----------------------------------------------------------------------------------------------

    def finish(self, url: str, host: Host) -> SeenEntry:
        """Settle a claimed URL: remove its row, mark its entry. Return the entry as settled."""
        return self.settle(url, host, self._seen.entry(url, host.id))

    def settle(self, url: str, host: Host, entry: SeenEntry) -> SeenEntry:
        """Do as `finish` for who has looked up the entry."""
        self._unqueue(host, self._row_key(host, entry))
        host.claims.pop(url, None)
        self._counters.queued -= 1
        settled = entry.settled()
        self._seen.put(url, host.id, settled)
        return settled

    def postpone(self, url: str, host: Host, attempts: int, due_s: float, wait_s: float, reason: Reason | None = None) -> None:
        """Move a claimed URL, which failed for `reason`, into the timed range: to be tried at `due_s`, `wait_s` from now."""
        entry = self._seen.entry(url, host.id)
        key = self._row_key(host, entry)
        row = self._row(key, attempts=attempts, wait_s=wait_s, reason=reason)
        self._unqueue(host, key)
        host.claims.pop(url, None)
        host.record.timed += 1
        tail = keys.timed_tail(due_s, keys.sequence_of(entry.tail))
        self._seen.put(url, host.id, entry._replace(state=_TIMED, tail=tail))
        self._store.stage(keys.timed_key(tail), encode_row(row))
        self._timed.push(keys.timed_key(tail), row, MOST_ROWS_A_HOST)

    def next_due(self) -> float | None:
        """Return when the first row of the timed range is due, None if there is none."""
        first = self._timed.peek(self._store, MOST_ROWS_A_HOST)
        return None if first is None else keys.due_of(first[0])

    def promote(self, now: float, limit: int, lower: LowerDistance) -> list[Host]:
        """Queue up to `limit` timed rows that are due; return their hosts. Rows that do not count are dropped."""
        hosts: list[Host] = []
        while len(hosts) < limit:
            first = self._timed.peek(self._store, MOST_ROWS_A_HOST)
            if first is None or keys.due_of(first[0]) > now:
                break
            key, row = first
            self._timed.pop()
            if self._store.get(key) is None:
                continue
            host = self._hosts.get(row.host)
            self._store.unstage(key)
            host.record.timed -= 1
            self._hosts.changed(host)
            entry = self._seen.known(row.url, host.id)
            if entry is None or entry.state is not _TIMED or keys.timed_key(entry.tail) != key:
                self._forget_twin(host, row, entry, lower)
                continue
            tail = keys.queued_tail(row.rank, keys.sequence_of(entry.tail))
            self._seen.put(row.url, host.id, entry._replace(state=_QUEUED, tail=tail))
            self._queue(host, tail, row)
            hosts.append(host)
        return hosts

    def restrain(self, now: float) -> None:
        """Bring due times that a clock jump put too far away back to what was asked for, counted from `now`."""
        far = []
        for key, value in self._store.walk(keys.timed_key(keys.timed_tail(now, 0)), keys.after(keys.TIMED)):
            row = decode_row(value)
            if keys.due_of(key) > now + row.wait_s:
                far.append((key, row))
        for key, row in far:
            host = self._hosts.get(row.host)
            entry = self._seen.known(row.url, host.id)
            if entry is None or keys.timed_key(entry.tail) != key:
                continue
            tail = keys.timed_tail(now + row.wait_s, keys.sequence_of(entry.tail))
            self._store.unstage(key)
            self._store.stage(keys.timed_key(tail), encode_row(row))
            self._seen.put(row.url, host.id, entry._replace(tail=tail))
