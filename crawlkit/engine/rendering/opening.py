"""What a crawl that renders stands on: checked before there is a directory, opened for a run, closed after it."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from crawlkit.clock import Clock
from crawlkit.config import Config
from crawlkit.errors import ConfigError
from crawlkit.net.fetch import ExtraHeaders
from crawlkit.net.transport import Transport
from crawlkit.render.finding import need_browser
from crawlkit.state.crawl import CrawlState

if TYPE_CHECKING:
    from crawlkit.engine.rendering.pages import PageRenderer
    from crawlkit.render.browser import Renderer


def check_renderer(config: Config, environ: Mapping[str, str]) -> None:
    """Raise ConfigError where pages are to be rendered and there is nothing to do it with."""
    if config.render:
        need_browser(environ)


@asynccontextmanager
async def open_renderer(config: Config | None, environ: Mapping[str, str]) -> "AsyncIterator[Renderer | None]":
    """Give a browser that runs while the block does, None where none is wanted; ConfigError if it does not start."""
    if config is None or not config.render:
        yield None
        return
    program = need_browser(environ)
    from crawlkit.render.browser import Renderer  # noqa: PLC0415  (its package is an extra)
    from crawlkit.render.launching import BrowserFailedError  # noqa: PLC0415

    renderer = Renderer(program, config.sent_user_agent(), config.max_body, config.workers)
    try:
        await renderer.open()
    except BrowserFailedError as error:
        raise ConfigError(f"render: the browser {program} does not start: {error}") from error
    try:
        yield renderer
    finally:
        await renderer.aclose()


@asynccontextmanager
async def rendering_pages(
    renderer: "Renderer | None", state: CrawlState, transport: Transport, clock: Clock, extra: ExtraHeaders
) -> "AsyncIterator[PageRenderer | None]":
    """Give what renders pages while the block runs, None without a renderer."""
    if renderer is None:
        yield None
        return
    from crawlkit.engine.rendering.pages import PageRenderer  # noqa: PLC0415  (most crawls render nothing: 3 ms of a start)
    from crawlkit.engine.rendering.pieces import Pieces  # noqa: PLC0415

    config = state.config()
    pieces = Pieces(state, transport, config, clock, extra)
    try:
        yield PageRenderer(renderer, pieces, config.timeout)
    finally:
        await pieces.aclose()
