"""Whole crawls without a network or a sleep: the real coordinator over a real state, killed at random, against a model.

    python -m crawlkit.testing.simulation --seeds 10000 --first 1

Each seed makes a world (`testing.world`), settings, and a life of runs: requests are started, answered and settled in a
random order at random times; checkpoints are frozen and written at random moments; runs are killed (what was frozen lost, or
written while `CHECKPOINT` was not) or stopped, and reopened at another wall time with other settings. Manners are checked
at every request, what was lost or repeated at every kill, records and rows on disk at the end. A seed always does the same.
"""

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from crawlkit.config import Config, changed_config
from crawlkit.engine.coordinator import Coordinator
from crawlkit.engine.ending import Ending
from crawlkit.model import Facts, FetchFailure, Job, Record, Response
from crawlkit.policy.scope import Scope
from crawlkit.state.crawl import CrawlState
from crawlkit.testing.clock import ManualClock
from crawlkit.testing.world import RETRIES, World, make_world

MOST_STEPS = 40_000
MOST_KILLS = 5
_SHARED_MEMORY = Path("/dev/shm")
_EARLY_S = 1e-6  # sums of floats
_BLOOM_HEADER_BYTES = 64 * 1024


class SimulationError(AssertionError):
    """A promise was broken; the text names the seed that repeats it."""


@dataclass(slots=True)
class _Flight:
    """A request on its way: `landed_s` is when its answer is complete, in true time."""

    job: Job
    host: str
    started_s: float
    landed_s: float
    answer: Facts | Response | FetchFailure


@dataclass(slots=True)
class _Contact:
    """What the log knows of a host, in true time: the last start, the last end, until when it asked to be left alone."""

    started_s: float = -1e12
    ended_s: float = -1e12
    in_flight: int = 0
    held_until_s: float = -1e12


@dataclass(slots=True)
class _Log:
    """The web's side: every request, and how many each URL may get."""

    requests: Counter[str] = field(default_factory=Counter)
    allowed: Counter[str] = field(default_factory=Counter)
    hosts: dict[str, _Contact] = field(default_factory=dict)

    def host(self, name: str) -> _Contact:
        return self.hosts.setdefault(name, _Contact())


def dump(records: Sequence[Record]) -> bytes:
    """Return records as one line each, without what depends on time or order."""
    untimed = (
        msgspec.structs.replace(r, fetched_at=None, elapsed_ms=None, attempts=0, via=None, message=None) for r in records
    )
    return b"\n".join(msgspec.json.encode(record) for record in untimed)


class Simulation:
    """One crawl of one world, over as many runs as it takes. With `calm` nothing disturbs it."""

    def __init__(self, seed: int, directory: Path, *, calm: bool = False) -> None:
        self.seed = seed
        self.world: World = make_world(seed)
        self._directory = directory
        self._rng = random.Random(f"life {seed}")
        self._clock = ManualClock()  # true time
        self._skew_s = 0.0  # of the wall clock
        self._log = _Log()
        self._kills_left = 0 if calm else self._rng.randint(0, MOST_KILLS)
        self._steps = 0
        self._limits = self._make_limits()
        self.max_depth = self._limits[-1]
        self._expected = self.world.expected(self.max_depth)
        for url in self._expected:
            self._log.allowed[url] = self.world.needed_requests(url)
        max_pages = None if calm or self._rng.random() < 0.7 else self._rng.randint(1, 20)
        manners = {"workers": 1} if calm else self._manners()
        self.config = Config.from_values(
            {"retries": RETRIES, "max_depth": self.max_depth if calm else self._limits[0], "max_pages": max_pages, **manners}
        )

    def _make_limits(self) -> list[int | None]:
        """Return the depth limits in force, one after the other."""
        first: int | None = self._rng.choice((None, None, 1, 2, 3, 5))
        if first is None or self._rng.random() < 0.4:
            return [first]
        return [first, first + self._rng.randint(1, 3), self._rng.choice((None, first + 4))]

    def _manners(self) -> dict[str, Any]:
        return {
            "workers": self._rng.choice((1, 2, 4, 12)),
            "host_concurrency": self._rng.choice((1, 1, 2, 4)),
            "delay": self._rng.choice((0.0, 0.0, 0.3, 1.0, 2.5)),
        }

    # A crawl ---------------------------------------------------------------------------------------------------------

    def run(self) -> bytes:
        """Crawl to the end; return the dump of the records. SimulationError if a promise is broken on the way."""
        scope = Scope.of(self.world.seeds, self.config)
        state = CrawlState.create(self._directory, self.config)
        coordinator = Coordinator(state, self.config, scope, self._now())
        for number, url in enumerate(self.world.seeds):
            state.add_seed(number, url)
        coordinator.admit_seeds(self.world.seeds)
        coordinator.freeze(self._now()).write()
        state.installed()
        state.seal()
        killed = False
        while True:
            with state:
                how = _Run(self, state, coordinator, opened_s=self._clock.now() if killed else None).run()
            if how is Ending.FINISHED and self.config.max_depth == self.max_depth:
                return self._check_end()
            killed = how is None
            self._between_runs(killed=killed)
            state, coordinator = self._open(scope, how)

    def _open(self, scope: Scope, how: Ending | None) -> tuple[CrawlState, Coordinator]:
        state = CrawlState.open(self._directory)
        changes: dict[str, Any] = self._manners() if self._rng.random() < 0.5 else {}
        if len(self._limits) > 1 and (how is Ending.FINISHED or self._rng.random() < 0.5):
            self._limits.pop(0)
            changes["max_depth"] = self._limits[0]
        if how is Ending.LIMIT_PAGES:
            self._require(state.counters.pages == self.config.max_pages, "the limit on pages is reached, not missed")
            changes["max_pages"] = None
        stored = state.config()
        self._require(stored == self.config or killed_before_first(state), "the settings in force are on disk")
        self.config = changed_config(stored, changes)
        coordinator = Coordinator(state, self.config, scope, self._now())
        if changes:
            state.change_settings(self.config, changes)
            coordinator.freeze(self._now()).write()
            state.installed()
        return state, coordinator

    def _between_runs(self, *, killed: bool) -> None:
        """Let time pass; the wall clock may be set back, and after a kill set forward too."""
        self._clock.advance(self._rng.choice((0.0, 0.5, 30.0)))
        jump_s = self._rng.choice((0.0, 0.0, 0.0, -5.0, -4000.0, 4000.0 if killed else 0.0))
        self._skew_s += jump_s
        if jump_s > 0:  # what was held in wall time is over
            for contact in self._log.hosts.values():
                contact.held_until_s = -1e12
