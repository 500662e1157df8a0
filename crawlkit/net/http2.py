"""HTTP/2 with the servers that take it: httpx's engine, httpcore, over our own connects. Plain http stays with `transport`.

What keeps ours safe is kept: names go through the guarded resolver, connections to the addresses it checked, certificates
are verified for the host, a deadline ends whatever is under way, and a body is read no further than its reader wants. That
engine cannot give up one stream of a connection: what is left of a body that was not read out would fill the connection's
window and stall it, so such a connection is closed as soon as nothing else uses it.
"""

# ruff: noqa: ASYNC109  (the timeouts are in httpcore's interface)

import asyncio
import ssl
from collections.abc import AsyncGenerator, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final, cast

import httpcore
import httpx
from h2.exceptions import H2Error
from hpack.exceptions import HPACKError
from hyperframe.exceptions import HyperframeError

from crawlkit.net.connect import NO_FILES, first_of, out_of_files, tls_failure
from crawlkit.net.request import Origin, origin_of
from crawlkit.net.resolver import GuardedResolver
from crawlkit.net.transport import Transport, checked_message
from crawlkit.net.wire import has_unread

_IDLE_S: Final = 30.0
_MOST_IDLE: Final = 64  # httpcore looks at each of them for each request
_PROTOCOLS: Final = ["h2", "http/1.1"]
# ValueError and KeyError are what httpcore 1.0 lets out for a status that is no number and for streams it has forgotten.
_BAD_BYTES: Final = (httpcore.ProtocolError, H2Error, HPACKError, HyperframeError, ValueError, KeyError)


class _Stream(httpcore.AsyncNetworkStream):
    """A connection as httpcore reads and writes it. Timeouts are the fetcher's: it gives none."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return await self._reader.read(max_bytes)

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        # Where the server has closed, reading says so, after what it sent before: httpcore acknowledges that first.
        if not self._writer.is_closing():
            self._writer.write(buffer)
            with suppress(ConnectionError):
                await self._writer.drain()

    async def aclose(self) -> None:
        self._writer.transport.abort()

    async def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> "_Stream":
        ssl_context.set_alpn_protocols(_PROTOCOLS)  # httpcore asks for HTTP/1.1 first
        try:
            await self._writer.start_tls(ssl_context, server_hostname=server_hostname)
        except BaseException:
            self._writer.transport.abort()
            raise
        return self

    def get_extra_info(self, info: str) -> Any:
        if info == "is_readable":
            return self._reader.at_eof() or has_unread(self._writer.transport)
        return self._writer.get_extra_info(info)


class _CheckedBackend(httpcore.AsyncNetworkBackend):
    """Connects to what the resolver says, and to nothing else."""

    def __init__(self, resolver: GuardedResolver, most_busy: int) -> None:
        self._resolver = resolver
        self._most_busy = most_busy

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> _Stream:
        async def attempt(address: str, port: int) -> _Stream:
            return _Stream(*await asyncio.open_connection(address, port))

        try:
            return await first_of(await self._resolver.addresses(host, port), attempt)
        except OSError as error:
            if error.errno not in NO_FILES:
                raise
            raise out_of_files(self._most_busy + _MOST_IDLE) from error

    async def connect_unix_socket(
        self, path: str, timeout: float | None = None, socket_options: Iterable[Any] | None = None
    ) -> _Stream:
        raise httpcore.UnsupportedProtocol("no socket but TCP's")

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class _Body(httpx.AsyncByteStream):
    """The body of an answer; closed before its end it has its connection closed."""

    def __init__(self, transport: "Http2Transport", origin: Origin, answer: httpcore.Response) -> None:
        self._transport = transport
        self._origin = origin
        self._answer = answer
        self._pieces = cast("AsyncGenerator[bytes, None]", answer.aiter_stream())
        self._whole = False

    def __aiter__(self) -> "_Body":
        return self

    async def __anext__(self) -> bytes:
        try:
            with _in_httpx_words():
                return await anext(self._pieces)
        except StopAsyncIteration:
            self._whole = True
            raise

    async def aclose(self) -> None:
        try:
            with _in_httpx_words():
                await self._pieces.aclose()
                await self._answer.aclose()
        except httpx.TransportError:
            pass  # what was wanted of it has been read
        finally:
            if not self._whole:
                self._transport.distrust(self._origin)


class Http2Transport(httpx.AsyncBaseTransport):
    """GET over HTTP/2 or, where the server does not take that, HTTP/1.1. `plain` serves http; it owns the resolver."""

    def __init__(self, plain: Transport, resolver: GuardedResolver, tls: ssl.SSLContext, *, connections: int) -> None:
        self._plain = plain
        self._pool = httpcore.AsyncConnectionPool(
            ssl_context=tls,
            max_connections=connections + _MOST_IDLE,
            max_keepalive_connections=_MOST_IDLE,
            keepalive_expiry=_IDLE_S,
            http2=True,
            network_backend=_CheckedBackend(resolver, connections),
        )
        self._distrusted: set[Origin] = set()

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request; return its head, with the body as a stream of raw bytes.

        Raises httpx.TransportError, socket.gaierror, OSError, TooManyOpenFiles. A request is sent once, except where a
        connection kept from before turns out to have been closed meanwhile.
        """
        origin = origin_of(request)
        if origin.scheme == "http":
            return await self._plain.handle_async_request(request)
        target = checked_message(request).target
        if origin in self._distrusted:
            await self._close_idle(origin)
        made: list[str] = []

        async def trace(event: str, _: dict[str, Any]) -> None:
            if event == "connection.connect_tcp.started":
                made.append(event)

        asked = httpcore.Request(
            "GET",
            httpcore.URL(scheme=b"https", host=origin.host.encode(), port=origin.port, target=target),
            headers=request.headers.raw,
            extensions={"sni_hostname": origin.host.removesuffix("."), "trace": trace},
        )
        answer = await self._ask(origin, asked, made)
        body = _Body(self, origin, answer)
        told = {"http_version": answer.extensions.get("http_version", b"HTTP/1.1")}
        return httpx.Response(answer.status, headers=answer.headers, stream=body, request=request, extensions=told)

    async def _ask(self, origin: Origin, asked: httpcore.Request, made: list[str]) -> httpcore.Response:
        try:
            with _in_httpx_words():
                return await self._pool.handle_async_request(asked)
        except (httpx.ReadError, OSError):
            self.distrust(origin)
            if made:
                raise
        except BaseException:
            self.distrust(origin)
            raise
        with _in_httpx_words():
            return await self._pool.handle_async_request(asked)

    def distrust(self, origin: Origin) -> None:
        """Have the connections to `origin` closed before the next request, but those that others use."""
        self._distrusted.add(origin)

    async def _close_idle(self, origin: Origin) -> None:
        mine = httpcore.Origin(b"https", origin.host.encode(), origin.port)
        left = False
        for connection in self._pool.connections:
            if connection.can_handle_request(mine):
                if connection.is_idle():
                    await connection.aclose()
                else:
                    left = True
        if not left:
            self._distrusted.discard(origin)

    async def aclose(self) -> None:
        """Close the connections and the resolver."""
        await self._pool.aclose()
        await self._plain.aclose()


@contextmanager
def _in_httpx_words() -> Iterator[None]:
    """Raise httpx's exceptions for httpcore's, and for what the parsers under it let through."""
    try:
        yield
    except ssl.SSLError as error:
        raise httpx.ConnectError(tls_failure(error)) from error
    except httpcore.ConnectError as error:
        raise httpx.ConnectError(str(error)) from error
    except httpcore.NetworkError as error:
        raise httpx.ReadError(str(error)) from error
    except _BAD_BYTES as error:
        if str(error) == "Server disconnected":
            raise httpx.ReadError("the server closed the connection") from error
        raise httpx.RemoteProtocolError(str(error) or type(error).__name__) from error
