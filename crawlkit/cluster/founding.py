"""Making a crawl in partitions: a directory with its seeds for each, then the table, then `CRAWL`, which makes it exist."""

import asyncio
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from crawlkit.clock import Clock
from crawlkit.cluster.places import Here, Places
from crawlkit.config import Config, to_toml, to_values
from crawlkit.durable import replace_file
from crawlkit.engine.abroad import Abroad
from crawlkit.engine.coordinator import Coordinator
from crawlkit.engine.hook import Callers
from crawlkit.engine.network import check_network, seeds_private_addresses
from crawlkit.engine.plugging import load_plugins
from crawlkit.engine.rendering.opening import check_renderer
from crawlkit.engine.session import admit_seeds
from crawlkit.errors import UsageError
from crawlkit.model import GroupBy, OrderReason
from crawlkit.policy.partition import Owners
from crawlkit.policy.scope import Scope
from crawlkit.policy.urls import host_of
from crawlkit.state import directory as files
from crawlkit.state import layout
from crawlkit.state.checkpoint import MADE
from crawlkit.state.crawl import CrawlState
from crawlkit.state.partitions import Table, member_directory, seal_partitioned, write_seeds, write_table
from crawlkit.state.space import check_space


def check_settings(config: Config) -> None:
    """UsageError for settings that partitions cannot keep."""
    if config.group_by is not GroupBy.HOST:
        raise UsageError("--group-by address cannot go with --partitions: hosts of one address may be in different partitions")


async def found_crawl(
    urls: Sequence[str], directory: Path, config: Config, partitions: int, clock: Clock, places: Places | None = None
) -> None:
    """Make a crawl in `partitions` partitions (1 to `VIRTUAL_NODES`) that begins with seeds `urls`, in normal form.

    Its partitions lie in `places`, by default here.

    UsageError, ConfigError for settings that cannot be, StateError and its kinds for the directory, StorageError.
    """
    check_settings(config)
    plugged = load_plugins(config.plugin)
    config = replace(config, plugin=plugged.pins)
    check_network(config)
    check_renderer(config, os.environ)
    check_space(directory, config.min_free_disk)
    private = await seeds_private_addresses(urls, config)
    founding = Founding(tuple(urls), config, Owners.even(partitions), private, clock)
    places = places or Here()
    with files.prepare(directory):
        write_seeds(directory, urls)
        await places.place(directory, partitions)
        makes = (places.at(number, partial(founding.make, number)) for number in range(partitions))
        founding.seal(directory, await asyncio.gather(*makes))


@dataclass(frozen=True, slots=True)
class Founding:
    """What the partitions of a new crawl have in common: plain values, as they may be made on other machines."""

    urls: Sequence[str]
    config: Config
    owners: Owners
    private: Mapping[str, Iterable[str]]
    clock: Clock

    def make_all(self, directory: Path, partitions: int) -> None:
        """Make the crawl in `directory`, all of it here. StateError and its kinds if that holds anything else."""
        with files.prepare(directory):
            write_seeds(directory, self.urls)
            self.seal(directory, [self.make(number, member_directory(directory, number)) for number in range(partitions)])

    def seal(self, directory: Path, members: Sequence[str]) -> None:
        """Make a directory a crawl of these partitions."""
        crawl_id = files.new_crawl_id()
        replace_file(directory / layout.CONFIG, to_toml(self.config).encode())
        write_table(directory, Table(crawl_id, list(members), list(self.owners.table), settings=to_values(self.config)))
        seal_partitioned(directory, crawl_id)

    def make(self, number: int, directory: Path) -> str:
        """Make a partition with those seeds that belong to it; return its crawl id."""
        scope = Scope.of(self.urls, self.config, load_plugins(self.config.plugin).accepts)
        clock = self.clock
        with CrawlState.create(directory, self.config) as state:
            state.allow_private(self.private)
            callers = Callers(abroad=Abroad(state.letters, self.owners, number))
            coordinator = Coordinator(state, self.config, scope, clock.now(), callers)
            if self.config.plugin:
                state.counters.depend(OrderReason.HOOK)
            own = [url for url in self.urls if self.owners.of(host_of(url)) == number]
            admit_seeds(state, coordinator, own, clock)
            coordinator.note_time(clock.now())
            state.end_run(clock.now(), MADE)
            coordinator.freeze(clock.now()).write()
            state.installed()
            state.seal()
            return state.crawl_id
