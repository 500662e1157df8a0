"""Letters: what a partition of a crawl has to tell the others, kept until they have it on disk.

What a page leads to elsewhere is posted in the page's own batch. Letters are numbered by virtual node of the receiver, without
gaps; who receives them keeps the last number that it took in, in the batch that holds what came of it. So each letter counts
once, however often it is sent. Only what is on disk may be sent: else a number could be given twice, after a crash.
"""

from collections.abc import Iterator
from enum import IntEnum

import msgspec

from crawlkit.model import Source
from crawlkit.state import keys
from crawlkit.state.damage import damaged
from crawlkit.state.letter_keys import high_water_key, inbox_of, letter_key, letter_of, letters_range, next_letter_key
from crawlkit.state.store import Store

MOST_LETTERS = 50_000
"""Letters that may wait before no more fetches are started: 10 MB on disk, some seconds of a busy crawl."""


class LetterKind(IntEnum):
    """What a letter is about."""

    LINK = 0  # a URL that was met
    SITEMAP = 1  # a sitemap that was met
    FRESH = 2  # the page at the URL led to one whose text is new, which earns its template credit


class Letter(msgspec.Struct, frozen=True, array_like=True):
    """One thing to tell: of a LINK with which distances and by way of what it was met, and what a sitemap said of it.

    Of a SITEMAP `depth` is its level.
    """

    kind: LetterKind
    url: str
    depth: int = 0
    hops: int = 0
    source: int = Source.LINK
    via: str | None = None
    lastmod: str | None = None
    priority: float | None = None


class Letters:
    """Letters that wait, and what was taken in of those of others.

    `waiting` counts the former, `posted` and `taken` all that ever were, by the numbers given to them.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._last = {_node_of(key): _number(value) for key, value in _rows(store, keys.NEXT_LETTER)}
        self._high = {inbox_of(key): _number(value) for key, value in _rows(store, keys.HIGH_WATER)}
        self._acknowledged = dict(self._last)
        self._changed: set[int] = set()
        self.waiting = 0
        for key in store.walk_keys(keys.LETTER, keys.after(keys.LETTER)):
            node, number = letter_of(key)
            self._acknowledged[node] = min(self._acknowledged.get(node, 0), number - 1)
            self.waiting += 1
        self.posted = sum(self._last.values())
        self.taken = sum(self._high.values())

    # Sent ------------------------------------------------------------------------------------------------------------

    def post(self, node: int, letter: Letter) -> None:
        """Let a letter to a virtual node wait, as part of the next batch."""
        number = self._last.get(node, 0) + 1
        self._acknowledged.setdefault(node, 0)
        self._last[node] = number
        self._changed.add(node)
        self._store.stage(letter_key(node, number), msgspec.msgpack.encode(letter))
        self.waiting += 1
        self.posted += 1

    def stage_changed(self) -> None:
        """Stage the numbers of the last letters that were posted since the last call."""
        for node in self._changed:
            self._store.stage(next_letter_key(node), self._last[node].to_bytes(8, "big"))
        self._changed.clear()

    def waiting_nodes(self) -> list[int]:
        """Return the virtual nodes that letters wait for."""
        return [node for node, last in self._last.items() if last > self._acknowledged[node]]

    def numbers(self) -> dict[int, int]:
        """Return the numbers of the last letters that were posted, by virtual node."""
        return dict(self._last)

    def acknowledged(self, node: int) -> int:
        """Return the number of the last letter to a node that need not be sent any more."""
        return self._acknowledged.get(node, 0)

    def after(self, node: int, number: int, most: int) -> list[bytes]:
        """Return up to `most` letters to a node from number `number` + 1 on, as far as they are on disk."""
        found = self._store.walk(letter_key(node, number + 1), keys.after(letters_range(node)))
        return [value for _, (_, value) in zip(range(most), found, strict=False)]

    def acknowledge(self, node: int, number: int) -> None:
        """Forget the letters to a node up to a number: they are on disk where they belong."""
        first, last = self._acknowledged.get(node, 0) + 1, min(number, self._last.get(node, 0))
        for each in range(first, last + 1):
            self._store.unstage(letter_key(node, each))
        if last >= first:
            self.waiting -= last + 1 - first
            self._acknowledged[node] = last

    # Received --------------------------------------------------------------------------------------------------------

    def high_water(self, node: int, sender: int) -> int:
        """Return the number of the last letter of a sender to a node that was taken in."""
        return self._high.get((node, sender), 0)

    def take(self, node: int, sender: int, number: int) -> None:
        """Stage that the letters of a sender to a node were taken in up to a number."""
        self.taken += number - self.high_water(node, sender)
        self._high[node, sender] = number
        self._store.stage(high_water_key(node, sender), number.to_bytes(8, "big"))


def decode_letter(value: bytes) -> Letter:
    """Return the letter of `value`; StateDamaged if it is none."""
    try:
        return msgspec.msgpack.decode(value, type=Letter)
    except msgspec.DecodeError as error:
        raise damaged(f"a letter to another partition cannot be read: {error}") from error


def _rows(store: Store, prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
    return store.walk(prefix, keys.after(prefix))


def _node_of(key: bytes) -> int:
    return int.from_bytes(key[1:3], "big")


def _number(value: bytes) -> int:
    return int.from_bytes(value, "big")
