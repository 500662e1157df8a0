"""A GET as the fetcher makes it, and its answer: httpx's types without the cost of what nobody looks at."""

from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

import httpx

DEFAULT_PORTS: Final = {"http": 80, "https": 443}
_NO_BODY: Final = httpx.ByteStream(b"")


class Origin(NamedTuple):
    """What a connection leads to; `host` as in a URL's normal form, without brackets."""

    scheme: str
    host: str
    port: int

    @classmethod
    def of(cls, url: str) -> "Origin":
        """Return the origin of a URL in normal form."""
        parts = urlsplit(url)
        return cls(parts.scheme, parts.hostname or "", DEFAULT_PORTS[parts.scheme] if parts.port is None else parts.port)


class Get(httpx.Request):
    """A request for `url` (normal form) at its `origin`, with exactly `headers`, and `target` on its first line.

    `lines` are the headers as they are sent, which are the same for all of a site.
    `url` is parsed when a transport looks at it: half of the CPU of a fetch, and our own transport need not. So httpx's
    constructor, which parses it and copies the headers, is passed by: all that it sets is set here.
    """

    def __init__(self, url: str, origin: Origin, target: bytes, headers: httpx.Headers, lines: bytes) -> None:
        self.method = "GET"
        self.headers = headers
        self.extensions = {"target": target}
        self.stream = _NO_BODY
        self.origin = origin
        self.lines = lines
        self._text = url
        self._url: httpx.URL | None = None

    @property
    def url(self) -> httpx.URL:
        """The URL; raises httpx.InvalidURL for some that browsers take."""
        if self._url is None:
            self._url = httpx.URL(self._text)
        return self._url

    @url.setter
    def url(self, value: httpx.URL) -> None:
        self._url = value


class Body(httpx.AsyncByteStream):
    """A body that may be here already: most pages come in one piece, with their head."""

    def rest(self) -> bytes | None:
        """Return what is left to be read if all of it is here, None where more is to come: without a turn, 5 us less."""
        raise NotImplementedError


class Received(httpx.Response):
    """An answer with its headers as received in `fields`, of which httpx's type is made when somebody looks at `headers`.

    httpx's constructor is passed by, as in `Get`.
    """

    def __init__(
        self,
        status: int,
        fields: list[tuple[bytes, bytes]],
        stream: httpx.AsyncByteStream,
        request: httpx.Request,
        extensions: dict[str, Any],
    ) -> None:
        self.status_code = status
        self.fields = fields
        self.stream = stream
        self.extensions = extensions
        self.next_request = None
        self.history = []
        self.is_closed = self.is_stream_consumed = False
        self.default_encoding = "utf-8"
        self._request = request
        self._num_bytes_downloaded = 0
        self._headers: httpx.Headers | None = None

    @property
    def headers(self) -> httpx.Headers:
        """The headers, in httpx's type."""
        if self._headers is None:
            self._headers = httpx.Headers(self.fields)
        return self._headers

    @headers.setter
    def headers(self, value: httpx.Headers) -> None:
        self._headers = value


def lines_of(headers: httpx.Headers) -> bytes:
    """Return headers as lines to send; httpx.LocalProtocolError if those would be others on the wire."""
    lines = b"".join([b"%b: %b\r\n" % header for header in headers.raw])
    if lines.count(b"\n") != len(headers.raw):
        raise httpx.LocalProtocolError("a header that HTTP/1.1 cannot carry: it has lines")
    return lines


def fields_of(response: httpx.Response) -> list[tuple[bytes, bytes]]:
    """Return the headers of any response, as received."""
    return response.fields if isinstance(response, Received) else response.headers.raw


def origin_of(request: httpx.Request) -> Origin:
    """Return the origin of any request; raises httpx.UnsupportedProtocol, httpx.InvalidURL."""
    if isinstance(request, Get):
        return request.origin
    url = request.url
    if url.scheme not in DEFAULT_PORTS:
        raise httpx.UnsupportedProtocol(f"neither http nor https: {url}")
    return Origin(url.scheme, url.raw_host.decode(), DEFAULT_PORTS[url.scheme] if url.port is None else url.port)
