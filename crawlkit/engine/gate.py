"""May a URL be fetched from a due host now? What robots.txt says, and the fetches that have to come before that is known."""

from enum import Enum, auto
from typing import assert_never

from crawlkit.config import Config
from crawlkit.engine.robots import Robots, Standing
from crawlkit.engine.schedule import Schedule
from crawlkit.model import Job, Kind, OrderReason, Reason, RobotsJob
from crawlkit.policy.disposition import Done
from crawlkit.policy.urls import host_of, origin_of
from crawlkit.state.crawl import CrawlState
from crawlkit.state.hosts import Host


class Leave(Enum):
    """What there is to say of a URL that neither ends here nor needs a robots.txt first."""

    GRANTED = auto()
    LATER = auto()  # the host has another time now


_GRANTED = Leave.GRANTED  # looked up once (`model`)


class Gate:
    """Answers for URLs at the heads of due hosts."""

    def __init__(self, state: CrawlState, config: Config, robots: Robots, schedule: Schedule) -> None:
        self._state = state
        self._obeys = config.robots
        self._robots = robots
        self._schedule = schedule

    def ask(self, host: Host, url: str, now: float) -> Leave | Done | RobotsJob:
        """Return whether `url` of a due host may be fetched; or how it ends without that, or what has to be fetched first."""
        if host.record.dropped:
            return Done(Kind.FAILURE, Reason.HOST_DROPPED)
        if host.record.health.given_up:
            self._state.counters.depend(OrderReason.HOST_GIVEN_UP)
            return Done(Kind.FAILURE, Reason.HOST_GIVEN_UP)
        if not self._obeys:
            return Leave.GRANTED
        standing = self._robots.standing(origin_of(url), host.record.name, now)
        match standing:
            case Standing():
                if self._schedule.keep_delay(host, standing.crawl_delay_s) and self._schedule.next_start(host, now) > now:
                    return Leave.LATER  # another origin of the host asked for less
                return standing.refusal(url) or _GRANTED
            case RobotsJob():
                return standing if self._may_hop(host, standing, now) else Leave.LATER
            case _:
                assert_never(standing)

    def _may_hop(self, host: Host, job: RobotsJob, now: float) -> bool:
        """Whether a robots.txt that was redirected to another host may be asked for there now; else wait for that host."""
        other = host_of(job.url)
        return other == host.record.name or self._schedule.may_ask(self._state.hosts.get(other), host, now)

    def asked(self, host: Host, job: Job) -> list[Host]:
        """Return the hosts that a request counts for: its own, and the one that its robots.txt was redirected to."""
        if not isinstance(job, RobotsJob) or (other := host_of(job.url)) == host.record.name:
            return [host]
        return [host, self._state.hosts.get(other)]
