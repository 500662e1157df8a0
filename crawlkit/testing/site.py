"""The network as a table: what each URL answers, misbehaviour included.

A `Site` is data: `FakeWeb` answers from it without a socket, `SiteServer` on loopback.

    Site({"/": page("Home", ["/a"]), "h2.test/a": in_turn(status(503), page("A")), "/slow": Reply(fault=Fault.STALL)})
"""

import functools
import gzip
import html
import itertools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum

Headers = tuple[tuple[str, str], ...]

BOMB_BYTES = 64 * 1024 * 1024


class Fault(Enum):
    """A misbehaviour in place of the answer; the value says what the client sees."""

    DROP = "the connection closes before any byte"
    CUT = "the connection closes in the middle of the body, whose announced length is longer"
    RESET = "the connection is reset before any byte"
    STALL = "the head, then nothing"
    DRIP = "the head, then one byte of the body every drip_s"
    GARBAGE = "bytes that are not HTTP, then the connection closes"
    ENDLESS = "a chunked body without end, the reply's body again and again"
    BOMB = "a gzip body of 64 KiB that decodes to 64 MiB of zeros"


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer. `delay_s` passes before its first byte; `drip_s` is the gap of `Fault.DRIP`, unused otherwise."""

    status: int = 200
    headers: Headers = ()
    body: bytes = b""
    delay_s: float = 0.0
    fault: Fault | None = None
    drip_s: float = 0.1

    def on_wire(self) -> tuple[Headers, bytes]:
        """Return headers and body as sent: framed, unless the headers frame the body themselves; a bomb armed."""
        headers, body = self.headers, self.body
        if self.fault is Fault.BOMB:
            headers, body = (*headers, ("content-encoding", "gzip")), bomb()
        if self.fault is Fault.ENDLESS:
            return (*headers, ("transfer-encoding", "chunked")), body or b"x" * 1024
        framed = any(name.lower() in ("content-length", "transfer-encoding") for name, _ in headers)
        bodiless = self.status < 200 or self.status in (204, 304)  # RFC 9110 section 8.6
        if framed or bodiless:
            return headers, body
        return (*headers, ("content-length", str(len(body)))), body


Route = Reply | Callable[[], Reply]


@functools.cache
def bomb() -> bytes:
    """Return `BOMB_BYTES` of zeros as one gzip member."""
    return gzip.compress(bytes(BOMB_BYTES), mtime=0)


def _not_found(host: str, target: str) -> Reply:
    return Reply(404, (("content-type", "text/plain"),), b"not found")


class Site:
    """What the network answers, by host and target (path with query).

    Keys of `routes` are `/path?query` for any host (`*/path?query` is the same), `host/path` for one, `host:port/path`
    for one port of it; the closest one answers. A route that is a function is called for each request. What no route
    answers `otherwise` does: 404 unless given.
    """

    def __init__(self, routes: Mapping[str, Route] | None = None, otherwise: Callable[[str, str], Reply] = _not_found) -> None:
        self._routes = {key.removeprefix("*"): route for key, route in (routes or {}).items()}
        self._otherwise = otherwise

    def __or__(self, routes: Mapping[str, Route]) -> "Site":
        """Return this site with `routes` added or replaced."""
        return Site({**self._routes, **Site(routes)._routes}, self._otherwise)

    def reply(self, host: str, target: str) -> Reply:
        """Return the answer of `host` (a name or `name:port`, lower case) for `target`."""
        name, _, port = host.rpartition(":")
        for owner in (host, name if port.isdigit() else "", ""):
            route = self._routes.get(owner + target)
            if route is not None:
                return route if isinstance(route, Reply) else route()
        return self._otherwise(host, target)


def page(
    title: str,
    links: Iterable[str] = (),
    *,
    nofollow: Iterable[str] = (),
    canonical: str | None = None,
    text: str = "",
) -> Reply:
    """Return an HTML page with `links`, then the `nofollow` ones, in order. All is escaped, in UTF-8."""
    parts = [f'<!doctype html>\n<html><head><meta charset="utf-8"><title>{html.escape(title)}</title>\n']
    if canonical is not None:
        parts.append(f'<link rel="canonical" href="{html.escape(canonical)}">\n')
    parts.append("</head><body>\n")
    parts += [f'<a href="{html.escape(link)}">link</a>\n' for link in links]
    parts += [f'<a rel="nofollow" href="{html.escape(link)}">link</a>\n' for link in nofollow]
    parts.append(f"<p>{html.escape(text)}</p>\n</body></html>\n")
    return Reply(200, (("content-type", "text/html; charset=utf-8"),), "".join(parts).encode())


def redirect(location: str, code: int = 302) -> Reply:
    """Return a redirect to `location`, sent as it is."""
    return Reply(code, (("location", location),))


def status(code: int, headers: Headers = ()) -> Reply:
    """Return an answer without a body."""
    return Reply(code, headers)


def robots(text: str) -> Reply:
    """Return a robots.txt."""
    return Reply(200, (("content-type", "text/plain; charset=utf-8"),), text.encode())


def in_turn(*replies: Reply) -> Callable[[], Reply]:
    """Return a route that gives each reply once, in order, and then the last one for ever."""
    return itertools.chain(replies[:-1], itertools.repeat(replies[-1])).__next__
