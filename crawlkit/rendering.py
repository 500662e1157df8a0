"""Rendering: what a browser is given of a page, what it may ask for besides, and what it hands back.

The engine makes a `Document` of an answer, `render` shows it in a browser, and `policy` reads the `Rendered` in its place.
Only a crawl that renders (`render`) has any of these.
"""

from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager
from enum import StrEnum

import msgspec


class Rendering(StrEnum):
    """What came of rendering a page. Stable: the report's `detail` is the sentence of it."""

    DONE = "render.done"
    TIMEOUT = "render.timeout"  # its scripts held the page for ever
    CRASHED = "render.crashed"  # the browser, or its part that shows the page, ended
    REFUSED = "render.refused"  # the browser would not show it


class Document(msgspec.Struct, frozen=True):
    """A page as its server sent it: its URL in normal form, its markup in UTF-8, the headers that hold in a browser too."""

    url: str
    markup: bytes
    headers: tuple[tuple[str, str], ...] = ()


class Wish(msgspec.Struct, frozen=True):
    """A request that a page would make for what it needs besides.

    `accept` is the header of that name. `origin` is the page's where its scripts would read the answer: another origin has to
    allow that.
    """

    url: str
    accept: str = "*/*"
    origin: str | None = None


class Piece(msgspec.Struct, frozen=True):
    """The answer to a wish. Names of headers are lower case, each there once."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes


class Rendered(msgspec.Struct, frozen=True):
    """A page as it stands after its scripts have run: its markup in UTF-8, perhaps cut at a cap.

    `url` is what it calls itself by then (scripts may change path and query). `target` is where a script, or a refresh, would
    have gone from it, None if nowhere.
    """

    markup: bytes
    url: str
    target: str | None = None
    cut: bool = False


class Unrendered(msgspec.Struct, frozen=True):
    """Why there is no rendered page; never `Rendering.DONE`."""

    why: Rendering


Aside = Callable[[], AbstractContextManager[None]]
"""Opens a block whose time is not the page's."""

Ask = Callable[[Wish, Aside], Awaitable[Piece | None]]
"""Grants a wish, None if it is refused or failed."""


class Contact(msgspec.Struct, frozen=True):
    """That a host was asked for what a page wished for, in so many requests: when the last of them started and ended.

    For `hold_s` after its end the host asked to be left alone, 0 for not.
    """

    host: str
    requests: int
    started_s: float
    ended_s: float
    hold_s: float = 0.0
