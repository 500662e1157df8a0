"""The first rows of a key range, in memory.

Invariant: every live row below `bound` is here, every row from `bound` on is only in the store; no bound means that the whole
range is here. So a queue is read forwards from a cursor and never from its start, where popped rows leave tombstones.
"""

import heapq

from crawlkit.state.codec import QueueRow, decode_row
from crawlkit.state.keys import priority_of
from crawlkit.state.store import Store


class RangeHead:
    """A window on the rows of one bucket (`keys.bucket_of`), least key first."""

    __slots__ = ("_bound", "_bucket", "_heap", "_rows")

    def __init__(self, bucket: bytes, start: bytes | None) -> None:
        """Begin at `start`; None says that the range is known to be empty."""
        self._bucket = bucket
        self._bound = start
        self._heap: list[bytes] = []
        self._rows: dict[bytes, QueueRow] = {}

    def push(self, key: bytes, row: QueueRow, most: int) -> None:
        """Take note of a row that was just staged, new or changed; beyond `most` rows the window shrinks to its first half."""
        if self._bound is not None and key >= self._bound:
            return
        if key not in self._rows:
            heapq.heappush(self._heap, key)
        self._rows[key] = row
        if len(self._heap) > most:
            self._heap.sort()
            self._bound = self._heap[most // 2]
            for far in self._heap[most // 2 :]:
                del self._rows[far]
            del self._heap[most // 2 :]

    def peek(self, store: Store, refill: int) -> tuple[bytes, QueueRow] | None:
        """Return the first row, reading up to `refill` more when the window has run dry."""
        while not self._heap and self._bound is not None:
            rows = store.scan(self._bucket, self._bound, refill)
            self._bound = rows[-1][0] + b"\0" if len(rows) == refill else None
            self._heap = [key for key, _ in rows]  # sorted, hence a heap
            self._rows = {key: decode_row(value) for key, value in rows}
        if not self._heap:
            return None
        key = self._heap[0]
        return key, self._rows[key]

    def pop(self) -> None:
        """Drop the first row from the window; the store is not touched."""
        del self._rows[heapq.heappop(self._heap)]

    def first_key(self) -> bytes | None:
        """Return a key that no row of the range lies below; None for an empty range."""
        return self._heap[0] if self._heap else self._bound

    def first_priority(self) -> int:
        """Return the priority of the first row in memory; 0 where the window has to be read first."""
        return priority_of(self._heap[0]) if self._heap else 0
