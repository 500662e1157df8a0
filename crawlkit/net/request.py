"""A GET as the fetcher makes it: httpx's request type without the cost of httpx's URL type."""

from typing import Final, NamedTuple
from urllib.parse import urlsplit

import httpx

DEFAULT_PORTS: Final = {"http": 80, "https": 443}
_UNPARSED: Final = httpx.URL("")
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

    `url` is parsed when a transport looks at it: half of the CPU of a fetch, and our own transport need not.
    """

    def __init__(self, url: str, origin: Origin, target: bytes, headers: httpx.Headers) -> None:
        super().__init__("GET", _UNPARSED, headers=headers, stream=_NO_BODY, extensions={"target": target})
        self.origin = origin
        self._text = url
        self._url: httpx.URL | None = None

    @property
    def url(self) -> httpx.URL:
        """The URL; raises httpx.InvalidURL for some that browsers take."""
        if self._url is None:
            self._url = httpx.URL(self._text)
        return self._url

    @url.setter
    def url(self, value: httpx.URL) -> None:  # httpx's constructor sets what its URL type made
        self._url = value


def origin_of(request: httpx.Request) -> Origin:
    """Return the origin of any request; raises httpx.UnsupportedProtocol, httpx.InvalidURL."""
    if isinstance(request, Get):
        return request.origin
    url = request.url
    if url.scheme not in DEFAULT_PORTS:
        raise httpx.UnsupportedProtocol(f"neither http nor https: {url}")
    return Origin(url.scheme, url.raw_host.decode(), DEFAULT_PORTS[url.scheme] if url.port is None else url.port)
