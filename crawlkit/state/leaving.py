"""What of a crawl belongs to some virtual nodes: its rows are found by the hosts in them, to be moved to another partition.

Keys are hashes of names, and names are the same everywhere. Rows that are found by no host stay: letters that wait, numbers of
letters, the ledger, and what the archive holds.
"""

from array import array
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple

import msgspec

from crawlkit.model import Record
from crawlkit.state import keys
from crawlkit.state.codec import QueueRow, RecordCodec, decode_row
from crawlkit.state.duplicates import Duplicates
from crawlkit.state.hosts import HostRecord, decode_host
from crawlkit.state.letter_keys import inbox_of
from crawlkit.state.origins import Origins
from crawlkit.state.reading import walk_seeds
from crawlkit.state.refusals import RefusalRow, decode_refusal
from crawlkit.state.sitemaps import decode_sitemap
from crawlkit.state.store import Store
from crawlkit.state.templates import decode_held

ACCOUNTS_IN_MEMORY = 65_536
HOSTS_IN_MEMORY = 65_536


class Naming(msgspec.Struct, frozen=True):
    """What the state must not know of names: a host's virtual node, a URL's host and template, where a record leads to."""

    node_of: Callable[[str], int]
    host_of: Callable[[str], str]
    template_of: Callable[[str], str]
    led_to: Callable[[Record], Iterable[str]]


class Lot:
    """The virtual nodes whose rows are looked for."""

    def __init__(self, nodes: Iterable[int], naming: Naming) -> None:
        self.nodes = frozenset(nodes)
        self.naming = naming
        self.has = lru_cache(HOSTS_IN_MEMORY)(self._has)

    def _has(self, host: str) -> bool:
        return self.naming.node_of(host) in self.nodes

    def has_url(self, url: str) -> bool:
        """Whether a URL belongs to it."""
        return self.has(self.naming.host_of(url))


class Plain(NamedTuple):
    """A row of which only its kind matters."""

    key: bytes
    value: bytes


class HostRow(NamedTuple):
    """A host."""

    key: bytes
    value: bytes
    host: HostRecord


class WaitingRow(NamedTuple):
    """A URL in a back queue or in the timed range."""

    key: bytes
    value: bytes
    row: QueueRow


class RecordRow(NamedTuple):
    """A record."""

    key: bytes
    value: bytes
    record: Record


class RefusedRow(NamedTuple):
    """A URL that was refused."""

    key: bytes
    value: bytes
    row: RefusalRow


Row = Plain | HostRow | WaitingRow | RecordRow | RefusedRow


class Leaving:
    """Finds what of a database belongs to a lot. In memory are the ids of the lot's hosts, 8 bytes each."""

    def __init__(self, store: Store, lot: Lot) -> None:
        self._store = store
        self._lot = lot
        self._codec = RecordCodec()
        self._duplicates = Duplicates(store)
        self._origins = Origins(store)
        self._given: set[bytes] = set()  # accounts that were met lately
        self._hosts = array("Q", (int.from_bytes(row.key[1:]) for row in self._host_rows()))

    def seeds(self) -> Iterator[str]:
        """Yield the seeds of the lot in their order."""
        return filter(self._lot.has_url, walk_seeds(self._store))

    def rows(self) -> Iterator[Row]:
        """Yield all other rows of the lot. Hosts come last: while they are there the rest is found once more, after a kill."""
        yield from self._seen()
        yield from self._waiting()
        yield from self._by_value(keys.RELAX, lambda value: decode_row(value).url)
        yield from self._by_value(keys.ORIGIN, lambda value: f"{self._origins.decode(value).origin}/")
        yield from self._by_value(keys.SITEMAP, lambda value: decode_sitemap(value).url)
        yield from self._by_value(keys.WAITING_SITEMAP, bytes.decode)
        yield from self._refused()
        yield from self._held()
        yield from self._records()
        yield from self._by_key(keys.CONTENT)
        yield from self._by_key(keys.NOTE)
        yield from (Plain(*pair) for pair in self._walk(keys.HIGH_WATER) if inbox_of(pair[0])[0] in self._lot.nodes)
        for row in self._host_rows():
            yield from self._account(row.host.name)
            yield row

    def entry_of(self, row: QueueRow) -> tuple[bytes, bytes | None]:
        """Return key and value of the seen entry of a URL that waits."""
        key = keys.seen_key(keys.host_id(row.host), row.url)
        return key, self._store.get(key)

    def _walk(self, prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
        return self._store.walk(prefix, keys.after(prefix))

    def _by_value(self, prefix: bytes, url_of: Callable[[bytes], str]) -> Iterator[Row]:
        for key, value in self._walk(prefix):
            if self._lot.has_url(url_of(value)):
                yield Plain(key, value)

    def _by_key(self, prefix: bytes) -> Iterator[Row]:
        for key, value in self._walk(prefix):
            if self._lot.has_url(key[1:].decode()):
                yield Plain(key, value)

    # Hosts, and what lies under their ids ----------------------------------------------------------------------------

    def _host_rows(self) -> Iterator[HostRow]:
        for key, value in self._walk(keys.HOST):
            record = decode_host(value)
            if self._lot.has(record.name):
                yield HostRow(key, value, record)

    def _seen(self) -> Iterator[Row]:
        for host in self._hosts:
            for key, value in self._walk(keys.SEEN + host.to_bytes(8)):
                yield Plain(key, value)

    def _waiting(self) -> Iterator[Row]:
        for host in self._hosts:
            for key, value in self._walk(keys.queue_range(host.to_bytes(8))):
                yield from self._waiting_row(key, value, decode_row(value))
        for key, value in self._walk(keys.TIMED):
            row = decode_row(value)
            if self._lot.has(row.host):
                yield from self._waiting_row(key, value, row)

    def _waiting_row(self, key: bytes, value: bytes, row: QueueRow) -> Iterator[Row]:
        yield from self._account(self._lot.naming.template_of(row.url))
        yield WaitingRow(key, value, row)

    # URLs ------------------------------------------------------------------------------------------------------------

    def _refused(self) -> Iterator[Row]:
        for key, value in self._walk(keys.REFUSAL):
            row = decode_refusal(value)
            if self._lot.has_url(row.url):
                yield RefusedRow(key, value, row)

    def _records(self) -> Iterator[Row]:
        for key, value in self._walk(keys.PAGE):
            url = key[1:].decode()
            if self._lot.has_url(url):
                record = self._codec.decode(url, value)
                yield from self._account(self._lot.naming.template_of(url))
                yield from (Plain(alike, b"") for alike in self._duplicates.rows_of(record))
                yield RecordRow(key, value, record)

    # The template budget ---------------------------------------------------------------------------------------------

    def _held(self) -> Iterator[Row]:
        for key, value in self._walk(keys.HELD):
            url = decode_held(value).url
            if self._lot.has_url(url):
                yield from self._granted(url)
                yield Plain(key, value)

    def _granted(self, url: str) -> Iterator[Row]:
        """Yield the accounts of what a held row leads to: they may have credit that no URL has drawn on yet."""
        value = self._store.get(keys.page_key(url))
        led_to = (url,) if value is None else self._lot.naming.led_to(self._codec.decode(url, value))
        for target in filter(self._lot.has_url, led_to):
            yield from self._account(self._lot.naming.template_of(target))

    def _account(self, name: str) -> Iterator[Row]:
        """Yield the account of a template or host, which only tells a hash of its name, and what that remembers."""
        account = keys.template_key(name)
        if account in self._given:
            return
        if len(self._given) >= ACCOUNTS_IN_MEMORY:
            self._given.clear()
        self._given.add(account)
        for key in (account, keys.memory_key(account)):
            value = self._store.get(key)
            if value is not None:
                yield Plain(key, value)
