"""Hosts by why they wait, counted while the crawl goes on: all of them, at a bounded share of the loop's time."""

import asyncio
import time
from collections import Counter

from crawlkit.engine.figures import HostState
from crawlkit.engine.live import HostWalk
from crawlkit.engine.session import Running

COUNT_EVERY_S = 1.0
"""Between two counts, at least."""

SHARE = 0.02
"""Of the loop's time for counting: a count of 10^6 hosts takes 6 s of CPU, so it is made over five minutes."""


class HostCounts:
    """The latest whole count."""

    def __init__(self) -> None:
        self.states: Counter[HostState] = Counter()
        self.counted_at_s = 0.0

    async def count(self, running: Running) -> None:
        """Count again and again."""
        while True:
            self.states = await _counted(running)
            self.counted_at_s = running.clock.now()
            await asyncio.sleep(COUNT_EVERY_S)


async def _counted(running: Running) -> Counter[HostState]:
    states: Counter[HostState] = Counter()
    walk = HostWalk(running.coordinator)
    while not walk.over:
        began_s = time.monotonic()
        states.update(host.state for host in walk.step(running.clock.now()))
        await asyncio.sleep((time.monotonic() - began_s) / SHARE)
    return states
