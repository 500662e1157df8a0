"""Beside a running crawl: takes in what happens and answers GET /metrics, on the loop, between its turns."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from http import HTTPStatus

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder
from prometheus_client.process_collector import ProcessCollector

from crawlkit.engine.session import Running
from crawlkit.net.http_server import Asked, Reply, not_allowed, serving_http, text_reply
from crawlkit.net.local import Socket
from crawlkit.surfaces.metrics.collector import CrawlCollector
from crawlkit.surfaces.metrics.hosts import HostCounts
from crawlkit.surfaces.metrics.tally import Tally

PATH = "/metrics"
PROBE_EVERY_S = 0.05


class Exporter:
    """Serves one run at a socket that listens. `tally` is to watch it."""

    def __init__(self, listening: Socket) -> None:
        self.tally = Tally()
        self._listening = listening

    @asynccontextmanager
    async def beside(self, running: Running) -> AsyncIterator[None]:
        """Serve while the block runs."""
        hosts = HostCounts()
        registry = CollectorRegistry()
        registry.register(CrawlCollector(running, self.tally, hosts))
        ProcessCollector(namespace="crawlkit", registry=registry)
        tasks = [asyncio.create_task(hosts.count(running)), asyncio.create_task(self._probe())]
        try:
            async with serving_http(self._listening, partial(_answer, registry), asyncio.Event()):
                yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _probe(self) -> None:
        """Observe how late timers come: that is how long others hold the loop."""
        while True:
            due_s = time.monotonic() + PROBE_EVERY_S
            await asyncio.sleep(PROBE_EVERY_S)
            self.tally.stalls.observe(max(0.0, time.monotonic() - due_s))


async def _answer(registry: CollectorRegistry, asked: Asked) -> Reply:
    if asked.path != PATH:
        return text_reply(HTTPStatus.NOT_FOUND, f"there is {PATH} only")
    if asked.method != "GET":
        return not_allowed("GET", "HEAD")
    encode, content_type = choose_encoder("")  # the text format, which every version of Prometheus reads
    return Reply(HTTPStatus.OK, content_type, encode(registry))
