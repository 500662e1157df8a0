"""The transport that a crawl fetches through: httpx's seam over our own connections.

What leaves is the request as it was made: the target its URL's own bytes, no cookie, no proxy or password from the
environment. What comes back is the head as received and the body as it arrives, in no coding undone. Redirects are not
followed, and there is no timeout but the caller's. A request is sent once, except where a connection kept from before
turns out to have been given up by the server meanwhile, by its end or a 408: that one is sent again on a new one (RFC 9110
sections 9.2.2 and 15.5.9).
"""

import ssl
from functools import cache

import httpx
import msgspec

from crawlkit.net.capture import WIRE, Wire
from crawlkit.net.connect import Direct
from crawlkit.net.pool import Pool
from crawlkit.net.proxy import PROXY_REFUSES, Proxy, ThroughProxy, refusal
from crawlkit.net.request import Body, Get, Origin, Received, lines_of, origin_of
from crawlkit.net.resolver import GuardedResolver, host_port
from crawlkit.net.wire import Connection, Forward

_GIVEN_UP = 408  # on a connection kept from before it may have crossed the request, whose time cannot be up yet

Transport = httpx.AsyncBaseTransport
"""The seam: what a crawl fetches through. Any httpx transport fits."""


class _Body(Body):
    """The body of an answer in the pieces that the socket gave, most pages in one.

    No generator, which would be left hanging when reading stops early.
    """

    def __init__(self, pool: Pool, origin: Origin, connection: Connection) -> None:
        self._pool = pool
        self._origin = origin
        self._connection: Connection | None = connection

    def rest(self) -> bytes | None:
        """Return what is left to be read if all of it is here."""
        return None if self._connection is None else self._connection.rest()

    def __aiter__(self) -> "_Body":
        return self

    async def __anext__(self) -> bytes:
        if self._connection is None:
            raise httpx.StreamClosed
        piece = self._connection.take()
        if piece is None:
            piece = await self._connection.read()
        if not piece:
            raise StopAsyncIteration
        return piece

    async def aclose(self) -> None:
        """End the reading: the connection is kept for another request, or closed at once if the body was not read out."""
        if self._connection is not None:
            connection, self._connection = self._connection, None
            self._pool.give_back(self._origin, connection)


class WireTransport(httpx.AsyncBaseTransport):
    """GET over HTTP/1.1. The target is the request extension `target` where given (bytes, as httpx documents it)."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request; return its head, with the body as a stream of raw bytes.

        Raises httpx.TransportError, socket.gaierror, TooManyOpenFiles.
        """
        message = checked_message(request)
        origin = origin_of(request)
        connection = self._pool.take(origin)
        if connection is not None:
            try:
                response = await self._ask(origin, connection, request, message)
            except httpx.ReadError:
                if not connection.untouched:
                    raise
            else:
                if response.status_code != _GIVEN_UP:
                    return response
                connection.abort()
        return await self._ask(origin, await self._pool.connect(origin), request, message)

    async def _ask(self, origin: Origin, connection: Connection, request: httpx.Request, message: "Message") -> httpx.Response:
        sent = message.to(connection.forward)
        try:
            await connection.ask(sent)
            if connection.forward is not None and connection.status == PROXY_REFUSES:
                raise refusal(connection.status, f"GET {origin.scheme}://{host_port(origin.host, origin.port)}")
        except BaseException:
            connection.abort()
            raise
        body = _Body(self._pool, origin, connection)
        told = {WIRE: Wire(sent, connection.head, connection.address)}
        return Received(connection.status, connection.headers, body, request, told)

    async def aclose(self) -> None:
        """Close the connections and the resolver."""
        await self._pool.aclose()


class Message(msgspec.Struct, frozen=True):
    """A request before it is known who will read it: its target, and its header lines."""

    target: bytes
    fields: bytes

    def to(self, forward: Forward | None) -> bytes:
        """Return its bytes, for the origin or for the proxy that is to pass it on."""
        if forward is None:
            return b"GET %b HTTP/1.1\r\n%b\r\n" % (self.target, self.fields)
        return b"GET %b%b HTTP/1.1\r\n%b%b\r\n" % (forward.prefix, self.target, forward.fields, self.fields)


def checked_message(request: httpx.Request) -> Message:
    """Return what is sent of a request; httpx.LocalProtocolError if that would be another one on the wire."""
    target: bytes = request.extensions.get("target") or request.url.raw_path
    if request.method != "GET" or b" " in target or b"\n" in target:
        raise httpx.LocalProtocolError(f"not a GET that HTTP/1.1 can carry: {request.method} {target!r}")
    return Message(target, request.lines if isinstance(request, Get) else lines_of(request.headers))


def unverified_tls() -> ssl.SSLContext:
    """Return what takes any certificate, for any name."""
    return httpx.create_ssl_context(verify=False)


def verified_tls() -> ssl.SSLContext:
    """Return what takes certificates that verify against certifi's roots, or those `SSL_CERT_FILE` or `SSL_CERT_DIR` name."""
    return httpx.create_ssl_context()


def open_transport(
    resolver: GuardedResolver, *, connections: int, tls: ssl.SSLContext | None = None, proxy: Proxy | None = None
) -> WireTransport:
    """Open the transport of a crawl, in a running loop; `aclose` it. It owns `resolver` from now on.

    `connections` is the most that will be in use at once. Without `tls` it is that of `verified_tls`.
    """

    @cache
    def context() -> ssl.SSLContext:
        made = tls or verified_tls()
        made.set_alpn_protocols(["http/1.1"])
        return made

    opener = Direct(resolver, context) if proxy is None else ThroughProxy(proxy, resolver, context)
    return WireTransport(Pool(opener, most_busy=connections))
