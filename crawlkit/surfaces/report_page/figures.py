"""What the charts of the page show, counted record by record: memory does not grow with the crawl."""

import heapq
from collections import Counter
from typing import NamedTuple, TypeVar

import msgspec

from crawlkit.model import Kind, Record
from crawlkit.policy.urls import origin_of

MOST_ORIGINS = 25
MOST_SLOW = 25
_DEEPEST = 20

Ranked = TypeVar("Ranked", bound=tuple[int, str])


class Bar(NamedTuple):
    """One bar of a chart: how it is called, how long it is."""

    name: str
    length: int


class Slow(NamedTuple):
    """A page that took long to fetch."""

    elapsed_ms: int
    url: str


class Charts(msgspec.Struct, frozen=True):
    """What is drawn. Sizes are those of decoded bodies, in powers of two; depths from the last one on are one bar."""

    kinds: list[Bar]
    statuses: list[Bar]
    depths: list[Bar]
    sizes: list[Bar]
    origins: list[Bar]
    slowest: list[Slow]


class Figures:
    """Counts records as they come, which is sorted by URL: so the records of an origin come one after the other."""

    def __init__(self) -> None:
        self._kinds: Counter[Kind] = Counter()
        self._statuses: Counter[str] = Counter()
        self._depths: Counter[int] = Counter()
        self._sizes: Counter[int] = Counter()
        self._origins: list[tuple[int, str]] = []
        self._origin, self._of_origin = "", 0
        self._slowest: list[Slow] = []

    def add(self, record: Record) -> None:
        """Count a record."""
        self._kinds[record.kind] += 1
        self._statuses[str(record.status or record.reason)] += 1
        self._depths[min(record.depth, _DEEPEST)] += 1
        if record.body_bytes is not None and record.kind is Kind.PAGE:
            self._sizes[record.body_bytes.bit_length()] += 1
        if record.elapsed_ms is not None:
            _push(self._slowest, Slow(record.elapsed_ms, record.url), MOST_SLOW)
        origin = origin_of(record.url)
        if origin != self._origin:
            self._end_origin()
            self._origin = origin
        self._of_origin += 1

    def _end_origin(self) -> None:
        if self._of_origin:
            _push(self._origins, (self._of_origin, self._origin), MOST_ORIGINS)
        self._of_origin = 0

    def charts(self) -> Charts:
        """Return what was counted, once all records came."""
        self._end_origin()
        return Charts(
            kinds=[Bar(kind, self._kinds[kind]) for kind in Kind if self._kinds[kind]],
            statuses=[Bar(name, count) for name, count in sorted(self._statuses.items())],
            depths=[Bar(f"{depth}{'+' if depth == _DEEPEST else ''}", self._depths[depth]) for depth in _span(self._depths)],
            sizes=[Bar(_size(bits), self._sizes[bits]) for bits in _span(self._sizes)],
            origins=[Bar(origin, count) for count, origin in sorted(self._origins, key=lambda pair: (-pair[0], pair[1]))],
            slowest=sorted(self._slowest, reverse=True),
        )


def _push(heap: list[Ranked], item: Ranked, most: int) -> None:
    """Keep the greatest items."""
    if len(heap) < most:
        heapq.heappush(heap, item)
    else:
        heapq.heappushpop(heap, item)


def _span(counts: Counter[int]) -> range:
    """Return all numbers from the least to the greatest, those between too that nothing was counted of."""
    return range(min(counts), max(counts) + 1) if counts else range(0)


def _size(bits: int) -> str:
    """Return how a size of so many bits is called: what it is less than."""
    for unit, shift in (("MiB", 20), ("KiB", 10)):
        if bits >= shift:
            return f"< {1 << bits - shift} {unit}"
    return f"< {1 << bits} B"
