"""One crawl's state: everything durable about it, opened, changed and checkpointed as a whole.

The engine's coordinator is its only user that changes anything; surfaces read a crawl that is not running.
"""

import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self

import msgspec

from crawlkit.config import Config, to_toml, to_values
from crawlkit.durable import replace_file
from crawlkit.errors import StateDamaged
from crawlkit.model import OrderReason
from crawlkit.state import directory as files
from crawlkit.state import keys, layout
from crawlkit.state.bloom import MappedBloom, boot_id
from crawlkit.state.checkpoint import Run, Summary, log_sizes, read_summary, write_summary
from crawlkit.state.counters import Counters
from crawlkit.state.distances import Distances
from crawlkit.state.frontier import Frontier
from crawlkit.state.hosts import Hosts
from crawlkit.state.origins import Origins
from crawlkit.state.pages import Pages
from crawlkit.state.seen import SeenSet
from crawlkit.state.store import Batch, Store

_BATCH = keys.meta_key("batch")
_COUNTERS = keys.meta_key("counters")
_CONFIG = keys.meta_key("config")
_PRIVATE = keys.meta_key("private")
_RESCAN = keys.meta_key("rescan")


class Rescan(msgspec.Struct, array_like=True):
    """A raised depth limit still to be told: records at `depth` from key `cursor` on have links that were kept out."""

    depth: int
    cursor: bytes = b""


class Checkpoint:
    """One batch in the making, and the `CHECKPOINT` that follows it."""

    def __init__(self, directory: Path, batch: Batch, summary: Summary) -> None:
        self._directory = directory
        self._batch = batch
        self._summary = summary

    def write(self) -> None:
        """Write and sync the batch, then replace `CHECKPOINT`. May run on another thread; StorageError if it fails."""
        self._batch.write()
        self._summary.logs = log_sizes(self._directory)
        write_summary(self._directory, self._summary)


class CrawlState:
    """The parts of one crawl's state over one store. Made by `create` or `open`; `close` lets go of the directory."""

    def __init__(self, directory: Path, crawl_id: str, store: Store, bloom: MappedBloom, resources: ExitStack) -> None:
        self.directory = directory
        self.crawl_id = crawl_id
        self._store = store
        self._resources = resources
        self.batch = int.from_bytes(store.get(_BATCH) or b"")
        value = store.get(_COUNTERS)
        self.counters = Counters() if value is None else msgspec.msgpack.decode(value, type=Counters)
        self.seen = SeenSet(store, bloom)
        resources.callback(self.seen.close)
        self.hosts = Hosts(store)
        self.frontier = Frontier(store, self.seen, self.hosts, self.counters)
        self.pages = Pages(store)
        self.distances = Distances(store, self.seen, self.frontier, self.pages, self.counters)
        self.origins = Origins(store)
        self.runs = [msgspec.msgpack.decode(value, type=Run) for _, value in store.walk(keys.RUN, keys.after(keys.RUN))]
        value = store.get(_RESCAN)
        self._rescan = None if value is None else msgspec.msgpack.decode(value, type=Rescan)

    # Making and opening ----------------------------------------------------------------------------------------------

    @classmethod
    def create(cls, directory: Path, config: Config) -> Self:
        """Lock `directory` and begin a crawl in it; seeds, a first checkpoint and `seal` finish the making."""
        with ExitStack() as resources:
            resources.enter_context(files.prepare(directory))
            crawl_id = uuid.uuid4().hex
            store = resources.enter_context(Store(directory / layout.DATABASE, create=True))
            bloom = MappedBloom.create(directory / layout.BLOOM, crawl_id.encode()[:16], boot_id())
            bloom.mark_complete()
            replace_file(directory / layout.CONFIG, to_toml(config).encode())
            state = cls(directory, crawl_id, store, bloom, resources.pop_all())
        store.stage(_CONFIG, msgspec.json.encode(to_values(config)))
        return state

    def allow_private(self, places: Mapping[str, Iterable[str]]) -> None:
        """Stage the private addresses that seeds may keep, by `host:port`."""
        self._store.stage(_PRIVATE, msgspec.json.encode({place: list(found) for place, found in places.items()}))

    @classmethod
    def open(cls, directory: Path) -> Self:
        """Lock and open an existing crawl. StateError and its kinds if it cannot be."""
        manifest = files.read_manifest(directory)
        with ExitStack() as resources:
            resources.enter_context(files.DirectoryLock(directory))
            summary = read_summary(directory)
            store = resources.enter_context(Store(directory / layout.DATABASE, create=False))
            batch = int.from_bytes(store.get(_BATCH) or b"")
            if summary.crawl_id != manifest.crawl_id or batch < summary.batch:
                raise StateDamaged(
                    f"the database in {directory} is at batch {batch}, but {layout.CHECKPOINT} knows of {summary.batch}: "
                    "synced writes are missing; restore the directory from a copy"
                )
            owner, boot = manifest.crawl_id.encode()[:16], boot_id()
            path = directory / layout.BLOOM
            bloom = MappedBloom.reuse(path, owner, boot) or MappedBloom.create(path, owner, boot)
            return cls(directory, manifest.crawl_id, store, bloom, resources.pop_all())

    def add_seed(self, number: int, url: str) -> None:
        """Stage a seed in the list of seeds (its URL is queued by the engine)."""
        self._store.stage(keys.numbered_key(keys.SEED, number), url.encode())

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

    # What is frozen --------------------------------------------------------------------------------------------------

    def seeds(self) -> Iterator[str]:
        """Yield the seeds in the order given."""
        for _, value in self._store.walk(keys.SEED, keys.after(keys.SEED)):
            yield value.decode()

    def config(self) -> Config:
        """Return the settings in force."""
        value = self._store.get(_CONFIG)
        if value is None:
            raise StateDamaged(f"the database in {self.directory} holds no settings")
        return Config.from_values(msgspec.json.decode(value))

    def private_addresses(self) -> dict[str, frozenset[str]]:
        """Return the private addresses that seeds may keep, by `host:port`."""
        value = self._store.get(_PRIVATE) or b"{}"
        return {place: frozenset(found) for place, found in msgspec.json.decode(value).items()}

    def change_settings(self, config: Config, changes: Mapping[str, Any]) -> None:
        """Stage changed settings; the run that is going on carries `changes` in the ledger."""
        before = self.config()
        self._store.stage(_CONFIG, msgspec.json.encode(to_values(config)))
        replace_file(self.directory / layout.CONFIG, to_toml(config).encode())
        self.runs[-1].changes = dict(changes)
        if before.max_depth is not None and config.max_depth != before.max_depth:
            self._set_rescan(Rescan(before.max_depth))
        if changes.keys() & {"timeout", "retries"}:
            self.counters.depend(OrderReason.SETTINGS_CHANGED)

    # Runs ------------------------------------------------------------------------------------------------------------

    @property
    def ended_cleanly(self) -> bool:
        """Whether the last run, before one is begun, ended by itself and not by a kill."""
        return not self.runs or self.runs[-1].ended_s is not None

    def begin_run(self, now: float) -> Run:
        """Enter a run into the ledger."""
        run = Run(len(self.runs) + 1, now)
        self.runs.append(run)
        return run

    def end_run(self, now: float, how: str) -> None:
        """Note how the run that is going on ended."""
        self.runs[-1].ended_s = now
        self.runs[-1].how = how

    # Raised depth ----------------------------------------------------------------------------------------------------

    @property
    def rescanning(self) -> bool:
        """Whether a raised depth limit is still to be told to the records that it concerns."""
        return self._rescan is not None

    def rescan(self, limit: int) -> None:
        """Queue the propagation of up to `limit` more records at the former depth limit."""
        if self._rescan is None:
            return
        urls, cursor = self.pages.at_depth(self._rescan.depth, self._rescan.cursor, limit)
        for url in urls:
            self.distances.propagate(url, self._rescan.depth)
        self._set_rescan(None if cursor is None else Rescan(self._rescan.depth, cursor))

    def _set_rescan(self, rescan: Rescan | None) -> None:
        self._rescan = rescan
        if rescan is None:
            self._store.unstage(_RESCAN)
        else:
            self._store.stage(_RESCAN, msgspec.msgpack.encode(rescan))

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
        self.seen.save_counts()
        stage = self._store.stage
        stage(_BATCH, self.batch.to_bytes(8, "big"))
        stage(_COUNTERS, msgspec.msgpack.encode(self.counters))
        stage(keys.numbered_key(keys.RUN, self.runs[-1].number), msgspec.msgpack.encode(self.runs[-1]))
        counters = msgspec.msgpack.decode(msgspec.msgpack.encode(self.counters), type=Counters)
        runs = [msgspec.structs.replace(run) for run in self.runs]
        summary = Summary(self.crawl_id, self.batch, counters, runs, in_flight=in_flight)
        return Checkpoint(self.directory, self._store.freeze(), summary)

    def installed(self) -> None:
        """Note that the checkpoint that was frozen last is on disk."""
        self._store.install()

    def checkpoint(self) -> None:
        """Freeze and write at once, on this thread."""
        self.freeze().write()
        self.installed()
