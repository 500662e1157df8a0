"""One origin's robots.txt, fetched as a crawl would fetch it, without a crawl."""

from collections.abc import Mapping

from crawlkit.clock import SystemClock
from crawlkit.config import Config
from crawlkit.engine.credentials import carried_by
from crawlkit.engine.network import check_network, open_network, open_resolver, seeds_private_addresses
from crawlkit.engine.robots import next_hop
from crawlkit.engine.worker import Worker
from crawlkit.model import FetchFailure, Response, RobotsJob
from crawlkit.policy.urls import host_of, origin_of


async def look_up_robots(url: str, config: Config, environ: Mapping[str, str]) -> tuple[str, Response | FetchFailure]:
    """Return where the robots.txt for `url` (normal form) was found in the end, and what it answered there, tried once.

    Up to five redirects are followed, also to other hosts. The private addresses of `url`'s own host and port are allowed, as
    a seed's are. ConfigError for a secret that is not in `environ` or its file.
    """
    check_network(config)
    carried = carried_by(config, environ)
    own = await seeds_private_addresses([url], config)
    transport = open_network(config, open_resolver(config, own), connections=1, proxy_proof=carried.proxy_proof)
    try:
        return await _follow(url, Worker(transport, config, SystemClock(), carried.extra))
    finally:
        await transport.aclose()


async def _follow(url: str, worker: Worker) -> tuple[str, Response | FetchFailure]:
    origin = origin_of(url)
    job = RobotsJob(origin, f"{origin}/robots.txt", host_of(url))
    while True:
        answer = (await worker.carry_out(job)).answer
        assert isinstance(answer, Response | FetchFailure)
        hop = next_hop(job, answer)
        if hop is None:
            return job.url, answer
        job = hop
