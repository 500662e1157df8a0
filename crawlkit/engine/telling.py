"""A coordinator that tells what happens, for a run that somebody listens to; one that nobody listens to costs nothing."""

from collections.abc import Callable
from typing import assert_never

import msgspec

from crawlkit.config import Config
from crawlkit.engine.coordinator import Coordinator
from crawlkit.engine.events import (
    Claimed,
    Event,
    HostGivenUp,
    HostPaused,
    HostRecovered,
    Retrying,
    RobotsRead,
    Settled,
    SitemapRead,
)
from crawlkit.engine.hook import Callers
from crawlkit.model import Facts, Fetched, FetchFailure, Health, Job, PageJob, Record, RobotsJob, SitemapJob
from crawlkit.policy.scope import Scope
from crawlkit.policy.urls import host_of
from crawlkit.state.crawl import CrawlState
from crawlkit.state.origins import RobotsState

OnEvent = Callable[[Event, float], object]
"""Is given an event and its time, in seconds since the epoch; must not raise."""


class TellingCoordinator(Coordinator):
    """Does as `Coordinator`, and tells `on_event` of claims, records, robots.txt and the health of hosts."""

    def __init__(
        self, state: CrawlState, config: Config, scope: Scope, now: float, callers: Callers, on_event: OnEvent
    ) -> None:
        self._on_event = on_event
        self._told: Record | None = None
        super().__init__(state, config, scope, now, msgspec.structs.replace(callers, on_record=self._tell_record))

    def claim(self, now: float) -> Job | None:
        """Return the next fetch, as `Coordinator.claim` does."""
        job = super().claim(now)
        if job is not None:
            self._on_event(Claimed(job.url, job.host, _what(job), job.attempts + 1), now)
        return job

    def settle(self, fetched: Fetched, now: float) -> None:
        """Take in what came of a job, as `Coordinator.settle` does."""
        job = fetched.job
        hosts = {job.host, host_of(job.url)}
        before = {host: self._health(host) for host in hosts}
        self._told = None
        super().settle(fetched, now)
        match job:
            case PageJob() if self._told is None and isinstance(fetched.answer, Facts | FetchFailure):
                self._tell_retry(job, fetched.answer, now)
            case PageJob():
                pass
            case RobotsJob():
                self._tell_robots(job, now)
            case SitemapJob():
                self._tell_sitemap(job, fetched, now)
            case _:
                assert_never(job)
        for host in sorted(hosts):
            self._tell_health(host, before[host], now)

    def _health(self, host: str) -> Health:
        return self.state.hosts.get(host).record.health

    def _tell_record(self, record: Record) -> None:
        self._told = record
        event = Settled(
            url=record.url,
            host=host_of(record.url),
            kind=record.kind,
            status=record.status,
            reason=record.reason,
            message=record.message,
            depth=record.depth,
            bytes=record.body_bytes,
            elapsed_ms=record.elapsed_ms,
            attempts=record.attempts,
        )
        self._on_event(event, self._now)

    def _tell_retry(self, job: PageJob, answer: Facts | FetchFailure, now: float) -> None:
        status, reason, message = (
            (answer.status, None, None) if isinstance(answer, Facts) else (None, answer.reason, answer.message)
        )
        self._on_event(Retrying(job.url, job.host, status, reason, message, job.attempts + 1), now)

    def _tell_robots(self, job: RobotsJob, now: float) -> None:
        record = self.state.origins.get(job.origin)
        if record.state is not RobotsState.UNKNOWN and not record.attempts and record.expires_s > now:
            self._on_event(RobotsRead(job.origin, job.host, record.state.name.lower(), record.expires_s), now)

    def _tell_sitemap(self, job: SitemapJob, fetched: Fetched, now: float) -> None:
        if fetched.sitemap is not None:
            sitemap = fetched.sitemap
            self._on_event(SitemapRead(job.url, job.host, sitemap.form, len(sitemap.entries)), now)

    def _tell_health(self, host: str, before: Health, now: float) -> None:
        record = self.state.hosts.get(host).record
        after = record.health
        if after.given_up and not before.given_up:
            self._on_event(HostGivenUp(host), now)
        elif after.opens > before.opens:
            self._on_event(HostPaused(host, after.opens, record.hold_until_s), now)
        elif before.opens and not after.opens:
            self._on_event(HostRecovered(host), now)


def _what(job: Job) -> str:
    match job:
        case PageJob():
            return "page"
        case RobotsJob():
            return "robots"
        case SitemapJob():
            return "sitemap"
        case _:
            assert_never(job)
