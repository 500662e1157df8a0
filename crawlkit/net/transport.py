"""The transport that a crawl fetches through: one aiohttp connection pool behind httpx's transport seam.

What httpx-aiohttp leaves to its user is settled here:

- The request target leaves as the URL's own bytes; yarl would re-quote it.
- A request is sent once. aiohttp repeats a GET whose connection broke, which a host's manners would not know of.
- Hosts that are addresses pass the guard too; aiohttp asks no resolver for them.
- No cookies, no proxies or passwords from the environment, no redirects, no decoding, no timeout but the caller's.
"""

import ssl
from collections.abc import AsyncIterator
from typing import Any, Final

import aiohttp
import httpx
from aiohttp.connector import Connection
from httpx_aiohttp.transport import AiohttpResponseStream, AiohttpTransport, map_aiohttp_exceptions
from yarl import URL

from crawlkit.net.resolver import DEFAULT_PORTS, GuardedResolver

_KEEPALIVE_S: Final = 30.0
_HEADER_BYTES: Final = 32 * 1024  # of one header line; real policies and cookies pass aiohttp's 8 KiB
_HEADERS: Final = 256
_FRESH_TRIES: Final = 4

Transport = httpx.AsyncBaseTransport
"""The seam: what a crawl fetches through. Any httpx transport fits."""


class DisconnectedError(aiohttp.ClientError):
    """The connection broke before the head of the answer was complete."""


class _Stream(AiohttpResponseStream):
    """A body in the chunks that the socket gave, most pages in one.

    No generator, which would be left hanging when reading stops early. A body that ends with its connection is complete
    only if that ended in order; aiohttp takes a reset for an end too.
    """

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        super().__init__(response)
        framed = "Content-Length" in response.headers or "Transfer-Encoding" in response.headers
        self._connection = None if framed or response.connection is None else response.connection.protocol

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        with map_aiohttp_exceptions():
            chunk = await self._aiohttp_response.content.readany()
        if chunk:
            return chunk
        if self._connection is not None and isinstance(self._connection.exception(), aiohttp.ClientOSError):
            raise httpx.ReadError("reset before the connection was closed")
        raise StopAsyncIteration


class _NoCookies(aiohttp.DummyCookieJar):
    def update_cookies_from_headers(self, headers: Any, response_url: URL) -> None:
        """Spare the parsing of what would be dropped."""


class _Connector(aiohttp.TCPConnector):
    """Never reuses a connection on which something came unasked: it would be taken for the next request's answer."""

    async def connect(
        self,
        req: aiohttp.ClientRequest,
        traces: Any,
        timeout: aiohttp.ClientTimeout,  # noqa: ASYNC109  (aiohttp's signature)
    ) -> Connection:
        """Return a connection on which nothing is waiting to be read; raises DisconnectedError if there is none."""
        for _ in range(_FRESH_TRIES):
            connection = await super().connect(req, traces, timeout)
            if connection.protocol is not None and not connection.protocol.should_close:
                return connection
            connection.close()
        raise DisconnectedError("the server speaks before it is asked")


async def _send_once(request: aiohttp.ClientRequest, send: aiohttp.ClientHandlerType) -> aiohttp.ClientResponse:
    """Send a request, naming a broken connection by an error that aiohttp does not take as leave to send it again."""
    try:
        return await send(request)
    except aiohttp.ClientConnectorError:
        raise
    except (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError) as error:
        raise DisconnectedError(str(error)) from error


class GuardedTransport(AiohttpTransport):
    """httpx-aiohttp's transport with an exact request target and the address guard.

    The target is the request extension `target` (bytes, as httpx documents it) where given, else the request's URL.
    Raises httpx.TransportError or aiohttp.ClientError.
    """

    def __init__(self, session: aiohttp.ClientSession, resolver: GuardedResolver, tls: ssl.SSLContext) -> None:
        super().__init__(verify=tls, client=session)
        self._session = session
        self._resolver = resolver

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request without a body; return its head, with the body as a stream of raw bytes."""
        url = request.url
        port = DEFAULT_PORTS[url.scheme] if url.port is None else url.port
        self._resolver.check_literal(url.raw_host.decode(), port)
        target: bytes = request.extensions.get("target", url.raw_path)
        # As a path in one piece: yarl drops the `?` of an empty query.
        wire_url = URL.build(scheme=url.scheme, authority=url.netloc.decode(), path=target.decode(), encoded=True)
        with map_aiohttp_exceptions():
            response = await self._session.request(
                request.method, wire_url, headers=_text(request.headers.raw), allow_redirects=False
            )
        return httpx.Response(response.status, headers=response.raw_headers, stream=_Stream(response), request=request)

    async def aclose(self) -> None:
        """Close the connections and the resolver."""
        await super().aclose()
        await self._resolver.close()


def _text(raw: list[tuple[bytes, bytes]]) -> list[tuple[str, str]]:
    return [(name.decode("latin-1"), value.decode("latin-1")) for name, value in raw]


def open_transport(
    resolver: GuardedResolver, *, connections: int, tls: ssl.SSLContext | None = None
) -> httpx.AsyncBaseTransport:
    """Open the transport of a crawl, in a running loop; `aclose` it. It owns `resolver` from now on.

    `connections` bounds those open at once. Certificates are verified against `tls`, by default certifi's roots, or
    those that `SSL_CERT_FILE` or `SSL_CERT_DIR` name.
    """
    context = tls or httpx.create_ssl_context()
    context.set_alpn_protocols(["http/1.1"])
    connector = _Connector(
        ssl=context, resolver=resolver, use_dns_cache=False, limit=connections, keepalive_timeout=_KEEPALIVE_S
    )
    session = aiohttp.ClientSession(
        connector=connector,
        cookie_jar=_NoCookies(),
        auto_decompress=False,
        timeout=aiohttp.ClientTimeout(),
        max_line_size=_HEADER_BYTES,
        max_field_size=_HEADER_BYTES,
        max_headers=_HEADERS,
        middlewares=(_send_once,),
    )
    return GuardedTransport(session, resolver, context)
