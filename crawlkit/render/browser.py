"""A browser kept running for a crawl's pages: a few at once, and another one when it ends or has shown many."""

import asyncio
import contextlib
from typing import Final

from playwright.async_api import Browser, Error, Playwright

from crawlkit.errors import RendererLost
from crawlkit.render.launching import BrowserFailedError, deaths_untold, start_browser, start_driver
from crawlkit.render.page import Limits, show
from crawlkit.render.patience import Patience
from crawlkit.rendering import Ask, Document, Rendered, Rendering, Unrendered

MOST_AT_ONCE: Final = 4
"""Pages that are shown at once: a simple one takes 40 to 70 MiB, in two processes."""

PAGES_A_BROWSER: Final = 1_000
"""After so many another browser is started, whatever the first one has come to hold."""

_END_WITHIN_S: Final = 5.0


class _Life:
    """One browser with its driver, from start to end."""

    def __init__(self, driver: Playwright, browser: Browser) -> None:
        self._driver = driver
        self.browser = browser
        self.shown = 0
        self.open = 0
        self.is_spent = False
        self._ended = False

    async def is_alive(self) -> bool:
        """Whether it still does anything."""
        try:
            async with asyncio.timeout(_END_WITHIN_S):
                await (await self.browser.new_context()).close()
        except (Error, TimeoutError):
            return False
        return True

    async def end(self) -> None:
        """End both, whatever state they are in."""
        if self._ended:
            return
        self._ended = True
        for ending in (self.browser.close, self._driver.stop):
            with contextlib.suppress(Error, TimeoutError, OSError):
                async with asyncio.timeout(_END_WITHIN_S):
                    await ending()


class Renderer:
    """Renders documents by the browser at `program`, up to `most_bytes` of each. `open` it, then `aclose` it."""

    def __init__(self, program: str, user_agent: str, most_bytes: int, most_at_once: int) -> None:
        self._program = program
        self._limits = Limits(user_agent, most_bytes)
        self._places = asyncio.Semaphore(min(most_at_once, MOST_AT_ONCE))
        self._starting = asyncio.Lock()
        self._life: _Life | None = None
        self._untold = contextlib.ExitStack()

    async def open(self) -> None:
        """Start a browser, to see whether one does; BrowserFailedError if not."""
        await self._start()
        self._untold.enter_context(deaths_untold())

    async def render(self, document: Document, ask: Ask, timeout_s: float) -> Rendered | Unrendered:
        """Return what a document came to within `timeout_s`. What it asks for is asked of `ask`, with this time standing still.

        Where a browser ends under it, by whatever, another one tries once more. RendererLost if none can be started.
        """
        async with self._places:
            for _ in range(2):
                life = await self._alive()
                life.open += 1
                life.shown += 1
                try:
                    rendered = await self._show(life.browser, document, ask, timeout_s)
                    if rendered != Unrendered(Rendering.CRASHED) or await life.is_alive():
                        return rendered
                except Error:
                    if await life.is_alive():
                        return Unrendered(Rendering.REFUSED)
                finally:
                    life.open -= 1
                    await self._let_go(life)
                life.is_spent = True
            return Unrendered(Rendering.CRASHED)

    async def _start(self) -> None:
        driver = await start_driver()
        try:
            self._life = _Life(driver, await start_browser(driver, self._program))
        except BrowserFailedError:
            await driver.stop()
            raise

    async def aclose(self) -> None:
        """End the browser."""
        if self._life is not None:
            life, self._life = self._life, None
            await life.end()
        self._untold.close()

    async def _show(self, browser: Browser, document: Document, ask: Ask, timeout_s: float) -> Rendered | Unrendered:
        patience = Patience(timeout_s)
        try:
            return await show(browser, document, ask, patience, self._limits)
        finally:
            patience.close()

    async def _alive(self) -> _Life:
        """Return a browser that is not spent."""
        async with self._starting:
            life = self._life
            if life is not None and not life.is_spent and life.shown < PAGES_A_BROWSER:
                return life
            if life is not None:
                life.is_spent = True
                self._life = None
                await self._let_go(life)
            try:
                await self._start()
            except BrowserFailedError as error:
                raise RendererLost(f"the browser that renders pages ended and does not start any more: {error}") from error
            assert self._life is not None
            return self._life

    async def _let_go(self, life: _Life) -> None:
        """End a browser that is spent, with its last page."""
        if life.is_spent and life.open == 0 and life is not self._life:
            await life.end()
