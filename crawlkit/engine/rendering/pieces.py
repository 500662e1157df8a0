"""What pages ask for besides themselves: fetched as a crawl fetches, kept for the pages to come, and bounded.

Each request goes through the crawl's transport (its address guard, proxy, certificates), robots.txt and a turn at its host.
The `header` setting goes to the page's own host only: what else a page names is anybody's. An answer is kept in memory for
all pages, whatever it says of caching, so that a script which they share is asked for once; what one page waits for is not
asked for twice. Redirects are followed, each step with all of this.
"""

import asyncio
import re
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from http import HTTPStatus
from typing import Final

import msgspec

from crawlkit.clock import Clock
from crawlkit.config import Config
from crawlkit.config_items import is_field_value
from crawlkit.engine.rendering.rules import Rules
from crawlkit.engine.rendering.turns import LeftAloneError, Turns
from crawlkit.model import FetchFailure, Reason, Response
from crawlkit.net.fetch import ExtraHeaders, Fetcher
from crawlkit.net.transport import Transport
from crawlkit.policy import retry
from crawlkit.policy.disposition import REDIRECTS
from crawlkit.policy.robots import MAX_ROBOTS_BYTES
from crawlkit.policy.urls import host_of, normalise, origin_of, resolve_location
from crawlkit.rendering import Aside, Contact, Piece, Wish
from crawlkit.state.crawl import CrawlState

MOST_WISHES: Final = 200
"""Of one page."""

MOST_PIECE_BYTES: Final = 8 * 1024 * 1024
"""Of one answer, and no more than `max_body`; a longer one counts as failed, as a part of a script is none."""

MOST_BYTES_A_PAGE: Final = 32 * 1024 * 1024
MOST_KEPT_BYTES: Final = 64 * 1024 * 1024
MOST_KEPT: Final = 4_096
FAILED_KEPT_S: Final = 60.0
"""How long what failed, or a server error, is not asked for again."""

MOST_HOPS: Final = 5

# Of an answer's headers those that are no longer true, or that the browser is not to go by.
_NOT_SHOWN: Final = re.compile(
    rb"content-(?:encoding|length|disposition)|transfer-encoding|connection|keep-alive|trailer|upgrade|set-cookie|link|refresh"
    rb"|clear-site-data|nel|report-to|reporting-endpoints|alt-svc|strict-transport-security|sourcemap|proxy-.*"
)


@dataclass(frozen=True, slots=True)
class _Found:
    """The end of the way from one URL: what was answered there, None if there was no usable answer."""

    url: str
    piece: Piece | None
    is_lasting: bool


@dataclass(slots=True, eq=False)
class _Flight:
    """A fetch that pages wait for. `admitted` is set when its request starts, or it ends without one."""

    task: "asyncio.Task[_Found]"
    admitted: asyncio.Event
    contacts: dict[str, Contact]
    waiting: int = 0


@dataclass(frozen=True, slots=True)
class _Key:
    """What tells one request from another."""

    url: str
    accept: str
    is_own: bool


class Pieces:
    """Fetches and keeps. `aclose` it."""

    def __init__(self, state: CrawlState, transport: Transport, config: Config, clock: Clock, extra: ExtraHeaders) -> None:
        self._clock = clock
        others = ExtraHeaders(authorization=extra.authorization)
        self._own = _fetcher(transport, config, extra, MOST_PIECE_BYTES)
        self._others = _fetcher(transport, config, others, MOST_PIECE_BYTES)
        self._robots = _fetcher(transport, config, others, None)
        self._max_retry_after_s = config.max_retry_after
        self.turns = Turns(state, config, clock)
        self._rules = Rules(state, config, clock)
        self._flights: dict[_Key, _Flight] = {}
        self._kept: OrderedDict[_Key, tuple[_Found, float]] = OrderedDict()
        self._kept_bytes = 0

    def visit(self, url: str) -> "Visit":
        """Return what asks for one page, `url`."""
        return Visit(self, host_of(url))

    async def aclose(self) -> None:
        """End what is under way."""
        tasks = [flight.task for flight in self._flights.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def find(self, key: _Key, aside: Aside, contacts: dict[str, Contact]) -> _Found:
        """Return what is at the end of the way from a URL; whom that took a request to is noted in `contacts`."""
        kept = self._kept.get(key)
        if kept is not None and self._clock.now() < kept[1]:
            self._kept.move_to_end(key)
            return kept[0]
        flight = self._flights.get(key) or self._start(key)
        flight.waiting += 1
        try:
            with aside():
                await flight.admitted.wait()
            return await asyncio.shield(flight.task)
        finally:
            flight.waiting -= 1
            if flight.waiting == 0 and not flight.task.done():
                self._forget(key, flight)
                flight.task.cancel()
                await asyncio.wait({flight.task})  # what it was asking for has ended then, for the host's gap
            _add(contacts, flight)

    def _start(self, key: _Key) -> _Flight:
        admitted, contacts = asyncio.Event(), dict[str, Contact]()
        task = asyncio.create_task(self._fly(key, admitted, contacts))
        flight = self._flights[key] = _Flight(task, admitted, contacts)

        def landed(task: "asyncio.Task[_Found]") -> None:
            self._forget(key, flight)
            admitted.set()
            if not task.cancelled() and task.exception() is None:
                self._keep(key, task.result())

        task.add_done_callback(landed)
        return flight

    def _forget(self, key: _Key, flight: _Flight) -> None:
        if self._flights.get(key) is flight:
            del self._flights[key]

    async def _fly(self, key: _Key, admitted: asyncio.Event, contacts: dict[str, Contact]) -> _Found:
        url = key.url
        for _ in range(MOST_HOPS + 1):
            verdict = await self._rules.judge(url, partial(self._get_robots, contacts))
            if not verdict.allowed:
                return _Found(url, None, is_lasting=True)
            fetcher = self._own if key.is_own and host_of(url) == host_of(key.url) else self._others
            try:
                async with self.turns.turn(host_of(url), verdict.crawl_delay_s):
                    admitted.set()
                    answer = await self._request(fetcher, url, ((b"Accept", key.accept.encode()),), contacts)
            except LeftAloneError:
                return _Found(url, None, is_lasting=False)
            target = _target_of(url, answer)
            if target is None:
                return _found(url, answer)
            url = target
        return _Found(url, None, is_lasting=True)

    async def _request(
        self, fetcher: Fetcher, url: str, headers: Sequence[tuple[bytes, bytes]], contacts: dict[str, Contact]
    ) -> Response | FetchFailure:
        host, started_s, hold_s, asked = host_of(url), self._clock.now(), 0.0, 1
        try:
            answer = await fetcher.fetch(url, None, headers)
            hold_s = _hold_s(host, answer, self._clock.now(), self._max_retry_after_s)
            if isinstance(answer, FetchFailure) and answer.reason is Reason.ADDRESS:
                asked = 0
        finally:
            before = contacts.get(host)
            requests = asked + (0 if before is None else before.requests)
            contacts[host] = Contact(host, requests, started_s, self._clock.now(), hold_s)
        if hold_s:
            self.turns.hold(host, hold_s)
        return answer

    async def _get_robots(self, contacts: dict[str, Contact], url: str) -> Response | FetchFailure:
        try:
            async with self.turns.turn(host_of(url), 0.0):
                return await self._request(self._robots, url, (), contacts)
        except LeftAloneError:
            return FetchFailure(Reason.CONNECT, "the host is left alone")

    def _keep(self, key: _Key, found: _Found) -> None:
        until_s = float("inf") if found.is_lasting else self._clock.now() + FAILED_KEPT_S
        before = self._kept.pop(key, None)
        self._kept_bytes += _size(found) - (0 if before is None else _size(before[0]))
        self._kept[key] = (found, until_s)
        while self._kept_bytes > MOST_KEPT_BYTES or len(self._kept) > MOST_KEPT:
            self._kept_bytes -= _size(self._kept.popitem(last=False)[1][0])


@dataclass(slots=True)
class Visit:
    """What one page asks for, counted."""

    _pieces: Pieces
    _host: str
    _wishes: int = 0
    _bytes: int = 0
    _contacts: dict[str, Contact] = field(default_factory=dict)

    @property
    def contacts(self) -> tuple[Contact, ...]:
        """The hosts that were asked."""
        return tuple(self._contacts.values())

    async def ask(self, wish: Wish, aside: Aside) -> Piece | None:
        """Grant a wish, None if it is refused or failed: be an `Ask`."""
        url = normalise(wish.url)
        self._wishes += 1
        if url is None or self._wishes > MOST_WISHES or self._bytes > MOST_BYTES_A_PAGE:
            return None
        accept = wish.accept if is_field_value(wish.accept) else "*/*"
        found = await self._pieces.find(_Key(url, accept, host_of(url) == self._host), aside, self._contacts)
        piece = found.piece
        if piece is None or not _may_be_read(wish, url, found):
            return None
        self._bytes += len(piece.body)
        return piece if self._bytes <= MOST_BYTES_A_PAGE else None


def _fetcher(transport: Transport, config: Config, extra: ExtraHeaders, most_bytes: int | None) -> Fetcher:
    """Return what fetches bodies of up to `most_bytes`, and no more than `max_body`; None for those of robots.txt."""
    return Fetcher(
        transport,
        timeout_s=config.timeout,
        max_body_bytes=2 * MAX_ROBOTS_BYTES if most_bytes is None else min(config.max_body, most_bytes),
        user_agent=config.sent_user_agent(),
        from_address=config.from_address(),
        extra=extra,
    )


def _hold_s(host: str, answer: Response | FetchFailure, now: float, most_s: float) -> float:
    """Return for how long a host asks to be left alone: by 429 and 503, as for pages."""
    busy = (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE)
    if isinstance(answer, FetchFailure) or answer.status not in busy:
        return 0.0
    reason = retry.reason_of_status(answer.status)
    assert reason is not None
    asked = answer.header_values(b"retry-after")
    asked_s = retry.retry_after_s(asked[0].decode("latin-1"), now, most_s) if asked else None
    return retry.hold_s(reason, host, 1, asked_s)


def _target_of(url: str, answer: Response | FetchFailure) -> str | None:
    if isinstance(answer, FetchFailure) or answer.status not in REDIRECTS:
        return None
    values = set(answer.header_values(b"location"))
    return resolve_location(url, values.pop()) if len(values) == 1 else None


def _found(url: str, answer: Response | FetchFailure) -> _Found:
    if isinstance(answer, FetchFailure):
        return _Found(url, None, is_lasting=answer.reason is Reason.ADDRESS)
    if answer.truncated or answer.status in REDIRECTS:
        return _Found(url, None, is_lasting=True)
    headers: dict[str, str] = {}
    for name, value in answer.headers:
        if _NOT_SHOWN.fullmatch(name) is None:
            key, text = name.decode("latin-1"), value.decode("latin-1")
            headers[key] = f"{headers[key]}, {text}" if key in headers else text
    return _Found(url, Piece(answer.status, tuple(headers.items()), answer.body), is_lasting=answer.status < 500)


def _may_be_read(wish: Wish, url: str, found: _Found) -> bool:
    """Whether scripts may have what another origin than the one that they asked has answered, which the browser cannot know."""
    if wish.origin is None or found.piece is None or origin_of(found.url) == origin_of(url):
        return True
    return dict(found.piece.headers).get("access-control-allow-origin") in ("*", wish.origin)


def _add(contacts: dict[str, Contact], flight: _Flight) -> None:
    """Add whom a flight has asked; of pages that waited for it together one counts its requests."""
    for host, contact in flight.contacts.items():
        before = contacts.get(host) or Contact(host, 0, 0.0, 0.0)
        requests, hold_s = before.requests + contact.requests, max(before.hold_s, contact.hold_s)
        contacts[host] = msgspec.structs.replace(contact, requests=requests, hold_s=hold_s)
        flight.contacts[host] = msgspec.structs.replace(contact, requests=0)


def _size(found: _Found) -> int:
    return 512 + (0 if found.piece is None else len(found.piece.body))
