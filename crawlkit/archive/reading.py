"""One record read back from where it lies: a gzip member of its own, ungzipped a piece at a time."""

import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import BinaryIO, Final

_PIECE_BYTES: Final = 256 * 1024
_MOST_HEAD_BYTES: Final = 256 * 1024  # above what an answer's head may have (`net.wire`), and a record's with a long URL
_GZIP: Final = 31
_BLANK_LINE: Final = b"\r\n\r\n"


class BrokenRecordError(Exception):
    """What lies there is no whole record; says why."""


@dataclass(frozen=True, slots=True)
class ReadRecord:
    """A record: its fields, and its block in pieces, to be read once. Reading raises BrokenRecordError."""

    fields: Mapping[str, str]
    block: Iterator[bytes]

    def answer(self) -> tuple[bytes, Iterator[bytes]]:
        """Return the head of the HTTP message in the block, with its empty line, and the body in pieces."""
        return _split(self.block)


def read_record(file: BinaryIO, offset: int, length: int) -> ReadRecord:
    """Return the record in the member of `length` bytes at `offset`; BrokenRecordError if there is none."""
    head, rest = _split(_ungzipped(file, offset, length))
    version, *lines = head.removesuffix(_BLANK_LINE).decode("utf-8", "replace").split("\r\n")
    if version != "WARC/1.1":
        raise BrokenRecordError("no WARC/1.1 record")
    fields = {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}
    if not fields.get("Content-Length", "").isdigit():
        raise BrokenRecordError("a record without a length")
    return ReadRecord(fields, _block(rest, int(fields["Content-Length"])))


def _ungzipped(file: BinaryIO, offset: int, length: int) -> Iterator[bytes]:
    """Yield what one member decompresses to; it has to end where it is said to."""
    file.seek(offset)
    member = zlib.decompressobj(_GZIP)
    left = length
    try:
        while left and (data := file.read(min(left, _PIECE_BYTES))):
            left -= len(data)
            while data:
                piece = member.decompress(data, _PIECE_BYTES)
                data = member.unconsumed_tail
                if piece:
                    yield piece
    except zlib.error as error:
        raise BrokenRecordError(f"a gzip member that cannot be read: {error}") from error
    if left or member.unused_data or not member.eof:
        raise BrokenRecordError("a gzip member that does not end where it should")


def _split(pieces: Iterator[bytes]) -> tuple[bytes, Iterator[bytes]]:
    """Return what comes up to the first empty line, and an iterator over the rest."""
    head = b""
    for piece in pieces:
        start = max(0, len(head) - 3)
        head += piece
        end = head.find(_BLANK_LINE, start)
        if end >= 0:
            end += len(_BLANK_LINE)
            return head[:end], _after(head[end:], pieces)
        if len(head) > _MOST_HEAD_BYTES:
            break
    raise BrokenRecordError("a head without end")


def _after(first: bytes, others: Iterator[bytes]) -> Iterator[bytes]:
    if first:
        yield first
    yield from others


def _block(pieces: Iterator[bytes], length: int) -> Iterator[bytes]:
    """Yield `length` bytes; what follows them has to be the two line ends of a record."""
    tail = b""
    for piece in pieces:
        if length:
            if part := piece[:length]:
                yield part
            tail += piece[length:]
            length -= len(part)
        else:
            tail += piece
        if len(tail) > len(_BLANK_LINE):
            break
    if length or tail != _BLANK_LINE:
        raise BrokenRecordError("a block of another length than its record says")
