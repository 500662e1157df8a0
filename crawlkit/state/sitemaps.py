"""Sitemaps: files that name URLs. Each is known once: it waits to be read, or how that ended; and what they say of URLs.

A sitemap is no admitted URL and has no record. It waits until all that it names has been met: its row changes in the batch
that holds the last of that, so a crash leaves it waiting, and reading it again changes nothing.
"""

from collections import deque
from enum import IntEnum

import msgspec

from crawlkit.model import Reason
from crawlkit.sitemap import SitemapForm
from crawlkit.state import keys
from crawlkit.state.counters import Counters
from crawlkit.state.damage import damaged
from crawlkit.state.hosts import Host, Hosts
from crawlkit.state.store import Store

ROWS_IN_WINDOW = 256


class SitemapState(IntEnum):
    """Where a sitemap stands; a claim is known in memory only."""

    WAITING = 0
    READ = 1
    FAILED = 2


class SitemapRow(msgspec.Struct, frozen=True, array_like=True):
    """A sitemap. `level` counts the indexes and redirects that led to it, the least over all ways.

    `form`, `entries` (how many URLs it named) and `cut` (it named more) are as it was read last; `reason` is why it failed,
    None where it was had and is no sitemap.
    """

    url: str
    host: str
    level: int
    state: SitemapState = SitemapState.WAITING
    attempts: int = 0
    form: SitemapForm = SitemapForm.NONE
    entries: int = 0
    cut: bool = False
    reason: Reason | None = None


class Sitemaps:
    """Look-ups and staged changes of sitemaps. `busy` are the hosts, by name, one of whose sitemaps is claimed or parked."""

    def __init__(self, store: Store, hosts: Hosts, counters: Counters) -> None:
        self._store = store
        self._hosts = hosts
        self._counters = counters
        self._windows: dict[str, deque[str]] = {}
        self.busy: set[str] = set()

    def has_waiting(self, host: Host) -> bool:
        """Whether a sitemap of the host waits and may be claimed: they are read one after the other."""
        return host.record.sitemaps > 0 and host.record.name not in self.busy

    def get(self, url: str) -> SitemapRow | None:
        """Return what is known of a sitemap."""
        value = self._store.get(keys.sitemap_key(url))
        return None if value is None else decode_sitemap(value)

    def put(self, row: SitemapRow) -> None:
        """Stage a sitemap that is known, or new; whether it waits is counted."""
        before = self.get(row.url)
        waited = before is not None and before.state is SitemapState.WAITING
        waits = row.state is SitemapState.WAITING
        self._store.stage(keys.sitemap_key(row.url), msgspec.msgpack.encode(row))
        if waited == waits:
            return
        host = self._hosts.get(row.host)
        key = keys.waiting_sitemap_key(host.id, row.url)
        if waits:
            self._store.stage(key, row.url.encode())
        else:
            self._store.unstage(key)
            self._leave_window(row)
        by = 1 if waits else -1
        host.record.sitemaps += by
        self._counters.sitemaps += by
        self._hosts.changed(host)

    def _leave_window(self, row: SitemapRow) -> None:
        window = self._windows.get(row.host)
        if window is not None and row.url in window:
            window.remove(row.url)
        if not window:
            self._windows.pop(row.host, None)

    def next(self, host: Host) -> SitemapRow:
        """Return a sitemap of the host that waits; StateDamaged if there is none though some are counted."""
        window = self._windows.get(host.record.name)
        if not window:
            bucket = keys.waiting_sitemaps_range(host.id)
            window = deque(value.decode() for _, value in self._store.scan(bucket, bucket, ROWS_IN_WINDOW))
            self._windows[host.record.name] = window
        row = self.get(window[0]) if window else None
        if row is None:
            raise damaged(f"{host.record.sitemaps} sitemaps of {host.record.name} should wait, and cannot be found")
        return row


def decode_sitemap(value: bytes) -> SitemapRow:
    """Return the sitemap of `value`; StateDamaged if it is none."""
    try:
        return msgspec.msgpack.decode(value, type=SitemapRow)
    except msgspec.DecodeError as error:
        raise damaged(f"what is stored of a sitemap cannot be read: {error}") from error
