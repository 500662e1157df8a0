"""What a plugin is: functions of the user's that decide and add a little at four places of a crawl.

A plugin is a Python file, or the object that an entry point of the group `crawlkit.plugins` names, with any of

    accept(url: str) -> bool                    whether a URL in scope belongs to the crawl; seeds are exempt
    priority(url: str) -> int | None            where it stands in its host's queue: the least first; None for its depth
    request(request: Request) -> Request        what its request carries besides
    page(page: Page) -> dict | None             fields of its record, in JSON values

All are called one at a time on one thread, never two at once. `accept`, `priority` and `page` should be functions of what
they are given alone: then the report does not depend on when they are asked. What one raises fails the page it was asked
about (`hook.failed`), not the crawl.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import msgspec
from selectolax.lexbor import LexborHTMLParser

from crawlkit.config_items import check_added_header
from crawlkit.model import FieldValue

NAMES = ("accept", "priority", "request", "page")
"""The functions that a plugin may have."""

MOST_FIELDS_BYTES = 256 * 1024
"""Of the fields that plugins add to one record, as JSON: records are held in memory until their checkpoint."""

MOST_DEPTH = 32
"""Of maps and lists within each other in them."""

_MOST_MESSAGE = 500


@dataclass(frozen=True, slots=True)
class Request:
    """A request for a page that is about to be sent, and the headers that plugins have added to it."""

    url: str
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)

    def with_header(self, name: str, value: str) -> "Request":
        """Return the request with one more header, in the place of what it would carry under this name."""
        return replace(self, headers=(*self.headers, (name, value)))


@dataclass(frozen=True)
class Page:
    """An answer that became a page: its status below 400, and no redirect.

    `headers` are as received, names in lower case; `body` has its content coding undone and is cut at `max_body`.
    Of a page that was rendered it is what that came to, in UTF-8.
    """

    url: str
    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes = field(repr=False)
    decode: Callable[[bytes], str] = field(repr=False)
    is_costly: Callable[[bytes], bool] = field(repr=False)

    def header(self, name: str) -> str | None:
        """Return the first value of a header, None if there is none."""
        return next((value for key, value in self.headers if key == name.lower()), None)

    @cached_property
    def text(self) -> str:
        """The body as text, in the encoding that the page was read in."""
        return self.decode(self.body)

    @cached_property
    def html(self) -> LexborHTMLParser | None:
        """The body as a tree, for `html.css_first("h1")`; None where one would take too long to build (Hostile pages)."""
        markup = self.text.encode()
        return None if self.is_costly(markup) else LexborHTMLParser(markup)


class Hook(NamedTuple):
    """One function of a plugin, and what to call the plugin."""

    plugin: str
    call: Callable[[Any], Any]


class HookFailedError(Exception):
    """A function of a plugin raised, or returned what it may not: the text says which, and what."""


class Plugins(msgspec.Struct, frozen=True):
    """The functions of all plugins by what they do, in the order of the plugins."""

    accept: tuple[Hook, ...] = ()
    priority: tuple[Hook, ...] = ()
    request: tuple[Hook, ...] = ()
    page: tuple[Hook, ...] = ()

    def accepts(self, url: str) -> bool:
        """Whether every plugin accepts a URL; HookFailedError."""
        return all(_returned(hook, "accept", url, bool) for hook in self.accept)

    def priority_of(self, url: str) -> int | None:
        """Return the priority that the first plugin gives that gives one; HookFailedError."""
        found = (_returned(hook, "priority", url, int | None) for hook in self.priority)
        return next((priority for priority in found if priority is not None), None)

    def headers_for(self, url: str) -> tuple[tuple[bytes, bytes], ...]:
        """Return what the request for a URL is to carry besides; HookFailedError."""
        request = Request(url)
        for hook in self.request:
            request = _returned(hook, "request", request, Request)
            try:
                for name, value in request.headers:
                    check_added_header(name, value)
            except (TypeError, ValueError) as error:
                raise HookFailedError(f"{hook.plugin}: request(): {_cut(error)}") from error
        return tuple((name.encode(), value.encode()) for name, value in request.headers)

    def fields_of(self, page: Page) -> dict[str, FieldValue]:
        """Return the fields that plugins add to the record of a page; HookFailedError."""
        fields: dict[str, FieldValue] = {}
        for hook in self.page:
            more = _returned(hook, "page", page, dict | None)
            if more:
                fields |= _checked_fields(hook, more)
        return fields


def _returned(hook: Hook, name: str, given: Any, expected: Any) -> Any:
    """Return what a function of a plugin returns; HookFailedError if it raises, or returns anything but `expected`."""
    try:
        returned = hook.call(given)
    except (Exception, SystemExit) as error:
        raise HookFailedError(f"{hook.plugin}: {name}(): {type(error).__name__}: {_cut(error)}") from error
    if not isinstance(returned, expected) or (expected is not bool and isinstance(returned, bool)):
        wanted = getattr(expected, "__name__", str(expected))
        raise HookFailedError(f"{hook.plugin}: {name}(): returned {type(returned).__name__}, not {wanted}")
    return returned


def _cut(error: BaseException) -> str:
    return str(error)[:_MOST_MESSAGE]


def _checked_fields(hook: Hook, fields: Mapping[Any, Any]) -> dict[str, FieldValue]:
    """Return fields as they are stored; HookFailedError if they are not JSON, or too much of it."""
    try:
        encoded = json.dumps(fields, allow_nan=False)
        if len(encoded) > MOST_FIELDS_BYTES:
            raise ValueError(f"fields of {len(encoded)} bytes, more than {MOST_FIELDS_BYTES}")
        checked = msgspec.json.decode(encoded, type=dict[str, FieldValue])
        if _depth(checked) > MOST_DEPTH:
            raise ValueError(f"fields nested more than {MOST_DEPTH} deep")
        msgspec.msgpack.encode(checked)  # as they will be stored: no number of more than 64 bits
    except (TypeError, ValueError, OverflowError, RecursionError, msgspec.MsgspecError) as error:
        raise HookFailedError(f"{hook.plugin}: page(): {_cut(error)}") from error
    else:
        return checked


def _depth(value: object) -> int:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()
    return 1 + max(map(_depth, inner), default=0)
