"""What partitions and the driver tell each other: MessagePack, one message a frame.

Partitions send parcels and receipts to each other by way of the driver, which looks at nothing but the address.
"""

from typing import Any

import msgspec

from crawlkit.engine.ending import Ending
from crawlkit.errors import ExitStatus


class Run(msgspec.Struct, frozen=True, array_like=True):
    """Letters to one virtual node, numbered from `first` on."""

    node: int
    first: int
    letters: list[bytes]

    @property
    def last(self) -> int:
        """The number of the last letter."""
        return self.first + len(self.letters) - 1


class Parcel(msgspec.Struct, frozen=True, array_like=True, tag=1):
    """Letters of one partition to the virtual nodes of another one. `epoch` is the run of the crawl that they are sent in."""

    epoch: int
    sender: int
    to: int
    runs: list[Run]


class Receipt(msgspec.Struct, frozen=True, array_like=True, tag=2):
    """What `sender` has on disk of the letters of partition `to`: by virtual node the last number. `gap`: some were refused."""

    epoch: int
    sender: int
    to: int
    marks: list[tuple[int, int]]
    gap: bool = False


class Look(msgspec.Struct, frozen=True, array_like=True, tag=3):
    """Tell how you stand, for this wave."""

    wave: int


class Allow(msgspec.Struct, frozen=True, array_like=True, tag=4):
    """So many pages may be had from now on, over all runs; fewer than before only as far as they are not taken yet."""

    number: int
    most: int


class WalkHeld(msgspec.Struct, frozen=True, array_like=True, tag=5):
    """Nobody has anything else to do: see to what waits for credit."""


class Finish(msgspec.Struct, frozen=True, array_like=True, tag=6):
    """All is done: end."""


class Stop(msgspec.Struct, frozen=True, array_like=True, tag=7):
    """Start no new fetch, end when those in flight have."""

    how: Ending


class Back(msgspec.Struct, frozen=True, array_like=True, tag=8):
    """A partition was started again: what was sent to it may be lost."""

    number: int


class Begin(msgspec.Struct, frozen=True, array_like=True, tag=9):
    """Be partition `number` of the crawl in `directory`; how many pages may be had, None without a limit."""

    directory: str
    number: int
    epoch: int
    most: int | None
    retry: list[str] = []
    options: dict[str, Any] = {}


class Standing(msgspec.Struct, frozen=True, array_like=True, tag=20):
    """How a partition stands.

    `passive`: nothing is in flight, owed, due or waiting to be sent, nor will be unless others bring it. `posted` and `taken`
    count letters, `requests` and `records` what was done. `used` are pages and claims that may become some, `most` how many
    may be had, as of the order `allowed`; `wants` says that there is more to be had. `held` counts what waits for credit.
    """

    number: int
    wave: int
    passive: bool
    posted: int
    taken: int
    requests: int
    records: int
    held: int
    used: int
    most: int | None
    allowed: int
    wants: bool
    counters: bytes = b""
    in_flight: int = 0
    queued: int = 0


class Ended(msgspec.Struct, frozen=True, array_like=True, tag=21):
    """A partition's run has ended: how, or by which error."""

    number: int
    how: Ending | None
    error: str | None = None
    status: ExitStatus | None = None


class Warned(msgspec.Struct, frozen=True, array_like=True, tag=22):
    """Something that people should read."""

    number: int
    text: str


class Ready(msgspec.Struct, frozen=True, array_like=True, tag=23):
    """A partition is open and about to make its first request."""

    number: int


ToMember = Parcel | Receipt | Look | Allow | WalkHeld | Finish | Stop | Back | Begin
ToDriver = Parcel | Receipt | Standing | Ended | Warned | Ready

_encode = msgspec.msgpack.Encoder().encode
_to_member = msgspec.msgpack.Decoder(ToMember)
_to_driver = msgspec.msgpack.Decoder(ToDriver)


def encode(message: ToMember | ToDriver) -> bytes:
    """Return a message as bytes."""
    return _encode(message)


def decode_for_member(data: bytes) -> ToMember:
    """Return what was told to a partition; ValueError for what is no such message."""
    return _to_member.decode(data)


def decode_for_driver(data: bytes) -> ToDriver:
    """Return what a partition tells; ValueError for what is no such message."""
    return _to_driver.decode(data)
