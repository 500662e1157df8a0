"""One document shown in a browser: given to it, its wishes asked for, its markup read when it has come to rest.

A document comes to rest when it has loaded and made no request for a while, or when its time is over: then it is read as it is
by then. It is read from a world of its own, which its scripts cannot reach into. Of all else that it may try nothing
comes: pictures, media, fonts, frames, other methods than GET, streams, downloads and windows are refused; where it would go
is noted and not followed.
"""

import asyncio
import contextlib
import re
from typing import Any, Final

from playwright.async_api import Browser, BrowserContext, CDPSession, Error, Page, Request, Route

from crawlkit.render.patience import Patience
from crawlkit.rendering import Ask, Document, Piece, Rendered, Rendering, Unrendered, Wish

QUIET_S: Final = 0.5
"""How long a page has to make no request to count as at rest."""

READ_WITHIN_S: Final = 5.0
"""For a page to be read, whose scripts may hold it, once its time is over; no longer than that time."""

_ANYTHING: Final = re.compile("")
_WANTED: Final = frozenset({"script", "stylesheet", "xhr", "fetch"})
_READ_BY_SCRIPTS: Final = frozenset({"xhr", "fetch"})

# A getter of its prototype, since a page may have elements that go by the names of a document's properties.
_MARKUP: Final = """(() => {
  const of = name => Object.getOwnPropertyDescriptor(Document.prototype, name).get.call(document);
  const root = of('documentElement'), text = root ? root.outerHTML : '';
  return {doctype: of('doctype') !== null, cut: text.length > MOST, text: text.slice(0, MOST)};
})()"""


async def show(browser: Browser, document: Document, ask: Ask, patience: Patience, limits: "Limits") -> Rendered | Unrendered:
    """Return what `document` came to; playwright's Error where that cannot be said, the browser having ended for instance."""
    context = await browser.new_context(user_agent=limits.user_agent, service_workers="block", accept_downloads=False)
    shown = _Shown(document, ask, patience, limits.most_bytes)
    try:
        return await shown.run(context)
    finally:
        await shown.end()
        await _closed(context)


class Limits:
    """What holds for each page: what the browser calls itself, and the cap on the bytes of what is read."""

    __slots__ = ("most_bytes", "user_agent")

    def __init__(self, user_agent: str, most_bytes: int) -> None:
        self.user_agent = user_agent
        self.most_bytes = most_bytes


async def _closed(context: BrowserContext) -> None:
    with contextlib.suppress(Error, TimeoutError):
        async with asyncio.timeout(READ_WITHIN_S):
            await context.close()


class _Shown:
    """What is going on with one document."""

    def __init__(self, document: Document, ask: Ask, patience: Patience, most_bytes: int) -> None:
        self._document = document
        self._ask = ask
        self._patience = patience
        self._most_bytes = most_bytes
        self._given = False
        self._target: str | None = None
        self._loaded = asyncio.Event()
        self._crashed = asyncio.Event()
        self._bug: BaseException | None = None
        self._asking: set[asyncio.Task[Piece | None]] = set()
        self._stirred = asyncio.Event()
        self._others: set[asyncio.Task[Any]] = set()

    async def run(self, context: BrowserContext) -> Rendered | Unrendered:
        """Show the document, and read it."""
        reading = asyncio.create_task(self._render(context))
        crashed = asyncio.create_task(self._crashed.wait())
        overdue = asyncio.create_task(self._overdue())
        tasks = (reading, crashed, overdue)
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            if self._bug is not None:
                raise self._bug
            if self._crashed.is_set():
                return Unrendered(Rendering.CRASHED)
            return reading.result() if reading.done() else Unrendered(Rendering.TIMEOUT)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def end(self) -> None:
        """Leave nothing running."""
        tasks = (*self._asking, *self._others)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _overdue(self) -> None:
        await self._patience.run_out.wait()
        await asyncio.sleep(min(READ_WITHIN_S, self._patience.timeout_s))

    async def _render(self, context: BrowserContext) -> Rendered | Unrendered:
        context.on("page", self._close_other)
        page = await context.new_page()
        page.on("crash", lambda _: self._crashed.set())
        page.on("load", lambda _: self._loaded.set())
        await context.route(_ANYTHING, self._serve)
        try:
            await page.goto(self._document.url, wait_until="commit", timeout=0)
        except Error:
            if not self._given:
                raise
            return Unrendered(Rendering.REFUSED)
        world = await _World.of(page)
        await self._come_to_rest(world)
        markup, cut = await world.markup(self._most_bytes)
        if page.url.split("/", 3)[:3] != self._document.url.split("/", 3)[:3]:
            return Unrendered(Rendering.REFUSED)  # it put something of its own in its place, which no request was needed for
        return Rendered(markup, page.url, self._target, cut)

    def _close_other(self, page: Page) -> None:
        """Close a window that a script opened. The first one is ours."""
        if len(page.context.pages) > 1:
            closing = asyncio.ensure_future(page.close())
            self._others.add(closing)
            closing.add_done_callback(self._others.discard)

    # At rest ---------------------------------------------------------------------------------------------------------

    async def _come_to_rest(self, world: "_World") -> None:
        """Wait until the page rests, or its time is over; playwright's Error if it ends before."""
        ended = asyncio.create_task(world.end())
        tasks = (ended, asyncio.create_task(self._rest()), asyncio.create_task(self._patience.run_out.wait()))
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            if ended.done():
                ended.result()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _rest(self) -> None:
        await self._loaded.wait()
        while True:
            if self._asking:
                await asyncio.wait(self._asking)
            self._stirred.clear()
            try:
                await asyncio.wait_for(self._stirred.wait(), QUIET_S)
            except TimeoutError:
                if not self._asking:
                    return

    # What it asks for ------------------------------------------------------------------------------------------------

    async def _serve(self, route: Route) -> None:
        """Answer a request of the page; leave it to the browser, whose network is none, when the page is gone by then."""
        request = route.request
        self._stirred.set()
        try:
            if request.is_navigation_request():
                await self._navigate(route, request)
            elif request.method != "GET" or request.resource_type not in _WANTED:
                await route.abort("blockedbyclient")
            else:
                await self._fetch(route, request)
        except (Error, asyncio.CancelledError):
            await route.fallback()  # or playwright waits for it for ever

    async def _navigate(self, route: Route, request: Request) -> None:
        if not self._given:
            self._given = True
            headers = {"content-type": "text/html; charset=utf-8", **dict(self._document.headers)}
            await route.fulfill(status=200, headers=headers, body=self._document.markup)
            return
        if request.frame.parent_frame is None and self._target is None:
            self._target = request.url
        await route.abort("aborted")  # of all reasons the one that leaves the page as it is
        self._loaded.set()  # it may have been stopped from loading on

    async def _fetch(self, route: Route, request: Request) -> None:
        headers = request.headers
        by_scripts = request.resource_type in _READ_BY_SCRIPTS
        origin = self._document.url.split("/", 3) if by_scripts else None
        wish = Wish(request.url, headers.get("accept", "*/*"), None if origin is None else "/".join(origin[:3]))
        asking = asyncio.ensure_future(self._ask(wish, self._patience.aside))
        self._asking.add(asking)
        try:
            await asyncio.wait({asking})
            if not asking.cancelled() and (error := asking.exception()) is not None:  # neither the page's nor the browser's
                self._bug = error
                self._crashed.set()
            piece = None if self._bug is not None else asking.result()
        finally:
            self._asking.discard(asking)
        if piece is None:
            await route.abort("blockedbyclient")
        else:
            await route.fulfill(status=piece.status, headers=_shown_headers(piece), body=piece.body)


class _World:
    """Where a page is looked at from: its document is the page's, all else its own."""

    def __init__(self, session: CDPSession, context: int) -> None:
        self._session = session
        self._context = context

    @classmethod
    async def of(cls, page: Page) -> "_World":
        session = await page.context.new_cdp_session(page)
        tree = await session.send("Page.getFrameTree")
        made = await session.send("Page.createIsolatedWorld", {"frameId": tree["frameTree"]["frame"]["id"]})
        return cls(session, made["executionContextId"])

    async def end(self) -> None:
        """Wait for the end of the page, by whatever: of that there is no event which all ways to it have."""
        await self._evaluate("new Promise(resolve => { globalThis.never = resolve })", awaitPromise=True)

    async def markup(self, most_bytes: int) -> tuple[bytes, bool]:
        """Return the markup of the document, up to a cap, and whether there is more."""
        said = await self._evaluate(_MARKUP.replace("MOST", str(most_bytes)), returnByValue=True)
        doctype = "<!DOCTYPE html>" if said["value"]["doctype"] else ""
        markup = (doctype + said["value"]["text"]).encode(errors="replace")
        return markup[:most_bytes], said["value"]["cut"] or len(markup) > most_bytes

    async def _evaluate(self, expression: str, **how: bool) -> Any:
        found = await self._session.send("Runtime.evaluate", {"contextId": self._context, "expression": expression, **how})
        return found["result"]


def _shown_headers(piece: Piece) -> dict[str, str]:
    """Return the headers of an answer; without word of which other origins may read it, none may: playwright would say all."""
    return {"access-control-allow-origin": "none", **dict(piece.headers)}
