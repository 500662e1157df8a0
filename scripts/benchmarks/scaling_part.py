"""Run a crawl in partitions over the page mix, without a network, for some seconds: how many pages all of them do.

    python -m benchmarks.scaling_part --hosts N --partitions N --seconds S --directory DIR

Nothing waits for a gap. Pages are counted from a third of the time on, when all partitions are under way.
"""

import argparse
import asyncio
import json
import resource
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from benchmarks.scaling_member import ManyDomains
from crawlkit.clock import SystemClock
from crawlkit.cluster.driver import Orderly, Watching
from crawlkit.cluster.founding import found_crawl
from crawlkit.cluster.messages import Standing
from crawlkit.cluster.processes import Processes
from crawlkit.cluster.running import drive
from crawlkit.config import Config, ScopeMode
from crawlkit.engine.ending import Ending
from crawlkit.engine.runner import run_async
from crawlkit.engine.session import Outcome
from crawlkit.engine.signals import Stoppable

WORKERS = 64


class Watch:
    """Takes the time between two moments, then stops the crawl."""

    def __init__(self, seconds: float, partitions: int) -> None:
        self._seconds = seconds
        self._partitions = partitions
        self._latest: Mapping[int, Standing] = {}
        self._under_way = asyncio.Event()
        self.pages = 0
        self.letters = 0
        self.wall_s = 0.0

    def see(self, standings: Mapping[int, Standing]) -> None:
        """Take note of how the partitions stand."""
        self._latest = standings
        if len(standings) == self._partitions and all(each.records for each in standings.values()):
            self._under_way.set()

    @contextmanager
    def around(self, driver: Stoppable) -> Iterator[None]:
        """Watch while the block runs."""
        task = asyncio.get_running_loop().create_task(self._watch(driver))
        try:
            yield
        finally:
            task.cancel()

    async def _watch(self, driver: Stoppable) -> None:
        await self._under_way.wait()
        await asyncio.sleep(self._seconds / 3)
        pages, letters, began_s = self._records(), self._posted(), time.monotonic()
        await asyncio.sleep(self._seconds)
        self.pages, self.letters = self._records() - pages, self._posted() - letters
        self.wall_s = time.monotonic() - began_s
        driver.stop(Ending.SIGTERM)

    def _records(self) -> int:
        return sum(each.records for each in self._latest.values())

    def _posted(self) -> int:
        return sum(each.posted for each in self._latest.values())


def measure(options: argparse.Namespace) -> dict[str, float]:
    """Return the figures."""
    watch = Watch(options.seconds, options.partitions)

    async def run() -> Outcome:
        mix = ManyDomains(0, options.hosts)
        config = Config(
            workers=WORKERS, delay=0.0, host_concurrency=WORKERS, scope=ScopeMode.ANY, resolve=("*.test=127.0.0.1:1",)
        )
        seeds = [mix.url(number, 0) for number in range(options.hosts)]
        await found_crawl(seeds, options.directory, config, options.partitions, SystemClock())
        command = [sys.executable, "-m", "benchmarks.scaling_member", str(options.hosts)]
        return await drive(options.directory, Processes(command), Watching(on_turn=watch.see, around=watch.around), Orderly())

    outcome = run_async(run())
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    own = resource.getrusage(resource.RUSAGE_SELF)
    return {
        "pages_per_s": watch.pages / watch.wall_s,
        "letters_per_page": watch.letters / max(1, watch.pages),
        "cpu_ms": (children.ru_utime + children.ru_stime) / max(1, outcome.counters.records) * 1000,
        "driver_cpu_ms": (own.ru_utime + own.ru_stime) / max(1, outcome.counters.records) * 1000,
        "peak_mib": children.ru_maxrss / 1024,
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--hosts", type=int, required=True)
    parser.add_argument("--partitions", type=int, required=True)
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--directory", type=Path, required=True)
    print(json.dumps(measure(parser.parse_args())))


if __name__ == "__main__":
    main()
