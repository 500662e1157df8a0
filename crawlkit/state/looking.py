"""Looking at a crawl, that is open to be read or is running: one URL, host or origin at a time.

Nothing is changed by it, not even what is in memory: no host is loaded, no URL counts as met lately. Of a running crawl it
tells what holds now, the overlay included; what walks over rows (`Pages.mentions`, extents) sees those of the last checkpoint.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

import msgspec

from crawlkit.config import Config
from crawlkit.model import Record
from crawlkit.state import keys
from crawlkit.state.checkpoint import Run
from crawlkit.state.codec import QueueRow, SeenEntry, UrlState, decode_row, decode_seen
from crawlkit.state.counters import Counters
from crawlkit.state.damage import damaged
from crawlkit.state.extents import Archive, Extents
from crawlkit.state.hosts import HostRecord, Hosts
from crawlkit.state.opening import open_database
from crawlkit.state.origins import OriginRecord, Origins
from crawlkit.state.pages import Pages
from crawlkit.state.reading import read_config, read_counters, read_first_seeds, read_rescan, read_runs, walk_seeds
from crawlkit.state.refusals import RefusalRow, Refusals
from crawlkit.state.sitemaps import SitemapRow, Sitemaps
from crawlkit.state.store import Store
from crawlkit.state.templates import AccountRecord, Templates


class WaitingRow(msgspec.Struct, frozen=True):
    """A URL that waits: its row, when it is due if it is to be tried again, and whether a request for it is in flight."""

    row: QueueRow
    due_s: float | None
    claimed: bool


class InMemory(NamedTuple):
    """What of a crawl is in memory; of a running one it is ahead of the store."""

    counters: Counters
    runs: list[Run]
    hosts: Hosts
    templates: Templates


class Rows(NamedTuple):
    """The rows of a crawl, and its archives.

    `store_of` gives the store with the seen-set and queues of a host: of a crawl in partitions its owner's.
    """

    store: Store
    archives: Sequence[Archive]
    store_of: Callable[[str], Store]

    @classmethod
    def of_one(cls, store: Store, crawl_id: str) -> "Rows":
        """Return those of a crawl that is not in partitions."""
        return cls(store, (Archive(Extents(store), crawl_id),), lambda _: store)


class Looking:
    """What is known of a crawl. `running` says whether somebody is at work on it."""

    def __init__(self, directory: Path, rows: Rows, memory: InMemory, *, running: bool) -> None:
        store, self.archives, self._store_of = rows
        self.directory = directory
        self.counters, self.runs, self._hosts, self._templates = memory
        self.running = running
        self.pages = Pages(store)
        self._store = store
        self._origins = Origins(store)
        self._sitemaps = Sitemaps(store, self._hosts, self.counters)
        self._refusals = Refusals(store, self.counters)

    def config(self) -> Config:
        """Return the settings in force."""
        return read_config(self._store)

    def seeds(self) -> Iterator[str]:
        """Yield the seeds in the order given."""
        return walk_seeds(self._store)

    def first_seeds(self) -> list[str]:
        """Return the seeds that the crawl began with, which span its scope."""
        return read_first_seeds(self._store)

    def entry(self, url: str, host: str) -> SeenEntry | None:
        """Return the seen entry of a URL of `host`, None if it was not seen."""
        value = self._store_of(host).get(keys.seen_key(keys.host_id(host), url))
        return None if value is None else decode_seen(value)

    def waiting(self, url: str, host: str, entry: SeenEntry) -> WaitingRow:
        """Return the row that the entry of a URL leads to; StateDamaged if there is none."""
        timed = entry.state is UrlState.TIMED
        key = keys.timed_key(entry.tail) if timed else keys.queue_key(keys.host_id(host), entry.tail)
        value = self._store_of(host).get(key)
        if value is None:
            raise damaged(f"{url} is queued, but has no row in its back queue", self.directory)
        loaded = self._hosts.loaded(host)
        claimed = loaded is not None and url in loaded.claims
        return WaitingRow(decode_row(value), keys.due_of(key) if timed else None, claimed)

    def host(self, name: str) -> HostRecord | None:
        """Return what is known of a host, None if nothing is."""
        return self._hosts.peek(name)

    def in_flight(self, name: str) -> int:
        """Return how many requests to a host are in flight."""
        loaded = self._hosts.loaded(name)
        return 0 if loaded is None else loaded.in_flight

    def origin(self, origin: str) -> OriginRecord:
        """Return what is known of an origin's robots.txt."""
        return self._origins.get(origin)

    def sitemap(self, url: str) -> SitemapRow | None:
        """Return what is known of a sitemap, None if the URL is none that was met."""
        return self._sitemaps.get(url)

    def account(self, name: str) -> AccountRecord | None:
        """Return what a template or a host has for the budget, None if nothing was counted."""
        return self._templates.peek(name)

    def refusal(self, url: str, host: str) -> RefusalRow | None:
        """Return what was kept of a URL's refusal."""
        return self._refusals.get(keys.host_id(host), url)

    def owes_links(self, record: Record, host: str) -> bool:
        """Whether links of a record are still to be walked (again): they wait for credit, or for news of a distance."""
        if self._templates.is_held(host, record.depth, record.url):
            return True
        rescan = read_rescan(self._store)
        if rescan is not None and rescan.concerns(keys.page_key(record.url), record.depth):
            return True
        return self._store.get(keys.relax_key(record.depth, record.url)) is not None


def at_rest(store: Store) -> InMemory:
    """Return what a crawl that does not run has: nothing is in memory only."""
    return InMemory(read_counters(store), read_runs(store), Hosts(store), Templates(store))


@contextmanager
def look_at_crawl(directory: Path) -> Iterator[Looking]:
    """Lock and open a crawl to look at it. StateLocked if it is running, StateError and its other kinds if it cannot be."""
    with ExitStack() as resources:
        opened = open_database(directory, resources)
        rows = Rows.of_one(opened.store, opened.manifest.crawl_id)
        yield Looking(directory, rows, at_rest(opened.store), running=False)
