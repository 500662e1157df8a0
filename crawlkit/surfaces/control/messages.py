"""What is asked of a running crawl over its socket, and what it answers."""

from enum import StrEnum

import msgspec

from crawlkit.engine.figures import Live

PROTOCOL = 1
MOST_REQUEST_BYTES = 4 * 1024 * 1024
END = b'"end"\n'
"""The last line after rows."""


class Do(StrEnum):
    """What is asked for."""

    STATUS = "status"
    READ = "read"


class Request(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A request. `hosts` is how many hosts a status names at most."""

    v: int = PROTOCOL
    do: Do
    hosts: int = 0


class Answer(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An answer: an error for people with its exit status, or what was asked for."""

    v: int = PROTOCOL
    error: str | None = None
    status: int = 0
    live: Live | None = None
