"""Run the real loop over a transport without sockets for some seconds: how long it is away from its timers, how fast it is.

    python -m benchmarks.live_part --urls N --hosts N --seconds S --directory DIR [--interval 1] [--checkpoints no]

A timer is due each 5 ms; how much later it runs is a stall. On a machine that is busy otherwise that is more than the
loop's own doing: `busy` is the CPU that its thread took meanwhile, which is the least that the stall would be. Answering a
request costs the loop time too (a page of the mix has to be written), which counts here as a socket's work would.
"""

import argparse
import asyncio
import json
import random
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from benchmarks.page_mix import PageMix, PageWriter
from crawlkit.clock import SystemClock
from crawlkit.engine import limits
from crawlkit.engine import loop as loop_module
from crawlkit.engine.ending import Ending
from crawlkit.engine.loop import Loop
from crawlkit.engine.runner import run_async
from crawlkit.engine.session import Hooks, Surroundings, go_on
from crawlkit.surfaces.garbage import begin_collecting

TICK_S = 0.005
NEVER = 10**9


class _Body(httpx.AsyncByteStream):
    def __init__(self, data: bytes) -> None:
        self._data = data

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield self._data


class MixTransport(httpx.AsyncBaseTransport):
    """Answers from the page mix after 2 to 40 ms, so that answers come one by one; robots.txt is missing everywhere."""

    def __init__(self, mix: PageMix) -> None:
        self._mix = mix
        self._writer = PageWriter()
        self._rng = random.Random(3)
        self.pages = 0

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Return a page."""
        await asyncio.sleep(self._rng.uniform(0.002, 0.04))
        if request.url.raw_path == b"/robots.txt":
            return httpx.Response(404, stream=_Body(b""))
        self.pages += 1
        body = self._writer.write(f"Page {self.pages}", self._mix.links_of(self._mix.number_of(request.url.host)))
        headers = [(b"Content-Type", b"text/html; charset=utf-8"), (b"Content-Length", b"%d" % len(body))]
        return httpx.Response(200, headers=headers, stream=_Body(body))


class Watch:
    """Measures while a run goes on, and stops it."""

    def __init__(self, seconds: float, transport: MixTransport) -> None:
        self._seconds = seconds
        self._transport = transport
        self.lags_s: list[float] = []
        self.busy_s: list[float] = []  # of each lag, what this thread's own work accounts for
        self.pages = 0
        self.cpu_s = self.wall_s = 0.0

    @contextmanager
    def around(self, loop: Loop) -> Iterator[None]:
        """Watch while the block runs."""
        task = asyncio.get_running_loop().create_task(self._watch(loop))
        try:
            yield
        finally:
            task.cancel()

    async def _watch(self, loop: Loop) -> None:
        clock = time.monotonic  # uvloop's own has a grain of a millisecond
        await asyncio.sleep(self._seconds / 3)  # the first pages are not those of a crawl under way
        pages, cpu_s, began_s = self._transport.pages, time.process_time(), clock()
        while clock() < began_s + self._seconds:
            due_s, spent_s = clock() + TICK_S, time.thread_time()
            await asyncio.sleep(TICK_S)
            self.lags_s.append(clock() - due_s)
            self.busy_s.append(max(0.0, time.thread_time() - spent_s - TICK_S))
        self.pages = self._transport.pages - pages
        self.cpu_s, self.wall_s = time.process_time() - cpu_s, clock() - began_s
        loop.stop(Ending.SIGTERM)


def measure(options: argparse.Namespace) -> dict[str, float]:
    """Return the figures."""
    if options.checkpoints == "no":  # what brings a checkpoint on before its interval is over, and what waits for one
        limits.RESULTS_A_CHECKPOINT = limits.ROWS_A_CHECKPOINT = NEVER
        loop_module.MOST_UNWRITTEN = NEVER
    interval_s = NEVER if options.checkpoints == "no" else options.interval
    transport = MixTransport(PageMix(options.urls, options.hosts))
    watch = Watch(options.seconds, transport)
    changes = {"checkpoint_interval": interval_s, "delay": 0.0, "workers": options.workers, "host_concurrency": options.workers}
    run_async(go_on(options.directory, changes, Hooks(around=watch.around), Surroundings(transport, SystemClock())))
    lags, busy = sorted(watch.lags_s), sorted(watch.busy_s)
    return {
        "pages_per_s": watch.pages / watch.wall_s,
        "cpu_ms": watch.cpu_s / max(1, watch.pages) * 1000,
        "stall_p99_ms": lags[int(len(lags) * 0.99)] * 1000,
        "stall_ms": lags[-1] * 1000,
        "busy_p99_ms": busy[int(len(busy) * 0.99)] * 1000,
        "busy_ms": busy[-1] * 1000,
        "stall_p50_ms": lags[len(lags) // 2] * 1000,
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--urls", type=int, required=True)
    parser.add_argument("--hosts", type=int, required=True)
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--workers", type=int, default=64)
    parser.add_argument("--interval", type=float, default=1.0)
    parser.add_argument("--checkpoints", choices=("yes", "no"), default="yes")
    parser.add_argument("--directory", type=Path, required=True)
    options = parser.parse_args()
    begin_collecting()  # as a crawl does
    print(json.dumps(measure(options)))


if __name__ == "__main__":
    main()
