"""One URL to one answer, or to the reason why there is none.

`Fetcher.fetch` never raises for what a remote did: that is a value. An exception out of it is a bug of ours, or a
cancellation from outside. It follows no redirect, keeps no cookie, repeats nothing, and reads no further than the cap.
"""

import asyncio
import socket
import ssl
from collections.abc import Iterator
from typing import Final

import aiohttp
import httpx

from crawlkit.model import FetchFailure, Reason, Response
from crawlkit.net.decode import ACCEPT_ENCODING, BodyDecoder
from crawlkit.net.resolver import AddressRefusedError
from crawlkit.net.transport import DisconnectedError

_ACCEPT: Final = b"text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"

# The first row that an error, or one that it was raised from, is an instance of. httpx-aiohttp gives some of aiohttp's
# errors a wrong httpx class (a lost connection becomes a connect timeout), so the originals come first.
_REASONS: Final[tuple[tuple[tuple[type[BaseException], ...], Reason], ...]] = (
    ((AddressRefusedError,), Reason.ADDRESS),
    ((aiohttp.ClientConnectorDNSError, socket.gaierror), Reason.DNS),
    ((aiohttp.ClientSSLError, ssl.SSLError), Reason.TLS),
    ((aiohttp.ClientConnectorError,), Reason.CONNECT),
    ((DisconnectedError, ConnectionError, aiohttp.ClientConnectionError), Reason.RESET),
    ((aiohttp.ClientError, httpx.ProtocolError, httpx.DecodingError, httpx.InvalidURL), Reason.PROTOCOL),
    ((httpx.TimeoutException,), Reason.TIMEOUT),
    ((httpx.ConnectError, httpx.ProxyError), Reason.CONNECT),
    ((httpx.NetworkError,), Reason.RESET),
    ((httpx.TransportError,), Reason.PROTOCOL),
)

_REMOTE: Final = (httpx.TransportError, httpx.InvalidURL, aiohttp.ClientError, OSError)


def _failure(error: BaseException) -> FetchFailure:
    causes = tuple(_causes(error))
    for kinds, reason in _REASONS:
        if any(isinstance(cause, kinds) for cause in causes):
            return FetchFailure(reason, str(error) or type(error).__name__)
    return FetchFailure(Reason.RESET, str(error) or type(error).__name__)


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__


class Fetcher:
    """Fetches through a transport, which stays its opener's to close.

    `timeout_s` is for a whole request, connect to last byte. `max_body_bytes` caps the decoded body.
    """

    def __init__(self, transport: httpx.AsyncBaseTransport, *, timeout_s: float, max_body_bytes: int, user_agent: str) -> None:
        self._transport = transport
        self._timeout_s = timeout_s
        self._max_body_bytes = max_body_bytes
        self._headers = (
            (b"User-Agent", user_agent.encode()),
            (b"Accept", _ACCEPT),
            (b"Accept-Encoding", ACCEPT_ENCODING),
        )

    async def fetch(self, url: str) -> Response | FetchFailure:
        """Return what GET on `url` (normal form) led to."""
        try:
            async with asyncio.timeout(self._timeout_s) as deadline:
                return await self._get(url)
        except TimeoutError as error:
            if deadline.expired():
                return FetchFailure(Reason.TIMEOUT, f"no complete answer within {self._timeout_s:g} s")
            return _failure(error)
        except _REMOTE as error:
            return _failure(error)

    async def _get(self, url: str) -> Response | FetchFailure:
        host = url.index("//") + 2
        path = url.index("/", host)
        # Host is given because httpx would decode the name, and raises for punycode that browsers accept.
        headers = [(b"Host", url[host:path].encode()), *self._headers]
        request = httpx.Request("GET", url, headers=headers, extensions={"target": url[path:].encode()})
        response = await self._transport.handle_async_request(request)
        try:
            return await self._read(response)
        finally:
            await response.aclose()

    async def _read(self, response: httpx.Response) -> Response | FetchFailure:
        status = response.status_code
        headers = tuple([(name.lower(), value) for name, value in response.headers.raw])
        if status < 200:
            return FetchFailure(Reason.PROTOCOL, f"status {status} as the final answer")
        transfer = [value for name, value in headers if name == b"transfer-encoding"]
        if transfer and (len(transfer) > 1 or transfer[0].strip().lower() != b"chunked"):
            # No other coding was asked for; where the body ends is anyone's guess (RFC 9112 section 6.1).
            return FetchFailure(Reason.PROTOCOL, f"transfer coding {b', '.join(transfer)!r}")
        body = BodyDecoder([value for name, value in headers if name == b"content-encoding"], self._max_body_bytes)
        broken = not await self._collect(response, body)
        content, cut = body.finish()
        return Response(status, headers, content, broken or cut)

    async def _collect(self, response: httpx.Response, body: BodyDecoder) -> bool:
        """Feed `body` until it or the answer ends; return False if the connection or the framing broke before."""
        stream = response.stream
        assert isinstance(stream, httpx.AsyncByteStream)
        try:
            async for chunk in stream:
                if not body.feed(chunk):
                    return True
        except httpx.ReadTimeout:
            raise
        except _REMOTE:
            return False
        return True
