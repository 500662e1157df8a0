"""What is asked of a running crawl over its socket, and what it answers."""

from enum import StrEnum
from typing import Any

import msgspec

from crawlkit.engine.figures import Live
from crawlkit.engine.lately import Lately

PROTOCOL = 1
MOST_REQUEST_BYTES = 4 * 1024 * 1024
END = b'"end"\n'
"""The last line after rows."""


class Do(StrEnum):
    """What is asked for."""

    STATUS = "status"
    READ = "read"
    WATCH = "watch"
    EXPLAIN = "explain"
    PAUSE = "pause"
    CONTINUE = "continue"
    HOLD = "hold"
    RELEASE = "release"
    DROP = "drop"
    ADD = "add"


class Request(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A request; hosts and seeds are as typed.

    A status or a watch names `hosts` hosts at most; `url` is explained, as typed; `host` is held (for `for_s` seconds, null
    for no end), released or dropped; `seeds` are added. A read gives the rows of reports, or if `whole` all rows.
    """

    v: int = PROTOCOL
    do: Do
    hosts: int = 0
    url: str = ""
    host: str = ""
    for_s: float | None = None
    seeds: tuple[str, ...] = ()
    whole: bool = False


class Answer(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An answer: an error for people with its exit status, or what was asked for; `done` says in words what was done.

    `explanation` is an `Explanation` in JSON's types, so that a crawl that is asked for none need not know of them.
    """

    v: int = PROTOCOL
    error: str | None = None
    status: int = 0
    live: Live | None = None
    lately: Lately | None = None
    explanation: dict[str, Any] | None = None
    done: str | None = None
