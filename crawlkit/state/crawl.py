"""One crawl's state: everything durable about it, opened, changed and checkpointed as a whole.

The engine's coordinator is its only user that changes anything; surfaces read a crawl that is not running.
"""

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import msgspec

from crawlkit.config import Config, to_toml, to_values
from crawlkit.durable import replace_file
from crawlkit.model import OrderReason
from crawlkit.state import directory as files
from crawlkit.state import keys, layout
from crawlkit.state.bloom import MappedBloom, boot_id
from crawlkit.state.checkpoint import MADE, Run, Summary, write_summary
from crawlkit.state.counters import Counters
from crawlkit.state.distances import Distances
from crawlkit.state.extents import Archiver, Archiving, Extents, Outbox
from crawlkit.state.frontier import Frontier
from crawlkit.state.hosts import Hosts
from crawlkit.state.letters import Letters
from crawlkit.state.logs import Logs
from crawlkit.state.opening import BATCH, open_database
from crawlkit.state.origins import Origins
from crawlkit.state.pages import Pages
from crawlkit.state.reading import (
    CONFIG,
    COUNTERS,
    EARLIER,
    FIRST_SEEDS,
    PRIVATE,
    RESCAN,
    Rescan,
    read_config,
    read_counters,
    read_first_seeds,
    read_private,
    read_rescan,
    read_runs,
    walk_seeds,
)
from crawlkit.state.refusals import Refusals
from crawlkit.state.seen import SeenSet
from crawlkit.state.sitemaps import Sitemaps
from crawlkit.state.store import Batch, Snapshot, Store
from crawlkit.state.templates import Templates

if TYPE_CHECKING:
    from crawlkit.state.looking import Looking
    from crawlkit.state.moving import Arrivals, Departures


class Checkpoint:
    """One batch in the making, what is archived before it, and the `CHECKPOINT` that follows it."""

    def __init__(self, directory: Path, batch: Batch, logs: Logs, summary: Summary, archiving: Archiving | None) -> None:
        self._directory = directory
        self._logs = logs
        self._batch = batch
        self._summary = summary
        self._archiving = archiving

    def write(self) -> None:
        """Write and sync archive and batch, then replace `CHECKPOINT`. May run on another thread; StorageError if it fails."""
        if self._archiving is not None:
            self._summary.archive_files, self._summary.archive_bytes = self._archiving.write(self._batch)
        self._batch.write()
        self._summary.logs = self._logs.sync()
        write_summary(self._directory, self._summary)


class CrawlState:
    """The parts of one crawl's state over one store. Made by `create` or `open`; `close` lets go of the directory."""

    def __init__(self, directory: Path, crawl_id: str, store: Store, bloom: MappedBloom, resources: ExitStack) -> None:
        self.directory = directory
        self.crawl_id = crawl_id
        self._store = store
        self._resources = resources
        self._logs = Logs(directory)
        self.seen = SeenSet(store, bloom)
        resources.callback(self.seen.close)
        self.batch = int.from_bytes(store.get(BATCH) or b"")
        self.counters = read_counters(store)
        self.hosts = Hosts(store)
        self.frontier = Frontier(store, self.seen, self.hosts, self.counters)
        self.pages = Pages(store)
        self.distances = Distances(store, self.seen, self.frontier, self.pages, self.counters)
        self.origins = Origins(store)
        self.sitemaps = Sitemaps(store, self.hosts, self.counters)
        self.templates = Templates(store)
        self.refusals = Refusals(store, self.counters)
        self.letters = Letters(store)
        self.runs = read_runs(store)
        self._rescan = read_rescan(store)
        self._seed_count: int | None = None  # known once it is needed
        self.outbox = Outbox()
        self.extents = Extents(store)
        self.archiver: Archiver | None = None

    # Making and opening ----------------------------------------------------------------------------------------------

    @classmethod
    def create(cls, directory: Path, config: Config) -> Self:
        """Lock `directory` and begin a crawl in it; seeds, a first checkpoint and `seal` finish the making."""
        with ExitStack() as resources:
            resources.enter_context(files.prepare(directory))
            crawl_id = files.new_crawl_id()
            store = resources.enter_context(Store(directory / layout.DATABASE, create=True))
            bloom = MappedBloom.create(directory / layout.BLOOM, crawl_id.encode()[:16], boot_id())
            bloom.mark_complete()
            store.stage(keys.INDEXED, b"")
            state = cls(directory, crawl_id, store, bloom, resources)
            replace_file(directory / layout.CONFIG, to_toml(config).encode())
            state._resources = resources.pop_all()
        store.stage(CONFIG, msgspec.json.encode(to_values(config)))
        return state

    def allow_private(self, places: Mapping[str, Iterable[str]]) -> None:
        """Stage the private addresses that seeds may keep, by `host:port`, besides those that others may."""
        allowed = self.private_addresses()
        merged = {place: sorted({*allowed.get(place, ()), *places.get(place, ())}) for place in {**allowed, **places}}
        self._store.stage(PRIVATE, msgspec.json.encode(merged))

    @classmethod
    def open(cls, directory: Path) -> Self:
        """Lock and open an existing crawl. StateError and its kinds if it cannot be."""
        with ExitStack() as resources:
            opened = open_database(directory, resources)
            crawl_id = opened.manifest.crawl_id
            owner, boot = crawl_id.encode()[:16], boot_id()
            path = directory / layout.BLOOM
            bloom = MappedBloom.reuse(path, owner, boot) or MappedBloom.create(path, owner, boot)
            state = cls(directory, crawl_id, opened.store, bloom, resources)
            state._resources = resources.pop_all()
        return state

    def note_earlier(self, identity: Mapping[str, str]) -> None:
        """Stage which earlier crawl this one goes by: where it is, and its id."""
        self._store.stage(EARLIER, msgspec.json.encode(identity))

    def earlier(self) -> dict[str, str] | None:
        """Return which earlier crawl this one goes by, None for none."""
        value = self._store.get(EARLIER)
        return None if value is None else msgspec.json.decode(value, type=dict[str, str])

    def add_seed(self, number: int, url: str) -> None:
        """Stage a seed in the list of seeds (its URL is queued by the engine)."""
        self._store.stage(keys.numbered_key(keys.SEED, number), url.encode())
        self._seed_count = number + 1

    def append_seed(self, url: str) -> None:
        """Stage a seed that comes after the crawl was begun. The first one also notes how many there were before."""
        if self._seed_count is None:
            self._seed_count = sum(1 for _ in self.seeds())
        if self._store.get(FIRST_SEEDS) is None:
            self._store.stage(FIRST_SEEDS, self._seed_count.to_bytes(8, "big"))
        self.add_seed(self._seed_count, url)

    def seal(self) -> None:
        """Make the crawl exist: from now on it is resumed, not begun again."""
        files.seal(self.directory, self.crawl_id)

    def close(self) -> None:
        """Close the database and release the lock. What is staged and not checkpointed is dropped."""
        self._resources.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def look(self) -> "Looking":
        """Return a view that changes nothing, for as long as the crawl is open."""
        from crawlkit.state.looking import InMemory, Looking, Rows  # noqa: PLC0415  (most crawls are never looked at)

        memory = InMemory(self.counters, self.runs, self.hosts, self.templates)
        return Looking(self.directory, Rows.of_one(self._store, self.crawl_id), memory, running=True)

    def arrivals(self) -> "Arrivals":
        """Return what takes in rows of another partition, in checkpoints of their own."""
        from crawlkit.state.moving import Arrivals, Batches  # noqa: PLC0415  (rows move between partitions alone)

        return Arrivals(self._store, self.seen, self.refusals, self.counters, Batches(self._store, self.checkpoint))

    def departures(self) -> "Departures":
        """Return what removes rows that another partition has, in checkpoints of their own."""
        from crawlkit.state.moving import Batches, Departures  # noqa: PLC0415  (as above)

        return Departures(self._store, self.counters, Batches(self._store, self.checkpoint))

    # What is frozen --------------------------------------------------------------------------------------------------

    def seeds(self) -> Iterator[str]:
        """Yield the seeds in the order given."""
        return walk_seeds(self._store)

    def first_seeds(self) -> list[str]:
        """Return the seeds that the crawl began with, which span its scope: not those that were added later."""
        return read_first_seeds(self._store)

    def config(self) -> Config:
        """Return the settings in force."""
        return read_config(self._store)

    def private_addresses(self) -> dict[str, frozenset[str]]:
        """Return the private addresses that seeds may keep, by `host:port`."""
        return read_private(self._store)

    def change_settings(self, config: Config, changes: Mapping[str, Any]) -> None:
        """Stage changed settings; the run that is going on carries `changes` in the ledger."""
        before = self.config()
        self._keep(config)
        self.runs[-1].changes = dict(changes)
        if before.max_depth is not None and config.max_depth != before.max_depth:
            self._tell_from(before.max_depth)
        if changes.keys() & {"timeout", "retries", "proxy", "http2", "plugin"}:
            self.counters.depend(OrderReason.SETTINGS_CHANGED)

    def deepen(self, max_depth: int | None) -> None:
        """Stage a deeper limit, that of a partition whose records come here: what raises it next is told to them as well."""
        before = self.config()
        self._keep(dataclasses.replace(before, max_depth=max_depth))
        if before.max_depth is not None and self.counters.seen:
            self._tell_from(before.max_depth)

    def _keep(self, config: Config) -> None:
        self._store.stage(CONFIG, msgspec.json.encode(to_values(config)))
        replace_file(self.directory / layout.CONFIG, to_toml(config).encode())

    def _tell_from(self, depth: int) -> None:
        """Let the records at a limit that was raised, at `depth`, be told."""
        least = depth if self._rescan is None else self._rescan.depth  # a kill may have left one half told
        self._set_rescan(Rescan(least, depth))
        self.counters.finished = False

    # Runs ------------------------------------------------------------------------------------------------------------

    def begin_run(self, now: float) -> Run:
        """Enter a run into the ledger.

        That of a crawl that was only made is taken over. After an unclean end nobody knows which hosts were asked
        last, so all are quiet from now on. A run that then ends cleanly but early hands that on.
        """
        last = self.runs[-1] if self.runs else None
        quiet_from_s = None
        if last is not None and last.ended_s is None:
            quiet_from_s = now
        elif last is not None and last.quiet_from_s is not None:
            quiet_from_s = min(last.quiet_from_s, now)
        if last is not None and last.how == MADE:
            self.runs[-1] = Run(last.number, now, quiet_from_s=quiet_from_s)
            return self.runs[-1]
        run = Run(len(self.runs) + 1, now, quiet_from_s=quiet_from_s)
        self.runs.append(run)
        return run

    def inherit_runs(self, runs: Iterable[Run]) -> None:
        """Stage the ledger of the crawl that this one is made of."""
        for run in runs:
            self.runs.append(msgspec.structs.replace(run, number=len(self.runs) + 1))
            self._store.stage(keys.numbered_key(keys.RUN, self.runs[-1].number), msgspec.msgpack.encode(self.runs[-1]))

    def end_run(self, now: float, how: str) -> None:
        """Note how the run that is going on ended."""
        self.runs[-1].ended_s = now
        self.runs[-1].how = how
        self.templates.stage_memories()

    # Raised depth ----------------------------------------------------------------------------------------------------

    @property
    def rescanning(self) -> bool:
        """Whether a raised depth limit is still to be told to the records that it concerns."""
        return self._rescan is not None

    def rescan(self, limit: int) -> None:
        """Queue the propagation of those among up to `limit` more records that are at a former depth limit."""
        if self._rescan is None:
            return
        found, cursor = self.pages.at_depths(self._rescan.depths, self._rescan.cursor, limit)
        for url, depth in found:
            self.distances.propagate(url, depth)
        self._set_rescan(None if cursor is None else msgspec.structs.replace(self._rescan, cursor=cursor))

    def _set_rescan(self, rescan: Rescan | None) -> None:
        self._rescan = rescan
        if rescan is None:
            self._store.unstage(RESCAN)
        else:
            self._store.stage(RESCAN, msgspec.msgpack.encode(rescan))

    def snapshot(self) -> Snapshot:
        """Return the crawl as of its last checkpoint, to be read on another thread; close it before the state."""
        return self._store.snapshot()

    # Checkpoints -----------------------------------------------------------------------------------------------------

    @property
    def changed(self) -> bool:
        """Whether anything is staged."""
        return self._store.staged_rows > 0

    @property
    def staged_rows(self) -> int:
        """How many rows the next checkpoint changes."""
        return self._store.staged_rows

    def freeze(self, in_flight: int = 0) -> Checkpoint:
        """Take all that was staged as one checkpoint, to be written by its `write`; then call `installed`.

        `in_flight` is how many fetches are under way: what a kill now would repeat.
        """
        self.batch += 1
        self.runs[-1].checkpoints += 1
        self.hosts.stage_changed()
        self.templates.stage_changed()
        self.letters.stage_changed()
        self.seen.save_counts()
        stage = self._store.stage
        number = self.batch.to_bytes(8, "big")
        stage(BATCH, number)
        stage(keys.recent_key(self.batch), number)
        stage(COUNTERS, msgspec.msgpack.encode(self.counters))
        stage(keys.numbered_key(keys.RUN, self.runs[-1].number), msgspec.msgpack.encode(self.runs[-1]))
        counters = msgspec.msgpack.decode(msgspec.msgpack.encode(self.counters), type=Counters)
        runs = [msgspec.structs.replace(run) for run in self.runs]
        sizes = self.extents.sizes
        summary = Summary(self.crawl_id, self.batch, counters, runs, in_flight=in_flight)
        summary.archive_files, summary.archive_bytes = len(sizes), sum(sizes.values())
        archiving = None if self.archiver is None else Archiving(self.extents, self.archiver, self.outbox.take())
        return Checkpoint(self.directory, self._store.freeze(), self._logs, summary, archiving)

    def installed(self) -> None:
        """Note that the checkpoint that was frozen last is on disk."""
        self._store.install()
        self.outbox.installed()

    def checkpoint(self) -> None:
        """Freeze and write at once, on this thread."""
        self.freeze().write()
        self.installed()
