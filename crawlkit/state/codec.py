"""Values as bytes: seen entries, queue rows, hosts, records.

Small values are MessagePack arrays (fields are only ever appended). Records are compressed before LevelDB sees them: its write
amplification multiplies their bytes (measured on records of 60 links: 8,060 bytes written a page raw, 2,200 with zstd).
"""

import struct
from enum import IntEnum
from functools import lru_cache
from typing import NamedTuple

import msgspec
import zstandard

from crawlkit.model import Reason, Record, Source
from crawlkit.state.damage import damaged


class UrlState(IntEnum):
    """Where a seen URL stands on disk; a claim is known in memory only."""

    QUEUED = 0
    TIMED = 1
    SETTLED = 2


_SETTLED = UrlState.SETTLED  # looked up once (`model`)


class Head(NamedTuple):
    """What may change of a URL after it was met, even when it has settled: it is in front of its record."""

    depth: int
    hops: int
    sources: int

    def may_be(self, source: Source) -> bool:
        """Whether a URL has a source, as far as is known: crawls of earlier versions noted none."""
        return not self.sources or bool(self.sources & source)

    def settled(self) -> "SeenEntry":
        """Return the seen entry of a URL that has settled with this."""
        return _settled(self.depth, self.hops, self.sources)


class SeenEntry(NamedTuple):
    """What the seen-set knows of a URL: `tail` leads to its row while it is queued or timed, else empty.

    `sources` are the bits of `model.Source` that hold, 0 where a crawl of an earlier version did not note them.
    """

    state: UrlState
    depth: int
    hops: int
    tail: bytes = b""
    sources: int = 0

    @property
    def head(self) -> Head:
        """Distances and sources."""
        return Head(self.depth, self.hops, self.sources)

    def settled(self) -> "SeenEntry":
        """Return the entry of a URL that has settled with these."""
        return _settled(self.depth, self.hops, self.sources)

    def joined(self, met: Head) -> Head:
        """Return the least of both distances, each by itself, and all sources."""
        return Head(min(self.depth, met.depth), min(self.hops, met.hops), self.sources | met.sources)


@lru_cache(1024)  # of most crawls there are a dozen, each the same for thousands of URLs
def _settled(depth: int, hops: int, sources: int) -> SeenEntry:
    return SeenEntry(_SETTLED, depth, hops, b"", sources)


class _StoredEntry(NamedTuple):
    state: UrlState
    depth: int
    packed: int
    tail: bytes = b""


class QueueRow(msgspec.Struct, frozen=True, array_like=True):
    """A URL in a back queue or in the timed range.

    `depth`, `hops` and `sources` repeat the seen entry's, so that a row whose entry was overwritten (a filter's wrong "no")
    still tells the least distance. `wait_s` is the wait that was asked for when it was timed: a due time further away than that
    is the work of a clock that jumped. `priority` is what a plugin said, instead of the depth; `reason` why it failed last.
    """

    url: str
    host: str
    depth: int
    hops: int
    attempts: int = 0
    wait_s: float = 0.0
    via: str | None = None
    sources: int = 0
    priority: int | None = None
    reason: Reason | None = None

    @property
    def rank(self) -> int:
        """Where it stands in its back queue, the least first."""
        return self.depth if self.priority is None else self.priority


_HOPS_BITS = 4
"""Hops, at most 10, and sources share a number: three bits above four, so that neither costs a byte (`MAX_HOPS`)."""
_ALL_SOURCES = sum(Source)
_HOPS_MASK = (1 << _HOPS_BITS) - 1

_LINK_ALONE = Source.LINK << _HOPS_BITS
_HOPS_AND_LINK = _HOPS_MASK | _LINK_ALONE
_DEEPEST_IN_A_BYTE = 127

_encoder = msgspec.msgpack.Encoder()
_row_decoder = msgspec.msgpack.Decoder(QueueRow)
_seen_decoder = msgspec.msgpack.Decoder(_StoredEntry)


def encode_seen(entry: SeenEntry) -> bytes:
    """Return a seen entry as bytes: 4 for most settled URLs."""
    state, depth, hops, tail, sources = entry
    packed = hops | sources << _HOPS_BITS
    return _encoder.encode((state, depth, packed, tail)) if tail else _encoded(state, depth, packed)


@lru_cache(1024)
def _encoded(*values: int) -> bytes:
    return _encoder.encode(values)


def decode_seen(value: bytes) -> SeenEntry:
    """Return the seen entry of `value`; StateDamaged if it is none."""
    try:
        state, depth, packed, tail = _seen_decoder.decode(value)
    except msgspec.DecodeError as error:
        raise damaged(f"a seen entry cannot be read: {error}") from error
    return SeenEntry(state, depth, packed & _HOPS_MASK, tail, _sources_of(packed))


def is_no_news(value: bytes, depth: int) -> bool:
    """Whether a seen entry, as stored, is of a URL that a link led to already, no farther than `depth` and without a redirect.

    It may say False of one beyond depth 127, which takes more than a byte. 0.1 us, an eighth of what decoding takes.
    """
    try:
        return value[2] <= depth and value[3] & _HOPS_AND_LINK == _LINK_ALONE and value[2] <= _DEEPEST_IN_A_BYTE
    except IndexError:  # decoding it says what is wrong
        return False


def _sources_of(packed: int) -> int:
    sources = packed >> _HOPS_BITS
    if not 0 <= sources <= _ALL_SOURCES:
        raise damaged(f"a URL has sources that there are not ({sources})")
    return sources


def encode_row(row: QueueRow) -> bytes:
    """Return a queue row as bytes."""
    return _encoder.encode(row)


def decode_row(value: bytes) -> QueueRow:
    """Return the queue row of `value`; StateDamaged if it is none."""
    try:
        return _row_decoder.decode(value)
    except msgspec.DecodeError as error:
        raise damaged(f"a queue row cannot be read: {error}") from error


_RECORD_HEAD = struct.Struct(">IB")


class RecordCodec:
    """Records as bytes: the head in front, so that changing it leaves the rest alone, then the rest compressed.

    One for each thread: a zstd context must not be used by two at once.
    """

    def __init__(self) -> None:
        self._compress = zstandard.ZstdCompressor(level=1).compress
        self._decompress = zstandard.ZstdDecompressor().decompress
        self._decoder = msgspec.msgpack.Decoder(Record)

    def encode(self, record: Record) -> bytes:
        """Return the value of a record; its URL is the key and is not repeated."""
        body = msgspec.structs.replace(record, url="", depth=0, hops=0, sources=0, lastmod=None, priority=None)
        head = _RECORD_HEAD.pack(record.depth, record.hops | record.sources << _HOPS_BITS)
        return head + self._compress(_encoder.encode(body))

    def decode(self, url: str, value: bytes) -> Record:
        """Return the record of `url`; StateDamaged if the value is none."""
        depth, hops, sources = head_of(value)
        try:
            body = self._decoder.decode(self._decompress(value[_RECORD_HEAD.size :]))
        except (msgspec.DecodeError, zstandard.ZstdError, MemoryError) as error:  # MemoryError: a length that cannot be
            raise damaged(f"the record of {url} cannot be read: {error}") from error
        return msgspec.structs.replace(body, url=url, depth=depth, hops=hops, sources=sources)

    def mentions(self, value: bytes, text: bytes) -> bool:
        """Whether the bytes of a record's value hold `text`; a value that cannot be read holds none."""
        try:
            return text in self._decompress(value[_RECORD_HEAD.size :])
        except (zstandard.ZstdError, MemoryError):
            return False


def head_of(value: bytes) -> Head:
    """Return the head of a record's value; StateDamaged if it is too short."""
    try:
        depth, packed = _RECORD_HEAD.unpack_from(value)
    except struct.error as error:
        raise damaged(f"a record's distances cannot be read: {error}") from error
    return Head(depth, packed & _HOPS_MASK, _sources_of(packed))


def with_head(value: bytes, head: Head) -> bytes:
    """Return a record's value with another head."""
    return _packed_head(head) + value[_RECORD_HEAD.size :]


def _packed_head(head: Head) -> bytes:
    return _RECORD_HEAD.pack(head.depth, head.hops | head.sources << _HOPS_BITS)
