"""A small HTTP/1.1 server for who looks at a running crawl: GET in, a whole answer out, a connection for each.

Answers are made on the event loop, so that they may look at what is the loop's, and must be quick in the making. What a
client does wrong, or does not do, ends its own connection only.
"""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from http import HTTPStatus

import httptools

from crawlkit.net.clients import Clients
from crawlkit.net.local import Socket

MOST_CLIENTS = 16
MOST_HEAD_BYTES = 16 * 1024
REQUEST_WITHIN_S = 10.0
TAKEN_WITHIN_S = 10.0


@dataclass(frozen=True, slots=True)
class Answer:
    """A whole answer."""

    body: bytes
    content_type: str = "text/plain; charset=utf-8"
    status: HTTPStatus = HTTPStatus.OK


def listen_at(host: str, port: int) -> Socket:
    """Return a socket that listens at an address of `host`, which does not block; OSError if there cannot be one.

    A port of 0 is any that is free.
    """
    family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    listening = socket.socket(family, socket.SOCK_STREAM)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # or a resume would wait for the last run's connections
        listening.bind(address)
        listening.listen()
        listening.setblocking(False)
    except OSError:
        listening.close()
        raise
    return listening


class HttpServer:
    """Answers each GET by what `answer` makes of its path (without the query)."""

    def __init__(self, answer: Callable[[str], Answer]) -> None:
        self._answer = answer
        self._clients = Clients(self._serve, MOST_CLIENTS)

    @asynccontextmanager
    async def accepting(self, listening: Socket) -> AsyncIterator[None]:
        """Serve who connects while the block runs; what is not answered by its end never is."""
        accepting = asyncio.create_task(self._clients.accept(listening))
        try:
            yield
        finally:
            accepting.cancel()
            await asyncio.gather(accepting, return_exceptions=True)
            await self._clients.end()

    async def _serve(self, connection: Socket) -> None:
        """Take one request and answer it."""
        reader, writer = await asyncio.open_connection(sock=connection, limit=MOST_HEAD_BYTES)
        writer.transport.set_write_buffer_limits(0)  # so that `drain` waits until all is taken
        try:
            head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), REQUEST_WITHIN_S)
            writer.write(self._answer_to(head))
            await asyncio.wait_for(writer.drain(), TAKEN_WITHIN_S)
        except (OSError, EOFError, TimeoutError, asyncio.LimitOverrunError):
            pass
        finally:
            writer.transport.abort()  # what is not taken by now will not be waited for
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    def _answer_to(self, head: bytes) -> bytes:
        request = _Request()
        parser = httptools.HttpRequestParser(request)
        try:
            with contextlib.suppress(httptools.HttpParserUpgrade):  # it is answered in the protocol that it came in
                parser.feed_data(head)
        except httptools.HttpParserError:
            return _on_wire(Answer(b"not an HTTP request\n", status=HTTPStatus.BAD_REQUEST))
        if parser.get_method() not in (b"GET", b"HEAD"):
            return _on_wire(Answer(b"only GET is answered\n", status=HTTPStatus.METHOD_NOT_ALLOWED), "Allow: GET, HEAD\r\n")
        path = request.target.partition(b"?")[0].decode("latin-1")
        answer = _on_wire(self._answer(path))
        return answer if parser.get_method() == b"GET" else answer[: answer.index(b"\r\n\r\n") + 4]


class _Request:
    """What the parser tells of a head."""

    def __init__(self) -> None:
        self.target = b""

    def on_url(self, url: bytes) -> None:
        self.target += url


def _on_wire(answer: Answer, more: str = "") -> bytes:
    head = (
        f"HTTP/1.1 {answer.status.value} {answer.status.phrase}\r\nContent-Type: {answer.content_type}\r\n"
        f"Content-Length: {len(answer.body)}\r\nCache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n"
        f"{more}Connection: close\r\n\r\n"
    )
    return head.encode("latin-1") + answer.body
