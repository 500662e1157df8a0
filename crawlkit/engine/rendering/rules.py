"""What robots.txt says of what pages need besides: as the crawl knows it, else asked for and kept in memory.

The crawl itself asks for the robots.txt of origins that it crawls only, and keeps those on disk.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from crawlkit.clock import Clock
from crawlkit.config import Config
from crawlkit.engine.robots import UNREACHABLE_TTL_S, Robots, Standing, next_hop
from crawlkit.model import FetchFailure, Kind, Reason, Response, RobotsJob
from crawlkit.policy import politeness
from crawlkit.policy.disposition import Done
from crawlkit.policy.robots import ROBOTS_TTL_S, Access, access_of, parse
from crawlkit.policy.urls import host_of, origin_of
from crawlkit.state.crawl import CrawlState

_ORIGINS_IN_MEMORY: Final = 1_024

Get = Callable[[str], Awaitable[Response | FetchFailure]]


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a URL may be asked for, and the Crawl-delay of its origin."""

    allowed: bool
    crawl_delay_s: float = 0.0


_ANYTHING: Final = Verdict(allowed=True)


class Rules:
    """Judges URLs."""

    def __init__(self, state: CrawlState, config: Config, clock: Clock) -> None:
        self._robots = Robots(state, config)
        self._config = config
        self._clock = clock
        self._found: OrderedDict[str, Standing] = OrderedDict()
        self._asking: dict[str, asyncio.Lock] = {}

    async def judge(self, url: str, get: Get) -> Verdict:
        """Say whether `url` may be asked for; its robots.txt may have to be fetched for that, by `get`."""
        if not self._config.robots:
            return _ANYTHING
        standing = await self._standing(origin_of(url), host_of(url), get)
        return Verdict(standing.refusal(url) is None, standing.crawl_delay_s)

    async def _standing(self, origin: str, host: str, get: Get) -> Standing:
        now = self._clock.now()
        known = self._robots.standing(origin, host, now)
        if isinstance(known, Standing):
            return known
        lock = self._asking.setdefault(origin, asyncio.Lock())
        async with lock:  # of many that need it at once the first one asks
            found = self._found.get(origin)
            if found is None or now >= found.expires_s:
                found = self._found[origin] = await self._ask(RobotsJob(origin, f"{origin}/robots.txt", host), get)
        if not lock.locked():
            self._asking.pop(origin, None)
        self._found.move_to_end(origin)
        if len(self._found) > _ORIGINS_IN_MEMORY:
            self._found.popitem(last=False)
        return found

    async def _ask(self, job: RobotsJob, get: Get) -> Standing:
        answer = await get(job.url)
        while (hop := next_hop(job, answer)) is not None:
            job = hop
            answer = await get(job.url)
        now, token = self._clock.now(), self._config.product_token()
        access = access_of(answer)
        if access is Access.RULES and isinstance(answer, Response):
            rules = parse(answer.body, token)
            too_long = politeness.is_too_long(rules.crawl_delay_s, self._config.max_crawl_delay)
            return Standing(rules, now + ROBOTS_TTL_S, 0, Done(Kind.EXCLUDED, Reason.ROBOTS_DELAY) if too_long else None)
        none = parse(b"", token)
        if access is Access.ALLOW:
            return Standing(none, now + ROBOTS_TTL_S, 0)
        return Standing(none, now + UNREACHABLE_TTL_S, 0, Done(Kind.EXCLUDED, Reason.ROBOTS_UNREACHABLE))
