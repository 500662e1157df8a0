"""A whole crawl in partitions in this process, without a network or a wait: real coordinators, letters handed over by hand.

Its steps come in any order (`rng`). All partitions make their checkpoints at once, so that the web's account of what may be
asked again (`testing.watch`) holds for all of them.
"""

import random
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

from crawlkit.cluster.moves import finish_moves, repartition
from crawlkit.config import Config
from crawlkit.engine.abroad import Abroad
from crawlkit.engine.coordinator import Coordinator
from crawlkit.engine.ending import Ending
from crawlkit.engine.hook import Callers
from crawlkit.model import Fetched
from crawlkit.policy.partition import Owners
from crawlkit.policy.scope import Scope
from crawlkit.policy.urls import host_of
from crawlkit.state.crawl import CrawlState
from crawlkit.state.letters import decode_letter
from crawlkit.state.partitions import Table, member_directory, read_table, seal_partitioned, write_seeds, write_table
from crawlkit.state.reading import open_crawl_for_reading
from crawlkit.testing.clock import ManualClock
from crawlkit.testing.outcome import dump
from crawlkit.testing.watch import Flight, Watch
from crawlkit.testing.world import RETRIES, Origin, RobotsPlan, World, make_world

MOST_STEPS = 40_000
MOST_LETTERS = 20


def world_of_hosts(seed: int, hosts: int = 3) -> World:
    """Return the first world from `seed` on with so many hosts; none asks another for its robots.txt, which partitions do
    without telling each other."""
    while len(make_world(seed).graph.bases) < hosts:
        seed += 1_000
    world = make_world(seed)
    origins = {base: origin if origin.hops == 0 else Origin(RobotsPlan.MISSING) for base, origin in world.origins.items()}
    return replace(world, origins=origins, robots_hops={f"{base}/robots.txt": (base, 0) for base in origins})


class Member:
    """One partition, open."""

    def __init__(self, crawl: "PartitionedCrawl", number: int, state: CrawlState, owners: Owners) -> None:
        self.number = number
        self.state = state
        self.letters = state.letters
        callers = Callers(abroad=Abroad(state.letters, owners, number))
        self.coordinator = Coordinator(state, crawl.config, crawl.scope, crawl.clock.now(), callers, most_hosts=2)
        self.flights: list[Flight] = []


class PartitionedCrawl:
    """One crawl of one world, over as many runs as it takes."""

    def __init__(self, world: World, directory: Path, rng: random.Random, partitions: int = 1, **settings: Any) -> None:
        self.world = world
        self.directory = directory
        self.rng = rng
        self.clock = ManualClock()
        defaults = {"retries": RETRIES, "sitemaps": bool(world.sitemaps.listed), "workers": 4, "delay": 1.0}
        self.config = Config(**{**defaults, **settings})
        self.scope = Scope.of(world.seeds, self.config)
        self.expected = world.expected(self.config.max_depth)
        self.watch = Watch(world, rng, self.expected)
        self.killed = False
        self._receipts: list[tuple[Member, int, int]] = []
        self._make(partitions)

    def _make(self, partitions: int) -> None:
        owners = Owners.even(partitions)
        members = []
        for number in range(partitions):
            with CrawlState.create(member_directory(self.directory, number), self.config) as state:
                member = Member(self, number, state, owners)
                own = [url for url in self.world.seeds if owners.of(host_of(url)) == number]
                for place, url in enumerate(own):
                    state.add_seed(place, url)
                member.coordinator.admit_seeds(own)
                member.coordinator.end(Ending.SIGINT, self.clock.now()).write()
                state.installed()
                state.seal()
                members.append(state.crawl_id)
        write_seeds(self.directory, self.world.seeds)
        write_table(self.directory, Table("all", members, list(owners.table)))
        seal_partitioned(self.directory, "all")

    # Partitions ------------------------------------------------------------------------------------------------------

    @property
    def table(self) -> Table:
        return read_table(self.directory)

    def members(self) -> list[Path]:
        return [member_directory(self.directory, number) for number in range(len(self.table.members))]

    def repartition(self, partitions: int) -> Table:
        return repartition(self.directory, partitions, self.clock.now())

    def finish_moves(self) -> Table:
        return finish_moves(self.directory, self.clock.now())

    def dump(self) -> bytes:
        """The records of all partitions, as one report has them."""
        records = [record for member in self.members() for record in _records(member)]
        return dump(sorted(records, key=lambda record: record.url.encode()))

    # Running ---------------------------------------------------------------------------------------------------------

    def run(self, steps: int | None = None, *, stop: bool = False) -> bool:
        """Run all partitions until the crawl ends, which is told; after `steps` stop cleanly, or be killed."""
        quiet_until_s = self.clock.now() if self.killed else -1e12
        with ExitStack() as resources:
            owners = Owners(tuple(self.table.owners))
            states = [resources.enter_context(CrawlState.open(member)) for member in self.members()]
            members = [Member(self, number, state, owners) for number, state in enumerate(states)]
            self._receipts = [  # those of the run before may have been lost
                (sender, node, members[owners.table[node]].letters.high_water(node, sender.number))
                for sender in members
                for node in sender.letters.waiting_nodes()
            ]
            self._checkpoint(members)
            for number in range(MOST_STEPS):
                if number == steps:
                    self._end(members) if stop else self._kill(members)
                    return False
                if not self._step(members, owners, quiet_until_s):
                    self._end(members)
                    return True
        raise AssertionError("the crawl does not end")

    def _step(self, members: list[Member], owners: Owners, quiet_until_s: float) -> bool:
        """Do something, or let time pass; False if there is nothing left to do."""
        steps = [step for member in members for step in self._steps_of(member, members, owners, quiet_until_s)]
        if self.rng.random() < (0.1 if steps else 0.5):
            self._checkpoint(members)
        elif steps:
            self.rng.choice(steps)()
        elif all(each.coordinator.exhausted and not each.flights and not each.letters.waiting for each in members):
            return False
        else:
            self._pass_time(members)
        return True

    def _steps_of(self, member: Member, members: list[Member], owners: Owners, quiet_until_s: float) -> Iterator[Any]:
        now = self.clock.now()
        landed = [flight for flight in member.flights if flight.landed_s <= now]
        if landed:
            yield lambda: self._settle(member, self.rng.choice(landed))
        due = None if member.coordinator.budget_spent() else member.coordinator.next_time()
        if due is not None and due <= now and len(member.flights) < self.config.workers:
            yield lambda: self._claim(member, quiet_until_s)
        if member.coordinator.owes_work or member.coordinator.idle_work:
            yield member.coordinator.work
        if self._deliverable(member, members, owners):
            yield lambda: self._deliver(member, members, owners)

    def _claim(self, member: Member, quiet_until_s: float) -> None:
        job = member.coordinator.claim(self.clock.now())
        if job is not None:
            member.flights.append(self.watch.start(job, self.config, self.clock.now(), quiet_until_s))

    def _settle(self, member: Member, flight: Flight) -> None:
        member.flights.remove(flight)
        fetched = Fetched(flight.job, flight.started_s, flight.landed_s, flight.answer, sitemap=flight.sitemap)
        member.coordinator.settle(fetched, self.clock.now())
        self.watch.settled(flight, self.clock.now())

    def _deliverable(self, sender: Member, members: list[Member], owners: Owners) -> list[tuple[int, int, list[bytes]]]:
        found = []
        for node in sender.letters.waiting_nodes():
            high = members[owners.table[node]].letters.high_water(node, sender.number)
            letters = sender.letters.after(node, high, MOST_LETTERS)
            if letters:
                found.append((node, high, letters))
        return found

    def _deliver(self, sender: Member, members: list[Member], owners: Owners) -> None:
        node, high, letters = self.rng.choice(self._deliverable(sender, members, owners))
        to = members[owners.table[node]]
        for letter in letters:
            to.coordinator.receive(decode_letter(letter), self.clock.now())
        to.letters.take(node, sender.number, high + len(letters))
        self._receipts.append((sender, node, high + len(letters)))

    def _pass_time(self, members: list[Member]) -> None:
        now = self.clock.now()
        moments = [flight.landed_s for member in members for flight in member.flights]
        for member in members:
            due = None if member.coordinator.budget_spent() else member.coordinator.next_time()
            if due is not None and len(member.flights) < self.config.workers:
                moments.append(due)
        if moments:
            self.clock.advance(max(0.0, min(moments) - now) + self.rng.choice((1e-6, 0.05, 1.0)))
        else:
            self._checkpoint(members)  # letters wait for their receipts

    def _checkpoint(self, members: list[Member]) -> None:
        self.watch.frozen()
        for member in members:
            member.coordinator.freeze(self.clock.now()).write()
            member.state.installed()
        self._written()

    def _written(self) -> None:
        self.watch.written()
        for sender, node, number in self._receipts:
            sender.letters.acknowledge(node, number)
        self._receipts.clear()

    def _end(self, members: list[Member]) -> None:
        """End cleanly, when what is in flight has landed."""
        for member in members:
            while member.flights:
                self.clock.advance(max(0.0, member.flights[0].landed_s - self.clock.now()))
                self._settle(member, member.flights[0])
        over = all(member.coordinator.exhausted and not member.letters.waiting for member in members)
        self.watch.frozen()
        for member in members:
            how = member.coordinator.ending() if over else Ending.SIGINT
            member.coordinator.end(how, self.clock.now()).write()
            member.state.installed()
        self._written()
        self.killed = False

    def _kill(self, members: list[Member]) -> None:
        self.watch.killed([flight for member in members for flight in member.flights], self.clock.now(), lost_filter=False)
        self.killed = True


def _records(member: Path) -> Iterator[Any]:
    with open_crawl_for_reading(member) as crawl:
        yield from list(crawl.pages.walk())
