"""A site as an httpx transport, without a socket.

Faults come as the httpx exceptions that real transports raise for them, at the point where they would: before the head,
or while the body is read. A route of the site that raises an httpx exception (a `ConnectError`, say) raises it here.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import assert_never

import httpx

from crawlkit.testing.log import RequestLog
from crawlkit.testing.site import Fault, Reply, Site

CHUNK_BYTES = 64 * 1024
_PORTS = {"http": 80, "https": 443}

Sleep = Callable[[float], Awaitable[None]]


async def no_sleep(seconds: float) -> None:
    """Let others run, whatever the delay."""
    await asyncio.sleep(0)


class FakeWeb(httpx.AsyncBaseTransport):
    """Answers every request from `site`, and logs it. `site` may be replaced at any time.

    `sleep` is what delays and drips wait by: by default nothing but a turn of the loop. A stall raises `ReadTimeout` at
    once. An endless body ends only with its reader. A request target given as extension is taken before the URL's own,
    as httpcore does.
    """

    def __init__(self, site: Site, *, sleep: Sleep = no_sleep, log: RequestLog | None = None) -> None:
        self.site = site
        self.log = RequestLog() if log is None else log
        self._sleep = sleep

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Return the site's answer; its body is read from the stream."""
        target: bytes = request.extensions.get("target", request.url.raw_path)
        headers = tuple((name.lower().decode("latin-1"), value.decode("latin-1")) for name, value in request.headers.raw)
        index = self.log.begin(request.headers.get("host", ""), target.decode("latin-1"), headers)
        try:
            url = request.url
            authority = f"{url.raw_host.decode('ascii')}:{url.port or _PORTS[url.scheme]}"
            reply = self.site.reply(authority, target.decode("latin-1"))
            if reply.delay_s:
                await self._sleep(reply.delay_s)
            _raise_before_head(reply.fault)
        except BaseException:
            self.log.end(index)
            raise
        sent, body = reply.on_wire()
        stream = _Stream(_chunks(reply, body, self._sleep), lambda: self.log.end(index))
        return httpx.Response(
            reply.status,
            headers=[(name.encode("latin-1"), value.encode("latin-1")) for name, value in sent],
            stream=stream,
        )


class _Stream(httpx.AsyncByteStream):
    """A body whose request ends when it has been read, has failed, or is closed."""

    def __init__(self, chunks: AsyncIterator[bytes], on_end: Callable[[], None]) -> None:
        self._chunks = chunks
        self._on_end: Callable[[], None] | None = on_end

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async for chunk in self._chunks:
                yield chunk
        finally:
            self._end()

    async def aclose(self) -> None:
        self._end()

    def _end(self) -> None:
        if self._on_end is not None:
            on_end, self._on_end = self._on_end, None
            on_end()


def _raise_before_head(fault: Fault | None) -> None:
    match fault:
        case Fault.DROP:
            raise httpx.RemoteProtocolError("Server disconnected without sending a response.")
        case Fault.RESET:
            raise httpx.ReadError("Connection reset by peer")
        case Fault.GARBAGE:
            raise httpx.RemoteProtocolError("illegal status line")
        case None | Fault.CUT | Fault.STALL | Fault.DRIP | Fault.ENDLESS | Fault.BOMB:
            pass
        case _:
            assert_never(fault)


async def _chunks(reply: Reply, body: bytes, sleep: Sleep) -> AsyncIterator[bytes]:
    match reply.fault:
        case Fault.STALL:
            raise httpx.ReadTimeout("The read operation timed out")
        case Fault.CUT:
            yield body[: len(body) // 2]
            raise httpx.RemoteProtocolError("peer closed connection without sending complete message body")
        case Fault.DRIP:
            for position in range(len(body)):
                await sleep(reply.drip_s)
                yield body[position : position + 1]
        case Fault.ENDLESS:
            while True:
                await asyncio.sleep(0)
                yield body
        case _:
            for start in range(0, len(body), CHUNK_BYTES):
                yield body[start : start + CHUNK_BYTES]
