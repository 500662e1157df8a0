"""The web's side of a simulated crawl: it answers from a world, and checks at every request what was promised to it.

Times are true times, in seconds: the wall clock of the crawler may jump between runs, the web's does not.
"""

import random
from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import assert_never

import msgspec

from crawlkit.config import Config
from crawlkit.model import Facts, FetchFailure, Job, OrderReason, PageJob, Response, RobotsJob, SitemapJob
from crawlkit.policy.urls import host_of
from crawlkit.sitemap import Sitemap
from crawlkit.state.counters import Counters
from crawlkit.testing.world import RETRIES, World

_EARLY_S = 1e-6  # what sums of floats may be off
_NEVER_S = -1e12


class SimulationError(AssertionError):
    """A promise was broken."""


class TrapMet(SimulationError):
    """What the web has was refused as a trap: order decides what a very small budget is spent on, as the report says."""


def require(holds: bool, promise: str) -> None:
    """Raise SimulationError with the promise that does not hold."""
    if not holds:
        raise SimulationError(promise)


def check_for_traps(counters: Counters) -> None:
    """Raise TrapMet if anything was refused as a trap."""
    if OrderReason.TRAP in counters.reasons:
        raise TrapMet(f"refused as a trap: {counters.refused}")


@dataclass(frozen=True, slots=True)
class Flight:
    """A request on its way: from `landed_s` on its answer is complete."""

    job: Job
    host: str
    started_s: float
    landed_s: float
    answer: Facts | Response | FetchFailure
    sitemap: Sitemap | None = None


@dataclass(slots=True)
class _Contact:
    """What a host remembers of the crawler. `holds` are waits it asked for, with the end of each."""

    started_s: float = _NEVER_S
    ended_s: float = _NEVER_S
    in_flight: int = 0
    held_until_s: float = _NEVER_S
    unwritten_until_s: float = _NEVER_S


@dataclass(slots=True)
class Watch:
    """Answers requests and keeps account of them. `admitted` are the URLs that may be asked for at all."""

    world: World
    rng: random.Random
    admitted: Collection[str]
    requests: Counter[str] = field(default_factory=Counter)
    allowed: Counter[str] = field(default_factory=Counter)
    _hosts: dict[str, _Contact] = field(default_factory=dict)
    _unwritten: list[str] = field(default_factory=list)
    _frozen: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        for url in self.admitted:
            self.allowed[url] = self.world.needed_requests(url)

    # Requests --------------------------------------------------------------------------------------------------------

    def start(self, job: Job, config: Config, now: float, quiet_until_s: float) -> Flight:
        """Answer a request, unless it breaks a promise; `quiet_until_s` is when a run after a kill may begin to ask."""
        host = self._host(host_of(job.url))
        gap_s = config.delay
        if isinstance(job, PageJob):
            require(job.url in self.admitted, f"{job.url} is outside of scope or limits and was requested")
            require(self.world.refusal(job.url) is None, f"robots.txt disallows {job.url} and it was requested")
            gap_s = max(gap_s, self.world.crawl_delay_s(job.url))
        if isinstance(job, SitemapJob):
            require(self.world.refusal(job.url) is None, f"robots.txt disallows {job.url} and it was requested")
        require(host.in_flight < config.host_concurrency, f"more in flight to the host of {job.url} than allowed")
        require(now >= host.started_s + gap_s - _EARLY_S, f"{job.url} came too soon after the start of the one before")
        if config.host_concurrency == 1:
            require(now >= host.ended_s + gap_s - _EARLY_S, f"{job.url} came too soon after the end of the one before")
        require(now >= quiet_until_s + gap_s - _EARLY_S, f"{job.url} came before a full gap after the kill")
        require(now >= host.held_until_s - _EARLY_S, f"{job.url} came before the host's Retry-After was over")
        number = self.requests[job.url]
        self.requests[job.url] += 1
        host.started_s = now
        host.in_flight += 1
        answer, sitemap = self._answer(job, number)
        landed_s = now + self.rng.choice((0.0, 0.01, 0.1, 0.1, 0.4, 3.0))
        return Flight(job, host_of(job.url), now, landed_s, answer, sitemap)

    def _answer(self, job: Job, number: int) -> tuple[Facts | Response | FetchFailure, Sitemap | None]:
        match job:
            case PageJob():
                answer = self.world.page(job.url, number)
                unasked = isinstance(answer, Facts) and answer.sketch and not job.sketched
                return (msgspec.structs.replace(answer, sketch=()) if unasked else answer), None
            case RobotsJob():
                return self.world.robots(job.url, number), None
            case SitemapJob():
                return self.world.sitemaps.answer(job.url, number)
            case _:
                assert_never(job)

    def _host(self, name: str) -> _Contact:
        return self._hosts.setdefault(name, _Contact())

    def settled(self, flight: Flight, now: float) -> None:
        """Note that the crawler has taken in an answer, and what it may be held to from now on."""
        self._leave(flight, flight.landed_s)
        self._unwritten.append(flight.job.url)
        asked_s = _asked_s(flight.answer)
        if asked_s is not None:
            host = self._host(flight.host)
            host.unwritten_until_s = max(host.unwritten_until_s, now + asked_s)
            host.held_until_s = max(host.held_until_s, host.unwritten_until_s)

    def _leave(self, flight: Flight, at: float) -> None:
        host = self._host(flight.host)
        host.in_flight -= 1
        host.ended_s = max(host.ended_s, at)

    # Hosts that change hands -----------------------------------------------------------------------------------------

    def hosts(self) -> set[str]:
        """Return the hosts that were asked for anything, or may be."""
        return {*self._hosts, *map(host_of, self.allowed)}

    def hand_over(self, name: str, other: "Watch", quiet_from_s: float | None) -> None:
        """Let `other` watch a host from now on; a gap from `quiet_from_s` on is to pass first, if that is given."""
        host = other._hosts[name] = self._hosts.pop(name, _Contact())
        if quiet_from_s is not None:
            host.started_s = quiet_from_s
        for counts, others in ((self.requests, other.requests), (self.allowed, other.allowed)):
            for url in [url for url in counts if host_of(url) == name]:
                others[url] = counts.pop(url)

    # Checkpoints and kills -------------------------------------------------------------------------------------------

    def frozen(self) -> None:
        """Note that a checkpoint was frozen: what has settled goes with it."""
        self._frozen, self._unwritten = self._unwritten, []

    def written(self) -> None:
        """Note that the checkpoint frozen last is on disk."""
        self._frozen = []
        if not self._unwritten:
            for host in self._hosts.values():
                host.unwritten_until_s = _NEVER_S

    def killed(self, flights: Iterable[Flight], now: float, *, lost_filter: bool) -> None:
        """Cut what is in flight; allow to be repeated what was, and what had settled after the last checkpoint."""
        for flight in flights:
            self._leave(flight, now)
            self.allowed[flight.job.url] += 1
        self.allowed.update(self._frozen + self._unwritten)
        self._frozen, self._unwritten = [], []
        for host in self._hosts.values():
            if host.unwritten_until_s != _NEVER_S:  # whether it was on disk or not is not told apart
                host.held_until_s = host.unwritten_until_s = _NEVER_S
        if lost_filter:  # a URL met again loses its attempts, not its record
            for url in self.admitted:
                self.allowed[url] += RETRIES

    def forget_holds(self) -> None:
        """Note that the wall clock was set forward: what was held in wall time may be over."""
        for host in self._hosts.values():
            host.held_until_s = _NEVER_S

    def check_repeats(self) -> None:
        """Check that no page was requested more often than needed and allowed."""
        for url, count in self.requests.items():
            if url in self.admitted:
                require(count <= self.allowed[url], f"{url} was requested {count} times, {self.allowed[url]} were allowed")


def _asked_s(answer: Facts | Response | FetchFailure) -> float | None:
    """Return the wait that an answer asks of the whole host."""
    if isinstance(answer, FetchFailure) or answer.status not in (429, 503):
        return None
    if isinstance(answer, Facts):
        return None if answer.retry_after is None else float(answer.retry_after)
    values = answer.header_values(b"retry-after")
    return float(values[0]) if values else None
