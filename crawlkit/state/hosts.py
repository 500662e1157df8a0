"""Hosts: one small record each, and the window of those in memory.

A record stores causes (when a request last started and ended, until when the host asked to be left alone), not a deadline: when
the next request may start follows from them and the settings in force.
"""

import math
from collections import OrderedDict

import msgspec

from crawlkit.model import Health
from crawlkit.state import keys
from crawlkit.state.damage import damaged
from crawlkit.state.head import RangeHead
from crawlkit.state.store import Store

HOSTS_IN_MEMORY = 16_384


class HostRecord(msgspec.Struct, array_like=True):
    """What is durable about a host. Times in seconds since the epoch, 0 for never.

    `queued` counts the rows of its back queue, claimed ones included; `timed` its rows in the timed range; `pages` its
    records of kind page. `cursor` is the tail of a key that no queued row lies below. `admitted` says that a URL of it was
    admitted, so that it is counted (a host may also be known for where its robots.txt was redirected to). `sitemaps` counts
    those that wait to be read, `sitemap_urls` what the others named. People hold it until `held_until_s` (infinity: until they
    release it), or have `dropped` it: its URLs end without a request.
    """

    name: str
    queued: int = 0
    timed: int = 0
    pages: int = 0
    last_start_s: float = 0.0
    last_end_s: float = 0.0
    hold_until_s: float = 0.0
    crawl_delay_s: float = 0.0
    cursor: bytes = b""
    admitted: bool = False
    health: Health = Health()
    sitemaps: int = 0
    sitemap_urls: int = 0
    held_until_s: float = 0.0
    dropped: bool = False

    @property
    def held(self) -> bool:
        """Whether it is left alone until people release it (not only for a time)."""
        return self.held_until_s == math.inf

    @property
    def is_over(self) -> bool:
        """Whether nothing is asked of it any more: its URLs end without a request."""
        return self.dropped or self.health.given_up


class Host:
    """A host in memory: its record, the head of its back queue, and what is in flight.

    `claims` maps each claimed URL to the key of its row when it was claimed. `robots_pending` is set while a robots.txt of
    the host is being fetched; nothing else is claimed meanwhile.
    `took_s` is how long its last request took, None before one ended.
    """

    __slots__ = ("claims", "dirty", "head", "id", "in_flight", "record", "robots_pending", "took_s")

    def __init__(self, record: HostRecord, *, known: bool) -> None:
        self.record = record
        self.id = keys.host_id(record.name)
        bucket = keys.queue_range(self.id)
        self.head = RangeHead(bucket, bucket + record.cursor if known else None)
        self.claims: dict[str, bytes] = {}
        self.in_flight = 0
        self.robots_pending = False
        self.took_s: float | None = None
        self.dirty = False

    @property
    def waiting(self) -> int:
        """How many rows of the back queue are not claimed."""
        return self.record.queued - len(self.claims)

    def reread(self) -> None:
        """Forget the window and the cursor: read the back queue from its start again."""
        self.record.cursor = b""
        bucket = keys.queue_range(self.id)
        self.head = RangeHead(bucket, bucket)

    def note_cursor(self) -> None:
        """Bring the record's cursor up to date: below every row that is not settled."""
        first = self.head.first_key()
        live = [*self.claims.values(), *([first] if first is not None else [])]
        self.record.cursor = min(live)[9:] if live else b""


class Hosts:
    """All hosts, of which a bounded number is in memory; the others are records in the store."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._loaded: OrderedDict[str, Host] = OrderedDict()
        self._dirty: list[Host] = []

    def get(self, name: str) -> Host:
        """Return the host `name`, from memory, the store, or new."""
        host = self._loaded.get(name)
        if host is not None:
            return host
        value = self._store.get(keys.host_key(keys.host_id(name)))
        host = Host(HostRecord(name), known=False) if value is None else Host(decode_host(value), known=True)
        self._loaded[name] = host
        return host

    def loaded(self, name: str) -> Host | None:
        """Return the host `name` if it is in memory."""
        return self._loaded.get(name)

    def peek(self, name: str) -> HostRecord | None:
        """Return a copy of what is known of the host `name`, which is not loaded for it; None if nothing is."""
        host = self._loaded.get(name)
        if host is not None:
            return msgspec.structs.replace(host.record)
        value = self._store.get(keys.host_key(keys.host_id(name)))
        return None if value is None else decode_host(value)

    def id_of(self, name: str) -> bytes:
        """Return the id of the host `name`, which is not loaded for it."""
        host = self._loaded.get(name)
        return keys.host_id(name) if host is None else host.id

    def trim(self, most: int = HOSTS_IN_MEMORY) -> None:
        """Let go of idle hosts beyond `most`. Only between steps: whoever holds a host must not meet a second one like it."""
        for _ in range(len(self._loaded) - most):
            self._evict()

    def changed(self, host: Host) -> None:
        """Note that the host's record differs from what is staged."""
        if not host.dirty:
            host.dirty = True
            self._dirty.append(host)

    def stage_changed(self) -> None:
        """Stage the records of all hosts that changed since the last call."""
        for host in self._dirty:
            if host.dirty:
                self._stage(host)
        self._dirty.clear()

    def _stage(self, host: Host) -> None:
        host.note_cursor()
        host.dirty = False
        self._store.stage(keys.host_key(host.id), msgspec.msgpack.encode(host.record))

    def _evict(self) -> None:
        """Let go of the host that was loaded longest ago and is idle."""
        for _ in range(len(self._loaded)):
            name, host = self._loaded.popitem(last=False)
            if host.in_flight:
                self._loaded[name] = host
                continue
            if host.dirty:
                self._stage(host)
            return

    def scan(self, start: bytes, limit: int) -> list[tuple[bytes, HostRecord]]:
        """Return up to `limit` records from key `start` on, with their keys; those that changed are staged first."""
        self.stage_changed()
        return [(key, decode_host(value)) for key, value in self._store.scan(keys.HOST, start, limit)]


def decode_host(value: bytes) -> HostRecord:
    """Return the host record of `value`; StateDamaged if it is none."""
    try:
        return msgspec.msgpack.decode(value, type=HostRecord)
    except msgspec.DecodeError as error:
        raise damaged(f"a host's record cannot be read: {error}") from error
