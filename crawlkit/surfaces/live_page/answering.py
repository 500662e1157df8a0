"""The requests: the page itself, what it shows as server-sent events, explanations, orders. Nothing here waits for a disk."""

import asyncio
import html
import math
import time
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus
from pathlib import Path
from typing import TypeVar

import msgspec

from crawlkit.errors import CrawlError
from crawlkit.net.http_server import Asked, Reply, not_allowed, text_reply
from crawlkit.sentences import SENTENCES
from crawlkit.surfaces.live_page.access import ORDERS, Access
from crawlkit.surfaces.live_page.partitioned import source_of
from crawlkit.surfaces.live_page.source import Shown
from crawlkit.surfaces.pages.assembling import assets_of, without_markup

EVENT_EVERY_S = 1.0
MOST_URL = 20_000
JSON = "application/json; charset=utf-8"

Result = TypeVar("Result")

_SEALED = {
    "Referrer-Policy": "no-referrer",  # the address of the page holds the token
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}
_encode = msgspec.json.Encoder().encode


class _Problem(msgspec.Struct, frozen=True):
    """An error for people."""

    error: str


class _Done(msgspec.Struct, frozen=True):
    """What an order led to, in words."""

    done: str


class Answering:
    """Answers requests about the crawl in a directory. Streams end, with a last event, when `stopping` is set."""

    def __init__(self, directory: Path, access: Access, stopping: asyncio.Event) -> None:
        self._directory = directory
        self._source = source_of(directory)
        self._access = access
        self._stopping = stopping
        self._threads = ThreadPoolExecutor(2, thread_name_prefix="crawlkit-page")
        self._looking = asyncio.Lock()
        self._latest: Shown | _Problem = _Problem("")
        self._due_s = -math.inf

    def close(self) -> None:
        """Give the threads up; what one of them waits for ends by itself."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def answer(self, asked: Asked) -> Reply:
        """Answer a request."""
        refusal = self._access.refusal(asked)
        if refusal is HTTPStatus.METHOD_NOT_ALLOWED:
            return _sealed(not_allowed("POST") if asked.path in ORDERS else not_allowed("GET", "HEAD"))
        if refusal is not None:
            return _sealed(text_reply(refusal))
        return _sealed(await self._allowed(asked))

    async def _allowed(self, asked: Asked) -> Reply:
        order = ORDERS.get(asked.path)
        if order is not None:
            self._due_s = -math.inf
            return await self._json(lambda: _Done(self._source.order(order)))
        match asked.path:
            case "/":
                return self._page()
            case "/events":
                return Reply(HTTPStatus.OK, "text/event-stream", self._events())
            case "/api/shown":
                return Reply(HTTPStatus.OK, JSON, _encode(await self._shown()))
            case "/api/explain":
                text = asked.query.get("url", "")[:MOST_URL]
                return await self._json(lambda: self._source.explain(text))
            case _:
                return text_reply(HTTPStatus.NOT_FOUND)

    def _page(self) -> Reply:
        assets = assets_of(__package__)
        facts = without_markup(_encode({"name": self._directory.resolve().name, "sentences": dict(SENTENCES)}))
        # The style and the script of our own first; last what may be called anything.
        page = assets.markup.replace("{{style}}", assets.style).replace("{{script}}", assets.script)
        page = page.replace("{{facts}}", facts.decode()).replace("{{title}}", html.escape(self._directory.resolve().name))
        policy = assets.policy("connect-src 'self'", "frame-ancestors 'none'")
        return Reply(HTTPStatus.OK, "text/html; charset=utf-8", page.encode(), {"Content-Security-Policy": policy})

    async def _events(self) -> AsyncIterator[bytes]:
        """Yield an event a second, and a last one when the server ends."""
        while not self._stopping.is_set():
            yield _event("shown", await self._shown())
            try:
                await asyncio.wait_for(self._stopping.wait(), EVENT_EVERY_S)
            except TimeoutError:
                continue
        yield _event("over", await self._seen(self._source.end))

    async def _shown(self) -> "Shown | _Problem":
        """Return what is to be seen, at most half a second old: one look for all who watch."""
        async with self._looking:
            if time.monotonic() >= self._due_s:
                self._due_s = time.monotonic() + EVENT_EVERY_S / 2
                self._latest = await self._seen(self._source.look)
            return self._latest

    async def _seen(self, look: Callable[[], Shown]) -> "Shown | _Problem":
        try:
            return await self._in_thread(look)
        except CrawlError as error:
            return _Problem(str(error))

    async def _json(self, result: Callable[[], object]) -> Reply:
        try:
            body = _encode(await self._in_thread(result))
        except CrawlError as error:
            return Reply(HTTPStatus.CONFLICT, JSON, _encode(_Problem(str(error))))
        return Reply(HTTPStatus.OK, JSON, body)

    def _in_thread(self, work: Callable[[], Result]) -> asyncio.Future[Result]:
        return asyncio.get_running_loop().run_in_executor(self._threads, work)


def _event(name: str, data: Shown | _Problem) -> bytes:
    name = "problem" if isinstance(data, _Problem) else name
    return b"event: %s\ndata: %s\n\n" % (name.encode(), _encode(data))  # JSON of msgspec has no line end in it


def _sealed(reply: Reply) -> Reply:
    """Return an answer that no page from elsewhere may use."""
    return Reply(reply.status, reply.content_type, reply.body, {**_SEALED, **reply.headers})
