"""An answer rendered: its document shown in a browser, what that asks for fetched with manners."""

import asyncio
from typing import TYPE_CHECKING, Final

import msgspec

from crawlkit.engine.rendering.pieces import Pieces
from crawlkit.model import Response
from crawlkit.policy.document import document_of
from crawlkit.policy.urls import host_of
from crawlkit.rendering import Contact, Rendered, Rendering, Unrendered

if TYPE_CHECKING:
    from crawlkit.render.browser import Renderer

_INLINE_BYTES: Final = 64 * 1024


class Shown(msgspec.Struct, frozen=True):
    """What came of rendering a page, and whom it was asked of; `rendered` is None where it failed."""

    outcome: Rendering
    rendered: Rendered | None
    contacts: tuple[Contact, ...]


class PageRenderer:
    """Renders the answers that are HTML. `renderer` stays its opener's to close, `pieces` too."""

    def __init__(self, renderer: "Renderer", pieces: Pieces, timeout_s: float) -> None:
        self._renderer = renderer
        self._pieces = pieces
        self._timeout_s = timeout_s

    async def render(self, url: str, response: Response, started_s: float, ended_s: float) -> Shown | None:
        """Return what an answer, which came between these times, comes to in a browser; None if it is no page of HTML."""
        if len(response.body) <= _INLINE_BYTES:
            document = document_of(url, response)
        else:
            document = await asyncio.to_thread(document_of, url, response)
        if document is None:
            return None
        self._pieces.turns.note(host_of(url), started_s, ended_s)
        visit = self._pieces.visit(url)
        came = await self._renderer.render(document, visit.ask, self._timeout_s)
        if isinstance(came, Unrendered):
            return Shown(came.why, None, visit.contacts)
        return Shown(Rendering.DONE, came, visit.contacts)
