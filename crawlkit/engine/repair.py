"""`verify --repair`: a new crawl made of what a damaged one still tells, beside it. The damaged one is left as it is.

Everything is admitted anew: records as settled, rows as queued, then whatever seeds and records lead to that is neither. So
the new crawl keeps every rule by construction, and a record that is lost is fetched again if its URL is known from a link.
What the template budget had not paid is not admitted for that: such links wait again, on the account that they waited for.
What cannot be known is not made up: the crawl is marked degraded, and what is missing is said.
"""

import shutil
import tomllib
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from crawlkit.config import Config
from crawlkit.durable import sync_directory
from crawlkit.engine.admission import Admission
from crawlkit.engine.budget import Budget
from crawlkit.engine.growth import Growth
from crawlkit.engine.plugging import load_plugins
from crawlkit.errors import ConfigError, StateDamaged, StateError, StateExists, StateVersion, StorageError
from crawlkit.model import Kind, OrderReason, Record, Refusal, Source
from crawlkit.policy.edges import Edge, admitting_edges
from crawlkit.policy.scope import Scope
from crawlkit.policy.urls import host_of, normalise
from crawlkit.state import keys
from crawlkit.state.checkpoint import read_summary
from crawlkit.state.codec import QueueRow
from crawlkit.state.counters import Counters
from crawlkit.state.crawl import CrawlState
from crawlkit.state.directory import DirectoryLock, read_manifest
from crawlkit.state.hosts import Host
from crawlkit.state.layout import ARCHIVE, BLOOM, CONFIG, DATABASE
from crawlkit.state.pages import reported_kind
from crawlkit.state.salvage import Salvage
from crawlkit.state.sitemaps import SitemapRow

REPAIRED_SUFFIX = ".repaired"
_WORK_SUFFIX = ".repairing"
_ROWS_A_BATCH = 50_000


@dataclass(frozen=True, slots=True)
class Repaired:
    """The new crawl, what it holds, and what is known to be lost, in sentences."""

    directory: Path
    records: int
    queued: int
    lost: tuple[str, ...]


def repair(directory: Path, now: float) -> Repaired:
    """Make `<directory>.repaired` of the damaged crawl in `directory`; `now` in seconds since the epoch.

    Raises:
        StateExists: there is something by that name.
        StateVersion: the crawl is another version's.
        StateError, StateDamaged: there is no database, or nothing of it to start from.
        StorageError: the copy could not be written.
    """
    target = directory.with_name(directory.name + REPAIRED_SUFFIX)
    if target.exists():
        raise StateExists(f"{target} exists already; remove it or move it away, then repair again")
    if not (directory / DATABASE).is_dir():
        raise StateError(f"{directory} holds no database, so there is nothing to repair")
    _refuse_other_version(directory)
    with DirectoryLock(directory), _work_place(directory) as place:
        shutil.copytree(directory / DATABASE, place / "salvage")
        with closing(Salvage(place / "salvage")) as salvage:
            repaired = _rebuild(directory, salvage, place / "crawl", now)
        (place / "crawl").rename(target)
        sync_directory(target.parent)
    return Repaired(target, *repaired)


def drop_filter(directory: Path) -> None:
    """Remove the Bloom filter of a crawl that is otherwise sound: the next resume makes it anew."""
    path = directory / BLOOM
    with DirectoryLock(directory):
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise StorageError(f"cannot remove {path}: {error.strerror}") from error


def _refuse_other_version(directory: Path) -> None:
    try:
        read_manifest(directory)
    except StateVersion:
        raise
    except StateError:
        return  # lost or damaged: it holds nothing that the repair needs


@contextmanager
def _work_place(directory: Path) -> Iterator[Path]:
    """Make a directory to work in, beside the crawl; what a repair that was killed left there is removed."""
    place = directory.with_name(directory.name + _WORK_SUFFIX)
    try:
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir()
        yield place
    except OSError as error:
        raise StorageError(f"cannot repair {directory} in {place}: {error}; free space, then repair again") from error
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _rebuild(directory: Path, salvage: Salvage, target: Path, now: float) -> tuple[int, int, tuple[str, ...]]:
    """Make the new crawl in `target`; return how many records and queued URLs it has, and what is lost."""
    config, lost = _settings(directory, salvage)
    if config.warc:  # what is known of its bytes is damaged with the rest, and half an index vouches for nothing
        config = replace(config, warc=False)
        lost.append(f"the archive's index: the files in {directory / ARCHIVE} stay as they are; the new crawl archives nothing")
    seeds = _seeds(directory, salvage)
    if not all(salvage.has_seed(number) for number in range(len(seeds))):
        lost.append("part of the list of seeds: the URLs at distance 0 were taken")
    with CrawlState.create(target, config) as state:
        rebuilding = _Rebuilding(state, config, seeds, salvage.first_seeds())
        rebuilding.begin(salvage, now)
        rebuilding.take_sitemaps(salvage)
        rebuilding.take_records(salvage)
        rebuilding.take_waiting(salvage)
        rebuilding.walk_links(salvage)
        rebuilding.end(_old_counters(directory, salvage), now)
        lost += [f"{count} {kind} could not be read" for kind, count in sorted(salvage.unreadable.items()) if count]
        lost += _missing(directory, salvage, state)
        state.seal()
        return state.counters.records, state.counters.queued, tuple(lost)


def _settings(directory: Path, salvage: Salvage) -> tuple[Config, list[str]]:
    config = salvage.config()
    if config is not None:
        return config, []
    path = directory / CONFIG
    try:
        config = Config.from_values(tomllib.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, ConfigError) as error:
        raise StateDamaged(f"the settings of {directory} are lost, and {path} cannot be read: {error}; crawl anew") from error
    return config, [f"the settings in the database: those of {CONFIG} were taken"]


def _seeds(directory: Path, salvage: Salvage) -> list[str]:
    """Return the seeds: those that are listed, then what says that it is one, or is at distance 0 and does not say."""
    listed = [seed for seed in salvage.seeds() if normalise(seed) == seed]
    settled = (record.url for record in _records(salvage) if _is_seed(record))
    waiting = (row.url for row, _ in _waiting(salvage) if _is_seed(row))
    seeds = list(dict.fromkeys([*listed, *settled, *waiting]))
    if not seeds:
        raise StateDamaged(f"the seeds of {directory} are lost, and its scope with them; crawl anew: crawlkit run SEED")
    return seeds


def _is_seed(known: Record | QueueRow) -> bool:
    if known.sources:
        return bool(known.sources & Source.SEED)
    return (known.depth, known.hops) == (0, 0)


def _records(salvage: Salvage) -> Iterator[Record]:
    for record in salvage.records():
        if normalise(record.url) == record.url:
            yield record
        else:
            salvage.unreadable["records"] += 1


def _waiting(salvage: Salvage) -> Iterator[tuple[QueueRow, float | None]]:
    for row, due_s in salvage.waiting():
        if normalise(row.url) == row.url:
            yield row, due_s
        else:
            salvage.unreadable["queued rows"] += 1


def _old_counters(directory: Path, salvage: Salvage) -> Counters:
    """Return the counters of the damaged crawl, as far as they are known."""
    try:
        return read_summary(directory).counters
    except StateDamaged:
        return salvage.counters() or Counters()


def _missing(directory: Path, salvage: Salvage, state: CrawlState) -> Iterator[str]:
    """Yield what is known to be missing, by comparing with what the damaged crawl said of itself."""
    try:
        settled = read_summary(directory).counters.records
    except StateDamaged:
        yield "CHECKPOINT, so that it cannot be told how many records are missing"
    else:
        if settled > state.counters.records:
            yield f"{settled - state.counters.records} of {settled} records; those whose URLs are known are fetched again"
    unknown = sum(not state.seen.has(key) for key in salvage.seen_keys())
    if unknown:
        yield f"{unknown} URLs that were seen: no record, no row and no link names them"


class _Rebuilding:
    """The new crawl while it is filled; what was staged is written from time to time, so memory does not grow."""

    def __init__(self, state: CrawlState, config: Config, seeds: list[str], first: int | None) -> None:
        self._state = state
        self._seeds = seeds
        self._first = len(seeds) if first is None else first
        scope = Scope.of(seeds[: self._first], config, load_plugins(config.plugin).accepts)
        self._admission = Admission(state, scope, config, Budget(state.templates, 0), lambda _: None)
        budget = Budget(state.templates, config.template_budget)
        self._growth = Growth(state, Admission(state, scope, config, budget, lambda _: None), budget)

    def begin(self, salvage: Salvage, now: float) -> None:
        """Take over seeds, ledger, private addresses, what is known of hosts (their manners) and of robots.txt files."""
        state = self._state
        state.inherit_runs(salvage.runs())
        state.begin_run(now)
        state.allow_private(salvage.private_addresses())
        for number, url in enumerate(self._seeds[: self._first]):
            state.add_seed(number, url)
        for url in self._seeds[self._first :]:
            state.append_seed(url)
        for known in salvage.hosts():
            host = state.hosts.get(known.name)
            host.record.last_start_s, host.record.last_end_s = known.last_start_s, known.last_end_s
            host.record.hold_until_s, host.record.crawl_delay_s = known.hold_until_s, known.crawl_delay_s
            host.record.held_until_s, host.record.dropped = known.held_until_s, known.dropped
            state.counters.hosts_held += known.held
            state.hosts.changed(host)
            self._between()
        for origin in salvage.origins():
            state.origins.put(origin)
            self._between()
        for key, account, memory in salvage.accounts():
            state.templates.inherit(key, account, memory)
            self._between()

    def take_sitemaps(self, salvage: Salvage) -> None:
        """Let every sitemap be read again: what is lost of the URLs that they name nobody knows."""
        for row in salvage.sitemaps():
            if normalise(row.url) == row.url:
                self._state.sitemaps.put(SitemapRow(row.url, host_of(row.url), row.level))
                self._between()

    def take_records(self, salvage: Salvage) -> None:
        """Settle every URL that has a record."""
        state = self._state
        for record in _records(salvage):
            host = state.hosts.get(host_of(record.url))
            state.frontier.add(record.url, host, record.depth, record.hops, record.via, record.sources)
            state.frontier.finish(record.url, host)
            self._count(host, record)
            state.pages.put(record, salvage.content(record.url))
            self._between()

    def _count(self, host: Host, record: Record) -> None:
        self._state.counters.settled(reported_kind(record))
        self._state.counters.body_bytes += record.body_bytes or 0
        if record.kind is Kind.PAGE:
            host.record.pages += 1

    def take_waiting(self, salvage: Salvage) -> None:
        """Queue every URL that has a row and no record, as often tried as it was."""
        for row, due_s in _waiting(salvage):
            self._queue(row, due_s)
            self._between()

    def _queue(self, row: QueueRow, due_s: float | None) -> None:
        state = self._state
        host = state.hosts.get(host_of(row.url))
        known = state.seen.find(row.url, host.id) is not None
        self._admission.meet(Edge(row.url, row.depth, row.hops), row.via, row.sources)
        admitted = not known and state.seen.find(row.url, host.id) is not None
        if admitted and (row.attempts or due_s is not None):
            state.frontier.postpone(row.url, host, row.attempts, due_s or 0.0, row.wait_s, row.reason)

    def walk_links(self, salvage: Salvage) -> None:
        """Admit what seeds and records lead to, and lower the distances that are greater than these ways to them.

        Of a page whose links had to wait, those are admitted that had been, by the seen-set; the others have to be paid.
        """
        for url in self._seeds:
            self._admission.meet(Edge(url, 0, 0), None, Source.SEED)
        for record in _records(salvage):
            for edge in admitting_edges(record):
                if not record.held or self._was_admitted(edge.url, salvage):
                    self._admission.meet(edge, record.url)
            if record.held:
                self._growth.follow(record)
            self._between()

    def _was_admitted(self, url: str, salvage: Salvage) -> bool:
        return salvage.has_seen(keys.seen_key(keys.host_id(host_of(url)), url))

    def _between(self) -> None:
        self._state.hosts.trim()
        self._state.templates.trim()
        if self._state.staged_rows >= _ROWS_A_BATCH:
            self._state.checkpoint()

    def end(self, old: Counters, now: float) -> None:
        """Take over the sums that no row tells, mark the crawl, and write it all."""
        state = self._state
        counters = state.counters
        counters.requests, counters.elapsed_s = old.requests, old.elapsed_s
        counters.refused = {code: count for code, count in old.refused.items() if code != Refusal.TRAP_TEMPLATE}  # judged anew
        counters.reasons |= old.reasons
        counters.depend(OrderReason.DEGRADED)
        state.end_run(now, "repaired")
        state.checkpoint()
