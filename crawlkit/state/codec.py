"""Values as bytes: seen entries, queue rows, hosts, records.

Small values are MessagePack arrays (fields are only ever appended). Records are compressed before LevelDB sees them: its write
amplification multiplies their bytes (measured on records of 60 links: 8,060 bytes written a page raw, 2,200 with zstd).
"""

import struct
from enum import IntEnum
from typing import NamedTuple

import msgspec
import zstandard

from crawlkit.model import Record
from crawlkit.state.damage import damaged


class UrlState(IntEnum):
    """Where a seen URL stands on disk; a claim is known in memory only."""

    QUEUED = 0
    TIMED = 1
    SETTLED = 2


class SeenEntry(NamedTuple):
    """What the seen-set knows of a URL: `tail` leads to its row while it is queued or timed, else empty."""

    state: UrlState
    depth: int
    hops: int
    tail: bytes = b""


class QueueRow(msgspec.Struct, frozen=True, array_like=True):
    """A URL in a back queue or in the timed range.

    `depth` and `hops` repeat the seen entry's, so that a row whose entry was overwritten (a filter's wrong "no") still
    tells the least distance. `wait_s` is the wait that was asked for when it was timed: a due time further away than that
    is the work of a clock that jumped.
    """

    url: str
    host: str
    depth: int
    hops: int
    attempts: int = 0
    wait_s: float = 0.0
    via: str | None = None


_encoder = msgspec.msgpack.Encoder()
_row_decoder = msgspec.msgpack.Decoder(QueueRow)
_seen_decoder = msgspec.msgpack.Decoder(SeenEntry)


def encode_seen(entry: SeenEntry) -> bytes:
    """Return a seen entry as bytes: 4 for most settled URLs."""
    return _encoder.encode(tuple(entry) if entry.tail else tuple(entry[:3]))


def decode_seen(value: bytes) -> SeenEntry:
    """Return the seen entry of `value`; StateDamaged if it is none."""
    try:
        return _seen_decoder.decode(value)
    except msgspec.DecodeError as error:
        raise damaged(f"a seen entry cannot be read: {error}") from error


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
    """Records as bytes: depth and hops in front, so that lowering them leaves the rest alone, then the rest compressed.

    One for each thread: a zstd context must not be used by two at once.
    """

    def __init__(self) -> None:
        self._compress = zstandard.ZstdCompressor(level=1).compress
        self._decompress = zstandard.ZstdDecompressor().decompress
        self._decoder = msgspec.msgpack.Decoder(Record)

    def encode(self, record: Record) -> bytes:
        """Return the value of a record; its URL is the key and is not repeated."""
        body = msgspec.structs.replace(record, url="", depth=0, hops=0)
        return _RECORD_HEAD.pack(record.depth, record.hops) + self._compress(_encoder.encode(body))

    def decode(self, url: str, value: bytes) -> Record:
        """Return the record of `url`; StateDamaged if the value is none."""
        depth, hops = distances_of(value)
        try:
            body = self._decoder.decode(self._decompress(value[_RECORD_HEAD.size :]))
        except (msgspec.DecodeError, zstandard.ZstdError, MemoryError) as error:  # MemoryError: a length that cannot be
            raise damaged(f"the record of {url} cannot be read: {error}") from error
        return msgspec.structs.replace(body, url=url, depth=depth, hops=hops)


def distances_of(value: bytes) -> tuple[int, int]:
    """Return depth and hops of a record's value; StateDamaged if it is too short."""
    try:
        depth, hops = _RECORD_HEAD.unpack_from(value)
    except struct.error as error:
        raise damaged(f"a record's distances cannot be read: {error}") from error
    return depth, hops


def with_distances(value: bytes, depth: int, hops: int) -> bytes:
    """Return a record's value with other distances."""
    return _RECORD_HEAD.pack(depth, hops) + value[_RECORD_HEAD.size :]
