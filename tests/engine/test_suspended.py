"""A process that stood still for a minute (SIGSTOP, a laptop's lid): nothing fails for good, and no host is hurried."""

import itertools
from collections.abc import Callable

from crawlkit.engine.ending import Ending
from crawlkit.model import Kind
from tests.engine.driver import SEED, TIMED_OUT, A, Driver, page

Drive = Callable[..., Driver]


def test_fetches_that_a_standstill_timed_out_are_tried_again_and_gaps_are_kept(drive: Drive) -> None:
    urls = [f"{A}/{n}" for n in range(12)]
    web = {SEED: page(*urls), **dict.fromkeys(urls, page())}
    crawl = drive(web, robots=False, delay=2, host_concurrency=4, retries=3)
    crawl.settle(crawl.next_job())
    in_flight = [crawl.next_job() for _ in range(4)]
    stood_from = len(crawl.requests)

    crawl.clock.advance(60)
    for job in in_flight:
        crawl.settle(job, TIMED_OUT)

    assert crawl.drain() is Ending.FINISHED
    assert {record.kind for record in crawl.records().values()} == {Kind.PAGE}
    starts = [at for at, _ in crawl.requests[stood_from:]]
    assert all(later - at >= 2 for at, later in itertools.pairwise(starts)), "what was missed is not made up for"
    assert len(crawl.requests) == 1 + 12 + 4
