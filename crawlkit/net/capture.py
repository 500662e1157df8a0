"""Keeping what one fetch sends and receives, for the archive. A fetch that is not archived does none of this."""

import asyncio
import re
from collections.abc import AsyncIterator, Iterable, Sequence
from typing import Final

import httpx
import msgspec

from crawlkit.config_items import SECRET_HEADERS
from crawlkit.exchange import Cut, Exchange
from crawlkit.model import FetchFailure, Response

WIRE: Final = "crawlkit.wire"
"""The response extension under which our own transport tells what went over the wire."""

_PROOFS: Final = SECRET_HEADERS | {"authorization", "proxy-authorization"}
_BARE_LF: Final = re.compile(rb"(?<!\r)\n")


class Wire(msgspec.Struct, frozen=True):
    """A request as sent, the head of its answer as received, and the address of the server that gave it."""

    request: bytes
    head: bytes
    address: str | None


class Veil:
    """Hides what is stored nowhere, not in the settings, so not in the archive: the values of the fields that prove who asks.

    `names` are further fields whose values the settings do not tell.
    """

    def __init__(self, names: Iterable[str] = ()) -> None:
        self._names = frozenset(name.lower() for name in names) | _PROOFS
        any_name = "|".join(map(re.escape, sorted(self._names)))
        self._lines = re.compile(rf"^({any_name}):[^\r\n]*".encode(), re.IGNORECASE | re.MULTILINE)

    def also_over(self, fields: Sequence[tuple[bytes, bytes]]) -> "Veil":
        """Return a veil that hides the values of further fields too."""
        return Veil((*self._names, *(name.decode("latin-1") for name, _ in fields))) if fields else self

    def over(self, request: bytes) -> bytes:
        """Return a request without them."""
        return self._lines.sub(rb"\1: (not archived)", request)


class Capture:
    """Keeps one exchange: `begin` with the head, then read the body through `watch`."""

    def __init__(self, veil: Veil) -> None:
        self._veil = veil
        self._response: httpx.Response | None = None
        self._request: httpx.Request | None = None
        self._body = _Watched()

    def begin(self, request: httpx.Request, response: httpx.Response) -> None:
        """Take note of a request and the head of its answer."""
        self._request, self._response = request, response

    def watch(self, stream: httpx.AsyncByteStream) -> httpx.AsyncByteStream:
        """Return a stream that gives what `stream` does and keeps it. Closing stays with who has `stream`."""
        self._body.open(stream)
        return self._body

    def exchange(self, answer: Response | FetchFailure, most_bytes: int) -> Exchange | None:
        """Return what was kept, None if no answer came. `answer` is what it was read as, with bodies capped at `most_bytes`."""
        if self._request is None or self._response is None:
            return None
        wire: Wire | None = self._response.extensions.get(WIRE)
        protocol = None
        if wire is None:
            wire = Wire(_request_of(self._request), _head_of(self._response), None)
            version: bytes = self._response.extensions.get("http_version", b"HTTP/1.1")
            protocol = None if version.startswith(b"HTTP/1") else _protocol_name(version)
        cut = self._body.cut
        if cut is Cut.LENGTH and not (isinstance(answer, Response) and len(answer.body) >= most_bytes):
            cut = Cut.UNSPECIFIED
        return Exchange(
            request=self._veil.over(wire.request),
            head=_BARE_LF.sub(b"\r\n", wire.head),
            body=self._body.content(),
            cut=cut,
            address=wire.address,
            protocol=protocol,
        )


class _Watched(httpx.AsyncByteStream):
    """A body on its way; `cut` says how its reading ended, LENGTH if it was given up before its end.

    No generator, which would be left hanging then.
    """

    def __init__(self) -> None:
        self.cut: Cut | None = Cut.UNSPECIFIED
        self._kept: list[bytes] = []
        self._pieces: AsyncIterator[bytes] | None = None

    def open(self, stream: httpx.AsyncByteStream) -> None:
        self._pieces = aiter(stream)
        self.cut = Cut.LENGTH

    def content(self) -> bytes:
        return self._kept[0] if len(self._kept) == 1 else b"".join(self._kept)

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        if self._pieces is None:
            raise httpx.StreamClosed
        try:
            piece = await anext(self._pieces)
        except StopAsyncIteration:
            self.cut = None
            raise
        except (asyncio.CancelledError, TimeoutError, httpx.TimeoutException):
            self.cut = Cut.TIME
            raise
        except Exception:
            self.cut = Cut.DISCONNECT
            raise
        self._kept.append(piece)
        return piece


def _request_of(request: httpx.Request) -> bytes:
    """Return a request as HTTP/1.1 has it, of one that was sent otherwise."""
    target: bytes = request.extensions.get("target") or request.url.raw_path
    return _message(b"%b %b HTTP/1.1" % (request.method.encode(), target), request.headers.raw)


def _head_of(response: httpx.Response) -> bytes:
    reason = httpx.codes.get_reason_phrase(response.status_code)
    return _message(f"HTTP/1.1 {response.status_code} {reason}".encode(), response.headers.raw)


def _message(first: bytes, fields: Iterable[tuple[bytes, bytes]]) -> bytes:
    return b"\r\n".join([first, *[b"%b: %b" % field for field in fields], b"", b""])


def _protocol_name(version: bytes) -> str:
    """Return the name of a protocol as TLS has it (its registry of ALPN protocol IDs): `h2` for HTTP/2."""
    return f"h{version.removeprefix(b'HTTP/').decode('latin-1').partition('.')[0]}"
