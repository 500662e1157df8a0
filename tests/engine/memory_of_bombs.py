"""Fetch and read hostile answers through the worker of a crawl; tell what memory each takes and how long it stalls the loop.

`python -m tests.engine.memory_of_bombs URL...` writes one line of JSON an answer. It is a process of its own, so that what
the server holds does not count.
"""

import asyncio
import ctypes
import json
import resource
import sys
import time
from pathlib import Path

from crawlkit.clock import SystemClock
from crawlkit.config import Config
from crawlkit.engine.network import open_network, open_resolver, seeds_private_addresses
from crawlkit.engine.worker import Worker
from crawlkit.model import Facts, PageJob
from crawlkit.net.fetch import ExtraHeaders
from crawlkit.policy.urls import host_of

_LIBC = ctypes.CDLL(None)


def _resident_mib() -> float:
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * resource.getpagesize() / 2**20


def _give_back() -> None:
    """Let the C library return what is free: up to 100 MiB of what an answer took would count as the next one's."""
    if hasattr(_LIBC, "malloc_trim"):
        _LIBC.malloc_trim(0)


class _Watch:
    """Notes the most memory and the longest stall."""

    def __init__(self) -> None:
        self.idle_mib = _resident_mib()
        self.begin()

    def begin(self) -> None:
        _give_back()
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # the high-water mark starts anew
        self.stall_s = 0.0

    def peak_mib(self) -> float:
        lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:")) / 1024 - self.idle_mib

    async def tick(self) -> None:
        while True:
            before_s = time.perf_counter()
            await asyncio.sleep(0.01)
            self.stall_s = max(self.stall_s, time.perf_counter() - before_s - 0.01)


async def _main(urls: list[str]) -> None:
    config = Config()
    resolver = open_resolver(config, await seeds_private_addresses(urls, config))
    transport = open_network(config, resolver, connections=4)
    try:
        worker = Worker(transport, config, SystemClock(), ExtraHeaders())
        warm_up, *others = urls
        await worker.carry_out(PageJob(warm_up, host_of(warm_up)))
        watch = _Watch()
        ticking = asyncio.create_task(watch.tick())
        for url in others:
            watch.begin()
            started_s = time.perf_counter()
            answer = (await worker.carry_out(PageJob(url, host_of(url)))).answer
            took_s = time.perf_counter() - started_s
            told = {"links": len(answer.links), "truncated": answer.truncated} if isinstance(answer, Facts) else {}
            sys.stdout.write(
                json.dumps({"url": url, "mib": watch.peak_mib(), "s": took_s, "stall_s": watch.stall_s} | told) + "\n"
            )
        ticking.cancel()
    finally:
        await transport.aclose()


if __name__ == "__main__":
    asyncio.run(_main(sys.argv[1:]))
