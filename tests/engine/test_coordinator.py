"""The coordinator: limits, distances, retries, hosts and their gaps, what a run hands on to the next."""

import itertools
from collections.abc import Callable
from pathlib import Path

import pytest

from crawlkit.engine.ending import Ending
from crawlkit.engine.hook import PageHookError
from crawlkit.engine.limits import RESULTS_A_CHECKPOINT
from crawlkit.errors import ConfigError
from crawlkit.model import Facts, FetchFailure, Kind, OrderReason, PageJob, Reason, Record, Refusal
from crawlkit.state.layout import BLOOM
from tests.engine.driver import GONE, NO_CONNECTION, SEED, TIMED_OUT, A, Driver, Web, file, moved, page

Drive = Callable[..., Driver]

RESET = FetchFailure(Reason.RESET, "by peer")


def star(leaves: int, leaf: Facts = GONE) -> Web:
    """A page that links to `leaves` others."""
    urls = [f"{A}/{number}" for number in range(leaves)]
    return {SEED: page(*urls), **dict.fromkeys(urls, leaf)}


# Limits ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("failing", [0, 3, 5])
def test_max_pages_is_reached_exactly_whatever_else_ends_otherwise(drive: Drive, failing: int) -> None:
    web = {**star(10, page()), **{f"{A}/{number}": GONE for number in range(failing)}}

    crawl = drive(web, max_pages=4, delay=0)

    assert crawl.drain() is Ending.LIMIT_PAGES
    assert crawl.state.counters.pages == 4
    assert crawl.state.counters.failures == failing
    assert crawl.state.counters.reasons == {OrderReason.LIMIT_PAGES}


def test_a_claim_reserves_a_page_and_a_failure_gives_it_back(drive: Drive) -> None:
    crawl = drive(star(10, page()), max_pages=4, delay=0, host_concurrency=10, robots=False)
    crawl.settle(crawl.next_job())

    jobs = crawl.claim_all()

    assert len(jobs) == 3
    crawl.settle(jobs[0], GONE)
    crawl.settle(jobs[1], page())
    assert len(crawl.claim_all()) == 1


def test_a_crawl_of_just_as_many_pages_as_allowed_is_finished(drive: Drive) -> None:
    crawl = drive(star(3, page()), max_pages=4, delay=0)

    assert crawl.drain() is Ending.FINISHED
    assert not crawl.state.counters.reasons


def test_a_raised_max_pages_goes_on_and_its_reason_is_gone(drive: Drive) -> None:
    crawl = drive(star(5, page()), max_pages=2, delay=0)
    crawl.drain()
    asked = len(crawl.requests)

    crawl.reopen()
    assert crawl.drain() is Ending.LIMIT_PAGES
    assert len(crawl.requests) == asked

    crawl.reopen(max_pages=None)
    assert crawl.drain() is Ending.FINISHED
    assert crawl.state.counters.pages == 6
    assert not crawl.state.counters.reasons


def test_max_pages_per_host_is_exact_for_each_host_and_failures_give_back(drive: Drive) -> None:
    hosts = [A, "http://b.test"]
    web: Web = {
        f"{host}{path}": answer
        for host in hosts
        for path, answer in {
            "/": page(*(f"{host}/{number}" for number in range(6))),
            **{f"/{number}": GONE if number < 2 else page() for number in range(6)},
        }.items()
    }
    crawl = drive(web, seeds=[f"{host}/" for host in hosts], max_pages_per_host=3, delay=0, host_concurrency=4)

    assert crawl.drain() is Ending.LIMIT_HOST
    assert crawl.state.counters.pages == 6
    assert crawl.state.counters.failures == 4
    assert crawl.state.counters.reasons == {OrderReason.LIMIT_HOST}

    crawl.reopen(max_pages_per_host=4)
    assert crawl.drain() is Ending.LIMIT_HOST
    assert crawl.state.counters.pages == 8


def test_claims_and_pages_of_a_host_together_stay_within_its_limit(drive: Drive) -> None:
    crawl = drive(star(6, page()), max_pages_per_host=3, delay=0, host_concurrency=4, robots=False)
    crawl.settle(crawl.next_job())

    jobs = crawl.claim_all()

    assert len(jobs) == 2
    crawl.settle(jobs[0], GONE)
    assert len(crawl.claim_all()) == 1


def test_max_time_counts_the_runs_before_up_to_their_last_checkpoint(drive: Drive) -> None:
    crawl = drive(star(5), max_time=10.0)
    began_s = crawl.clock.now()
    assert crawl.coordinator.deadline_s == began_s + 10

    crawl.clock.advance(4)
    crawl.checkpoint()
    crawl.clock.advance(3)
    crawl.reopen()

    assert crawl.coordinator.deadline_s == crawl.clock.now() + 6


# Depth ----------------------------------------------------------------------------------------------------------------


def test_a_shorter_path_found_late_admits_what_the_depth_limit_had_kept_out(drive: Drive) -> None:
    web = {
        SEED: page(f"{A}/slow", f"{A}/1"),
        f"{A}/1": page(f"{A}/2"),
        f"{A}/2": page(f"{A}/3"),
        f"{A}/3": page(f"{A}/4"),
        f"{A}/4": page(f"{A}/5"),
        f"{A}/slow": page(f"{A}/3"),
    }
    crawl = drive(web, max_depth=3, delay=0, host_concurrency=2, robots=False)
    crawl.settle(crawl.next_job())
    slow = crawl.next_job()
    assert slow.url == f"{A}/slow"
    while (job := crawl.claim()) is not None:
        crawl.settle(job)
    crawl.checkpoint()
    assert crawl.records()[f"{A}/3"].depth == 3
    assert f"{A}/4" not in crawl.records()

    crawl.settle(slow)
    assert crawl.coordinator.owes_work
    crawl.drain()

    depths = {url: record.depth for url, record in crawl.records().items()}
    assert depths == {SEED: 0, f"{A}/slow": 1, f"{A}/1": 1, f"{A}/2": 2, f"{A}/3": 2, f"{A}/4": 3}
    assert crawl.asked(f"{A}/3") == 1


def test_lowered_distances_still_to_propagate_survive_a_kill(drive: Drive) -> None:
    chain = [f"{A}/{number}" for number in range(6)]
    web = {SEED: page(f"{A}/slow", chain[0]), f"{A}/slow": page(chain[4])}
    web |= {url: page(after) for url, after in itertools.pairwise(chain)}
    crawl = drive(web, delay=0, host_concurrency=2, robots=False)
    crawl.settle(crawl.next_job())
    slow = crawl.next_job()
    while (job := crawl.claim()) is not None:
        crawl.settle(job)
    crawl.settle(slow)
    crawl.checkpoint()

    crawl.reopen()
    crawl.drain()

    assert {url: record.depth for url, record in crawl.records().items() if url in chain[4:]} == {chain[4]: 2, chain[5]: 3}


def test_a_link_that_is_too_deep_lowers_nothing_in_whatever_order_it_is_met(drive: Drive) -> None:
    target, deep = f"{A}/target", f"{A}/deep"
    web = {
        SEED: page(f"{A}/to", deep),
        deep: page(target),
        f"{A}/to": moved(target),
        target: page(),
    }
    crawl = drive(web, max_depth=1, delay=0, host_concurrency=2, robots=False)
    crawl.settle(crawl.next_job())
    first, second = crawl.claim_all()
    for job in (first, second) if first.url != deep else (second, first):  # the target is known before its deep link
        crawl.settle(job)

    crawl.drain()

    assert (crawl.records()[target].depth, crawl.records()[target].hops) == (1, 1)


@pytest.mark.parametrize("limits", [(1, 2), (0, 3), (1, 2, None), (0, 1, 2, 3)])
def test_a_raised_depth_limit_admits_just_what_it_had_kept_out(drive: Drive, limits: tuple[int | None, ...]) -> None:
    chain = [SEED, *(f"{A}/{number}" for number in range(5))]
    web: Web = {url: page(after) for url, after in itertools.pairwise(chain)}
    crawl = drive(web, max_depth=limits[0], delay=0)
    assert crawl.drain() is Ending.FINISHED

    for limit in limits[1:]:
        crawl.reopen(max_depth=limit)
        assert crawl.drain() is Ending.FINISHED

    most = len(chain) if limits[-1] is None else limits[-1] + 1
    assert list(crawl.records()) == sorted(chain[:most])
    assert all(crawl.asked(url) == 1 for url in chain[:most])


def test_depth_limits_raised_twice_before_the_first_was_told_both_count(drive: Drive) -> None:
    chain = [SEED, *(f"{A}/{number}" for number in range(5))]
    web: Web = {url: page(after) for url, after in itertools.pairwise(chain)}
    crawl = drive(web, max_depth=1, delay=0)
    crawl.drain()

    crawl.reopen(max_depth=2)
    crawl.reopen(max_depth=4)
    crawl.drain()

    assert list(crawl.records()) == sorted(chain[:5])


def test_links_that_are_too_deep_are_counted_and_have_no_record(drive: Drive) -> None:
    crawl = drive(star(7), max_depth=0, delay=0)

    assert crawl.drain() is Ending.FINISHED
    assert list(crawl.records()) == [SEED]
    assert crawl.state.counters.refused == {Refusal.DEPTH: 7}


# Redirects ------------------------------------------------------------------------------------------------------------


def test_a_redirect_at_ten_hops_fails_and_becomes_a_redirect_without_a_fetch_when_its_hops_fall(drive: Drive) -> None:
    chain = [f"{A}/r{number}" for number in range(12)]
    web: Web = {
        SEED: page(chain[0], f"{A}/slow"),
        f"{A}/slow": page(chain[5]),
        **{url: moved(after) for url, after in itertools.pairwise(chain)},
    }
    crawl = drive(web, delay=0, host_concurrency=2, robots=False)
    crawl.settle(crawl.next_job())
    first, slow = crawl.claim_all()
    crawl.settle(first)
    while (job := crawl.claim()) is not None:
        crawl.settle(job)
    crawl.checkpoint()
    assert crawl.records()[chain[10]].reason is Reason.TOO_MANY_REDIRECTS
    assert crawl.state.counters.failures == 1
    assert chain[11] not in crawl.records()

    crawl.settle(slow)
    crawl.drain()

    assert crawl.records()[chain[10]].kind is Kind.REDIRECT
    assert crawl.records()[chain[10]].hops == 5
    assert crawl.records()[chain[11]].status == 404
    assert crawl.asked(chain[10]) == 1
    assert (crawl.state.counters.failures, crawl.state.counters.redirects) == (1, 11)


# Retries --------------------------------------------------------------------------------------------------------------


def test_attempts_survive_a_reopening(drive: Drive) -> None:
    crawl = drive({SEED: TIMED_OUT}, retries=2, delay=0, robots=False)
    for _ in range(2):
        crawl.settle(crawl.next_job())
    crawl.checkpoint()

    crawl.reopen()
    job = crawl.next_job()
    assert isinstance(job, PageJob)
    assert job.attempts == 2
    crawl.settle(job)
    crawl.drain()

    record = crawl.records()[SEED]
    assert (record.kind, record.reason, record.attempts) == (Kind.FAILURE, Reason.TIMEOUT, 3)
    assert crawl.asked(SEED) == 3
    assert crawl.state.counters.reasons == {OrderReason.TRANSIENT}


@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize("reopened", [False, True])
def test_retry_after_holds_the_whole_host_and_survives(drive: Drive, status: int, reopened: bool) -> None:
    web = {SEED: page(f"{A}/1", f"{A}/2"), f"{A}/1": [Facts(status, retry_after="60"), page()], f"{A}/2": page()}
    crawl = drive(web, retries=1, delay=0, robots=False)
    crawl.settle(crawl.next_job())
    crawl.settle(crawl.next_job())
    held_from_s = crawl.elapsed_s()
    if reopened:
        crawl.end(Ending.SIGTERM)
        crawl.reopen()

    crawl.drain()

    later = crawl.requests[2:]
    assert sorted(url for _, url in later) == [f"{A}/1", f"{A}/2"]
    assert min(at for at, _ in later) >= held_from_s + 60
    assert {record.kind for record in crawl.records().values()} == {Kind.PAGE}


def test_a_retry_after_is_waited_for_up_to_the_cap(drive: Drive) -> None:
    web = {SEED: [Facts(503, retry_after="86400"), page()]}
    crawl = drive(web, retries=1, delay=0, robots=False, max_retry_after=300)

    crawl.drain()

    assert 300 <= crawl.starts_s(SEED)[1] < 301


@pytest.mark.parametrize("failure", [TIMED_OUT, RESET, Facts(500)])
def test_a_url_that_waits_to_be_tried_again_does_not_block_its_host(drive: Drive, failure: Facts | FetchFailure) -> None:
    web = {SEED: page(f"{A}/1", f"{A}/2"), f"{A}/1": [failure, page()], f"{A}/2": page()}
    crawl = drive(web, retries=1, delay=0.01, robots=False)

    crawl.drain()

    assert [url for _, url in crawl.requests] == [SEED, f"{A}/1", f"{A}/2", f"{A}/1"]
    assert crawl.starts_s(f"{A}/2")[0] < 0.1
    assert crawl.starts_s(f"{A}/1")[1] > 0.5


def test_a_429_told_while_the_host_is_due_already_holds_it_all_the_same(drive: Drive) -> None:
    crawl = drive(star(4), retries=1, delay=0.1, host_concurrency=2, robots=False)
    crawl.settle(crawl.next_job())
    first = crawl.next_job()
    crawl.clock.advance(1)

    crawl.settle(first, Facts(429, retry_after="60"))

    assert crawl.claim() is None
    assert crawl.coordinator.next_time() == pytest.approx(crawl.clock.now() + 60)


# Hosts ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("concurrency", [1, 2, 3])
def test_no_more_than_host_concurrency_are_in_flight_to_a_host(drive: Drive, concurrency: int) -> None:
    crawl = drive(star(9), delay=0, host_concurrency=concurrency, robots=False)
    crawl.settle(crawl.next_job())

    jobs = crawl.claim_all()

    assert len(jobs) == concurrency
    crawl.settle(jobs[0])
    assert len(crawl.claim_all()) == 1


def test_at_concurrency_one_the_gap_runs_from_the_end_of_a_request(drive: Drive) -> None:
    crawl = drive(star(3), delay=2.0, robots=False)
    job = crawl.next_job()
    crawl.clock.advance(7)
    crawl.settle(job)

    crawl.next_job()

    assert crawl.requests[1][0] == pytest.approx(9, abs=1e-3)


def test_at_higher_concurrency_the_gap_runs_from_the_start_of_a_request(drive: Drive) -> None:
    crawl = drive(star(3), delay=2.0, host_concurrency=2, robots=False)
    crawl.settle(crawl.next_job())
    crawl.next_job()

    crawl.next_job()

    assert [at for at, _ in crawl.requests] == pytest.approx([0, 2, 4], abs=1e-3)


def test_a_shorter_delay_on_resume_counts_from_what_happened(drive: Drive) -> None:
    crawl = drive(star(3), delay=100.0, robots=False)
    crawl.settle(crawl.next_job())
    crawl.end(Ending.SIGINT)

    crawl.reopen(delay=3.0)
    crawl.next_job()

    assert crawl.requests[1][0] == pytest.approx(3, abs=1e-3)


def test_after_a_kill_every_host_with_work_waits_a_full_gap(drive: Drive) -> None:
    crawl = drive(star(3), delay=5.0, robots=False)
    crawl.settle(crawl.next_job())
    crawl.checkpoint()
    crawl.next_job()
    crawl.clock.advance(100)

    crawl.reopen()
    opened_s = crawl.elapsed_s()
    crawl.next_job()

    assert crawl.requests[-1][0] == pytest.approx(opened_s + 5, abs=1e-3)


def test_the_wait_after_a_kill_outlives_a_clean_run_that_ended_before_it(drive: Drive) -> None:
    crawl = drive(star(3), delay=5.0, robots=False)
    crawl.next_job()
    crawl.reopen()
    reopened_s = crawl.elapsed_s()
    crawl.clock.advance(1)
    crawl.end(Ending.SIGINT)

    crawl.reopen()
    crawl.next_job()

    assert crawl.requests[-1][0] == pytest.approx(reopened_s + 5, abs=1e-3)


def test_a_kill_before_a_run_checkpointed_anything_is_no_clean_end(drive: Drive) -> None:
    crawl = drive(star(3), delay=5.0, robots=False)
    crawl.settle(crawl.next_job())
    crawl.clock.advance(100)
    crawl.end(Ending.SIGINT)
    crawl.reopen()
    crawl.next_job()

    crawl.reopen()
    crawl.next_job()

    first, second = (at for at, _ in crawl.requests[1:])
    assert second - first == pytest.approx(5, abs=1e-3)


@pytest.mark.parametrize("clean", [True, False])
def test_after_the_wall_clock_was_set_back_nothing_waits_longer_than_its_own_delay(drive: Drive, clean: bool) -> None:
    web = {SEED: page(f"{A}/1", f"{A}/2"), f"{A}/1": [Facts(503, retry_after="30"), page()], f"{A}/2": page()}
    crawl = drive(web, retries=1, delay=2.0, robots=False)
    crawl.settle(crawl.next_job())
    crawl.settle(crawl.next_job())
    if clean:
        crawl.end(Ending.SIGINT)
    else:
        crawl.checkpoint()
    crawl.clock.advance(-100_000)

    crawl.reopen()
    reopened_s = crawl.elapsed_s()
    crawl.drain()

    waits = [at - reopened_s for at, _ in crawl.requests[2:]]
    assert len(waits) == 2
    assert 30 <= waits[0] < 31
    assert waits[1] < 35


def test_hosts_beyond_the_schedules_room_are_all_crawled(drive: Drive) -> None:
    hosts = [f"http://h{number}.test" for number in range(50)]
    web: Web = {f"{host}/": page(f"{host}/a", f"{after}/b") for host, after in zip(hosts, [*hosts[1:], hosts[0]], strict=True)}

    crawl = drive(web, seeds=[f"{host}/" for host in hosts], most_hosts=8, delay=1.0)

    assert crawl.drain() is Ending.FINISHED
    assert list(crawl.records()) == sorted(f"{host}{path}" for host in hosts for path in ("/", "/a", "/b"))
    assert crawl.state.counters.hosts == 50


def test_hosts_found_on_the_way_beyond_the_schedules_room_are_crawled_before_any_checkpoint(drive: Drive) -> None:
    hosts = [f"http://h{number}.test" for number in range(30)]
    crawl = drive({SEED: page(*(f"{host}/" for host in hosts))}, most_hosts=3, delay=1.0, scope="any", robots=False)

    assert crawl.drain() is Ending.FINISHED
    assert len(crawl.records()) == 31


def test_hosts_in_the_store_are_found_again_after_a_kill(drive: Drive) -> None:
    hosts = [f"http://h{number}.test" for number in range(50)]
    crawl = drive({}, seeds=[f"{host}/" for host in hosts], most_hosts=8, delay=0, robots=False)
    for _ in range(20):
        crawl.settle(crawl.next_job())
    crawl.checkpoint()

    crawl.reopen()
    crawl.drain()

    assert len(crawl.records()) == 50
    assert len(crawl.requests) == 50


def test_more_hosts_than_fit_into_memory_keep_their_gaps_and_their_work(drive: Drive) -> None:
    hosts = [f"http://h{number}.test" for number in range(40)]
    web: Web = {f"{host}/": page(*(f"{host}/{number}" for number in range(3))) for host in hosts}
    crawl = drive(web, seeds=[f"{host}/" for host in hosts], most_hosts=4, delay=1.0, robots=False)

    while not crawl.coordinator.exhausted:
        crawl.state.hosts.trim(6)
        if crawl.coordinator.owes_work:
            crawl.coordinator.work()
        crawl.settle(crawl.next_job())
    crawl.end()

    assert len(crawl.requests) == len(crawl.records()) == 160
    for host in hosts:
        starts = [at for at, url in crawl.requests if url.startswith(f"{host}/")]
        assert all(after - before >= 1 for before, after in itertools.pairwise(starts))


@pytest.mark.parametrize("most_hosts", [1, 4, 16])
@pytest.mark.parametrize("delay", [0.5, 30.0])
def test_with_room_for_few_hosts_each_gets_its_turn_however_busy_the_others_are(
    drive: Drive, most_hosts: int, delay: float
) -> None:
    """With the short gap every host is always due, with the long one most of the time is spent waiting."""
    pages, hosts = 8, [f"http://h{number}.test" for number in range(60)]
    seeds = [f"{host}/{number}" for host in hosts for number in range(pages)]
    crawl = drive({}, seeds=seeds, most_hosts=most_hosts, delay=delay, robots=False)
    asked: list[str] = []
    for _ in seeds:
        job = crawl.next_job()
        asked.append(job.host)
        crawl.clock.advance(0.1)
        crawl.settle(job)

    for host in hosts:
        turns = [-1, *(turn for turn, name in enumerate(asked) if host.endswith(f"/{name}"))]
        assert len(turns) == pages + 1
        assert max(after - before for before, after in itertools.pairwise(turns)) <= 2 * len(hosts), host


def test_with_room_for_few_hosts_those_with_short_gaps_are_asked_at_their_rate(drive: Drive) -> None:
    """A host that may be asked each second is, though the room would not do for the hosts that wait for long."""
    slow = [f"http://slow{number}.test" for number in range(60)]
    quick = [f"http://quick{number}.test" for number in range(2)]
    seeds = [f"{host}/{number}" for host in slow for number in range(2)] + [f"{q}/{n}" for q in quick for n in range(200)]
    web: Web = {f"{host}/robots.txt": file("Crawl-delay: 60") for host in slow}
    crawl = drive(web, seeds=seeds, most_hosts=16, delay=1.0)
    while crawl.elapsed_s() < 150:
        crawl.settle(crawl.next_job())

    for host in quick:
        assert sum(url.startswith(host) for _, url in crawl.requests) >= 120


# The seen-set ---------------------------------------------------------------------------------------------------------


def test_a_filter_that_wrongly_says_no_costs_neither_a_url_nor_a_second_record(drive: Drive) -> None:
    urls = [f"{A}/{number}" for number in range(20)]
    web: Web = {SEED: page(*urls), **{url: page(*urls, SEED) for url in urls}}
    crawl = drive(web, delay=0, robots=False)
    for _ in range(8):
        crawl.settle(crawl.next_job())
    crawl.end(Ending.SIGINT)
    crawl.state.close()
    _clear_bits(crawl.directory / BLOOM)

    crawl.reopen()
    crawl.drain()

    assert list(crawl.records()) == sorted([SEED, *urls])
    assert all(record.kind is Kind.PAGE for record in crawl.records().values())
    assert all(crawl.asked(url) == 1 for url in [SEED, *urls])
    assert (crawl.state.counters.seen, crawl.state.counters.pages) == (21, 21)


def _clear_bits(path: Path) -> None:
    content = bytearray(path.read_bytes())
    assert any(content[4096:])
    content[4096:] = bytes(len(content) - 4096)
    path.write_bytes(content)


# Checkpoints ----------------------------------------------------------------------------------------------------------


def test_a_checkpoint_is_urgent_after_a_thousand_results(drive: Drive) -> None:
    crawl = drive(star(RESULTS_A_CHECKPOINT), delay=0, robots=False)

    for _ in range(RESULTS_A_CHECKPOINT):
        assert not crawl.coordinator.checkpoint_urgent
        crawl.settle(crawl.next_job())

    assert crawl.coordinator.checkpoint_urgent
    crawl.checkpoint()
    assert not crawl.coordinator.checkpoint_urgent


def test_requests_pages_and_time_of_a_run_are_in_the_ledger(drive: Drive) -> None:
    crawl = drive(star(3, page()), delay=1.0, robots=False)
    for _ in range(2):
        crawl.settle(crawl.next_job())
    crawl.end(Ending.SIGINT)
    crawl.reopen()
    crawl.drain()

    first, second = crawl.state.runs
    assert (first.how, first.requests, first.pages) == ("sigint", 2, 2)
    assert (second.how, second.requests, second.pages) == ("finished", 2, 4)
    assert crawl.state.counters.requests == 4
    assert crawl.state.counters.elapsed_s == pytest.approx(crawl.elapsed_s())


# The page hook --------------------------------------------------------------------------------------------------------


def test_a_page_whose_hook_raises_stays_queued_and_is_told_again(drive: Drive) -> None:
    told: list[str] = []

    def on_page(record: Record) -> None:
        told.append(record.url)
        if told.count(f"{A}/1") == 1 and record.url == f"{A}/1":
            raise ValueError("no room")

    crawl = drive(star(2, page()), delay=0, robots=False, on_page=on_page)
    crawl.settle(crawl.next_job())
    crawl.settle(crawl.next_job())
    job = crawl.next_job()
    with pytest.raises(PageHookError) as raised:
        crawl.settle(job)
    assert isinstance(raised.value.original, ValueError)
    crawl.end(Ending.HOOK)
    assert f"{A}/1" not in crawl.records()
    assert crawl.state.counters.queued == 1

    crawl.reopen()
    assert crawl.drain() is Ending.FINISHED

    assert told == [SEED, f"{A}/0", f"{A}/1", f"{A}/1"]
    assert list(crawl.records()) == [SEED, f"{A}/0", f"{A}/1"]


def test_the_hook_is_told_of_pages_only(drive: Drive) -> None:
    told: list[Record] = []
    web = {
        SEED: page(f"{A}/r", f"{A}/gone", f"{A}/no"),
        f"{A}/r": moved(f"{A}/ok"),
        f"{A}/ok": page(),
        f"{A}/no": NO_CONNECTION,
    }
    crawl = drive(web, delay=0, on_page=told.append)

    crawl.drain()

    assert [record.url for record in told] == [SEED, f"{A}/ok"]


# Settings -------------------------------------------------------------------------------------------------------------


def test_a_lowered_limit_is_refused(drive: Drive) -> None:
    crawl = drive(star(3), max_depth=2)
    crawl.end(Ending.SIGINT)

    with pytest.raises(ConfigError, match="may only be raised"):
        crawl.reopen(max_depth=1)
