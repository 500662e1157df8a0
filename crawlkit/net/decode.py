"""Undoing Content-Encoding while a body arrives, bounded in memory and in output.

A body of a few kilobytes can stand for gigabytes, so the cap counts decoded bytes and every decoder is asked for a
bounded piece at a time; nothing is expanded further than the cap needs. Codings are those of RFC 9110 section 8.4.1,
`br` (RFC 7932) and `zstd` (RFC 8878, window as RFC 9659 allows it), also several after each other.

Servers are wrong about this header in known ways, and a page should not be lost for it:

- An unknown coding (`utf-8`, `none`, `aws-chunked`) is ignored; the body is used as it is.
- A body without the first bytes that gzip or zstd begin with was never encoded: it is used as it is.
- A stream that breaks or stops early keeps what it gave, marked truncated; one that breaks before it gave anything (a
  plain body called `br`, say) is kept as received, marked truncated.
- Bytes after the end of a stream are ignored.
"""

import zlib
from collections.abc import Callable, Iterator, Sequence
from typing import Final, Protocol

import brotli  # type: ignore[import-untyped]
import zstandard

ACCEPT_ENCODING: Final = b"gzip, deflate, br, zstd"
"""What is asked for: exactly what can be undone here."""

_PIECE_BYTES: Final = 256 * 1024
# What a decoder leaves of its input is copied each time: by small slices that stays cheap for thousands of tiny members.
_SLICE_BYTES: Final = 16 * 1024
_MAX_CODINGS: Final = 4
_GZIP_MAGIC: Final = b"\x1f\x8b"
_ZSTD_MAGIC: Final = b"\x28\xb5\x2f\xfd"
_ZSTD_WINDOW_BYTES: Final = 8 * 1024 * 1024
# The most that zstd can make of one byte: a block of 4 bytes that repeats one byte 128 KiB times (RFC 8878 3.1.1.2).
_ZSTD_EXPANSION: Final = 32 * 1024
_ZSTD_SLICE_BYTES: Final = 64

_BROKEN: Final = (zlib.error, brotli.error, zstandard.ZstdError)


class _Stage(Protocol):
    """Undoes one coding. `whole` says that the stream ended where its format says, or never began."""

    whole: bool

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yield what `data` decodes to, in bounded pieces, none of them empty; raise one of `_BROKEN`."""
        ...


def _inflate(stream: "zlib._Decompress", data: bytes) -> Iterator[bytes]:
    while not stream.eof:  # past it, the tail is never consumed
        piece = stream.decompress(data, _PIECE_BYTES)
        data = stream.unconsumed_tail
        if piece:
            yield piece
        if not data and len(piece) < _PIECE_BYTES:  # a full piece may have left output inside zlib
            return


class _Gzip:
    """Members after each other (RFC 1952 section 2.2), with zero padding between and anything after them ignored."""

    def __init__(self, _max_bytes: int) -> None:
        self.whole = True
        self._member: zlib._Decompress | None = None
        self._plain = self._ended = False

    def feed(self, data: bytes) -> Iterator[bytes]:
        while data and not self._ended:
            if self._plain:
                yield data
                return
            if self._member is None or self._member.eof:
                data = data.lstrip(b"\0") if self._member else data
                self._begin_member(data[:2])
            else:
                yield from _inflate(self._member, data)
                data = self._member.unused_data
                self.whole = self._member.eof

    def _begin_member(self, head: bytes) -> None:
        if not _GZIP_MAGIC.startswith(head):
            self._plain = self._member is None
            self._ended = not self._plain
        elif head:
            self._member = zlib.decompressobj(31)


class _Deflate:
    """The zlib format as the standard says (RFC 1950), or bare deflate (RFC 1951) as some servers send it."""

    def __init__(self, _max_bytes: int) -> None:
        self.whole = True
        self._stream: zlib._Decompress | None = None
        self._head = b""

    def feed(self, data: bytes) -> Iterator[bytes]:
        self.whole = False
        if self._stream is None:
            data = self._head = self._head + data
            if len(data) < 2:
                return
            is_zlib = data[0] & 0x0F == 8 and int.from_bytes(data[:2]) % 31 == 0
            self._stream = zlib.decompressobj(15 if is_zlib else -15)
        yield from _inflate(self._stream, data)
        self.whole = self._stream.eof


class _Brotli:
    def __init__(self, _max_bytes: int) -> None:
        self.whole = True
        self._stream = brotli.Decompressor()

    def feed(self, data: bytes) -> Iterator[bytes]:
        if self._stream.is_finished():
            return
        # Output may be left inside even when `can_accept_more_data` says yes: that speaks of input only.
        while piece := self._stream.process(data, output_buffer_limit=_PIECE_BYTES):
            yield piece
            data = b""
        self.whole = self._stream.is_finished()


class _Zstd:
    """Frames after each other. The library bounds no output, so it gets slices too small to give more than the cap."""

    def __init__(self, max_bytes: int) -> None:
        self.whole = True
        self._slice_bytes = max(_ZSTD_SLICE_BYTES, max_bytes // _ZSTD_EXPANSION)
        self._decompressor = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW_BYTES)
        self._frame: zstandard.ZstdDecompressionObj | None = None
        self._plain = self._ended = False

    def feed(self, data: bytes) -> Iterator[bytes]:
        start = 0
        while start < len(data) and not self._ended:
            if self._plain:
                yield data[start:]
                return
            if self._frame is None or self._frame.eof:
                self._begin_frame(data[start : start + 4])
            if self._frame is not None and not self._ended:
                part = data[start : start + self._slice_bytes]
                piece = self._frame.decompress(part)
                self.whole = self._frame.eof
                start += len(part) - len(self._frame.unused_data)
                if piece:
                    yield piece

    def _begin_frame(self, head: bytes) -> None:
        skippable = bytes((0x50 | head[0] & 0x0F, 0x2A, 0x4D, 0x18))
        if _ZSTD_MAGIC.startswith(head) or skippable.startswith(head):
            self._frame = self._decompressor.decompressobj()
        else:
            self._plain = self._frame is None
            self._ended = not self._plain


_CODINGS: Final[dict[bytes, Callable[[int], _Stage]]] = {
    b"gzip": _Gzip,
    b"x-gzip": _Gzip,
    b"deflate": _Deflate,
    b"br": _Brotli,
    b"zstd": _Zstd,
}


class BodyDecoder:
    """Collects one body: `feed` chunks as they come, then `finish`.

    `content_encoding` are the values of that header, in order. `max_bytes` caps what is kept, and what any coding in
    between may give. More than four codings are not undone: the body is kept as received and marked truncated.
    """

    def __init__(self, content_encoding: Sequence[bytes], max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._pieces: list[bytes] = []
        self._size = 0
        self._cut = False
        self._stages: list[_Stage] = []
        if content_encoding:
            self._undo(content_encoding)

    def _undo(self, content_encoding: Sequence[bytes]) -> None:
        names = [name.strip().lower() for name in b",".join(content_encoding).split(b",")]
        codings = [_CODINGS[name] for name in reversed(names) if name in _CODINGS]
        self._cut = len(codings) > _MAX_CODINGS
        self._stages = [] if self._cut else [coding(self._max_bytes) for coding in codings]
        self._given = [0] * len(self._stages)
        # Input that gives no output has no end of its own: empty members, empty blocks. An incompressible body is
        # hardly larger encoded than decoded.
        self._wire_left = self._max_bytes + self._max_bytes // 8 + 65536
        self._raw: list[bytes] = []

    def feed(self, chunk: bytes) -> bool:
        """Take the next bytes of the body; return False when no more are wanted."""
        if self._stages:
            return self._decode(chunk)
        self._pieces.append(chunk)
        self._size += len(chunk)
        return self._size <= self._max_bytes

    def _decode(self, chunk: bytes) -> bool:
        if not self._size:
            self._raw.append(chunk)
        self._wire_left -= len(chunk)
        self._cut = self._wire_left < 0
        try:
            for piece in self._through(0, chunk):
                self._pieces.append(piece)
                self._size += len(piece)
                if self._size > self._max_bytes:
                    return False
        except _BROKEN:
            self._cut = True
            return not self._size and self._keep_raw()
        if self._size:
            self._raw.clear()
        return not self._cut

    def _keep_raw(self) -> bool:
        self._stages.clear()
        self._pieces = self._raw
        self._size = sum(map(len, self._raw))
        return self._size <= self._max_bytes

    def _through(self, depth: int, data: bytes) -> Iterator[bytes]:
        """Yield what `data` gives after the stages from `depth` on, a bounded piece at a time."""
        for start in range(0, len(data), _SLICE_BYTES):
            for piece in self._stages[depth].feed(data[start : start + _SLICE_BYTES]):
                self._given[depth] += len(piece)
                if depth + 1 == len(self._stages):
                    yield piece
                elif self._given[depth] > self._max_bytes:
                    self._cut = True
                    return
                else:
                    yield from self._through(depth + 1, piece)

    def finish(self) -> tuple[bytes, bool]:
        """Return the decoded body, at most `max_bytes` of it, and whether it is not all of it."""
        body = self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)
        if self._size > self._max_bytes:
            return body[: self._max_bytes], True
        return body, self._cut or bool(self._stages and not all(stage.whole for stage in self._stages))
