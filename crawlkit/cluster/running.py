"""A run of a crawl in partitions from its opening to its end."""

import asyncio
import itertools
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import msgspec

from crawlkit.clock import SystemClock
from crawlkit.cluster.conductor import Conductor
from crawlkit.cluster.driver import Driver, Engine, Orderly, Watching
from crawlkit.cluster.member import LOCK_EVERY_S, LOCK_TRIES
from crawlkit.cluster.moves import finish_moves, repartition
from crawlkit.cluster.places import Places
from crawlkit.cluster.shares import Shares
from crawlkit.config import Config, changed_config, to_toml, to_values
from crawlkit.durable import replace_file
from crawlkit.engine.ending import Ending
from crawlkit.engine.session import BarrenSeed, Outcome
from crawlkit.errors import StateLocked
from crawlkit.model import Record
from crawlkit.policy.scope import Scope
from crawlkit.state import directory as files
from crawlkit.state import layout
from crawlkit.state.checkpoint import read_summary
from crawlkit.state.counters import Counters, summed
from crawlkit.state.partitions import Table, check_members, member_directory, read_span, read_table, write_table
from crawlkit.state.reading import open_crawl_for_reading

Result = TypeVar("Result")


async def drive(directory: Path, engine: Engine, watching: Watching, orderly: Orderly) -> Outcome:
    """Run the crawl in partitions in `directory` to its end, a limit or a stop.

    StateError and its kinds, ConfigError for settings that may not change, StorageError; of partitions too.
    """
    with ExitStack() as resources:
        table = read_table(directory)
        resources.enter_context(files.DirectoryLock(directory))
        table = read_table(directory)  # again: before we had the lock another one may have changed it
        table = await _moved(directory, table, orderly.partitions)
        await engine.find(directory, table)
        config = changed_config(Config.from_values(table.settings), orderly.changes)
        counters = await _counters(engine, table)
        members = await Members.found(engine, table)
        if not (orderly.changes or orderly.retry) and await _have_finished(engine, table, members.active):
            return Outcome(directory, Ending.FINISHED, summed(counters))
        table = replace_settings(directory, table, config)
        shares = Shares(config.max_pages, {number: each.pages for number, each in enumerate(counters)})
        conductor = Conductor(members.active, shares, members.letters_apart)
        driver = Driver(directory, table.epoch, conductor, engine, watching, orderly)
        with watching.around(driver):
            how = await driver.run()
        total = summed(await _counters(engine, table))
        barren = () if total.pages else await barren_seeds(engine, table, Scope.of(read_span(directory), config))
        return Outcome(directory, how, total, barren)


async def _moved(directory: Path, table: Table, partitions: int | None) -> Table:
    """Return the table once nothing is left to move, to as many partitions as are asked for."""
    if partitions is None and table.settled:
        return table
    check_members(directory, table)  # rows move between directories of one disk only
    for _ in range(LOCK_TRIES):  # partitions whose driver was killed may not be gone yet
        if not any(files.is_held(member_directory(directory, number)) for number in range(len(table.members))):
            break
        await asyncio.sleep(LOCK_EVERY_S)
    now = SystemClock().now()
    return finish_moves(directory, now) if partitions is None else repartition(directory, partitions, now)


async def _of_all(places: Places, members: Iterable[int], look: Callable[[Path], Result]) -> list[Result]:
    return await asyncio.gather(*(places.at(number, look) for number in members))


async def _counters(places: Places, table: Table) -> list[Counters]:
    return [summary.counters for summary in await _of_all(places, range(len(table.members)), read_summary)]


async def _have_finished(places: Places, table: Table, members: Iterable[int]) -> bool:
    return all(await _of_all(places, members, partial(_is_finished, _wanted(table))))


def has_finished(directory: Path, table: Table, members: Iterable[int]) -> bool:
    """Whether these partitions have finished, and under the settings of the table: a kill may have kept these from them."""
    return all(_is_finished(_wanted(table), member_directory(directory, number)) for number in members)


def _wanted(table: Table) -> dict[str, Any]:
    return to_values(Config.from_values(table.settings))


def _is_finished(wanted: Mapping[str, Any], directory: Path) -> bool:
    """Whether a partition has finished under these settings; not while the one of a killed driver is not gone yet.

    Its `CHECKPOINT` may be one behind the database: after a kill between the two it says so of a run that had gone on.
    """
    try:
        with open_crawl_for_reading(directory) as crawl:
            return crawl.counters.finished and to_values(crawl.config()) == wanted
    except StateLocked:
        return False


async def barren_seeds(places: Places, table: Table, scope: Scope) -> tuple[BarrenSeed, ...]:
    """Return what became of the first seeds of each partition that have settled: why a crawl found nothing."""
    return tuple(
        BarrenSeed(record, record.redirect_to is not None and not scope.judge(record.redirect_to).accepted)
        for records in await _of_all(places, range(len(table.members)), _first_records)
        for record in records
    )


def _first_records(directory: Path, most: int = 5) -> list[Record]:
    """Return the records of a partition's first seeds, as far as they have settled."""
    with open_crawl_for_reading(directory) as crawl:
        records = [crawl.pages.get(url) for url in itertools.islice(crawl.seeds(), most)]
    return [record for record in records if record is not None]


def replace_settings(directory: Path, table: Table, config: Config) -> Table:
    """Write a table with the settings in force and the next epoch."""
    values = to_values(config)
    if values != table.settings:
        replace_file(directory / layout.CONFIG, to_toml(config).encode())
    table = msgspec.structs.replace(table, epoch=table.epoch + 1, settings=values)
    write_table(directory, table)
    return table


class _Idle(NamedTuple):
    """A partition that owns nothing: whether it has anything to do all the same, and letters it posted but did not take in."""

    owes: bool
    letters_apart: int


@dataclass(frozen=True, slots=True)
class Members:
    """The partitions that have to run: those that own anything, and those whose letters wait or that a kill kept from ending.

    `letters_apart` is how many more letters the others have posted than taken in: their owners have them.
    """

    active: list[int]
    letters_apart: int

    @classmethod
    def of(cls, directory: Path, table: Table) -> "Members":
        """Look at those that own nothing."""
        return cls._of(table, {number: _idle(member_directory(directory, number)) for number in _idle_in(table)})

    @classmethod
    async def found(cls, places: Places, table: Table) -> "Members":
        """Look at those that own nothing, wherever they lie."""
        idle = _idle_in(table)
        return cls._of(table, dict(zip(idle, await _of_all(places, idle, _idle), strict=True)))

    @classmethod
    def _of(cls, table: Table, idle: Mapping[int, _Idle]) -> "Members":
        owing = {number for number, each in idle.items() if each.owes}
        letters_apart = sum(each.letters_apart for number, each in idle.items() if number not in owing)
        return cls(sorted(set(table.owners) | owing), letters_apart)


def _idle_in(table: Table) -> list[int]:
    return sorted(set(range(len(table.members))) - set(table.owners))


def _idle(directory: Path) -> _Idle:
    with open_crawl_for_reading(directory) as crawl:
        letters = crawl.letters()
        return _Idle(letters.waiting > 0 or not crawl.counters.finished, letters.posted - letters.taken)
