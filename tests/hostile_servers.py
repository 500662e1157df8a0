"""Forty-odd servers on loopback, each hostile in a way of its own, and what a crawl's record of its first page must say.

Each kind has a name, a port and a function that answers; what they were asked is kept with the time of asking and of the
answer's end. Unless a kind is about robots.txt or about the connection itself, its robots.txt is an honest 404.
"""

import asyncio
import contextlib
import gzip
import hashlib
import socket
import ssl
import struct
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Final

import brotli  # type: ignore[import-untyped]

from crawlkit.model import Kind, Reason

TLS: Final = Path(__file__).parent / "net" / "tls"
DRIP_S: Final = 0.05
BOMB_BYTES: Final = 100 << 20
_LARGE: Final[list[Callable[[], bytes]]] = []
_ZEROS: Final = bytes(1 << 20)


@dataclass(frozen=True, slots=True)
class Asked:
    """One request (or, where a kind does not listen, one connection), on time.monotonic's clock."""

    host: str
    target: str
    at_s: float
    ended_s: float
    head: bytes


Play = Callable[[str, asyncio.StreamWriter], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Hostile:
    """One kind: what it does, and how the record of its first page ends."""

    name: str
    play: Play
    kind: Kind = Kind.PAGE
    reason: Reason | None = None
    truncated: bool = False
    scheme: str = "http"
    owns_robots: bool = False
    listens: bool = True
    certificate: str | None = None

    @property
    def host(self) -> str:
        """The name it is resolved by."""
        return f"{self.name}.hostile.test"

    @property
    def seed(self) -> str:
        """Where a crawl of it starts."""
        return f"{self.scheme}://{self.host}/"


def _head(status: str, *lines: str) -> bytes:
    return "".join(f"{line}\r\n" for line in (f"HTTP/1.1 {status}", *lines, "")).encode("latin-1")


def _answer(body: bytes, *lines: str, status: str = "200 OK", content_type: str = "text/html") -> bytes:
    return _head(status, f"Content-Type: {content_type}", *lines, f"Content-Length: {len(body)}") + body


def _links(*links: str, text: str = "") -> bytes:
    anchors = "".join(f'<a href="{link}">x</a>' for link in links)
    return f"<title>t</title>{anchors}<p>{text}</p>".encode()


NOT_FOUND: Final = _head("404 Not Found", "Content-Length: 0", "Connection: close")
HTML: Final = "Content-Type: text/html"


def says(*parts: bytes) -> Play:
    """Write these parts, then close."""

    async def play(_target: str, writer: asyncio.StreamWriter) -> None:
        for part in parts:
            writer.write(part)
            await writer.drain()

    return play


def answers(body: bytes, *lines: str, status: str = "200 OK", content_type: str = "text/html") -> Play:
    """Answer whatever is asked with this."""
    return says(_answer(body, *lines, status=status, content_type=content_type))


def answers_large(make: Callable[[], bytes], *lines: str) -> Play:
    """Answer with a body that is made when the servers start, not when this table is read."""
    _LARGE.append(make)

    async def play(_target: str, writer: asyncio.StreamWriter) -> None:
        writer.write(_answer(make(), *lines))
        await writer.drain()

    return play


def redirects(location: str | None, status: str = "302 Found") -> Play:
    """Send on to `location`, whatever is asked."""
    return says(_head(status, *([] if location is None else [f"Location: {location}"]), "Content-Length: 0"))


def floods(head: bytes, piece: bytes) -> Play:
    """Write a piece again and again, at full speed, until the client has had enough."""

    async def play(_target: str, writer: asyncio.StreamWriter) -> None:
        writer.write(head)
        while not writer.transport.is_closing():
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(0)

    return play


def drips(head: bytes, piece: bytes) -> Play:
    """Write a piece twenty times a second, without end."""

    async def play(_target: str, writer: asyncio.StreamWriter) -> None:
        writer.write(head)
        while not writer.transport.is_closing():
            writer.write(piece)
            await asyncio.sleep(DRIP_S)

    return play


def stalls(*parts: bytes) -> Play:
    """Write these parts, then nothing more, and leave the connection open."""
    return drips(b"".join(parts), b"")


def resets(*parts: bytes) -> Play:
    """Write these parts, then reset the connection."""

    async def play(_target: str, writer: asyncio.StreamWriter) -> None:
        writer.writelines(parts)
        await writer.drain()
        await asyncio.sleep(DRIP_S)  # a reset overtakes what was written just before it
        connection: socket.socket = writer.get_extra_info("socket")
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        writer.transport.abort()

    return play


def pages(body_of: Callable[[str], bytes]) -> Play:
    """Answer each target with a page of its own."""

    async def play(target: str, writer: asyncio.StreamWriter) -> None:
        writer.write(_answer(body_of(target)))

    return play


# Spaces without end ---------------------------------------------------------------------------------------------------


def _number(target: str) -> int:
    return int("".join(filter(str.isdecimal, target)) or 0)


def _calendar(target: str) -> bytes:
    month = _number(target)
    return _links(f"/cal?month={month + 1}", f"/cal?month={month + 2}", text=f"No events in month {month}")


def _sessions(target: str) -> bytes:
    ids = (hashlib.sha256(f"{target}{way}".encode()).hexdigest()[:16] for way in range(3))
    return _links(*(f"/shop?sid={session}" for session in ids), text="Welcome to the shop, please look around")


def _escapes(target: str) -> bytes:
    again = target.replace("%", "%25")
    return _links(f"{again}%20x" if len(target) < 2000 else again, text="The same again and again")


def _deeper(_target: str) -> bytes:
    return _links("deeper/", "aside/", text="A folder in a folder")


async def _chain(target: str, writer: asyncio.StreamWriter) -> None:
    hop = _number(target)
    await (redirects(f"/hop{hop + 1}")(target, writer) if hop < 50 else answers(b"the end")(target, writer))


async def _loop(target: str, writer: asyncio.StreamWriter) -> None:
    await redirects("/b" if target == "/" else "/")(target, writer)


async def _robots_loop(target: str, writer: asyncio.StreamWriter) -> None:
    other = "/robots2.txt" if target == "/robots.txt" else "/robots.txt"
    await (redirects(other) if "robots" in target else answers(b"page"))(target, writer)


def only_first(play: Play) -> Play:
    """Answer so for the first page, and with a page that says nothing for all others."""

    async def play_first(target: str, writer: asyncio.StreamWriter) -> None:
        await (play if target == "/" else answers(b"page"))(target, writer)

    return play_first


def robots_as(robots: Play) -> Play:
    """Answer robots.txt so, and all else with an honest page."""

    async def play(target: str, writer: asyncio.StreamWriter) -> None:
        await (robots if target == "/robots.txt" else answers(b"page"))(target, writer)

    return play


# Bodies ---------------------------------------------------------------------------------------------------------------


@cache
def _gzip_bomb() -> bytes:
    once = gzip.compress(_ZEROS, mtime=0)
    return once * (BOMB_BYTES // len(_ZEROS))  # members after each other are one body


@cache
def _brotli_bomb() -> bytes:
    bomb: bytes = brotli.compress(bytes(BOMB_BYTES), quality=1)
    return bomb


@cache
def _nested_bomb() -> bytes:
    return gzip.compress(gzip.compress(_gzip_bomb(), mtime=0), mtime=0)


@cache
def _nested_too_deep() -> bytes:
    body = _PAGE
    for _ in range(6):
        body = gzip.compress(body, mtime=0)
    return body


@cache
def _million_links() -> bytes:
    return b"<title>t</title>" + b"".join(b'<a href="/%d">x</a>' % number for number in range(1_000_000))


_CHUNKED: Final = _head("200 OK", HTML, "Transfer-Encoding: chunked")
_ENDLESS: Final = _head("200 OK", HTML)
_PAGE: Final = b"<title>t</title>" + b"x" * 5000
_BINARY: Final = bytes(range(256)) * 40 + b'<a href="/from-binary">x</a>'


def _connections() -> Iterator[Hostile]:
    yield Hostile("never-answers", stalls(), Kind.FAILURE, Reason.TIMEOUT)
    yield Hostile("deaf", stalls(), Kind.FAILURE, Reason.HOST_UNREACHABLE, listens=False)
    yield Hostile("accept-and-close", says(), Kind.FAILURE, Reason.HOST_UNREACHABLE, listens=False)
    yield Hostile("reset-on-connect", resets(), Kind.FAILURE, Reason.HOST_UNREACHABLE, listens=False)
    yield Hostile("speaks-first", stalls(b"220 mail.test ESMTP\r\n"), Kind.FAILURE, Reason.HOST_UNREACHABLE, listens=False)
    yield Hostile("reset-before-head", resets(), Kind.FAILURE, Reason.RESET)
    yield Hostile("reset-in-head", resets(b"HTTP/1.1 200 OK\r\nContent-Ty"), Kind.FAILURE, Reason.RESET)
    yield Hostile("reset-in-body", resets(_head("200 OK", HTML, "Content-Length: 9999"), _PAGE), truncated=True)
    yield Hostile("close-in-head", says(b"HTTP/1.1 200 OK\r\nConte"), Kind.FAILURE, Reason.RESET)


def _heads() -> Iterator[Hostile]:
    yield Hostile("slow-loris-head", drips(b"HTTP/1.1 200 OK\r\n", b"X-A: 1\r\n"), Kind.FAILURE, Reason.TIMEOUT)
    yield Hostile("endless-header", floods(b"HTTP/1.1 200 OK\r\nX-A: ", b"a" * 4096), Kind.FAILURE, Reason.PROTOCOL)
    yield Hostile("header-flood", floods(b"HTTP/1.1 200 OK\r\n", b"X-A: 1\r\n" * 50), Kind.FAILURE, Reason.PROTOCOL)
    yield Hostile("interim-flood", floods(b"", b"HTTP/1.1 102 Processing\r\n\r\n"), Kind.FAILURE, Reason.PROTOCOL)
    yield Hostile("garbage-status-line", says(b"\x00\xff\x13 no HTTP\r\n\r\n"), Kind.FAILURE, Reason.PROTOCOL)
    yield Hostile("http-0.9", says(b"<html><title>old</title></html>"), Kind.FAILURE, Reason.PROTOCOL)
    yield Hostile("nul-in-head", says(b"HTTP/1.1 200 OK\r\nX-A: a\0b\r\n\r\n"), Kind.FAILURE, Reason.PROTOCOL)
    yield Hostile("switches-protocols", says(_head("101 Switching Protocols", "Upgrade: x")), Kind.FAILURE, Reason.PROTOCOL)
    yield Hostile("status-999", answers(b"", status="999 Denied"), Kind.FAILURE, Reason.OTHER_STATUS)


def _bodies() -> Iterator[Hostile]:
    yield Hostile("slow-loris-body", drips(_head("200 OK", HTML, "Content-Length: 9999"), b"x"), Kind.FAILURE, Reason.TIMEOUT)
    yield Hostile("endless-body", floods(_ENDLESS, b"x" * 65536), truncated=True)
    yield Hostile("endless-chunks", floods(_CHUNKED, b"1000\r\n" + b"x" * 4096 + b"\r\n"), truncated=True)
    yield Hostile("endless-chunk-extension", floods(_CHUNKED + b"5;", b"a" * 4096), truncated=True)
    yield Hostile("length-too-long", says(_head("200 OK", HTML, "Content-Length: 9999"), _PAGE), truncated=True)
    yield Hostile("length-too-short", says(_head("200 OK", HTML, "Content-Length: 16"), _PAGE))
    yield Hostile("bad-chunking", says(_CHUNKED, b"5\r\nhello\r\nZZ\r\n"), truncated=True)
    yield Hostile("gzip-bomb", answers_large(_gzip_bomb, "Content-Encoding: gzip"), truncated=True)
    yield Hostile("brotli-bomb", answers_large(_brotli_bomb, "Content-Encoding: br"), truncated=True)
    yield Hostile("gzip-in-gzip-bomb", answers_large(_nested_bomb, "Content-Encoding: gzip, gzip, gzip"), truncated=True)
    yield Hostile(
        "nested-too-deep", answers_large(_nested_too_deep, f"Content-Encoding: {', '.join(['gzip'] * 6)}"), truncated=True
    )
    yield Hostile("bad-gzip-tail", answers(gzip.compress(_PAGE)[:-9], "Content-Encoding: gzip"), truncated=True)
    yield Hostile("lying-encoding", answers(_PAGE, "Content-Encoding: gzip"))
    yield Hostile("binary-as-html", answers(_BINARY))
    yield Hostile("nul-bytes", answers(b"<title>a\0b</title>\0\0<a href='/\0'>x</a>"))
    yield Hostile("charset-lies", answers(b"\xff\xfe<\0t\0", content_type="text/html; charset=no-such; charset=utf-7"))
    yield Hostile("huge-title", answers_large(lambda: b"<title>" + b"t" * 10_000_000), truncated=True)
    yield Hostile("deep-markup", answers_large(lambda: b"<div>" * 200_000))
    yield Hostile("million-links", only_first(answers_large(_million_links)), truncated=True)
    yield Hostile("many-cookies", answers(_links("/again"), *[f"Set-Cookie: c{number}=1; Path=/" for number in range(100)]))


def _redirects() -> Iterator[Hostile]:
    yield Hostile("redirect-to-self", redirects("/"), Kind.REDIRECT)
    yield Hostile("redirect-loop", _loop, Kind.REDIRECT)
    yield Hostile("redirect-chain", _chain, Kind.REDIRECT)
    yield Hostile("redirect-to-file", redirects("file:///etc/passwd"), Kind.FAILURE, Reason.NO_LOCATION)
    yield Hostile("redirect-to-ftp", redirects("ftp://ftp.test/"), Kind.FAILURE, Reason.NO_LOCATION)
    yield Hostile("redirect-inside", redirects("http://169.254.169.254/latest/meta-data/"), Kind.REDIRECT)
    yield Hostile("redirect-to-nothing", redirects(""), Kind.FAILURE, Reason.NO_LOCATION)
    yield Hostile("redirect-nowhere", redirects(None), Kind.FAILURE, Reason.NO_LOCATION)
    yield Hostile("refresh-to-self", answers(b"page", "Refresh: 0; url=/"))


def _manners() -> Iterator[Hostile]:
    yield Hostile("endless-robots", robots_as(floods(_ENDLESS, b"Disallow: /x\n" * 999)), owns_robots=True)
    yield Hostile(
        "robots-fails", robots_as(answers(b"", status="500 No")), Kind.EXCLUDED, Reason.ROBOTS_UNREACHABLE, owns_robots=True
    )
    yield Hostile("robots-loop", _robots_loop, owns_robots=True)
    yield Hostile("robots-stalls", robots_as(stalls()), Kind.FAILURE, Reason.HOST_UNREACHABLE, owns_robots=True)
    yield Hostile("robots-bomb", robots_as(answers_large(_gzip_bomb, "Content-Encoding: gzip")), owns_robots=True)
    slow = robots_as(answers(b"User-agent: *\nCrawl-delay: 86400\n", content_type="text/plain"))
    yield Hostile("robots-asks-for-a-day", slow, Kind.EXCLUDED, Reason.ROBOTS_DELAY, owns_robots=True)
    too_many = answers(b"", "Retry-After: 3600", status="429 Too Many Requests")
    yield Hostile("429-for-ever", too_many, Kind.FAILURE, Reason.TOO_MANY_REQUESTS)
    garbage = answers(b"", "Retry-After: soon, perhaps", status="503 Service Unavailable")
    yield Hostile("503-garbage-retry-after", garbage, Kind.FAILURE, Reason.SERVER_ERROR)


def _spaces() -> Iterator[Hostile]:
    yield Hostile("calendar", pages(_calendar))
    yield Hostile("session-ids", pages(_sessions))
    yield Hostile("escapes", pages(_escapes))
    yield Hostile("deeper-and-deeper", pages(_deeper))


def _handshakes() -> Iterator[Hostile]:
    unreachable = (Kind.FAILURE, Reason.HOST_UNREACHABLE)
    yield Hostile("tls-garbage", says(b"\x16\x03\x01garbage" * 99), *unreachable, scheme="https", listens=False)
    yield Hostile("tls-is-plain-http", says(_answer(b"page")), *unreachable, scheme="https", listens=False)
    yield Hostile("tls-stalls", stalls(), *unreachable, scheme="https", listens=False)
    yield Hostile("tls-expired", answers(b"page"), *unreachable, scheme="https", certificate="expired")
    yield Hostile("tls-self-signed", answers(b"page"), *unreachable, scheme="https", certificate="other")
    yield Hostile("tls-wrong-name", answers(b"page"), *unreachable, scheme="https", certificate="localhost")


_TABLE = (_connections, _heads, _bodies, _redirects, _manners, _spaces, _handshakes)
HOSTILE: Final = tuple(kind for kinds in _TABLE for kind in kinds())


@dataclass(slots=True)
class HostileServers:
    """The servers while they run: the port of each host, and what was asked, in the order of the answers' ends."""

    ports: dict[str, int] = field(default_factory=dict)
    asked: list[Asked] = field(default_factory=list)
    writers: list[asyncio.StreamWriter] = field(default_factory=list)

    async def open(self, hostile: Hostile, stack: contextlib.AsyncExitStack) -> None:
        """Listen for one kind until `stack` is left."""

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            self.writers.append(writer)
            with contextlib.suppress(OSError, EOFError):
                await self._serve(hostile, reader, writer)
            writer.transport.abort()

        tls = None
        if hostile.certificate is not None:
            tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            tls.load_cert_chain(TLS / f"{hostile.certificate}.pem", TLS / "key.pem")
        server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=tls)
        stack.callback(server.close)
        self.ports[hostile.host] = server.sockets[0].getsockname()[1]

    async def _serve(self, hostile: Hostile, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head, target = b"", ""
        if hostile.listens:
            head = await reader.readuntil(b"\r\n\r\n")
            target = head.split(b" ")[1].decode("latin-1")
        at_s = time.monotonic()
        is_honest = target == "/robots.txt" and not hostile.owns_robots
        try:
            await (says(NOT_FOUND) if is_honest else hostile.play)(target, writer)
            if not writer.transport.is_closing():
                writer.write_eof()
                await reader.read()  # closing first, with something unread, would be a reset
        finally:
            self.asked.append(Asked(hostile.host, target, at_s, time.monotonic(), head))


@contextlib.contextmanager
def hostile_servers() -> Iterator[HostileServers]:
    """Run them all in a thread of their own while the block runs."""
    for make in _LARGE:
        make()
    servers = HostileServers()
    loop = asyncio.new_event_loop()
    stopping = asyncio.Event()
    ready = threading.Event()

    async def serve() -> None:
        async with contextlib.AsyncExitStack() as stack:
            for hostile in HOSTILE:
                await servers.open(hostile, stack)
            ready.set()
            await stopping.wait()
        for writer in servers.writers:
            writer.transport.abort()
        await asyncio.gather(*(asyncio.all_tasks() - {asyncio.current_task()}), return_exceptions=True)

    def run() -> None:
        with contextlib.closing(loop):
            loop.run_until_complete(serve())

    thread = threading.Thread(target=run, name="hostile-servers", daemon=True)
    thread.start()
    assert ready.wait(10)
    try:
        yield servers
    finally:
        loop.call_soon_threadsafe(stopping.set)
        thread.join()
