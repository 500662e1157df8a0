"""Gaps per address: hosts of one server are asked as one, those of others are not held up, and waiting costs little."""

import itertools
from collections import Counter
from collections.abc import Callable

import pytest

from crawlkit.config import Config
from crawlkit.engine.ending import Ending
from crawlkit.engine.servers import SERVERS_IN_MEMORY, TTL_S, Servers
from crawlkit.model import Facts, Fetched, FetchFailure, Found, PageJob, Reason
from tests.engine.driver import Driver, page

Drive = Callable[..., Driver]
GAP_S = 1.0


def hosts_of(crawl: Driver, count: int, address: str) -> list[str]:
    names = [f"{address}-{number}.test" for number in range(count)]
    crawl.addresses.update(dict.fromkeys(names, address))
    return names


def many(drive: Drive, shared: int, alone: int, pages: int, **settings: object) -> Driver:
    """A crawl of `shared` hosts at one address, and of `alone` with one each."""
    names = [f"shared-{number}.test" for number in range(shared)] + [f"alone-{number}.test" for number in range(alone)]
    seeds = [f"http://{name}/{number}" for name in names for number in range(pages)]
    crawl = drive(dict.fromkeys(seeds, page()), seeds=seeds, group_by="address", delay=GAP_S, **settings)
    hosts_of(crawl, shared, "shared")
    return crawl


def starts(crawl: Driver, name: str) -> list[float]:
    return [at for at, url in crawl.requests if url.startswith(f"http://{name}")]


@pytest.mark.parametrize("robots", [False, True])
def test_hosts_of_one_address_are_asked_as_one_and_others_at_their_own_rate(drive: Drive, robots: bool) -> None:
    crawl = many(drive, 12, 3, 4, robots=robots)

    assert crawl.drain() is Ending.FINISHED

    shared = starts(crawl, "shared")
    requests = 4 + robots
    assert len(shared) == 12 * requests
    assert min(after - before for before, after in itertools.pairwise(shared)) >= GAP_S
    assert shared[-1] - shared[0] <= 1.1 * GAP_S * len(shared), "nor is the address left idle"
    for number in range(3):
        alone = starts(crawl, f"alone-{number}.")
        assert len(alone) == requests
        assert alone[-1] <= (requests + 1) * GAP_S
    assert crawl.state.counters.requests == len(crawl.requests), "looking up a name is no request"


def test_each_host_of_an_address_gets_its_turn(drive: Drive) -> None:
    crawl = many(drive, 10, 0, 4, robots=False)
    crawl.drain()

    turns = Counter(url.split("/")[2] for _, url in crawl.requests[:20])
    assert len(turns) == 10
    assert max(turns.values()) <= 4


def test_no_more_requests_are_in_flight_to_an_address_than_to_a_host(drive: Drive) -> None:
    crawl = many(drive, 6, 0, 4, robots=False, host_concurrency=2)
    flying: list[PageJob] = []
    for step in range(60):
        for job in crawl.claim_all():
            assert isinstance(job, PageJob)
            if job.address is None:
                crawl.settle(job)
            else:
                flying.append(job)
        assert len(flying) <= 2
        crawl.clock.advance(0.6)
        if step % 5 == 4:
            crawl.settle(flying.pop(0))
    assert len(crawl.requests) > 10


def test_after_a_clean_stop_too_every_host_waits_one_gap(drive: Drive) -> None:
    crawl = many(drive, 4, 0, 4, robots=False)
    for _ in range(8):
        crawl.settle(crawl.next_job())
    crawl.end(Ending.SIGTERM)
    asked = len(crawl.requests)

    crawl.reopen()
    resumed_s = crawl.elapsed_s()
    crawl.drain()

    assert crawl.requests[asked][0] >= resumed_s + GAP_S
    assert len(crawl.requests) == 16


def test_a_name_that_cannot_be_found_ends_as_without_grouping(drive: Drive) -> None:
    crawl = many(drive, 1, 1, 1, robots=False)
    crawl.settle(crawl.next_job(), FetchFailure(Reason.NAME_NOT_FOUND, "no such name"))
    crawl.drain()

    assert sorted(str(record.reason) for record in crawl.records().values()) == ["None", "net.name_not_found"]


def servers(**settings: object) -> Servers:
    return Servers(Config.from_values({"delay": GAP_S, **settings}))


def test_who_is_sent_away_stands_behind_those_before() -> None:
    asked = servers()
    for name in ("a", "b", "c", "d"):
        asked.learn(name, "address", 1000.0)
    asked.start("address", 1000.0)
    assert [asked.next_turn(name, GAP_S, 1000.2) - 1000.2 for name in "bc"] == pytest.approx([1.8, 2.8])
    asked.end("address", Fetched(PageJob("http://a/", "a"), 1000.0, 1000.5, Facts(200)))
    assert asked.next_turn("d", GAP_S, 1000.6) == pytest.approx(1000.5 + GAP_S + 2)
    assert asked.next_turn("d", GAP_S, 1001.6) <= 1001.6


def test_a_name_is_looked_up_again_after_a_while_and_after_a_clock_was_set_back() -> None:
    asked = servers()
    asked.learn("a", "address", 1000.0)
    assert asked.address_of("a", 1000.0 + TTL_S) == "address"
    assert asked.address_of("a", 1000.1 + TTL_S) is None
    assert asked.address_of("a", 900.0) is None
    assert asked.address_of("b", 1000.0) is None


def test_addresses_that_bind_nobody_any_more_are_forgotten_and_no_others() -> None:
    asked = servers()
    job = PageJob("http://a/", "a")
    for number in range(3 * SERVERS_IN_MEMORY):
        now = 1000.0 + number / 20
        asked.learn("a", str(number), now)
        asked.start(str(number), now)
        asked.end(str(number), Fetched(job, now, now, Found("x")))
        assert asked.next_turn("a", GAP_S, now) > now
    assert 60 * 20 <= len(asked._servers) <= SERVERS_IN_MEMORY
