"""One URL to one answer, or to the reason why there is none.

`Fetcher.fetch` never raises for what a remote did: that is a value. An exception out of it is a bug of ours, a
cancellation from outside, or TooManyOpenFiles: no page's fault, so no page's failure. It follows no redirect, keeps no
cookie, repeats nothing, and reads no further than the cap.
"""

import socket
import ssl
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, ParamSpec, TypeVar

import httpx
import msgspec

from crawlkit.model import FetchFailure, Found, Reason, Response
from crawlkit.net.capture import Capture
from crawlkit.net.deadline import Deadline, Deadlines
from crawlkit.net.decode import ACCEPT_ENCODING, BodyDecoder
from crawlkit.net.proxy import ProxyFailedError
from crawlkit.net.request import Body, Get, Origin, fields_of, lines_of
from crawlkit.net.resolver import AddressRefusedError, GuardedResolver

_Answer = TypeVar("_Answer")
_Given = ParamSpec("_Given")
_KNOWN_SITES: Final = 1024
_ACCEPT: Final = b"text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"

# The first row that an error, or one that it was raised from, is an instance of.
_REASONS: Final[tuple[tuple[tuple[type[BaseException], ...], Reason], ...]] = (
    ((AddressRefusedError,), Reason.ADDRESS),
    ((socket.gaierror,), Reason.DNS),
    ((ssl.SSLError,), Reason.TLS),
    ((httpx.TimeoutException,), Reason.TIMEOUT),
    ((httpx.ConnectError,), Reason.CONNECT),
    ((httpx.ProtocolError, httpx.DecodingError, httpx.UnsupportedProtocol, httpx.InvalidURL), Reason.PROTOCOL),
)
_NO_SUCH_NAME: Final = (socket.EAI_NONAME, getattr(socket, "EAI_NODATA", socket.EAI_NONAME))

_REMOTE: Final = (httpx.TransportError, httpx.InvalidURL, OSError)


async def _find(url: str, resolver: GuardedResolver) -> Found:
    origin = Origin.of(url)
    return Found((await resolver.addresses(origin.host, origin.port))[0][0])


def _failure(error: BaseException) -> FetchFailure:
    return FetchFailure(_reason_of(error), str(error) or type(error).__name__)


def _reason_of(error: BaseException) -> Reason:
    if isinstance(error, ProxyFailedError):  # whatever is behind it is the proxy's, not the host's
        return Reason.PROXY
    causes = tuple(_causes(error))
    if any(isinstance(cause, socket.gaierror) and cause.errno in _NO_SUCH_NAME for cause in causes):
        return Reason.NAME_NOT_FOUND
    for kinds, reason in _REASONS:
        if any(isinstance(cause, kinds) for cause in causes):
            return reason
    return Reason.RESET


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__


class ExtraHeaders(msgspec.Struct, frozen=True):
    """What requests carry besides the usual: `everywhere`, fields that take the place of usual ones of their name.

    `authorization` is what to prove oneself with, by host (as `Origin.host`); no other host is told.
    """

    everywhere: tuple[tuple[bytes, bytes], ...] = ()
    authorization: Mapping[str, bytes] = {}

    def __repr__(self) -> str:  # all of it may be secret
        return "ExtraHeaders()"


class Fetcher:
    """Fetches through a transport, which stays its opener's to close.

    `timeout_s` is for a whole request, connect to last byte. `max_body_bytes` caps the decoded body. `from_address` is whom
    to write to about the requests (RFC 9110 section 10.1.2).
    """

    def __init__(
        self,
        transport: httpx.AsyncBaseTransport,
        *,
        timeout_s: float,
        max_body_bytes: int,
        user_agent: str,
        from_address: str | None = None,
        extra: ExtraHeaders | None = None,
    ) -> None:
        self._transport = transport
        self._timeout_s = timeout_s
        self._deadlines = Deadlines(timeout_s)
        self.max_body_bytes = max_body_bytes
        self._extra = extra or ExtraHeaders()
        replaced = {name.lower() for name, _ in self._extra.everywhere}
        usual = (
            (b"User-Agent", user_agent.encode()),
            *([] if from_address is None else [(b"From", from_address.encode())]),
            (b"Accept", _ACCEPT),
            (b"Accept-Encoding", ACCEPT_ENCODING),
        )
        self._headers = (*(header for header in usual if header[0].lower() not in replaced), *self._extra.everywhere)
        self._site = lru_cache(_KNOWN_SITES)(self._new_site)

    def fetch(
        self, url: str, capture: Capture | None = None, more: Sequence[tuple[bytes, bytes]] = ()
    ) -> Coroutine[Any, Any, Response | FetchFailure]:
        """Return what GET on `url` (normal form) led to; `capture` keeps what went over the wire.

        `more` are further fields of this one request, in the place of those that it has under their names.
        """
        return self._in_time(self._get, url, capture, more)

    async def find(self, url: str, resolver: GuardedResolver) -> Found | FetchFailure:
        """Return the address that `resolver` would have a request for `url` connect to, or why there is none."""
        return await self._in_time(_find, url, resolver)

    async def _in_time(
        self, answer: Callable[_Given, Coroutine[Any, Any, _Answer]], *args: _Given.args, **more: _Given.kwargs
    ) -> _Answer | FetchFailure:
        try:
            with Deadline(self._deadlines) as deadline:
                return await answer(*args, **more)
        except TimeoutError as error:
            if deadline.passed:
                return FetchFailure(Reason.TIMEOUT, f"no complete answer within {self._timeout_s:g} s")
            return _failure(error)
        except _REMOTE as error:
            return _failure(error)

    def _new_site(self, prefix: str) -> tuple[Origin, httpx.Headers, bytes]:
        """Return what all requests have in common whose URL begins with `prefix`, like `https://a.example:8443`."""
        # Host is given because httpx would decode the name, and raises for punycode that browsers accept.
        host = (b"Host", prefix[prefix.index("//") + 2 :].encode())
        origin = Origin.of(prefix)
        proof = self._extra.authorization.get(origin.host)
        own = [] if proof is None else [(b"Authorization", proof)]
        headers = httpx.Headers([host, *self._headers, *own])
        return origin, headers, lines_of(headers)

    async def _get(self, url: str, capture: Capture | None, more: Sequence[tuple[bytes, bytes]]) -> Response | FetchFailure:
        path = url.index("/", url.index("//") + 2)
        origin, headers, lines = self._site(url[:path])
        if more:
            names = {name.lower() for name, _ in more}
            headers = httpx.Headers([*(each for each in headers.raw if each[0].lower() not in names), *more])
            lines = lines_of(headers)
        request = Get(url, origin, url[path:].encode(), headers, lines)
        response = await self._transport.handle_async_request(request)
        stream = response.stream
        assert isinstance(stream, httpx.AsyncByteStream)
        if capture is not None:
            capture.begin(request, response)
        try:
            return await self._read(response, stream, capture)
        finally:
            await stream.aclose()

    async def _read(
        self, response: httpx.Response, stream: httpx.AsyncByteStream, capture: Capture | None
    ) -> Response | FetchFailure:
        status = response.status_code
        headers = tuple([(name.lower(), value) for name, value in fields_of(response)])
        if status < 200:
            return FetchFailure(Reason.PROTOCOL, f"status {status} as the final answer")
        told = dict(headers)  # most answers have neither field that is looked for
        transfer = [value for name, value in headers if name == b"transfer-encoding"] if b"transfer-encoding" in told else ()
        if transfer and (len(transfer) > 1 or transfer[0].strip().lower() != b"chunked"):
            # No other coding was asked for; where the body ends is anyone's guess (RFC 9112 section 6.1).
            return FetchFailure(Reason.PROTOCOL, f"transfer coding {b', '.join(transfer)!r}")
        codings = [value for name, value in headers if name == b"content-encoding"] if b"content-encoding" in told else ()
        body = BodyDecoder(codings, self.max_body_bytes)
        rest = stream.rest() if capture is None and isinstance(stream, Body) else None
        if rest is not None:
            broken = False
            body.feed(rest)
        else:
            broken = not await self._collect(stream if capture is None else capture.watch(stream), body)
        content, cut = body.finish()
        return Response(status, headers, content, broken or cut)

    async def _collect(self, stream: httpx.AsyncByteStream, body: BodyDecoder) -> bool:
        """Feed `body` until it or the answer ends; return False if the connection or the framing broke before."""
        try:
            async for chunk in stream:
                if not body.feed(chunk):
                    return True
        except httpx.ReadTimeout:
            raise
        except _REMOTE:
            return False
        return True
