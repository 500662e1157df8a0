"""Whole crawls without a network or a sleep: the real coordinator over a real state, killed at random, against a model.

    python -m crawlkit.testing.simulation --seeds 10000 --first 1

Each seed makes a world (`testing.world`), settings, and a life of runs: requests are started, answered and settled in a
random order at random times; checkpoints are frozen and written at random moments; runs are killed (what was frozen lost, or
written while `CHECKPOINT` was not) or stopped, and opened again at another wall time with other settings. Manners are checked
at every request (`testing.watch`), repeats after every kill, records (`testing.outcome`) and rows on disk at the end. A seed
always does the same.
"""

import argparse
import random
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from crawlkit.config import Config, changed_config
from crawlkit.engine.archiving import open_archive
from crawlkit.engine.coordinator import Coordinator
from crawlkit.engine.ending import Ending
from crawlkit.engine.verify import Thoroughness, verify
from crawlkit.model import Fetched, OrderReason
from crawlkit.policy.disposition import is_transient
from crawlkit.policy.scope import Scope
from crawlkit.policy.urls import host_of
from crawlkit.state.crawl import Checkpoint, CrawlState
from crawlkit.state.findings import Rule
from crawlkit.state.layout import ARCHIVE, BLOOM, CHECKPOINT
from crawlkit.testing.aftermath import spoil_filter, tear_archive
from crawlkit.testing.archived import archive_settings, exchange_of
from crawlkit.testing.clock import ManualClock
from crawlkit.testing.draws import depth_limits, drawn_budget
from crawlkit.testing.draws import manners as drawn_manners
from crawlkit.testing.outcome import check_outcome, check_refusals, dump, report_of
from crawlkit.testing.watch import Flight, SimulationError, Watch, check_for_traps, require
from crawlkit.testing.world import RETRIES, World, make_world

MOST_STEPS = 40_000
MOST_KILLS = 5


class _Run:
    """One run from its opening to its end or its kill, taken apart into steps that come in any order."""

    def __init__(self, simulation: "Simulation", state: CrawlState, coordinator: Coordinator, quiet_until_s: float) -> None:
        self._rng = simulation.rng
        self._watch = simulation.watch
        self._clock = simulation.clock
        self._skew_s = simulation.skew_s
        self._config = simulation.config
        self._state = state
        self._coordinator = coordinator
        self._fate = simulation.fate
        self._spoilt = simulation.spoilt
        self._quiet_until_s = quiet_until_s
        self._flights: list[Flight] = []
        self._writing: Checkpoint | None = None
        self._idle_until_s = -1.0  # nothing to claim before, in wall time
        self._stopping = False

    def run(self, steps: int | None, *, stop: bool) -> Ending | None:
        """Take steps until the crawl ends; after `steps` of them stop cleanly, or be killed (None)."""
        for number in range(MOST_STEPS):
            if number == steps:
                if not stop:
                    self._kill()
                    return None
                self._stopping = True
            if not self._flights and (self._stopping or self._coordinator.exhausted):
                return self._end()
            self._step()
        raise SimulationError(f"the crawl did not end within {MOST_STEPS} steps")

    def _now(self) -> float:
        return self._clock.now() + self._skew_s

    def _step(self) -> None:
        """Take one of the steps that are possible, or let time pass if there is none."""
        now = self._clock.now()
        landed = [flight for flight in self._flights if flight.landed_s <= now]
        steps: list[Any] = []
        if landed:
            steps.append(lambda: self._settle(self._rng.choice(landed)))
        if not self._stopping and len(self._flights) < self._config.workers and self._now() >= self._idle_until_s:
            steps.append(self._claim)
        if self._coordinator.owes_work or self._coordinator.idle_work:
            steps.append(self._work)
        if self._rng.random() < (0.1 if steps else 0.3):
            self._checkpoint()
        if steps:
            self._rng.choice(steps)()
        else:
            self._pass_time(now)

    def _claim(self) -> None:
        job = self._coordinator.claim(self._now())
        if job is not None:
            self._flights.append(self._watch.start(job, self._config, self._clock.now(), self._quiet_until_s))
            return
        due = None if self._coordinator.budget_spent() else self._coordinator.next_time()
        self._idle_until_s = float("inf") if due is None else due

    def _work(self) -> None:
        self._coordinator.work()
        self._idle_until_s = -1.0

    def _settle(self, flight: Flight) -> None:
        self._flights.remove(flight)
        exchange = exchange_of(flight.job, flight.answer) if self._config.warc else None
        started_s, ended_s = flight.started_s + self._skew_s, flight.landed_s + self._skew_s
        fetched = Fetched(flight.job, started_s, ended_s, flight.answer, exchange, sitemap=flight.sitemap)
        self._coordinator.settle(fetched, self._now())
        self._watch.settled(flight, self._clock.now())
        self._idle_until_s = -1.0
        limit = self._config.max_pages
        require(limit is None or self._state.counters.pages <= limit, "the limit on pages is exceeded")

    def _pass_time(self, now: float) -> None:
        """Go to the next moment at which something can happen, or a little beyond."""
        moments = [flight.landed_s for flight in self._flights]
        if not self._stopping and len(self._flights) < self._config.workers and self._idle_until_s != float("inf"):
            moments.append(self._idle_until_s - self._skew_s)
        require(bool(moments), "nothing is in flight or due, and the crawl has not ended")
        self._clock.advance(max(0.0, min(moments) - now) + self._rng.choice((0.0, 0.0, 1e-9, 0.05, 1.0)))

    # Checkpoints -----------------------------------------------------------------------------------------------------

    def _checkpoint(self) -> None:
        """Freeze a checkpoint, or write the one that is frozen."""
        if self._writing is None:
            self._writing = self._freeze()
        else:
            self._write(self._writing)

    def _freeze(self) -> Checkpoint:
        self._watch.frozen()
        return self._coordinator.freeze(self._now())

    def _write(self, checkpoint: Checkpoint) -> None:
        checkpoint.write()
        self._state.installed()
        self._watch.written()
        self._writing = None

    def _end(self) -> Ending:
        if self._writing is not None:
            self._write(self._writing)
        how = Ending.SIGINT if self._stopping else self._coordinator.ending()
        self._watch.frozen()
        self._write(self._coordinator.end(how, self._now()))
        return how

    def _kill(self) -> None:
        """Lose what is not written; perhaps the moment is between a batch and its `CHECKPOINT`."""
        moment = self._rng.choice(("between", "frozen", "written"))
        if moment == "frozen" and self._writing is None:
            self._freeze()
        if moment == "written":
            checkpoint = self._writing or self._freeze()
            path = self._state.directory / CHECKPOINT
            before = path.read_bytes()
            self._write(checkpoint)
            path.write_bytes(before)
        filter_ = self._rng.choice(("kept", "kept", "missing", self._spoilt))
        self._state.close()
        tear_archive(self._state.directory / ARCHIVE, self._fate)
        self._watch.killed(self._flights, self._clock.now(), lost_filter=filter_ == "empty")
        spoil_filter(self._state.directory / BLOOM, filter_)


class Simulation:
    """One crawl of one world, over as many runs as it takes. With `calm` nothing disturbs it."""

    def __init__(
        self, seed: int, directory: Path, *, calm: bool = False, world: World | None = None,
        limits: list[int | None] | None = None, **settings: Any,
    ) -> None:  # fmt: skip
        """Draw it from the seed, but for a given world, given limits on depth and other settings."""
        self.world = make_world(seed) if world is None else world
        self.rng = random.Random(f"life {seed}")
        self.fate = random.Random(f"archive {seed}")
        self.clock = ManualClock()
        self.skew_s = 0.0
        self.directory = directory
        self._limits = depth_limits(self.rng) if limits is None else list(limits)
        if calm:
            del self._limits[:-1]
        self._disturbances = 0 if calm else self.rng.randint(0, MOST_KILLS)
        self.expected = self.world.expected(self._limits[-1])
        self.watch = Watch(self.world, self.rng, self.expected)
        self.spoilt = "missing" if self.world.has_texts else "empty"  # what a filter forgot is paid for once more
        max_pages = None if calm or self.rng.random() < 0.7 else self.rng.randint(1, 20)
        manners = {"workers": 1} if calm else drawn_manners(self.rng)
        self.config = Config(
            retries=RETRIES,
            max_depth=self._limits[0],
            max_pages=max_pages,
            sitemaps=bool(self.world.sitemaps.listed),
            **manners,
            **archive_settings(self.fate),
            **{"template_budget": drawn_budget(self.world, seed), **settings},
        )

    def run(self) -> bytes:
        """Crawl to the end; return the dump of the records. SimulationError if a promise is broken on the way."""
        self._begin()
        how: Ending | None = Ending.SIGINT
        while how is not Ending.FINISHED or self.config.max_depth != self._limits[-1]:
            how = self._go_on(how)
            self._check_state()
        return self._check_end()

    def _begin(self) -> None:
        with CrawlState.create(self.directory, self.config) as state:
            open_archive(state, self.config)
            coordinator = Coordinator(state, self.config, Scope.of(self.world.seeds, self.config), self._now())
            for number, url in enumerate(self.world.seeds):
                state.add_seed(number, url)
            coordinator.admit_seeds(self.world.seeds)
            coordinator.end(Ending.SIGINT, self._now()).write()
            state.installed()
            state.seal()

    def _now(self) -> float:
        return self.clock.now() + self.skew_s

    def _go_on(self, before: Ending | None) -> Ending | None:
        """Open the crawl, let it run, end it one way or another."""
        killed = before is None
        self._pass_time(killed=killed)
        with CrawlState.open(self.directory) as state:
            stored = state.config()
            changes = self._changes(stored, before)
            self.config = changed_config(stored, changes)
            scope, most_hosts = Scope.of(list(state.seeds()), self.config), self.rng.choice((1, 2, 8_192))
            coordinator = Coordinator(state, self.config, scope, self._now(), most_hosts=most_hosts)
            open_archive(state, self.config)
            if changes:
                state.change_settings(self.config, changes)
            coordinator.freeze(self._now()).write()
            state.installed()
            run = _Run(self, state, coordinator, self.clock.now() if killed else -1e12)
            if self._disturbances == 0:
                return run.run(None, stop=False)
            self._disturbances -= 1
            steps = int(2 ** (self.rng.random() * 9))
            return run.run(steps, stop=self.rng.random() < 0.2)

    def _changes(self, stored: Config, before: Ending | None) -> dict[str, Any]:
        changes = drawn_manners(self.rng) if self._disturbances and self.rng.random() < 0.5 else {}
        later = self._limits[self._limits.index(stored.max_depth) + 1 :]
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
            self.watch.forget_holds()

    def _check_state(self) -> None:
        """Check every invariant of the state on disk; a filter that we took bits from may lack them."""
        report = verify(self.directory, Thoroughness.DEEP)
        broken = {rule: found for rule, found in report.broken.items() if rule is not Rule.FILTER}
        require(not broken, f"the state on disk breaks {broken}")

    # The end ---------------------------------------------------------------------------------------------------------

    def _check_end(self) -> bytes:
        self.watch.check_repeats()
        with CrawlState.open(self.directory) as state:
            counters = state.counters
            records = list(state.pages.walk())
            found = {record.url: record for record in records}
            check_outcome(self.world, self._limits[-1], found, counters)
            check_refusals(state, found, self.expected.keys() - found.keys(), self._limits[-1])
        kinds = [record.kind for record in records]
        counted = (counters.pages, counters.redirects, counters.failures, counters.excluded)
        require(counted == tuple(kinds.count(kind) for kind in type(kinds[0])), f"the counters say {counted}")
        left = (counters.queued, counters.held, counters.sitemaps)
        require((*left, counters.seen) == (0, 0, 0, len(records)), f"{counters} are left")
        require(counters.hosts == len({host_of(record.url) for record in records}), f"the counters say {counters.hosts} hosts")
        require(counters.finished, "the crawl has finished and does not say so")
        transient = {OrderReason.TRANSIENT} if any(is_transient(record.reason) for record in records) else set[str]()
        if counters.sitemaps_failed:  # that of a host whose robots.txt could not be had, perhaps
            transient |= counters.reasons & {OrderReason.TRANSIENT}
        require(counters.reasons - {OrderReason.TRAP} == transient, f"the report is said to depend on {counters.reasons}")
        check_for_traps(counters)
        return dump(records)


@contextmanager
def naming(seed: int, simulation: str = "simulation") -> Iterator[None]:
    """Raise what goes wrong in the block as SimulationError that names the seed and the command which repeats it."""
    try:
        yield
    except Exception as error:
        again = f"python -m crawlkit.testing.{simulation} --first {seed} --seeds 1"
        raise SimulationError(f"seed {seed}: {error!r}; repeat it: {again}") from error


def simulate(seed: int) -> None:
    """Crawl the world of `seed` undisturbed and disturbed; SimulationError, naming the seed, if a promise is broken."""
    shared_memory = Path("/dev/shm")  # where there is one: nothing is meant to outlive this
    with naming(seed), tempfile.TemporaryDirectory(dir=shared_memory if shared_memory.is_dir() else None) as directory:
        calm = report_of(Simulation(seed, Path(directory) / "calm", calm=True).run)
        disturbed = report_of(Simulation(seed, Path(directory) / "disturbed").run)
        require(
            None in (calm, disturbed) or calm == disturbed, "the disturbed crawl's report differs from the undisturbed one's"
        )


def main(arguments: Sequence[str] | None = None) -> None:
    """Simulate some seeds, then print one line; the first broken promise ends it with a traceback."""
    parser = argparse.ArgumentParser(prog="python -m crawlkit.testing.simulation", description="Simulate seeded crawls.")
    parser.add_argument("--seeds", type=int, required=True, help="how many")
    parser.add_argument("--first", type=int, default=1)
    given = parser.parse_args(arguments)
    began_s = time.monotonic()
    for seed in range(given.first, given.first + given.seeds):
        simulate(seed)
    took_s = time.monotonic() - began_s
    rate = f"{given.seeds / took_s * 60:.0f} seeds/minute"
    sys.stdout.write(f"{given.seeds} seeds from {given.first} in {took_s:.1f} s: {rate}, all promises kept\n")


if __name__ == "__main__":
    main()
