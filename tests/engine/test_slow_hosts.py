"""One host that is slow or dead beside 99 that are not, all of them always due: what is left of the throughput."""

import heapq
from pathlib import Path

import pytest

from crawlkit.model import Facts, Job
from tests.engine.driver import NO_CONNECTION, TIMED_OUT, Answer, Driver, page

WORKERS = 16
FAST_S = 0.4
LASTS_S = 40.0
SLOW = "http://slow.test"

KINDS: dict[str, tuple[Answer, float]] = {
    "connect timeout": (NO_CONNECTION, 10.0),
    "timeout": (TIMED_OUT, 10.0),
    "slow body": (page(), 9.0),
    "slow 500": (Facts(500), 3.0),
    "slow 503": (Facts(503), 3.0),
}


def fast_pages_per_s(directory: Path, slow: tuple[Answer, float] | None, host_concurrency: int) -> float:
    """Crawl for `LASTS_S`; return how many pages a second of the fast hosts ended."""
    hosts = [f"http://h{number}.test" for number in range(99)]
    seeds = [f"{host}/{number}" for host in hosts for number in range(20)]
    if slow is not None:
        seeds = [f"{SLOW}/{number}" for number in range(200)] + seeds
    flying: list[tuple[float, int, Job]] = []
    ended = 0
    with Driver(
        directory, {}, seeds=seeds, robots=False, delay=0, workers=WORKERS, host_concurrency=host_concurrency, retries=3
    ) as crawl:
        while crawl.elapsed_s() < LASTS_S:
            job = crawl.claim() if len(flying) < WORKERS else None
            if job is not None:
                took_s = slow[1] if slow is not None and job.url.startswith(SLOW) else FAST_S
                heapq.heappush(flying, (crawl.elapsed_s() + took_s, len(crawl.requests), job))
                continue
            landing_s, _, job = heapq.heappop(flying)
            crawl.clock.advance(max(0.0, landing_s - crawl.elapsed_s()))
            is_slow = job.url.startswith(SLOW)
            crawl.settle(job, slow[0] if slow is not None and is_slow else Facts(404))
            ended += not is_slow
    return ended / LASTS_S


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> float:
    """The throughput without the slow host: 16 workers and 0.4 s a page are 40 a second."""
    rate = fast_pages_per_s(tmp_path_factory.mktemp("without") / "crawl", None, WORKERS)
    assert rate >= 39
    return rate


@pytest.mark.parametrize("host_concurrency", [1, WORKERS])
@pytest.mark.parametrize("kind", KINDS)
def test_one_slow_host_leaves_99_fast_ones_95_percent_of_their_throughput(
    tmp_path: Path, undisturbed: float, kind: str, host_concurrency: int
) -> None:
    assert fast_pages_per_s(tmp_path / "crawl", KINDS[kind], host_concurrency) >= 0.95 * undisturbed


def test_a_slow_host_alone_may_have_all_the_workers(tmp_path: Path) -> None:
    seeds = [f"{SLOW}/{number}" for number in range(50)]
    with Driver(tmp_path / "crawl", {}, seeds=seeds, robots=False, delay=0, workers=WORKERS, host_concurrency=WORKERS) as crawl:
        jobs = [crawl.claim() for _ in range(WORKERS)]
        crawl.clock.advance(5.0)
        for job in jobs:
            assert job is not None
            crawl.settle(job, page())
        assert all(crawl.claim() is not None for _ in range(WORKERS))
