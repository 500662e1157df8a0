"""Whole crawls in partitions without a network, a process or a sleep: killed at random, against a model.

    python -m crawlkit.testing.partitioned_simulation --seeds 1000 --first 1

Each seed makes a world of several domains (`testing.world`), settings, and a life of runs of one to four partitions
(`testing.partition`) and the real `Conductor`, over ways that delay, lose, repeat and reorder (`testing.ways`). Partitions are
killed one at a time or all together with their driver, stopped, and started again; messages of a run may arrive in a later
one. What came of it is compared with the model and with an undisturbed crawl that is one. A seed always does the same.
"""

import argparse
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, TypeVar

from crawlkit.cluster.founding import Founding
from crawlkit.cluster.running import Members, has_finished, replace_settings
from crawlkit.config import Config, changed_config
from crawlkit.engine.ending import Ending
from crawlkit.engine.partitions import Partitions
from crawlkit.engine.verify import Thoroughness
from crawlkit.engine.verify_partitions import verify_partitions
from crawlkit.model import OrderReason
from crawlkit.policy.disposition import is_transient
from crawlkit.policy.partition import Owners
from crawlkit.policy.urls import host_of
from crawlkit.state.counters import summed
from crawlkit.state.crawl import CrawlState
from crawlkit.state.findings import Rule
from crawlkit.state.partitions import member_directory, read_table
from crawlkit.testing.archived import archive_settings
from crawlkit.testing.clock import ManualClock
from crawlkit.testing.draws import depth_limits
from crawlkit.testing.draws import manners as drawn_manners
from crawlkit.testing.outcome import check_outcome, dump, report_of
from crawlkit.testing.partition import Scene
from crawlkit.testing.partitioned_run import Figures, Places, Run
from crawlkit.testing.simulation import Simulation, naming
from crawlkit.testing.watch import Watch, check_for_traps, require
from crawlkit.testing.ways import Post, Weather
from crawlkit.testing.world import RETRIES, make_divided_world

MOST_RUNS = 4
MOST_DEATHS = 5


class PartitionedSimulation:
    """One crawl of one world in partitions, over as many runs as it takes."""

    def __init__(self, seed: int, directory: Path) -> None:
        self.world = make_divided_world(seed)
        self.rng = random.Random(f"partitions {seed}")
        self.fate = random.Random(f"archives {seed}")
        self.clock = ManualClock()
        self.skew_s = 0.0
        self.directory = directory
        partitions = self.rng.choice((1, 2, 2, 3, 4))
        self.owners = Owners.even(partitions)
        self.members = [member_directory(directory, number) for number in range(partitions)]
        self.limits = depth_limits(self.rng)
        self.budget = self.rng.choice((1, 1, 2, 3, 5)) if self.world.has_texts else Config().template_budget
        self.expected = self.world.expected(self.limits[-1])
        own = [{url for url in self.expected if self.owners.of(host_of(url)) == number} for number in range(partitions)]
        self.places = Places(self.members, [Watch(self.world, self.rng, urls) for urls in own])
        self.post = Post(self.rng, Weather.drawn(self.rng))
        self.weather = Weather.drawn(self.rng)
        self.figures = Figures()
        self._spoilt = () if self.world.has_texts else ("empty",)  # what a filter forgot is paid for once more
        # A filter that we took bits from lacks them, and leaves rows of which only their own partition's check knows.
        self._unseen = {Rule.FILTER, Rule.SEEDS, Rule.EDGES_DISTANCES} if self._spoilt else set[Rule]()
        self._disturbances = self.rng.randint(0, MOST_RUNS)
        self.config = Config(
            retries=RETRIES,
            max_depth=self.limits[0],
            max_pages=None if self.rng.random() < 0.6 else self.rng.randint(1, 40),
            sitemaps=bool(self.world.sitemaps.listed),
            template_budget=self.budget,
            **drawn_manners(self.rng),
            **archive_settings(self.fate),
        )

    def run(self) -> bytes:
        """Crawl to the end; return the dump of the records. SimulationError if a promise is broken on the way."""
        span = self.world.seeds
        Founding(span, self.config, self.owners, {}, self.clock).make_all(self.directory, len(self.members))
        how: Ending | None = Ending.SIGINT
        while how is not Ending.FINISHED or self.config.max_depth != self.limits[-1]:
            how = self._go_on(how)
            self._check_state()
        return self._check_end()

    def _go_on(self, before: Ending | None) -> Ending | None:
        """Let the driver run once, and end one way or another."""
        self._pass_time(killed=before is None)
        changes = self._changes(before)
        table = read_table(self.directory)
        members = Members.of(self.directory, table)
        if not changes and has_finished(self.directory, table, members.active):
            return Ending.FINISHED
        self.config = changed_config(Config.from_values(table.settings), changes)
        table = replace_settings(self.directory, table, self.config)
        self.figures.runs += 1
        run = Run(self._scene(table.epoch), self.places, members, self.figures)
        if self._disturbances == 0:
            return run.run((), None, stop=False)
        self._disturbances -= 1
        deaths = [self._moment() for _ in range(self.rng.randint(0, MOST_DEATHS))]
        end = self._moment() if self.rng.random() < 0.7 else None
        return run.run(deaths, end, stop=self.rng.random() < 0.3)

    def _scene(self, epoch: int) -> Scene:
        return Scene(
            self.rng, self.fate, self.clock, self.skew_s, self.config, self.world.seeds, self.owners, epoch,
            self.post, self.weather,
            spoilt=self._spoilt,
        )  # fmt: skip

    def _moment(self) -> int:
        return self.rng.choice((int(2 ** (self.rng.random() * 11)), self.rng.randint(0, 800)))

    def _changes(self, before: Ending | None) -> dict[str, Any]:
        changes = drawn_manners(self.rng) if self._disturbances and self.rng.random() < 0.3 else {}
        later = self.limits[self.limits.index(self.config.max_depth) + 1 :]
        if later and (before is Ending.FINISHED or self.rng.random() < 0.3):
            changes["max_depth"] = later[0]
        if before is Ending.LIMIT_PAGES:
            changes["max_pages"] = None
        return changes

    def _pass_time(self, *, killed: bool) -> None:
        """Let time pass; the wall clock may be set back, and after a kill forward too."""
        self.clock.advance(self.rng.choice((0.0, 0.5, 30.0)))
        jump_s = self.rng.choice((0.0, 0.0, 0.0, -5.0, -4000.0, 4000.0 if killed else 0.0))
        self.skew_s += jump_s
        if jump_s:
            for watch in self.places.watches:
                watch.forget_holds()

    # What has to hold between runs -----------------------------------------------------------------------------------

    def _check_state(self) -> None:
        report = verify_partitions(Partitions.read(self.directory), Thoroughness.DEEP).report
        broken = {rule: found for rule, found in report.broken.items() if rule not in self._unseen}
        require(not broken, f"the state on disk breaks {broken}")
        with self._states() as states:
            self._check_letters(states, finished=False)

    @contextmanager
    def _states(self) -> Iterator[list[CrawlState]]:
        with ExitStack() as opened:
            yield [opened.enter_context(CrawlState.open(directory)) for directory in self.members]

    def _check_letters(self, states: list[CrawlState], *, finished: bool) -> None:
        """Check that each letter is where it was posted or where it belongs."""
        for sender, state in enumerate(states):
            for node, last in state.letters.numbers().items():
                owner = self.owners.table[node]
                taken, forgotten = states[owner].letters.high_water(node, sender), state.letters.acknowledged(node)
                where = f"node {node} from {sender} to {owner}: {forgotten} forgotten, {taken} taken in, {last} posted"
                require(forgotten <= taken <= last, where)
                require(not finished or forgotten == last, where)

    # The end ---------------------------------------------------------------------------------------------------------

    def _check_end(self) -> bytes:
        for watch in self.places.watches:
            watch.check_repeats()
        with self._states() as states:
            self._check_letters(states, finished=True)
            posted, taken = (sum(getattr(state.letters, name) for state in states) for name in ("posted", "taken"))
            require(posted == taken, f"{posted} letters were posted and {taken} taken in")
            self.figures.letters += posted
            counters = [state.counters for state in states]
            records = [list(state.pages.walk()) for state in states]
        for number, own in enumerate(records):
            for record in own:
                require(self.owners.of(host_of(record.url)) == number, f"{record.url} is in partition {number}")
            require(counters[number].finished, f"partition {number} does not say that it has finished")
        united = sorted((record for own in records for record in own), key=lambda record: record.url.encode())
        total = summed(counters)
        check_outcome(self.world, self.limits[-1], {record.url: record for record in united}, total)
        kinds = [record.kind for record in united]
        counted = (total.pages, total.redirects, total.failures, total.excluded)
        require(counted == tuple(kinds.count(kind) for kind in type(kinds[0])), f"the counters say {counted}")
        require((total.queued, total.held, total.sitemaps) == (0, 0, 0), f"something waits: {total}")
        require(total.seen == len(united), f"{total.seen} seen, {len(united)} records")
        require(total.hosts == len({host_of(record.url) for record in united}), f"the counters say {total.hosts} hosts")
        transient = {OrderReason.TRANSIENT} if any(is_transient(record.reason) for record in united) else set[str]()
        if total.sitemaps_failed:  # that of a host whose robots.txt could not be had, perhaps
            transient |= total.reasons & {OrderReason.TRANSIENT}
        require(total.reasons - {OrderReason.TRAP} == transient, f"the report is said to depend on {total.reasons}")
        check_for_traps(total)
        return dump(united)


S = TypeVar("S", bound=PartitionedSimulation)


def simulate(seed: int) -> Figures:
    """Crawl the world of `seed` as one, undisturbed, and in partitions; SimulationError if a promise is broken."""
    return simulated(PartitionedSimulation, seed, "partitioned_simulation").figures


def simulated(kind: Callable[[int, Path], S], seed: int, module: str) -> S:
    """Return the crawl in partitions, of some kind, that was compared with the one that is one.

    `module` is whose command repeats it where it fails.
    """
    shared_memory = Path("/dev/shm")  # where there is one: nothing is meant to outlive this
    with (
        naming(seed, module),
        tempfile.TemporaryDirectory(dir=shared_memory if shared_memory.is_dir() else None) as directory,
    ):
        divided = kind(seed, Path(directory) / "divided")
        whole = report_of(_undisturbed(seed, Path(directory) / "whole", divided).run)
        own = report_of(divided.run)
        divided.figures.traps += own is None
        same = None in (whole, own) or whole == own
        require(same, "the report of the crawl in partitions differs from that of the one that is one")
        return divided


def _undisturbed(seed: int, directory: Path, divided: PartitionedSimulation) -> Simulation:
    limits, budget = divided.limits[-1:], divided.budget
    return Simulation(seed, directory, calm=True, world=divided.world, limits=limits, template_budget=budget)


def seeds_of(module: str, arguments: Sequence[str] | None) -> range:
    """Return the seeds that the arguments of this module's command name."""
    parser = argparse.ArgumentParser(prog=f"python -m crawlkit.testing.{module}", description="Simulate seeded crawls.")
    parser.add_argument("--seeds", type=int, required=True, help="how many")
    parser.add_argument("--first", type=int, default=1)
    given = parser.parse_args(arguments)
    return range(given.first, given.first + given.seeds)


def main(arguments: Sequence[str] | None = None) -> None:
    """Simulate some seeds, then print one line; the first broken promise ends it with a traceback."""
    seeds = seeds_of("partitioned_simulation", arguments)
    began_s = time.monotonic()
    total: Counter[str] = Counter()
    for seed in seeds:
        figures = simulate(seed)
        total.update({name: getattr(figures, name) for name in Figures.__slots__})
    took_s = time.monotonic() - began_s
    rate = len(seeds) / took_s * 60
    line = Figures(**total).line()
    sys.stdout.write(f"{len(seeds)} seeds from {seeds[0]} in {took_s:.1f} s: {rate:.0f} seeds/minute; {line}, all kept\n")


if __name__ == "__main__":
    main()
