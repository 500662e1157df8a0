"""Simulated crawls in partitions whose number changes from run to run, the moves being killed as well.

    python -m crawlkit.testing.moving_simulation --seeds 1000 --first 1

As `testing.partitioned_simulation`; before some runs virtual nodes move to more or fewer partitions. That is cut short at
random, once or several times, and done again. The hosts of the web keep their account of the crawler, whoever asks them.
"""

import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from crawlkit import durable
from crawlkit.cluster.moves import finish_moves, repartition
from crawlkit.policy.partition import Owners
from crawlkit.policy.urls import host_of
from crawlkit.state import moving, store
from crawlkit.state.checkpoint import read_summary
from crawlkit.state.partitions import member_directory, read_table
from crawlkit.testing.partitioned_simulation import PartitionedSimulation, seeds_of, simulated
from crawlkit.testing.watch import Watch, require

_STEPS: tuple[tuple[Any, str], ...] = ((store, "_write_synced"), (durable, "_sync"), (durable, "_rename"))
"""What reaches the disk: each batch, each file that is replaced."""


class Killed(BaseException):
    """The end: nothing after it reaches the disk."""


class Steps:
    """Counts steps, before and after each; at the one with the number `fatal` (from 0), and from then on, all end in Killed."""

    def __init__(self, fatal: int | None) -> None:
        self.count = 0
        self._fatal = fatal

    def hit(self) -> None:
        """Note that a step begins or is done."""
        self.count += 1
        if self._fatal is not None and self.count > self._fatal:
            raise Killed


@contextmanager
def killed_at(fatal: int | None, rows_a_batch: int = moving.ROWS_A_BATCH) -> Iterator[Steps]:
    """Count the steps of the block, and end it at one of them, if that is reached. Rows move so many a batch."""
    steps = Steps(fatal)
    originals = [(owner, name, getattr(owner, name)) for owner, name in _STEPS]
    usual = moving.ROWS_A_BATCH
    moving.ROWS_A_BATCH = rows_a_batch
    for owner, name, original in originals:
        setattr(owner, name, _around(steps, original))
    try:
        yield steps
    except Killed:
        pass
    finally:
        moving.ROWS_A_BATCH = usual
        for owner, name, original in originals:
            setattr(owner, name, original)


def _around(steps: Steps, original: Callable[..., Any]) -> Callable[..., Any]:
    def step(*arguments: Any) -> Any:
        steps.hit()
        result = original(*arguments)
        steps.hit()
        return result

    return step


class MovingSimulation(PartitionedSimulation):
    """One crawl of one world, in another number of partitions now and then. It keeps no archive."""

    def __init__(self, seed: int, directory: Path) -> None:
        super().__init__(seed, directory)
        self.config = replace(self.config, warc=False)
        self.moves = Counter[str]()

    def _pass_time(self, *, killed: bool) -> None:
        super()._pass_time(killed=killed)
        if self.rng.random() < 0.7:
            self._move(self.rng.randint(1, 5))

    def _move(self, partitions: int) -> None:
        """Change the number of partitions, however often that is killed."""
        while self.rng.random() < 0.5:
            with killed_at(self.rng.randint(0, 120), self.rng.choice((5, 50, 500))):
                repartition(self.directory, partitions, self._now())
            self.moves["killed"] += not read_table(self.directory).settled
        if self.rng.random() < 0.3:  # as by a resume that asks for nothing
            finish_moves(self.directory, self._now())
        table = repartition(self.directory, partitions, self._now())
        require(table.settled and len(set(table.owners)) == partitions, f"the table says {table}")
        self._hand_over(Owners(tuple(table.owners)), len(table.members))
        self.moves["made"] += 1

    def _now(self) -> float:
        return self.clock.now() + self.skew_s

    def _hand_over(self, owners: Owners, members: int) -> None:
        """Let the web's account of each host be that of its new owner."""
        places = self.places
        for number in range(len(self.members), members):
            self.members.append(member_directory(self.directory, number))
            places.watches.append(Watch(self.world, self.rng, set()))
        for number, watch in enumerate(places.watches):
            watch.admitted = {url for url in self.expected if owners.of(host_of(url)) == number}
        for giver, watch in enumerate(list(places.watches)):
            for host in sorted(watch.hosts()):
                if self.owners.of(host) == giver != owners.of(host):
                    was_killed = giver in places.killed_s
                    watch.hand_over(host, places.watches[owners.of(host)], self.clock.now() if was_killed else None)
        self.owners = owners
        for number, directory in enumerate(self.members):
            places.pages[number] = read_summary(directory).counters.pages


def simulate(seed: int) -> Counter[str]:
    """Crawl the world of `seed` as one, undisturbed, and in partitions; SimulationError if a promise is broken."""
    return simulated(MovingSimulation, seed, "moving_simulation").moves


def main(arguments: Sequence[str] | None = None) -> None:
    """Simulate some seeds, then print one line; the first broken promise ends it with a traceback."""
    seeds = seeds_of("moving_simulation", arguments)
    began_s = time.monotonic()
    total: Counter[str] = Counter()
    for seed in seeds:
        total += simulate(seed)
    took_s = time.monotonic() - began_s
    line = f"{total['made']} moves, {total['killed']} times killed on the way"
    sys.stdout.write(f"{len(seeds)} seeds from {seeds[0]} in {took_s:.1f} s; {line}, all promises kept\n")


if __name__ == "__main__":
    main()
