"""robots.txt in a crawl: what its answers lead to, how long they hold, and whose manners its own requests keep."""

import itertools
from collections.abc import Callable

import pytest

from crawlkit.engine.ending import Ending
from crawlkit.model import FetchFailure, Kind, OrderReason, Reason, Record
from tests.engine.driver import NO_CONNECTION, SEED, TIMED_OUT, A, Answer, Driver, Web, answer, file, page

Drive = Callable[..., Driver]

B = "http://b.test"
ROBOTS = f"{A}/robots.txt"
DAY_S = 24 * 3600.0


def ending_of(record: Record) -> tuple[Kind, Reason | None]:
    return record.kind, record.reason


def test_what_is_disallowed_is_excluded_with_its_rule_and_never_requested(drive: Drive) -> None:
    web = {ROBOTS: file("Disallow: /secret"), SEED: page(f"{A}/secret/1", f"{A}/open"), f"{A}/open": page()}
    crawl = drive(web, delay=0)

    assert crawl.drain() is Ending.FINISHED

    secret = crawl.records()[f"{A}/secret/1"]
    assert ending_of(secret) == (Kind.EXCLUDED, Reason.ROBOTS_DISALLOW)
    assert secret.message == "line 2: Disallow: /secret"
    assert (secret.depth, secret.status) == (1, None)
    assert [url for _, url in crawl.requests] == [ROBOTS, SEED, f"{A}/open"]
    assert not crawl.state.counters.reasons


def test_with_robots_off_nobody_asks(drive: Drive) -> None:
    crawl = drive({ROBOTS: file("Disallow: /"), SEED: page()}, delay=0, robots=False)

    crawl.drain()

    assert [url for _, url in crawl.requests] == [SEED]


@pytest.mark.parametrize(
    ("robots", "ending", "asked"),
    [
        (answer(404), (Kind.PAGE, None), 1),
        (answer(403), (Kind.PAGE, None), 1),
        (answer(500), (Kind.EXCLUDED, Reason.ROBOTS_UNREACHABLE), 3),
        (answer(503), (Kind.EXCLUDED, Reason.ROBOTS_UNREACHABLE), 3),
        (answer(429), (Kind.EXCLUDED, Reason.ROBOTS_UNREACHABLE), 3),
        (NO_CONNECTION, (Kind.FAILURE, Reason.HOST_UNREACHABLE), 3),
        (TIMED_OUT, (Kind.FAILURE, Reason.HOST_UNREACHABLE), 3),
        (FetchFailure(Reason.TLS, "expired"), (Kind.FAILURE, Reason.HOST_UNREACHABLE), 1),
        (FetchFailure(Reason.ADDRESS, "10.0.0.1"), (Kind.FAILURE, Reason.ADDRESS), 1),
        (FetchFailure(Reason.PROXY, "the proxy answers 407"), (Kind.FAILURE, Reason.PROXY), 3),
    ],
    ids=lambda value: str(getattr(value, "status", getattr(value, "reason", ""))) or None,
)
def test_how_pages_end_follows_from_what_their_robots_txt_answers(
    drive: Drive, robots: Answer, ending: tuple[Kind, Reason | None], asked: int
) -> None:
    crawl = drive({ROBOTS: robots, SEED: page()}, retries=2, delay=0)

    assert crawl.drain() is Ending.FINISHED

    record = crawl.records()[SEED]
    assert ending_of(record) == ending
    assert record.message == (robots.message if isinstance(robots, FetchFailure) else None)
    assert crawl.asked(ROBOTS) == asked
    assert crawl.asked(SEED) == (ending[0] is Kind.PAGE)


@pytest.mark.parametrize("passing", [answer(500), answer(503), answer(429), NO_CONNECTION, TIMED_OUT])
def test_a_robots_txt_that_fails_for_a_while_is_waited_for(drive: Drive, passing: Answer) -> None:
    crawl = drive({ROBOTS: [passing, passing, file("Disallow: /no")], SEED: page(f"{A}/no")}, retries=2, delay=0)

    crawl.drain()

    assert ending_of(crawl.records()[SEED]) == (Kind.PAGE, None)
    assert ending_of(crawl.records()[f"{A}/no"]) == (Kind.EXCLUDED, Reason.ROBOTS_DISALLOW)
    assert crawl.asked(ROBOTS) == 3
    assert not crawl.state.counters.reasons


@pytest.mark.parametrize("reopened", [False, True])
def test_a_429_makes_the_host_wait_and_the_wait_survives(drive: Drive, reopened: bool) -> None:
    crawl = drive({ROBOTS: [answer(429, retry_after="90"), file()], SEED: page()}, retries=1, delay=0)
    crawl.settle(crawl.next_job())
    if reopened:
        crawl.end(Ending.SIGINT)
        crawl.reopen()

    crawl.drain()

    assert crawl.starts_s(ROBOTS)[1] >= 90
    assert crawl.records()[SEED].kind is Kind.PAGE


def test_a_429_of_a_robots_txt_is_waited_for_up_to_the_cap(drive: Drive) -> None:
    crawl = drive({ROBOTS: [answer(429, retry_after="900"), file()], SEED: page()}, retries=1, delay=0, max_retry_after=90)

    crawl.drain()

    assert 90 <= crawl.starts_s(ROBOTS)[1] < 91


def test_failed_attempts_of_a_robots_txt_survive_a_reopening(drive: Drive) -> None:
    crawl = drive({ROBOTS: answer(500)}, retries=2, delay=0)
    crawl.settle(crawl.next_job())
    crawl.end(Ending.SIGINT)

    crawl.reopen()
    crawl.drain()

    assert crawl.asked(ROBOTS) == 3


def test_a_verdict_survives_a_reopening(drive: Drive) -> None:
    crawl = drive({ROBOTS: file("Disallow: /no"), SEED: page(f"{A}/no")}, delay=0)
    crawl.settle(crawl.next_job())
    crawl.end(Ending.SIGINT)

    crawl.reopen()
    crawl.drain()

    assert crawl.asked(ROBOTS) == 1
    assert crawl.records()[f"{A}/no"].kind is Kind.EXCLUDED


# Time -----------------------------------------------------------------------------------------------------------------


def slow_site(*robots: Answer) -> Web:
    """A site of which one page is fetched every 10 hours, so that its robots.txt expires before the third."""
    return {ROBOTS: list(robots), SEED: page(f"{A}/1", f"{A}/2"), f"{A}/1": page(), f"{A}/2": page()}


@pytest.mark.parametrize(
    ("second", "ending", "reasons"),
    [
        (file(), (Kind.PAGE, None), set()),
        (file("Disallow: /2"), (Kind.EXCLUDED, Reason.ROBOTS_DISALLOW), {OrderReason.ROBOTS_CHANGED}),
        (answer(404), (Kind.PAGE, None), {OrderReason.ROBOTS_CHANGED}),
    ],
    ids=["same", "changed", "gone"],
)
def test_after_a_day_robots_txt_is_asked_again_and_a_change_is_told(
    drive: Drive, second: Answer, ending: tuple[Kind, Reason | None], reasons: set[OrderReason]
) -> None:
    crawl = drive(slow_site(file(), second), delay=10 * 3600.0)

    crawl.drain()

    assert crawl.asked(ROBOTS) == 2
    assert crawl.starts_s(ROBOTS)[1] >= DAY_S
    assert ending_of(crawl.records()[f"{A}/2"]) == ending
    assert crawl.state.counters.reasons == reasons


@pytest.mark.parametrize("outage", [answer(503), NO_CONNECTION, TIMED_OUT])
def test_an_outage_keeps_the_verdict_that_is_known(drive: Drive, outage: Answer) -> None:
    web = {**slow_site(file("Disallow: /no"), outage), SEED: page(f"{A}/1", f"{A}/2", f"{A}/no"), f"{A}/2": page()}
    crawl = drive(web, delay=10 * 3600.0, retries=1)

    crawl.drain()

    assert crawl.asked(ROBOTS) > 2
    assert crawl.records()[f"{A}/2"].kind is Kind.PAGE
    assert ending_of(crawl.records()[f"{A}/no"]) == (Kind.EXCLUDED, Reason.ROBOTS_DISALLOW)
    assert not crawl.state.counters.reasons


def test_an_origin_without_a_verdict_is_asked_again_after_an_hour(drive: Drive) -> None:
    web: Web = {
        f"{B}/robots.txt": [answer(500), file()],
        f"{B}/": page(),
        f"{B}/late": page(),
        SEED: page(f"{A}/1", f"{B}/"),
        f"{A}/1": page(f"{B}/late"),
    }
    crawl = drive(web, seeds=[SEED, f"{B}/"], delay=2000.0)

    crawl.drain()

    assert ending_of(crawl.records()[f"{B}/"]) == (Kind.EXCLUDED, Reason.ROBOTS_UNREACHABLE)
    assert ending_of(crawl.records()[f"{B}/late"]) == (Kind.PAGE, None)


# Manners --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("crawl_delay_s", [7_200, 200_000])
def test_a_gap_that_is_longer_than_a_verdict_holds_does_not_keep_pages_from_their_turn(
    drive: Drive, crawl_delay_s: int
) -> None:
    web = {ROBOTS: file(f"Crawl-delay: {crawl_delay_s}"), SEED: page(f"{A}/1"), f"{A}/1": page()}
    crawl = drive(web, max_crawl_delay=1e6)

    crawl.drain()

    assert crawl.state.counters.pages == 2
    assert len(crawl.requests) < 6


@pytest.mark.parametrize("outage", [answer(503), NO_CONNECTION])
def test_a_gap_of_hours_does_not_make_an_unreachable_robots_txt_be_asked_for_ever(drive: Drive, outage: Answer) -> None:
    crawl = drive({ROBOTS: outage}, delay=4 * 3600.0)

    crawl.drain()

    assert crawl.state.counters.records == 1
    assert crawl.asked(ROBOTS) == 1


def test_a_crawl_delay_is_in_force_for_the_first_page_and_survives(drive: Drive) -> None:
    crawl = drive({ROBOTS: file("Crawl-delay: 30"), SEED: page(f"{A}/1"), f"{A}/1": page()}, delay=1.0)
    crawl.settle(crawl.next_job())
    crawl.settle(crawl.next_job())
    crawl.end(Ending.SIGINT)

    crawl.reopen()
    crawl.drain()

    assert [at for at, _ in crawl.requests] == pytest.approx([0, 30, 60], abs=1e-3)


def test_a_crawl_delay_that_was_written_holds_after_a_kill(drive: Drive) -> None:
    crawl = drive({ROBOTS: file("Crawl-delay: 30"), SEED: page()}, delay=1.0)
    crawl.settle(crawl.next_job())
    crawl.checkpoint()

    crawl.reopen()
    crawl.drain()

    assert [url for _, url in crawl.requests] == [ROBOTS, SEED]
    assert [at for at, _ in crawl.requests] == pytest.approx([0, 30], abs=1e-3)


def test_a_crawl_delay_that_a_kill_lost_is_learnt_again_before_any_page(drive: Drive) -> None:
    crawl = drive({ROBOTS: file("Crawl-delay: 30"), SEED: page()}, delay=1.0)
    crawl.settle(crawl.next_job())

    crawl.reopen()
    crawl.drain()

    assert [url for _, url in crawl.requests] == [ROBOTS, ROBOTS, SEED]
    assert [at for at, _ in crawl.requests] == pytest.approx([0, 1, 31], abs=1e-3)  # robots.txt after a gap of ours


def test_a_crawl_delay_above_the_longest_accepted_excludes_the_urls_of_its_origin_at_once(drive: Drive) -> None:
    slow = f"{A}:8080"
    web: Web = {
        ROBOTS: file("Crawl-delay: 11"),
        f"{slow}/robots.txt": file("Crawl-delay: 11.5"),
        **{f"{origin}/{number}": page() for origin in (A, slow) for number in range(3)},
    }
    seeds = [f"{origin}/{number}" for number in range(3) for origin in (A, slow)]
    crawl = drive(web, seeds=seeds, delay=1.0, max_crawl_delay=11.0)

    assert crawl.drain() is Ending.FINISHED

    endings = {url: ending_of(record) for url, record in crawl.records().items()}
    assert {endings[f"{slow}/{number}"] for number in range(3)} == {(Kind.EXCLUDED, Reason.ROBOTS_DELAY)}
    assert {endings[f"{A}/{number}"] for number in range(3)} == {(Kind.PAGE, None)}
    assert crawl.records()[f"{slow}/0"].message == "Crawl-delay: 11.5"
    assert not [url for _, url in crawl.requests if url.startswith(f"{slow}/") and not url.endswith("/robots.txt")]
    assert [at for at, _ in crawl.requests] == pytest.approx([0, 11, 22, 33, 44], abs=1e-3)  # the longer delay is not kept
    assert not crawl.state.counters.reasons


@pytest.mark.parametrize("reopened", [False, True])
def test_a_site_with_too_long_a_crawl_delay_ends_without_waiting_for_it(drive: Drive, reopened: bool) -> None:
    crawl = drive({ROBOTS: file("Crawl-delay: 86400"), SEED: page()}, seeds=[SEED, f"{A}/1"], delay=1.0)
    crawl.settle(crawl.next_job())
    if reopened:
        crawl.end(Ending.SIGINT)
        crawl.reopen()

    assert crawl.drain() is Ending.FINISHED

    assert {ending_of(record) for record in crawl.records().values()} == {(Kind.EXCLUDED, Reason.ROBOTS_DELAY)}
    assert [url for _, url in crawl.requests] == [ROBOTS]
    assert crawl.elapsed_s() < 60


def test_a_crawl_delay_that_was_too_long_is_asked_for_again_after_a_day(drive: Drive) -> None:
    web: Web = {
        f"{B}/robots.txt": [file("Crawl-delay: 200000"), file()],
        **{f"{B}/{name}": page() for name in ("", "late")},
        SEED: page(f"{A}/1"),
        f"{A}/1": page(f"{A}/2"),
        f"{A}/2": page(f"{B}/late"),
    }
    crawl = drive(web, seeds=[SEED, f"{B}/"], delay=10 * 3600.0)

    crawl.drain()

    assert ending_of(crawl.records()[f"{B}/"]) == (Kind.EXCLUDED, Reason.ROBOTS_DELAY)
    assert ending_of(crawl.records()[f"{B}/late"]) == (Kind.PAGE, None)


def test_our_own_delay_holds_where_it_is_the_longer(drive: Drive) -> None:
    crawl = drive({ROBOTS: file("Crawl-delay: 2"), SEED: page()}, delay=10.0)

    crawl.drain()

    assert [at for at, _ in crawl.requests] == pytest.approx([0, 10], abs=1e-3)


def test_each_origin_of_a_host_has_its_own_robots_txt_and_its_crawl_delay_holds_for_its_pages(drive: Drive) -> None:
    slow = f"{A}:8080"
    web: Web = {
        ROBOTS: file("Disallow: /x"),
        f"{slow}/robots.txt": file("Crawl-delay: 20", "Disallow: /y"),
        SEED: page(f"{A}/x", f"{slow}/x", f"{A}/y", f"{slow}/y", f"{A}/z"),
        **{f"{slow}/x": page(), f"{A}/y": page(), f"{A}/z": page()},
    }
    crawl = drive(web, delay=1.0)

    crawl.drain()

    kinds = {url: record.kind for url, record in crawl.records().items()}
    assert kinds[f"{A}/x"] is kinds[f"{slow}/y"] is Kind.EXCLUDED
    assert kinds[f"{A}/y"] is kinds[f"{slow}/x"] is Kind.PAGE
    starts = crawl.starts_s(f"{slow}/x")
    before = max(at for at, _ in crawl.requests if at < starts[0])
    assert starts[0] - before >= 20


def test_a_page_of_another_origin_waits_for_its_longer_crawl_delay(drive: Drive) -> None:
    slow = f"{A}:8080"
    web: Web = {f"{slow}/robots.txt": file("Crawl-delay: 20"), **{f"{slow}/{number}": page() for number in range(3)}}
    web = {**web, **{f"{A}/{number}": page() for number in range(3)}}
    seeds = [f"{origin}/{number}" for number in range(3) for origin in (A, slow)]
    crawl = drive(web, seeds=seeds, delay=1.0)

    crawl.drain()

    for (before, _), (after, url) in zip(crawl.requests, crawl.requests[1:], strict=False):
        assert after - before >= (20 if url.startswith(slow) and not url.endswith("robots.txt") else 1)


def chain(hops: int) -> Web:
    """A robots.txt that is redirected `hops` times, from host to host, before it says something."""
    urls = [ROBOTS, *(f"http://r{number}.test/robots.txt" for number in range(1, hops + 1))]
    web: Web = {url: answer(301, location=after) for url, after in itertools.pairwise(urls)}
    return {**web, urls[-1]: file("Disallow: /no"), SEED: page(f"{A}/no")}


@pytest.mark.parametrize("hops", [1, 5])
def test_up_to_five_redirects_of_a_robots_txt_are_followed_to_other_hosts_too(drive: Drive, hops: int) -> None:
    crawl = drive(chain(hops), delay=0)

    crawl.drain()

    assert crawl.records()[f"{A}/no"].kind is Kind.EXCLUDED
    assert len(crawl.requests) == hops + 2


def test_a_sixth_redirect_of_a_robots_txt_means_that_there_is_none(drive: Drive) -> None:
    crawl = drive(chain(6), delay=0)

    crawl.drain()

    assert "http://r6.test/robots.txt" not in [url for _, url in crawl.requests]
    assert crawl.records()[f"{A}/no"].status == 404


@pytest.mark.parametrize("location", ["", "mailto:nobody", "http://[/"])
def test_a_redirect_of_a_robots_txt_to_nowhere_means_that_there_is_none(drive: Drive, location: str) -> None:
    crawl = drive({ROBOTS: answer(302, location=location), SEED: page()}, delay=0)

    crawl.drain()

    assert crawl.records()[SEED].kind is Kind.PAGE


def redirected_to_b() -> Web:
    """Two hosts; the robots.txt of the first is redirected to the second."""
    return {
        ROBOTS: answer(301, location=f"{B}/for-a"),
        f"{B}/for-a": file("Disallow: /no"),
        SEED: page(),
        f"{B}/": page(f"{B}/1"),
        f"{B}/1": page(),
    }


def test_a_redirected_robots_txt_is_charged_to_the_other_hosts_gap_too(drive: Drive) -> None:
    crawl = drive(redirected_to_b(), seeds=[SEED, f"{B}/"], delay=3.0)
    crawl.settle(crawl.next_job())
    crawl.clock.advance(2)  # so that the redirected one is due at its own host before the other's gap is over

    crawl.drain()

    to_b = [at for at, url in crawl.requests if url.startswith(B)]
    assert len(to_b) == 4
    assert all(after - before >= 3 for before, after in itertools.pairwise(to_b))


def test_a_redirected_robots_txt_waits_for_a_free_slot_of_the_other_host(drive: Drive) -> None:
    crawl = drive(redirected_to_b(), seeds=[SEED, f"{B}/"], delay=1.0)
    to_a, to_b = crawl.claim_all()
    assert (to_a.url, to_b.url) == (ROBOTS, f"{B}/robots.txt")
    crawl.settle(to_a)
    crawl.clock.advance(10)

    assert crawl.claim() is None
    assert not crawl.coordinator.exhausted
    crawl.settle(to_b)

    assert crawl.drain() is Ending.FINISHED
    assert sorted(url for _, url in crawl.requests[2:]) == [SEED, f"{B}/", f"{B}/1", f"{B}/for-a"]


def test_a_host_that_waits_for_another_does_so_though_it_left_memory(drive: Drive) -> None:
    crawl = drive(redirected_to_b(), seeds=[SEED, f"{B}/"], delay=1.0)
    to_a, to_b = crawl.claim_all()
    crawl.settle(to_a)
    crawl.clock.advance(10)
    assert crawl.claim() is None
    crawl.state.hosts.trim(0)
    assert crawl.state.hosts.loaded("a.test") is None

    crawl.coordinator.look_again()
    crawl.coordinator.work()
    assert crawl.coordinator.next_time() is None
    crawl.settle(to_b)

    assert crawl.drain() is Ending.FINISHED
    assert crawl.asked(f"{B}/for-a") == crawl.asked(SEED) == 1


def test_a_host_for_which_there_is_no_room_to_wait_asks_again_each_second(drive: Drive) -> None:
    web = {**redirected_to_b(), "http://c.test/robots.txt": answer(301, location=f"{B}/for-a"), "http://c.test/": page()}
    crawl = drive(web, seeds=[f"{B}/", SEED, "http://c.test/"], delay=1.0, most_hosts=1)
    to_b = crawl.next_job()
    assert to_b.url == f"{B}/robots.txt"
    for _ in range(2):
        crawl.settle(crawl.next_job())
    until_s = crawl.clock.now() + 60
    for _ in range(200):
        assert crawl.claim() is None
        if crawl.clock.now() < until_s:
            crawl.wait()
    assert crawl.clock.now() >= until_s
    crawl.settle(to_b)

    assert crawl.drain() is Ending.FINISHED
    assert crawl.asked(SEED) == crawl.asked("http://c.test/") == 1


def test_the_other_host_takes_no_page_while_it_answers_a_redirected_robots_txt(drive: Drive) -> None:
    crawl = drive(redirected_to_b(), seeds=[SEED, f"{B}/"], delay=1.0)
    while (job := crawl.next_job()).url != f"{B}/for-a":
        crawl.settle(job)
    crawl.clock.advance(10)

    assert crawl.claim() is None
    crawl.settle(job)
    crawl.clock.advance(1)
    assert crawl.claim() is not None


def test_a_429_of_the_other_host_holds_the_other_host_too(drive: Drive) -> None:
    web = {**redirected_to_b(), f"{B}/for-a": [answer(429, retry_after="60"), file()]}
    crawl = drive(web, seeds=[SEED, f"{B}/"], delay=1.0, retries=1)

    crawl.drain()

    held_from_s = crawl.starts_s(f"{B}/for-a")[0]
    after = [at for at, url in crawl.requests if url.startswith(B) and at > held_from_s]
    assert min(after) >= held_from_s + 60


def test_while_a_robots_txt_is_asked_for_nothing_else_of_its_host_is(drive: Drive) -> None:
    crawl = drive({SEED: page()}, seeds=[SEED, f"{A}/1"], delay=0, host_concurrency=5)

    assert [job.url for job in crawl.claim_all()] == [ROBOTS]


def test_a_host_known_only_for_its_robots_txt_is_not_counted(drive: Drive) -> None:
    crawl = drive(chain(2), delay=0)

    crawl.drain()

    assert crawl.state.counters.hosts == 1
