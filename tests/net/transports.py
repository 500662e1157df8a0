"""The transports that keep the contract of the seam, each with a server that speaks its language: ours, and a yardstick."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from enum import Enum, auto

import httpx
from httpx_aiohttp import AiohttpTransport

from crawlkit.net.fetch import Fetcher
from crawlkit.net.http2 import Http2Transport
from crawlkit.net.resolver import GuardedResolver, parse_resolves
from crawlkit.net.transport import open_transport
from tests.net.certificates import tls_client, tls_server
from tests.net.client import LONG_S, NO_ROOTS
from tests.net.h2_server import H2Answer, H2End, H2Server, h2_server
from tests.net.raw_server import End, RawServer, Script, raw_server

Server = RawServer | H2Server


class Ends(Enum):
    WHOLE = auto()
    CUT = auto()  # less than was said
    GONE = auto()  # the connection ends before any answer
    SILENT = auto()  # nothing, and the connection stays


@dataclass(frozen=True, slots=True)
class Answer:
    """What a server does, in whichever language."""

    status: int = 200
    headers: tuple[tuple[bytes, bytes], ...] = ()
    body: bytes = b""
    ends: Ends = Ends.WHOLE

    def over_http1(self) -> Script:
        length = len(self.body) + 9 * (self.ends is Ends.CUT)
        lines = b"".join(b"%b: %b\r\n" % header for header in self.headers)
        message = b"HTTP/1.1 %d Status\r\n%bContent-Length: %d\r\n\r\n%b" % (self.status, lines, length, self.body)
        match self.ends:
            case Ends.WHOLE:
                return Script((message,), End.KEEP)
            case Ends.CUT:
                return Script((message,), End.CLOSE)
            case Ends.GONE:
                return Script((), End.CLOSE)
            case Ends.SILENT:
                return Script((), End.STALL)

    def over_http2(self) -> H2Answer:
        status = b"%d" % self.status
        match self.ends:
            case Ends.WHOLE:
                return H2Answer(status, self.headers, self.body)
            case Ends.CUT:
                return H2Answer(status, self.headers, self.body, H2End.RESET)
            case Ends.GONE:
                return H2Answer(None, end=H2End.CLOSE)
            case Ends.SILENT:
                return H2Answer(None, end=H2End.STALL)


@dataclass(frozen=True, slots=True)
class Kind:
    """A transport: how it is opened, and what its server speaks (`tls` with which context of the client's)."""

    name: str
    opened: Callable[[GuardedResolver, ssl.SSLContext], httpx.AsyncBaseTransport]
    tls: bool = False
    http2: bool = False

    @asynccontextmanager
    async def serving(self, answers: Sequence[Answer | Script]) -> AsyncIterator[Server]:
        """Answer in order, one a request, the last one for all that follow; scripts are HTTP/1.1's."""
        if self.http2:
            async with h2_server([a.over_http2() for a in answers if isinstance(a, Answer)]) as server:
                yield server
        else:
            scripts = [a.over_http1() if isinstance(a, Answer) else a for a in answers]
            async with raw_server(scripts, tls=tls_server("localhost") if self.tls else None) as raw:
                yield raw

    def url(self, server: Server, target: str = "/") -> str:
        return f"https://localhost:{server.port}{target}" if self.tls else f"http://127.0.0.1:{server.port}{target}"

    @asynccontextmanager
    async def transport_to(self, server: Server) -> AsyncIterator[httpx.AsyncBaseTransport]:
        allowed = {f"127.0.0.1:{server.port}": ("127.0.0.1",)}
        resolver = GuardedResolver(parse_resolves(["localhost=127.0.0.1"]), allowed)
        transport = self.opened(resolver, tls_client("localhost") if self.tls else NO_ROOTS)
        try:
            yield transport
        finally:
            await transport.aclose()
            await asyncio.sleep(0)

    @asynccontextmanager
    async def fetcher_to(
        self, server: Server, *, timeout_s: float = LONG_S, max_body_bytes: int = 1 << 20
    ) -> AsyncIterator[Fetcher]:
        async with self.transport_to(server) as transport:
            yield Fetcher(transport, timeout_s=timeout_s, max_body_bytes=max_body_bytes, user_agent="testkit/1.0")


def _ours(resolver: GuardedResolver, tls: ssl.SSLContext) -> httpx.AsyncBaseTransport:
    return open_transport(resolver, connections=4, tls=tls)


def _http2(resolver: GuardedResolver, tls: ssl.SSLContext) -> httpx.AsyncBaseTransport:
    return Http2Transport(open_transport(resolver, connections=4, tls=tls), resolver, tls, connections=4)


class _PlainRequests(httpx.AsyncBaseTransport):
    """Asks with httpx's own requests: for ours, whose empty body it takes for a stream, aiohttp would send one in chunks."""

    def __init__(self, transport: httpx.AsyncBaseTransport) -> None:
        self._transport = transport

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        return await self._transport.handle_async_request(httpx.Request("GET", request.url, headers=request.headers.raw))

    async def aclose(self) -> None:
        await self._transport.aclose()


def _aiohttp(resolver: GuardedResolver, tls: ssl.SSLContext) -> httpx.AsyncBaseTransport:
    return _PlainRequests(AiohttpTransport(verify=tls))


OURS = Kind("ours", _ours)
OURS_OVER_TLS = Kind("ours over TLS", _ours, tls=True)
HTTP2 = Kind("HTTP/2", _http2, tls=True, http2=True)
HTTP2_REFUSED = Kind("HTTP/2 where the server speaks 1.1", _http2, tls=True)
AIOHTTP = Kind("httpx-aiohttp", _aiohttp)  # guards no address, and is asked for none that a guard would refuse
