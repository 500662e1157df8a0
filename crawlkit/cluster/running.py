"""A run of a crawl in partitions from its opening to its end."""

import asyncio
import itertools
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from crawlkit.clock import SystemClock
from crawlkit.cluster.conductor import Conductor
from crawlkit.cluster.driver import Driver, Engine, Orderly, Watching
from crawlkit.cluster.member import LOCK_EVERY_S, LOCK_TRIES
from crawlkit.cluster.moves import finish_moves, repartition
from crawlkit.cluster.shares import Shares
from crawlkit.config import Config, changed_config, to_toml, to_values
from crawlkit.durable import replace_file
from crawlkit.engine.ending import Ending
from crawlkit.engine.session import BarrenSeed, Outcome
from crawlkit.errors import StateLocked
from crawlkit.model import Kind
from crawlkit.policy.scope import Scope
from crawlkit.state import directory as files
from crawlkit.state import layout
from crawlkit.state.checkpoint import read_summary
from crawlkit.state.counters import Counters, summed
from crawlkit.state.partitions import Table, check_members, member_directory, read_span, read_table, write_table
from crawlkit.state.reading import open_crawl_for_reading


async def drive(directory: Path, engine: Engine, watching: Watching, orderly: Orderly) -> Outcome:
    """Run the crawl in partitions in `directory` to its end, a limit or a stop.

    StateError and its kinds, ConfigError for settings that may not change, StorageError; of partitions too.
    """
    with ExitStack() as resources:
        table = read_table(directory)
        resources.enter_context(files.DirectoryLock(directory))
        table = read_table(directory)  # again: before we had the lock another one may have changed it
        check_members(directory, table)
        table = await _moved(directory, table, orderly.partitions)
        config = changed_config(Config.from_values(table.settings), orderly.changes)
        counters = _counters(directory, table)
        members = Members.of(directory, table)
        if not (orderly.changes or orderly.retry) and has_finished(directory, table, members.active):
            return Outcome(directory, Ending.FINISHED, summed(counters))
        table = replace_settings(directory, table, config)
        shares = Shares(config.max_pages, {number: each.pages for number, each in enumerate(counters)})
        conductor = Conductor(members.active, shares, members.letters_apart)
        driver = Driver(directory, table.epoch, conductor, engine, watching, orderly)
        with watching.around(driver):
            how = await driver.run()
        total = summed(_counters(directory, table))
        return Outcome(directory, how, total, () if total.pages else tuple(barren_seeds(directory, table, config)))


async def _moved(directory: Path, table: Table, partitions: int | None) -> Table:
    """Return the table once nothing is left to move, to as many partitions as are asked for."""
    if partitions is None and table.settled:
        return table
    for _ in range(LOCK_TRIES):  # partitions whose driver was killed may not be gone yet
        if not any(files.is_held(member_directory(directory, number)) for number in range(len(table.members))):
            break
        await asyncio.sleep(LOCK_EVERY_S)
    now = SystemClock().now()
    return finish_moves(directory, now) if partitions is None else repartition(directory, partitions, now)


def _counters(directory: Path, table: Table) -> list[Counters]:
    return [read_summary(member_directory(directory, number)).counters for number in range(len(table.members))]


def has_finished(directory: Path, table: Table, members: Iterable[int]) -> bool:
    """Whether these partitions have finished, and under the settings of the table: a kill may have kept these from them."""
    wanted = to_values(Config.from_values(table.settings))
    counters = _counters(directory, table)
    return all(counters[n].finished and _settings_of(member_directory(directory, n)) == wanted for n in members)


def _settings_of(directory: Path) -> dict[str, Any] | None:
    """Return a partition's settings, None while the one of a killed driver is not gone yet."""
    try:
        with open_crawl_for_reading(directory) as crawl:
            return to_values(crawl.config())
    except StateLocked:
        return None


def barren_seeds(directory: Path, table: Table, config: Config, most: int = 5) -> Iterator[BarrenSeed]:
    """Yield what became of the first seeds of each partition that have settled: why a crawl found nothing."""
    scope = Scope.of(read_span(directory), config)
    for number in range(len(table.members)):
        with open_crawl_for_reading(member_directory(directory, number)) as crawl:
            for url in itertools.islice(crawl.seeds(), most):
                record = crawl.pages.get(url)
                if record is not None:
                    target = record.redirect_to if record.kind is Kind.REDIRECT else None
                    yield BarrenSeed(record, target is not None and not scope.judge(target).accepted)


def replace_settings(directory: Path, table: Table, config: Config) -> Table:
    """Write a table with the settings in force and the next epoch."""
    values = to_values(config)
    if values != table.settings:
        replace_file(directory / layout.CONFIG, to_toml(config).encode())
    table = msgspec.structs.replace(table, epoch=table.epoch + 1, settings=values)
    write_table(directory, table)
    return table


@dataclass(frozen=True, slots=True)
class Members:
    """The partitions that have to run: those that own anything, and those whose letters still wait.

    `letters_apart` is how many more letters the others have posted than taken in: their owners have them.
    """

    active: list[int]
    letters_apart: int

    @classmethod
    def of(cls, directory: Path, table: Table) -> "Members":
        """Look at those that own nothing."""
        active = set(table.owners)
        letters_apart = 0
        for number in sorted(set(range(len(table.members))) - active):
            with open_crawl_for_reading(member_directory(directory, number)) as crawl:
                letters = crawl.letters()
            if letters.waiting:
                active.add(number)
            else:
                letters_apart += letters.posted - letters.taken
        return cls(sorted(active), letters_apart)
