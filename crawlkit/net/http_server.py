"""A small HTTP/1.1 server beside a crawl, for few readers who need not be friends: metrics, and a page of our own.

One request a connection, without a body, answered and closed. Answers are made on the event loop, so that they may look at
what is the loop's, and must be quick in the making, or wait elsewhere.

Bounds: `MOST_HEAD_BYTES` of a head that must come within `HEAD_WITHIN_S`, `MOST_CONNECTIONS` at once (`MOST_STREAMS` of them
streams), `TAKEN_WITHIN_S` for a reader that takes nothing. What a reader does wrong ends its own connection only.
"""

import asyncio
import contextlib
import ipaddress
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from types import MappingProxyType
from urllib.parse import parse_qsl

import httptools

from crawlkit.net.clients import Clients
from crawlkit.net.local import Socket

MOST_HEAD_BYTES = 16 * 1024
MOST_CONNECTIONS = 32
MOST_STREAMS = 16
HEAD_WITHIN_S = 10.0
TAKEN_WITHIN_S = 20.0
LAST_ANSWERS_S = 2.0
"""How long the end waits for answers and streams to end by themselves."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A request: names of headers are lower case; of what is repeated the last one counts.

    HEAD is asked as GET, and gets the head of what that is answered. So `method` is never HEAD.
    """

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer: its body whole, or as a stream, which has `LAST_ANSWERS_S` for its end when the server ends.

    Its headers come besides, or instead of, those that forbid caching and guessing at types.
    """

    status: int
    content_type: str
    body: bytes | AsyncIterator[bytes]
    headers: Mapping[str, str] = field(default_factory=dict)


Answer = Callable[[Asked], Awaitable[Reply]]


_ALWAYS: Mapping[str, str] = MappingProxyType({"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"})


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


def is_loopback(address: str) -> bool:
    """Whether an address is of this machine alone."""
    return ipaddress.ip_address(address).is_loopback


@asynccontextmanager
async def serving_http(listening: Socket, answer: Answer, stopping: asyncio.Event) -> AsyncIterator[None]:
    """Serve what `listening` accepts while the block runs; `stopping` is set in the end, for streams to end in order."""
    server = _Server(answer)
    accepting = asyncio.create_task(server.clients.accept(listening))
    try:
        yield
    finally:
        stopping.set()
        accepting.cancel()
        await asyncio.gather(accepting, return_exceptions=True)
        await server.end()


class _Server:
    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self.clients = Clients(self._serve, MOST_CONNECTIONS)
        self._answering: set[asyncio.Task[None]] = set()  # those that have asked
        self._streams = 0

    async def _serve(self, connection: Socket) -> None:
        """Take one request and answer it."""
        reader, writer = await asyncio.open_connection(sock=connection, limit=MOST_HEAD_BYTES)
        task = asyncio.current_task()
        assert task is not None
        try:
            asked = await self._asked(reader)
            self._answering.add(task)
            if isinstance(asked, Reply):
                await self._send(writer, asked)
            elif asked.method == "HEAD":
                await _write(writer, _head(await self._answer(replace(asked, method="GET"))))
            else:
                await self._send(writer, await self._answer(asked))
            writer.close()
            await asyncio.wait_for(writer.wait_closed(), TAKEN_WITHIN_S)
        except (OSError, TimeoutError):
            pass
        finally:
            self._answering.discard(task)
            writer.transport.abort()  # what is not taken by now will not be waited for

    async def end(self) -> None:
        """Let answers end that are on their way, for a while; then end whoever is left."""
        if self._answering:
            await asyncio.wait(set(self._answering), timeout=LAST_ANSWERS_S)
        await self.clients.end()

    async def _asked(self, reader: asyncio.StreamReader) -> Asked | Reply:
        """Return a request, or the answer to what is none."""
        try:
            head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), HEAD_WITHIN_S)
            asked = read_head(head)
        except asyncio.LimitOverrunError:
            return text_reply(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)
        except (asyncio.IncompleteReadError, ValueError):
            return text_reply(HTTPStatus.BAD_REQUEST)
        if asked.headers.get("content-length", "0").strip("0") or "transfer-encoding" in asked.headers:
            return text_reply(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
        return asked

    async def _send(self, writer: asyncio.StreamWriter, reply: Reply) -> None:
        if isinstance(reply.body, bytes):
            await _write(writer, _head(reply) + reply.body)
            return
        if self._streams >= MOST_STREAMS:
            await self._send(writer, text_reply(HTTPStatus.SERVICE_UNAVAILABLE))
            return
        self._streams += 1
        try:
            await _write(writer, _head(reply))
            async for some in reply.body:
                await _write(writer, some)
        finally:
            self._streams -= 1


async def _write(writer: asyncio.StreamWriter, data: bytes) -> None:
    writer.write(data)
    await asyncio.wait_for(writer.drain(), TAKEN_WITHIN_S)


def text_reply(status: HTTPStatus, text: str | None = None) -> Reply:
    """Return an answer that says in one line what its status means."""
    return Reply(status, "text/plain; charset=utf-8", f"{text or status.phrase}\n".encode())


def not_allowed(*methods: str) -> Reply:
    """Return the answer to a method that something does not have, which names those that it has."""
    return replace(text_reply(HTTPStatus.METHOD_NOT_ALLOWED), headers={"Allow": ", ".join(methods)})


def _head(reply: Reply) -> bytes:
    lines = [f"HTTP/1.1 {reply.status} {HTTPStatus(reply.status).phrase}", f"Content-Type: {reply.content_type}"]
    lines += [f"{name}: {value}" for name, value in {**_ALWAYS, **reply.headers}.items()]
    lines += [f"Content-Length: {len(reply.body)}"] if isinstance(reply.body, bytes) else []
    return "\r\n".join([*lines, "Connection: close", "", ""]).encode()


class _Head:
    """What httptools calls back."""

    def __init__(self) -> None:
        self.url = b""
        self.headers: dict[str, str] = {}

    def on_url(self, url: bytes) -> None:
        self.url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers[name.decode("latin-1").lower()] = value.decode("latin-1")


def read_head(data: bytes) -> Asked:
    """Return the request that a head is; ValueError if it is none."""
    found = _Head()
    parser = httptools.HttpRequestParser(found)
    try:
        with contextlib.suppress(httptools.HttpParserUpgrade):  # it is answered in the protocol that it came in
            parser.feed_data(data)
        url = httptools.parse_url(found.url)
        path, query = (url.path or b"/").decode("ascii"), (url.query or b"").decode("ascii")
        fields = dict(parse_qsl(query, keep_blank_values=True, max_num_fields=20, errors="replace"))
    except (httptools.HttpParserError, httptools.HttpParserInvalidURLError) as error:
        raise ValueError(f"not a request: {error}") from error
    return Asked(parser.get_method().decode("ascii"), path, fields, found.headers)
