"""The breaker and the slowed rate, in a crawl: a dead host is left alone, then given up; a complaining one is asked slowly."""

import itertools
from collections.abc import Callable

import pytest

from crawlkit.engine.ending import Ending
from crawlkit.model import Facts, FetchFailure, Kind, OrderReason, Reason
from crawlkit.policy.health import FIRST_PAUSE_S, OPENS_TO_GIVE_UP, STRIKES_TO_OPEN
from tests.engine.driver import NO_CONNECTION, SEED, TIMED_OUT, A, Driver, Web, page

Drive = Callable[..., Driver]
B = "http://b.test"


def dead(failure: Facts | FetchFailure, pages: int) -> Web:
    """A page that leads to many of a host that fails."""
    return {SEED: page(*(f"{B}/{n}" for n in range(pages))), **{f"{B}/{n}": failure for n in range(pages)}}


@pytest.mark.parametrize("failure", [NO_CONNECTION, TIMED_OUT])
def test_a_dead_host_is_paused_then_given_up_and_its_urls_end(drive: Drive, failure: FetchFailure) -> None:
    crawl = drive(dead(failure, 100), scope="any", robots=False, delay=0, retries=0)

    assert crawl.drain() is Ending.FINISHED

    asked = [at for at, url in crawl.requests if url.startswith(B)]
    assert len(asked) == STRIKES_TO_OPEN + OPENS_TO_GIVE_UP
    pauses = [later - at for at, later in zip(asked[STRIKES_TO_OPEN - 1 :], asked[STRIKES_TO_OPEN:], strict=False)]
    assert pauses == [pytest.approx(FIRST_PAUSE_S * 2**n, abs=0.01) for n in range(OPENS_TO_GIVE_UP)]
    ends = [record.reason for record in crawl.records().values() if record.kind is Kind.FAILURE]
    assert ends.count(Reason.HOST_GIVEN_UP) == 100 - len(asked)
    assert OrderReason.HOST_GIVEN_UP in crawl.state.counters.reasons


def test_while_half_open_one_request_probes_the_host(drive: Drive) -> None:
    crawl = drive(dead(NO_CONNECTION, 30), scope="any", robots=False, delay=0, retries=0, host_concurrency=8)
    crawl.settle(crawl.next_job())
    for job in crawl.claim_all():
        crawl.settle(job)
    assert crawl.claim_all() == [], "the breaker is open"
    probe = crawl.next_job()
    assert crawl.claim_all() == []
    crawl.settle(probe, page())
    assert len(crawl.claim_all()) == 8, "one good answer closes it"


def test_the_breaker_survives_a_kill(drive: Drive) -> None:
    crawl = drive(dead(NO_CONNECTION, 30), scope="any", robots=False, delay=0, retries=0)
    for _ in range(1 + STRIKES_TO_OPEN):
        crawl.settle(crawl.next_job())
    opened_s = crawl.elapsed_s()
    crawl.checkpoint()

    crawl.reopen()

    crawl.next_job()
    assert crawl.elapsed_s() >= opened_s + FIRST_PAUSE_S


def test_a_dead_host_holds_up_no_other(drive: Drive) -> None:
    good = [f"{A}/{n}" for n in range(50)]
    web = {**dead(NO_CONNECTION, 50), SEED: page(*(f"{B}/{n}" for n in range(50)), *good), **dict.fromkeys(good, page())}
    crawl = drive(web, scope="any", robots=False, delay=0, retries=0)

    crawl.drain()

    assert max(at for at, url in crawl.requests if url.startswith(A)) < FIRST_PAUSE_S


@pytest.mark.parametrize("error", [Facts(404), Facts(403), Facts(500), FetchFailure(Reason.PROTOCOL, "garbage")])
def test_fast_error_answers_never_speed_a_host_up(drive: Drive, error: Facts | FetchFailure) -> None:
    urls = [f"{A}/{n}" for n in range(12)]
    web = {SEED: page(*urls), **dict.fromkeys(urls, error), f"{A}/0": [Facts(503), error]}
    crawl = drive(web, robots=False, delay=1, retries=1)

    crawl.drain()

    starts = [at for at, _ in crawl.requests]
    gaps = [later - at for at, later in itertools.pairwise(starts)][1:]
    assert min(gaps) >= 2, "one complaint doubles the gap, and no error takes it back"


def test_a_host_that_complains_is_asked_slowly_and_recovers(drive: Drive) -> None:
    urls = [f"{A}/{n}" for n in range(60)]
    web = {SEED: page(*urls), **dict.fromkeys(urls, page()), f"{A}/0": [Facts(503), page()], f"{A}/1": [Facts(429), page()]}
    crawl = drive(web, robots=False, delay=1, retries=3)

    crawl.drain()

    starts = [at for at, _ in crawl.requests]
    gaps = [later - at for at, later in itertools.pairwise(starts)]
    assert max(gaps[3:6]) >= 3, "two complaints stretch the gap"
    assert gaps[-1] == pytest.approx(1, abs=0.01), "good answers take it back"
    assert gaps[10:] == sorted(gaps[10:], reverse=True), "slowly, and never by an error answer"
    assert {record.kind for record in crawl.records().values()} == {Kind.PAGE}
