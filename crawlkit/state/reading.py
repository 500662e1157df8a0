"""Reading a crawl that is not running: its records, counters, settings, seeds and ledger, without the seen-set's filter."""

import itertools
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import msgspec

from crawlkit.config import Config
from crawlkit.errors import ConfigError
from crawlkit.state import keys
from crawlkit.state.checkpoint import Run
from crawlkit.state.counters import Counters
from crawlkit.state.damage import damaged
from crawlkit.state.directory import Manifest
from crawlkit.state.extents import Archive, Extents
from crawlkit.state.hosts import HostRecord, decode_host
from crawlkit.state.letters import Letters
from crawlkit.state.opening import open_database
from crawlkit.state.pages import Pages
from crawlkit.state.store import Store

COUNTERS = keys.meta_key("counters")
CONFIG = keys.meta_key("config")
RESCAN = keys.meta_key("rescan")
PRIVATE = keys.meta_key("private")
FIRST_SEEDS = keys.meta_key("first_seeds")
EARLIER = keys.meta_key("earlier")


class Rescan(msgspec.Struct, array_like=True):
    """Raised depth limits still to be told: records from key `cursor` on may have links that were kept out.

    They are those at depths from `depth`, the least limit that was raised, to `deepest`, the last one.
    """

    depth: int
    deepest: int
    cursor: bytes = b""

    def concerns(self, key: bytes, depth: int) -> bool:
        """Whether the record under `key`, at `depth`, is still to be told."""
        return key >= self.cursor and depth in self.depths

    @property
    def depths(self) -> range:
        """The depths of the records that it concerns."""
        return range(self.depth, self.deepest + 1)


def read_counters(store: Store) -> Counters:
    """Return the counters of the whole crawl, all 0 where none were written yet; StateDamaged if they cannot be read."""
    value = store.get(COUNTERS)
    try:
        return Counters() if value is None else msgspec.msgpack.decode(value, type=Counters)
    except msgspec.DecodeError as error:
        raise damaged(f"the crawl's counters cannot be read: {error}") from error


def read_config(store: Store) -> Config:
    """Return the settings in force; StateDamaged if there are none, or none that can be."""
    value = store.get(CONFIG)
    if value is None:
        raise damaged("the database holds no settings")
    try:
        return Config.from_values(msgspec.json.decode(value))
    except (msgspec.DecodeError, UnicodeDecodeError, ConfigError) as error:
        raise damaged(f"the crawl's settings cannot be read: {error}") from error


def read_private(store: Store) -> dict[str, frozenset[str]]:
    """Return the private addresses that seeds may keep, by `host:port`."""
    value = store.get(PRIVATE) or b"{}"
    return {place: frozenset(found) for place, found in msgspec.json.decode(value).items()}


def read_runs(store: Store) -> list[Run]:
    """Return the ledger, oldest run first; StateDamaged if it cannot be read."""
    try:
        return [msgspec.msgpack.decode(value, type=Run) for _, value in store.walk(keys.RUN, keys.after(keys.RUN))]
    except msgspec.DecodeError as error:
        raise damaged(f"the ledger of runs cannot be read: {error}") from error


def read_rescan(store: Store) -> Rescan | None:
    """Return which records are still to be told of a raised depth limit, if any; StateDamaged if it cannot be read."""
    value = store.get(RESCAN)
    try:
        return None if value is None else msgspec.msgpack.decode(value, type=Rescan)
    except msgspec.DecodeError as error:
        raise damaged(f"the state of a raised depth limit cannot be read: {error}") from error


def walk_seeds(store: Store) -> Iterator[str]:
    """Yield the seeds in the order given; StateDamaged if one cannot be read."""
    for _, value in store.walk(keys.SEED, keys.after(keys.SEED)):
        try:
            yield value.decode()
        except UnicodeDecodeError as error:
            raise damaged(f"a seed cannot be read: {error}") from error


def read_first_seeds(store: Store) -> list[str]:
    """Return the seeds that the crawl began with, which span its scope: not those that were added later."""
    first = store.get(FIRST_SEEDS)
    return list(itertools.islice(walk_seeds(store), None if first is None else int.from_bytes(first, "big")))


class CrawlReader:
    """A crawl to be looked at. `pages.walk()` yields its records as reported, sorted by the bytes of their URL.

    `running` says that it goes on in another process, and that this is what its last checkpoint held. `archives` is there
    for a crawl in partitions, whose rows are read as those of one.
    """

    def __init__(
        self,
        directory: Path,
        manifest: Manifest,
        store: Store,
        *,
        archives: Sequence[Archive] | None = None,
        running: bool = False,
    ) -> None:
        self.directory = directory
        self.running = running
        self.manifest = manifest
        self._store = store
        self.pages = Pages(store)
        self.archives = (Archive(Extents(store), manifest.crawl_id),) if archives is None else archives
        self.counters = read_counters(store)
        self.runs = read_runs(store)

    def config(self) -> Config:
        """Return the settings in force."""
        return read_config(self._store)

    def seeds(self) -> Iterator[str]:
        """Yield the seeds in the order given."""
        return walk_seeds(self._store)

    def letters(self) -> Letters:
        """Return what a partition has posted to others, and taken in."""
        return Letters(self._store)

    def hosts(self) -> Iterator[HostRecord]:
        """Yield what is known of each host."""
        return (decode_host(value) for _, value in self._store.walk(keys.HOST, keys.after(keys.HOST)))


@contextmanager
def open_crawl_for_reading(directory: Path) -> Iterator[CrawlReader]:
    """Lock and open a crawl to read it. StateLocked if it is running, StateError and its other kinds if it cannot be opened.

    Nothing of the crawl is changed; LevelDB itself may rewrite its files, as it does at each opening.
    """
    with ExitStack() as resources:
        opened = open_database(directory, resources)
        yield CrawlReader(directory, opened.manifest, opened.store)
