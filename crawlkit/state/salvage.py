"""What can still be read of a damaged database: its rows one by one, those that cannot be decoded left out and counted.

LevelDB's own repair comes first: it makes a database of every table and log block whose checksum is right. It may bring back
rows that had been removed, so nothing is believed here that only a missing row would contradict.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import msgspec

from crawlkit.config import Config
from crawlkit.errors import StateDamaged
from crawlkit.model import Content, Record
from crawlkit.state import keys
from crawlkit.state.checkpoint import Run
from crawlkit.state.codec import QueueRow, RecordCodec, decode_row
from crawlkit.state.content import Contents
from crawlkit.state.counters import Counters
from crawlkit.state.hosts import HostRecord, decode_host
from crawlkit.state.origins import OriginRecord, Origins
from crawlkit.state.reading import FIRST_SEEDS, PRIVATE, read_config, read_counters
from crawlkit.state.sitemaps import SitemapRow, decode_sitemap
from crawlkit.state.store import Store, mend
from crawlkit.state.templates import AccountRecord, MemoryRecord, decode_account, decode_memory

Decoded = TypeVar("Decoded")


class Salvage:
    """The readable rows of a database. `unreadable` counts by kind what the last walk over it had to leave out."""

    def __init__(self, database: Path) -> None:
        """Let LevelDB repair `database` in place (a copy!) and open it. StateDamaged if that cannot be done."""
        mend(database)
        self._store = Store(database, create=False)
        self.unreadable: Counter[str] = Counter()

    def close(self) -> None:
        """Close the database."""
        self._store.close()

    def config(self) -> Config | None:
        """Return the settings, None if they are lost."""
        try:
            return read_config(self._store)
        except StateDamaged:
            return None

    def counters(self) -> Counters | None:
        """Return the counters as of some batch, None if they are lost."""
        try:
            return read_counters(self._store)
        except StateDamaged:
            return None

    def private_addresses(self) -> dict[str, list[str]]:
        """Return the private addresses that seeds may keep, none if they are lost (which is the safe side)."""
        try:
            return msgspec.json.decode(self._store.get(PRIVATE) or b"{}", type=dict[str, list[str]])
        except (msgspec.DecodeError, UnicodeDecodeError, StateDamaged):
            return {}

    def seeds(self) -> list[str]:
        """Return the seeds in the order given."""
        return list(self._walk("seeds", keys.SEED, lambda _, value: value.decode()))

    def first_seeds(self) -> int | None:
        """Return how many seeds the crawl began with, None where none were added since (or that is lost)."""
        try:
            value = self._store.get(FIRST_SEEDS)
        except StateDamaged:
            return None
        return None if value is None else int.from_bytes(value, "big")

    def runs(self) -> list[Run]:
        """Return the ledger."""
        return list(self._walk("runs", keys.RUN, lambda _, value: msgspec.msgpack.decode(value, type=Run)))

    def hosts(self) -> Iterator[HostRecord]:
        """Yield the records of hosts."""
        yield from self._walk("hosts", keys.HOST, lambda _, value: decode_host(value))

    def origins(self) -> Iterator[OriginRecord]:
        """Yield what is known of each robots.txt."""
        origins = Origins(self._store)
        yield from self._walk("robots.txt files", keys.ORIGIN, lambda _, value: origins.decode(value))

    def sitemaps(self) -> Iterator[SitemapRow]:
        """Yield the sitemaps that are known."""
        yield from self._walk("sitemaps", keys.SITEMAP, lambda _, value: decode_sitemap(value))

    def records(self) -> Iterator[Record]:
        """Yield the records as stored, sorted by URL."""
        codec = RecordCodec()
        yield from self._walk("records", keys.PAGE, lambda key, value: codec.decode(key[1:].decode(), value))

    def content(self, url: str) -> Content | None:
        """Return what was kept of a page beside its record, None if nothing was, or it cannot be read."""
        try:
            return Contents(self._store).get(url)
        except StateDamaged:
            self.unreadable["texts"] += 1
            return None

    def waiting(self) -> Iterator[tuple[QueueRow, float | None]]:
        """Yield queued rows with None, then timed rows with the time when they are due, in seconds since the epoch."""
        yield from self._walk("queued rows", keys.QUEUE, lambda _, value: (decode_row(value), None))
        yield from self._walk("timed rows", keys.TIMED, lambda key, value: (decode_row(value), keys.due_of(key)))

    def accounts(self) -> Iterator[tuple[bytes, AccountRecord, MemoryRecord | None]]:
        """Yield the account of each template and host with its key, and what it remembers, where that can be read."""
        for key, record in self._walk("templates", keys.TEMPLATE, lambda key, value: (key, decode_account(value))):
            try:
                value = self._store.get(keys.memory_key(key))
                memory = None if value is None else decode_memory(value)
            except StateDamaged:
                memory = None
            yield key, record, memory

    def has_seed(self, number: int) -> bool:
        """Whether the list of seeds has one of this number."""
        return self._store.get(keys.numbered_key(keys.SEED, number)) is not None

    def has_seen(self, key: bytes) -> bool:
        """Whether the seen-set holds `key`, as far as can be read."""
        try:
            return self._store.get(key) is not None
        except StateDamaged:
            return False

    def seen_keys(self) -> Iterator[bytes]:
        """Yield the keys of all URLs that were seen."""
        yield from self._store.walk_keys(keys.SEEN, keys.after(keys.SEEN))

    def _walk(self, kind: str, prefix: bytes, decode: Callable[[bytes, bytes], Decoded]) -> Iterator[Decoded]:
        self.unreadable[kind] = 0
        for key, value in self._store.walk(prefix, keys.after(prefix)):
            try:
                decoded = decode(key, value)
            except (StateDamaged, UnicodeDecodeError, msgspec.DecodeError):
                self.unreadable[kind] += 1
            else:
                yield decoded
