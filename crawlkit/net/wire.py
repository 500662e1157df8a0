"""One HTTP/1.1 connection: a request's bytes out, the head and the body of its answer in.

The grammar is llhttp's, by `httptools`. What is added is what that parser does not tell or bound: where a head ends, how
much of it there may be, and whether the connection is fit for another request.
"""

import asyncio
import re
import select
from collections.abc import Callable
from enum import Enum, auto
from typing import Any, Final, assert_never, cast

import httpx
import msgspec
from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

_BLANK_LINE: Final = re.compile(rb"\n\r?\n")
_STATUS_LINE: Final = b"HTTP/1."
_MOST_HEAD_BYTES: Final = 100 * 1024  # as h11 has it; real cookies and policies come to 20 KiB
_MOST_HEAD_LINES: Final = 256
_MOST_INTERIM: Final = 16
_MOST_FRAMING_BYTES: Final = 64 * 1024  # in a row: chunk extensions and trailers, which the parser gathers in memory
_MOST_UNREAD_BYTES: Final = 256 * 1024


class _Phase(Enum):
    NEW = auto()  # no request has been sent
    HEAD = auto()
    BODY = auto()
    WHOLE = auto()  # the answer is here to its end; its body may wait to be read


_NEW: Final = _Phase.NEW  # looked up once (`model`): there are thirty in a request
_HEAD: Final = _Phase.HEAD
_BODY: Final = _Phase.BODY
_WHOLE: Final = _Phase.WHOLE


class _SurplusError(Exception):
    """Bytes after the end of an answer: stops the parser."""


def new_parser(protocol: object) -> HttpResponseParser:
    """Return the parser of an answer, which tells `protocol`. What it lets pass, browsers and h11 take as well.

    `Connection` refuses those things that they take and nobody should.
    """
    parser = HttpResponseParser(protocol)
    parser.set_dangerous_leniencies(
        lenient_headers=True,
        lenient_chunked_length=True,
        lenient_optional_cr_before_lf=True,
        lenient_spaces_after_chunk_size=True,
    )
    return parser


class Forward(msgspec.Struct, frozen=True):
    """How a proxy has to be asked to pass a request on: `prefix` before the target (`http://host`), `fields` (lines) added."""

    prefix: bytes
    fields: bytes


class Connection(asyncio.Protocol):
    """Asks one request at a time: `ask`, then `read` until it returns nothing, then again if `fit`.

    Whatever is wrong with an answer closes the connection. `on_made` is called when it is open, `on_lost` once it is closed,
    from whichever side. `status`, `headers` (as received) and `head` (all of it, to the byte) are the answer's, valid after
    `ask`. `untouched` says that not one byte of an answer has come since the request was sent. `forward` is set where a proxy
    is at the other end. `address` is the server's, where it is known.
    """

    def __init__(self, on_made: Callable[["Connection"], None], on_lost: Callable[["Connection"], None]) -> None:
        self.forward: Forward | None = None
        self.address: str | None = None
        self._on_made = on_made
        self._on_lost = on_lost
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._parser = new_parser(self)
        self._phase = _NEW
        self._waiter: asyncio.Future[None] | None = None
        self._error: httpx.TransportError | None = None
        self._paused = False
        self._poll: select.poll | None = None
        self._begin()

    def _begin(self) -> None:
        self.status = 0
        self.headers: list[tuple[bytes, bytes]] = []
        self.head = b""
        self.untouched = True
        self._unread = b""
        self._head_bytes = 0
        self._interim = 0
        self._chunked = False
        self._keep = False
        self._framing_bytes = 0
        self._unread_bytes = 0
        self._pieces: list[bytes] = []

    # For whoever asks --------------------------------------------------------------------------------------------------

    @property
    def lost(self) -> bool:
        """Whether the connection is closed, or about to be."""
        return self._transport is None or self._transport.is_closing()

    @property
    def fit(self) -> bool:
        """Whether another request may be sent: the answer is whole and read, nothing came after it, and it stays open."""
        if not self._keep or self._phase is not _WHOLE or self._pieces or self.lost:
            return False
        # With both, proxies in between may disagree about where the answer ends (RFC 9112 section 6.3).
        return not (self._chunked and self._has(b"content-length"))

    @property
    def has_unread(self) -> bool:
        """Whether the socket holds bytes, or an end, that the loop has not come to read: none of it answers what is asked next.

        A server that gives up an idle connection may say 408 on it (RFC 9110 section 15.5.9). 0.9 us.
        """
        socket = None if self._transport is None else self._transport.get_extra_info("socket")
        if socket is None:  # TLS has lost it, and the protocol above is not told yet
            return True
        self._poll = self._poll or _watching(socket)
        return bool(self._poll.poll(0))

    async def ask(self, request: bytes) -> None:
        """Send a request and wait for the head of its answer; raises httpx.ReadError or RemoteProtocolError."""
        if self._error is not None:
            raise self._error
        self._begin()
        self._phase = _HEAD
        if self._transport is not None:
            self._transport.write(request)
        while self._phase is _HEAD:
            if self._error is not None:
                raise self._error
            await self._woken()

    async def read(self) -> bytes:
        """Return what has come of the body and is not read yet, at its end nothing.

        Raises httpx.ReadError or RemoteProtocolError where the body breaks off, after all that came before.
        """
        while (body := self.take()) is None:
            if self._error is not None:
                raise self._error
            await self._woken()
        return body

    def take(self) -> bytes | None:
        """Return what `read` would return at once, None if that would wait, or raise."""
        if not self._pieces:
            return b"" if self._phase is _WHOLE else None
        body = self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)
        self._pieces.clear()
        self._unread_bytes = 0
        if self._paused and self._transport is not None:
            self._paused = False
            self._transport.resume_reading()
        return body

    def rest(self) -> bytes | None:
        """Return what `take` would, if all of the answer is here."""
        return self.take() if self._phase is _WHOLE else None

    def abort(self) -> None:
        """Close at once, whatever is under way; one that is not open yet is closed when it is."""
        if self._transport is not None:
            self._transport.abort()
        elif self._phase is _NEW:
            self._error = self._error or httpx.ReadError("given up before it was open")

    def hand_over(self) -> asyncio.Transport:
        """Return the transport for another protocol to go on with, which whoever calls this sets: this one has ended."""
        transport, self._transport = self._transport, None
        if transport is None or transport.is_closing() or self._pieces:
            self._transport = transport
            raise httpx.RemoteProtocolError("the end of a tunnel, or bytes before it is used")
        self._on_lost(self)
        return transport

    def _woken(self) -> "asyncio.Future[None]":
        """Return what is done when something has come."""
        self._waiter = self._loop.create_future()
        return self._waiter

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _fail(self, error: httpx.TransportError) -> None:
        self._error = self._error or error
        self.abort()

    def _has(self, *names: bytes) -> bool:
        return any(name.lower() in names for name, _ in self.headers)

    # For the event loop ------------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin, if the end has not come first: inside of a tunnel it may."""
        self._transport = cast("asyncio.Transport", transport)  # uvloop's are of no common class
        if self._error is not None:
            self._transport.abort()
            return
        self._on_made(self)

    def data_received(self, data: bytes) -> None:
        """Take in what the server sent."""
        if self._phase is _HEAD:
            self.untouched = False
            self._take_head(data)
        elif self._phase is _BODY:
            self._take_body(data)
        elif self._phase is _NEW or self._phase is _WHOLE:
            self._fail(httpx.RemoteProtocolError("the server speaks before it is asked"))
        else:
            assert_never(self._phase)
        if self._phase is not _HEAD:
            self._wake()

    def connection_lost(self, exc: Exception | None) -> None:
        """End; a body that its head gives no length ends so in order, if this is no reset (RFC 9112 section 6.3)."""
        self._transport = None
        framed = self._has(b"content-length", b"transfer-encoding")
        if self._phase is _BODY and self._error is None and exc is None and not framed:
            self._phase = _WHOLE
        elif self._phase is not _WHOLE and self._error is None:
            self._error = httpx.ReadError(str(exc or "the server closed the connection"))
            self._error.__cause__ = exc
        self._wake()
        self._on_lost(self)

    # The answer --------------------------------------------------------------------------------------------------------

    def _take_head(self, data: bytes) -> None:
        """Feed the parser head by head: the final one may follow others (1xx)."""
        start, begin = max(0, len(self._unread) - 2), 0
        data = self._unread + data
        while self._phase is _HEAD:
            blank = _BLANK_LINE.search(data, start)
            head = data[begin:] if blank is None else data[begin : blank.end()]
            refusal = self._refusal(head)
            if refusal is not None:
                self._fail(httpx.RemoteProtocolError(refusal))
                return
            if blank is None:
                self._unread = head
                return
            self._head_bytes += len(head)
            self.head = head
            self._feed(head)
            if self._error is not None:
                return
            start = begin = blank.end()
        if begin < len(data):
            self._take_body(memoryview(data)[begin:])

    def _refusal(self, head: bytes) -> str | None:
        """Return why this beginning of a head, or all of it, is none."""
        if not (head.startswith(_STATUS_LINE) or _STATUS_LINE.startswith(head)):
            return f"no HTTP/1 status line: {head[:40]!r}"
        if self._head_bytes + len(head) > _MOST_HEAD_BYTES or head.count(b"\n") > _MOST_HEAD_LINES:
            return "a header section without end"
        if self._interim > _MOST_INTERIM:
            return "interim answers without end"
        if b"\0" in head:
            return "a NUL in the header section"
        second = head.find(b"\n") + 1
        if second and head[second : second + 1] in (b" ", b"\t"):
            return "a continuation of no header"
        return None

    def _take_body(self, data: bytes | memoryview) -> None:
        if self._phase is _WHOLE:
            self.abort()
            return
        self._framing_bytes += len(data)
        self._feed(data)
        if self._phase is not _BODY or self._transport is None:
            return
        if self._framing_bytes > _MOST_FRAMING_BYTES:
            self._fail(httpx.RemoteProtocolError("chunk extensions or trailers without end"))
        elif self._unread_bytes > _MOST_UNREAD_BYTES:
            self._paused = True
            self._transport.pause_reading()

    def _feed(self, data: bytes | memoryview) -> None:
        try:
            self._parser.feed_data(data)
        except (HttpParserError, HttpParserUpgrade) as error:
            if self._phase is _WHOLE:
                self.abort()
            else:
                self._fail(httpx.RemoteProtocolError(str(error)))

    # For the parser ----------------------------------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        """Stop at what comes after an answer."""
        if self._phase is not _HEAD:
            raise _SurplusError

    def on_header(self, name: bytes, value: bytes) -> None:
        """Keep a header; trailers, after the body, are passed over."""
        if self._phase is _HEAD:
            self.headers.append((name, value.rstrip(b" \t")))

    def on_headers_complete(self) -> None:
        """Take the head as the answer's, or pass over that of an interim one."""
        status = self._parser.get_status_code()
        if 100 <= status < 200 and status != 101:
            self._interim += 1
            self.headers.clear()
            return
        self.status = status
        self._keep = self._parser.should_keep_alive()
        self._phase = _BODY

    def on_chunk_header(self) -> None:
        """Note that the body comes in chunks."""
        self._chunked = True

    def on_body(self, piece: bytes) -> None:
        """Keep a piece of the body until it is read."""
        self._pieces.append(piece)
        self._unread_bytes += len(piece)
        self._framing_bytes = 0

    def on_message_complete(self) -> None:
        """End the answer; the end of an interim one changes nothing."""
        if self._phase is _BODY:
            self._phase = _WHOLE


def has_unread(transport: asyncio.BaseTransport) -> bool:
    """Return whether the socket of a connection holds bytes, or an end, that the loop has not come to read."""
    socket = transport.get_extra_info("socket")
    return socket is None or bool(_watching(socket).poll(0))  # TLS has lost it, and the protocol above is not told yet


def _watching(socket: Any) -> select.poll:
    poll = select.poll()
    poll.register(socket, select.POLLIN)
    return poll
