"""Exchanges: a request with its answer as the wire carried them, and where they came to lie in the archive.

`net` makes an `Exchange`, the engine adds what came of it (`Settled`), `archive` writes it and says where (`Extent`), `state`
keeps that. Only a crawl that archives (`warc`) has any of these.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from enum import IntEnum, StrEnum

import msgspec


class Cut(StrEnum):
    """Why an answer is not whole, in the words of WARC 1.1 section 5.13."""

    LENGTH = "length"  # at the cap on bodies
    TIME = "time"
    DISCONNECT = "disconnect"
    UNSPECIFIED = "unspecified"  # not read on, for what its head or its coding is


class Exchange(msgspec.Struct, frozen=True):
    """What was sent and received for one request that got an answer.

    `request` is the message as sent, but for what proves who asks, which is left out. `head` are status line and fields as
    received, with the empty line; `body` what followed, its content coding kept and its transfer coding undone. Another
    transport than our own tells neither: then both heads are made of the fields. `address` is the server's; `protocol` the
    one that was spoken, where that was not HTTP/1.1.
    """

    request: bytes
    head: bytes
    body: bytes
    cut: Cut | None = None
    address: str | None = None
    protocol: str | None = None

    @property
    def size(self) -> int:
        """How many bytes it holds."""
        return len(self.request) + len(self.head) + len(self.body)


class Role(IntEnum):
    """What an exchange was for. Stored: numbers are only ever added."""

    RECORD = 0  # the answer that its URL's record is made of
    ATTEMPT = 1  # one that led to another try
    ROBOTS = 2  # a robots.txt, or a redirect on the way to it
    SITEMAP = 3
    SUPERSEDED = 4  # of a record that was taken back, to fetch its URL again


class Settled(msgspec.Struct, frozen=True):
    """An exchange with what came of it, on its way into the archive.

    `status` is the answer's; `depth` and `hops` are those of the moment, None where it made no record.
    """

    url: str
    role: Role
    exchange: Exchange
    started_s: float
    ended_s: float
    attempt: int
    status: int
    content_type: str | None = None
    depth: int | None = None
    hops: int | None = None
    via: str | None = None
    reason: str | None = None
    links: tuple[str, ...] = ()


NO_BODY = hashlib.sha256().digest()
"""The `payload` of an answer without a body."""


class Extent(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """Where an exchange lies: from `offset` of the file numbered `file` on.

    `lengths` are those of its members: response or revisit, request, metadata. `record_id` is the response's UUID, `payload`
    the SHA-256 of the body as archived. A revisit's body is that of the response at `original` (file, offset). Stored as an
    array: fields are only ever appended.
    """

    file: int
    offset: int
    lengths: tuple[int, int, int]
    url: str
    role: Role
    record_id: bytes
    started_s: float
    payload: bytes
    status: int
    content_type: str | None = None
    original: tuple[int, int] | None = None
    cut: Cut | None = None

    @property
    def is_original(self) -> bool:
        """Whether others with the same body may refer to it: it has one, and all of it."""
        return self.original is None and self.cut is None and self.payload != NO_BODY

    @property
    def end(self) -> int:
        """The offset of the first byte after it."""
        return self.offset + sum(self.lengths)


class Written(msgspec.Struct, frozen=True):
    """What was appended and is on disk: the extents, and the new sizes in bytes of the files that grew, by number."""

    extents: Sequence[Extent] = ()
    sizes: Mapping[int, int] = msgspec.field(default_factory=dict)


FindOriginal = Callable[[bytes], Extent | None]
"""Looks up the whole response with this payload (its SHA-256) that was archived first."""
