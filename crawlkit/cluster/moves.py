"""Another number of partitions: virtual nodes change hands, with all that belongs to them.

The table is replaced three times. First it says what is to move (`moving`), then that it has moved, which is the moment in
which owners change (`before` says from whom), then that nothing is left behind. In between rows are copied to their new
owners, and then removed from the old ones. Whatever ends this, `finish_moves` goes on where it was.
"""

import itertools
import math
import shutil
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import msgspec

from crawlkit.config import Config
from crawlkit.engine.ending import Ending, settle_reasons
from crawlkit.errors import UsageError
from crawlkit.policy.edges import admitting_edges
from crawlkit.policy.novelty import template_of
from crawlkit.policy.partition import Owners, node_of
from crawlkit.policy.urls import host_of
from crawlkit.shell import as_argument
from crawlkit.state.checkpoint import Run, read_summary
from crawlkit.state.crawl import CrawlState
from crawlkit.state.layout import CRAWL
from crawlkit.state.leaving import Leaving, Lot, Naming
from crawlkit.state.moving import Arrivals
from crawlkit.state.opening import open_database
from crawlkit.state.partitions import Table, check_members, member_directory, read_table, write_table
from crawlkit.state.reading import (
    Rescan,
    open_crawl_for_reading,
    read_config,
    read_counters,
    read_private,
    read_rescan,
    read_runs,
)
from crawlkit.state.store import Store

_NAMING = Naming(node_of, host_of, template_of, lambda record: (edge.url for edge in admitting_edges(record)))


def repartition(directory: Path, partitions: int, now: float) -> Table:
    """Spread the crawl in `directory` over another number of partitions; return the table in force then.

    For who has locked the directory, before any partition runs; `now` in seconds since the epoch. There can be as many
    partitions as virtual nodes.

    Raises:
        UsageError: the partitions of this crawl cannot be others.
        StateError and its kinds: a partition cannot be opened, or lacks rows.
        StorageError: something could not be written; the next call goes on from there.
    """
    table = finish_moves(directory, now)
    owners = Owners(tuple(table.owners))
    if len(owners.partitions) == partitions:
        return table
    if table.settings.get("warc"):
        raise UsageError(
            f"--partitions {partitions}: {directory} keeps an archive, whose files stay with the {len(owners.partitions)} "
            "partitions that wrote them; go on without --partitions"
        )
    chosen = _chosen(owners.partitions, len(table.members), partitions)
    table = _with_new_members(directory, table, max(chosen) + 1)
    moving = owners.spread(chosen).table
    write_table(directory, msgspec.structs.replace(table, moving=list(moving)))
    return finish_moves(directory, now)


def finish_moves(directory: Path, now: float) -> Table:
    """Finish what a kill left of a move; return the table in force then. For every resume, before any partition runs."""
    table = read_table(directory)
    _forget_unlisted(directory, table)
    if table.moving is not None:
        check_members(directory, table)
        for to in sorted({new for old, new in zip(table.owners, table.moving, strict=True) if old != new}):
            _bring(directory, table, table.moving, to, now)
        table = msgspec.structs.replace(table, owners=table.moving, moving=None, before=table.owners, version=table.version + 1)
        write_table(directory, table)
    if table.before is not None:
        check_members(directory, table)
        for giver in sorted(set(table.before)):
            _sweep(directory, table, giver, [n for n, old in enumerate(table.before) if old == giver != table.owners[n]])
        table = msgspec.structs.replace(table, before=None)
        write_table(directory, table)
    return table


def _chosen(owning: Sequence[int], members: int, partitions: int) -> list[int]:
    """Return which partitions are to own something: those that do, then those that did, then new ones."""
    others = [number for number in range(members + partitions) if number not in set(owning)]
    return sorted([*owning, *others][:partitions])


# New partitions ------------------------------------------------------------------------------------------------------


def _with_new_members(directory: Path, table: Table, members: int) -> Table:
    """Make the partitions that are missing of `members`; return the table with them."""
    with ExitStack() as resources:
        store = open_database(member_directory(directory, 0), resources).store
        new = _New(read_config(store), read_private(store), read_runs(store))
    made = [new.make(member_directory(directory, number)) for number in range(len(table.members), members)]
    return msgspec.structs.replace(table, members=[*table.members, *made])


@dataclass(frozen=True, slots=True)
class _New:
    """What a new partition has in common with the others: settings, private addresses that seeds may keep, the ledger."""

    config: Config
    private: Mapping[str, Iterable[str]]
    runs: Sequence[Run]

    def make(self, directory: Path) -> str:
        """Make a partition that holds nothing yet, and had no part in the runs before; return its crawl id."""
        with CrawlState.create(directory, self.config) as state:
            state.allow_private(self.private)
            state.inherit_runs(Run(run.number, run.started_s, run.ended_s, run.how) for run in self.runs)
            state.counters.finished = True
            state.checkpoint()
            state.seal()
            return state.crawl_id


def _forget_unlisted(directory: Path, table: Table) -> None:
    """Remove partitions that were made and never came into the table, as of a kill; what made a request stays."""
    for number in itertools.count(len(table.members)):
        member = member_directory(directory, number)
        if not (member / CRAWL).exists():
            return
        counters = read_summary(member).counters
        if counters.requests or counters.seen:
            return
        (member / CRAWL).unlink()  # first: what is left then is cleared when one is made here
        shutil.rmtree(member)


# Bringing ------------------------------------------------------------------------------------------------------------


def _bring(directory: Path, table: Table, moving: Sequence[int], to: int, now: float) -> None:
    """Copy all rows that move to one partition."""
    lots: dict[int, list[int]] = {}
    for node, (old, new) in enumerate(zip(table.owners, moving, strict=True)):
        if old != new == to:
            lots.setdefault(old, []).append(node)
    with CrawlState.open(member_directory(directory, to)) as state:
        here = state.config().max_depth
        limit = _deepest([here, *(_limit(member_directory(directory, giver)) for giver in sorted(lots))])
        if limit != here:
            state.deepen(limit)
        arrivals = state.arrivals()
        if not arrivals.begin(table.version + 1):
            return
        finished = [_bring_from(directory, giver, Lot(lots[giver], _NAMING), state, arrivals, now) for giver in sorted(lots)]
        arrivals.finish(finished=all(finished))


def _bring_from(directory: Path, giver: int, lot: Lot, state: CrawlState, arrivals: Arrivals, now: float) -> bool:
    """Copy what moves from one partition; whether that has finished."""
    source = member_directory(directory, giver)
    with ExitStack() as resources:
        store = open_database(source, resources).store
        arrivals.take(
            Leaving(store, lot), f"partition {giver} of {directory} lacks rows, see crawlkit verify {as_argument(directory)}"
        )
        state.allow_private(read_private(store))
        _keep_quiet(state.runs[-1], read_runs(store)[-1], now)
        rescan = _untold(store, state.config())
        if rescan is not None:
            arrivals.tell_again(rescan)
        return read_counters(store).finished


def _limit(member: Path) -> int | None:
    with open_crawl_for_reading(member) as crawl:
        return crawl.config().max_depth


def _deepest(limits: Sequence[int | None]) -> int | None:
    """Return the deepest limit on depth: a partition that had no part in a run knows none that was raised in it."""
    return max(limits, key=lambda limit: math.inf if limit is None else limit)


def _keep_quiet(run: Run, other: Run, now: float) -> None:
    """Let the next run hold all hosts back for a gap if that of `other` would: nobody knows which were asked last."""
    quiet_from_s = now if other.ended_s is None else other.quiet_from_s
    if quiet_from_s is not None and run.ended_s is not None:
        run.quiet_from_s = max(quiet_from_s, run.quiet_from_s or 0.0)


def _untold(store: Store, config: Config) -> Rescan | None:
    """Return what records of a partition may not have been told of the depth limit in `config`, None if they have."""
    rescan, limit = read_rescan(store), read_config(store).max_depth
    if limit is None or (config.max_depth is not None and config.max_depth <= limit):
        return rescan
    return Rescan(limit if rescan is None else rescan.depth, limit)


# Sweeping ------------------------------------------------------------------------------------------------------------


def _sweep(directory: Path, table: Table, giver: int, nodes: Sequence[int]) -> None:
    """Remove from a partition what it owns no more; one that owns nothing any more will not run again for that."""
    if not nodes:
        return
    with CrawlState.open(member_directory(directory, giver)) as state:
        departures = state.departures()
        departures.remove(Lot(nodes, _NAMING))
        if giver not in table.owners:
            settle_reasons(state.counters, Ending.FINISHED)  # no limit keeps it from anything
            departures.retire(finished=state.letters.waiting == 0)
