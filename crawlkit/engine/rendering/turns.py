"""When a host is asked for what pages need besides: by the crawl's own manners.

To a host go no more of these requests at once than `host_concurrency`, each a gap after the one before (at one at once: after
its end). The gap is the one in force, with Crawl-delay and slowdown; a request of the crawl itself, a Retry-After, a
breaker and a hold by people are waited for too. The crawl learns of them when the page's result comes in.
"""

import asyncio
import math
from collections import OrderedDict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from crawlkit.clock import Clock
from crawlkit.config import Config
from crawlkit.engine.turns import earliest_start_s, gap_in_force_s
from crawlkit.policy import politeness
from crawlkit.state.crawl import CrawlState
from crawlkit.state.hosts import HostRecord

_HOSTS_IN_MEMORY: Final = 4_096


class _Line:
    """Those who wait for one host."""

    __slots__ = ("hold_until_s", "last_end_s", "last_start_s", "places", "starting", "users")

    def __init__(self, most_at_once: int) -> None:
        self.places = asyncio.Semaphore(most_at_once)
        self.starting = asyncio.Lock()
        self.users = 0
        self.last_start_s = 0.0
        self.last_end_s = 0.0
        self.hold_until_s = 0.0


class LeftAloneError(Exception):
    """The host is asked nothing: it was given up, dropped or held."""


class Turns:
    """Gives turns at hosts. What the crawl knows of them is looked at in `state`."""

    def __init__(self, state: CrawlState, config: Config, clock: Clock) -> None:
        self._state = state
        self._config = config
        self._clock = clock
        self._lines: OrderedDict[str, _Line] = OrderedDict()

    def note(self, host: str, started_s: float, ended_s: float) -> None:
        """Take in a request of the crawl itself."""
        line = self._line(host)
        line.last_start_s = max(line.last_start_s, started_s)
        line.last_end_s = max(line.last_end_s, ended_s)

    def hold(self, host: str, hold_s: float) -> None:
        """Leave a host alone for so many seconds."""
        line = self._line(host)
        line.hold_until_s = max(line.hold_until_s, self._clock.now() + hold_s)

    @asynccontextmanager
    async def turn(self, host: str, crawl_delay_s: float) -> AsyncIterator[None]:
        """Wait for a turn at `host`, which ends with the block; LeftAloneError if there is none.

        `crawl_delay_s` is what the origin asks for, 0 for nothing.
        """
        line = self._line(host)
        line.users += 1
        try:
            async with line.places:
                async with line.starting:
                    await self._wait(host, line, crawl_delay_s)
                    line.last_start_s = self._clock.now()
                try:
                    yield
                finally:
                    line.last_end_s = self._clock.now()
        finally:
            line.users -= 1

    async def _wait(self, host: str, line: _Line, crawl_delay_s: float) -> None:
        while True:
            now = self._clock.now()
            at = self._earliest_s(host, line, crawl_delay_s, now)
            if math.isinf(at):
                raise LeftAloneError
            if at <= now:
                return
            await asyncio.sleep(at - now)

    def _earliest_s(self, host: str, line: _Line, crawl_delay_s: float, now: float) -> float:
        record = self._state.hosts.peek(host)
        if record is not None and record.is_over:
            return math.inf
        gap_s = max(gap_in_force_s(record or HostRecord(host), self._config), crawl_delay_s)
        contact = politeness.Contact(line.last_start_s, line.last_end_s, line.hold_until_s)
        at = politeness.next_start_s(contact, gap_s, self._config.host_concurrency, 0.0)
        return at if record is None else max(at, earliest_start_s(record, self._config, None, now))

    def _line(self, host: str) -> _Line:
        line = self._lines.get(host)
        if line is None:
            line = self._lines[host] = _Line(self._config.host_concurrency)
        self._lines.move_to_end(host)
        if len(self._lines) > _HOSTS_IN_MEMORY:
            oldest = next(iter(self._lines))
            if self._lines[oldest].users == 0:
                del self._lines[oldest]
        return line
