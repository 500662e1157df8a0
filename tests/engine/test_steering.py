"""Steering by hand: hosts that are held, released, dropped, seeds that are added; over kills and resumes."""

import math
from collections.abc import Callable

import pytest

from crawlkit.config import ScopeMode
from crawlkit.engine.ending import Ending
from crawlkit.engine.repair import repair
from crawlkit.engine.steering import Steering, read_host
from crawlkit.engine.verify import Thoroughness, verify
from crawlkit.errors import UsageError
from crawlkit.model import Kind, OrderReason, Reason, Refusal, Source
from crawlkit.state.checkpoint import MOST_STEERED, Action
from tests.engine.driver import SEED, TIMED_OUT, Driver, answer, moved, page

Drive = Callable[..., Driver]

B, C = "http://b.test/", "http://c.test/"
TWO = {SEED: page("http://a.test/1", "http://a.test/2", B, "http://b.test/1"), B: page(), "http://b.test/1": page(),
       "http://a.test/1": page(), "http://a.test/2": page(), C: page("http://c.test/1")}  # fmt: skip
ANY = {"scope": ScopeMode.ANY, "robots": False}


def steering(crawl: Driver) -> Steering:
    return Steering.of(crawl.coordinator)


def order(crawl: Driver, action: str, *arguments: object) -> None:
    getattr(steering(crawl), action)(*arguments, crawl.clock.now())


def reasons(crawl: Driver) -> dict[str, Reason | None]:
    return {url: record.reason for url, record in crawl.records().items()}


def test_a_held_host_is_not_asked_and_the_crawl_ends_with_what_is_left_of_it(drive: Drive) -> None:
    crawl = drive(TWO, seeds=[SEED, B], **ANY)
    order(crawl, "hold", "b.test", None)
    assert crawl.drain() is Ending.HELD
    assert crawl.asked(B) == 0
    assert set(crawl.records()) == {SEED, "http://a.test/1", "http://a.test/2"}
    assert crawl.state.counters.reasons == set()
    crawl.reopen()  # it holds over a resume
    assert crawl.drain() is Ending.HELD
    order(crawl, "release", "b.test")
    assert crawl.drain() is Ending.FINISHED
    assert crawl.asked(B) == 1
    assert crawl.state.counters.reasons == set()
    assert crawl.state.counters.hosts_held == 0
    assert [s.action for run in crawl.state.runs for s in run.steered] == [Action.HOLD, Action.RELEASE]


def test_a_hold_for_a_time_ends_by_itself_or_sooner(drive: Drive) -> None:
    crawl = drive(TWO, seeds=[SEED, B], delay=0, **ANY)
    order(crawl, "hold", "b.test", 100.0)
    assert crawl.drain() is Ending.FINISHED
    assert crawl.starts_s(B)[0] >= 100.0
    assert max(crawl.starts_s("http://a.test/2")) < 1


def test_a_hold_for_a_time_is_released_sooner(drive: Drive) -> None:
    crawl = drive(TWO, seeds=[SEED, B], delay=0, **ANY)
    order(crawl, "hold", "b.test", 100.0)
    order(crawl, "release", "b.test")
    assert crawl.drain() is Ending.FINISHED
    assert crawl.starts_s(B)[0] < 1


def test_a_host_that_was_due_already_is_held_all_the_same(drive: Drive) -> None:
    crawl = drive(TWO, seeds=[SEED, B], delay=0, **ANY)
    job = crawl.next_job()  # both are in the heap of what is due now
    other = "a.test" if job.host == "b.test" else "b.test"
    order(crawl, "hold", other, None)
    assert crawl.claim() is None
    assert not crawl.coordinator.owes_work  # or the hosts would be walked for it again and again
    order(crawl, "release", other)
    claimed = crawl.claim()
    assert claimed is not None
    assert claimed.host == other


def test_a_host_in_flight_when_it_is_held_is_not_asked_again(drive: Drive) -> None:
    crawl = drive(TWO, seeds=[SEED], **ANY)
    job = crawl.next_job()
    order(crawl, "hold", "a.test", None)
    crawl.settle(job)
    assert crawl.drain() is Ending.HELD
    assert crawl.asked("http://a.test/1") == 0
    assert len(crawl.records()) == 3  # the seed and b.test


@pytest.mark.parametrize("robots", [False, True])
def test_a_dropped_host_ends_without_a_request_now_and_later(drive: Drive, robots: bool) -> None:
    crawl = drive(TWO, seeds=[SEED, B], **{**ANY, "robots": robots})
    order(crawl, "drop", "b.test")
    asked = len(crawl.requests)
    assert crawl.drain() is Ending.FINISHED
    assert not [url for _, url in crawl.requests[asked:] if "b.test" in url]
    assert reasons(crawl)[B] is reasons(crawl)["http://b.test/1"] is Reason.HOST_DROPPED
    assert crawl.records()[B].kind is Kind.FAILURE
    assert crawl.state.counters.reasons == {OrderReason.STEERING}


def test_what_was_in_flight_when_its_host_was_dropped_ends_as_it_does_and_its_retries_are_dropped(drive: Drive) -> None:
    crawl = drive({**TWO, SEED: [TIMED_OUT]}, seeds=[SEED], retries=3, **ANY)
    job = crawl.next_job()
    order(crawl, "drop", "a.test")
    crawl.settle(job)
    assert crawl.drain() is Ending.FINISHED
    assert reasons(crawl) == {SEED: Reason.HOST_DROPPED}
    assert crawl.asked(SEED) == 1


def test_a_dropped_host_ends_though_its_budget_is_spent(drive: Drive) -> None:
    crawl = drive(TWO, seeds=[SEED], max_pages_per_host=1, **ANY)
    assert crawl.drain() is Ending.LIMIT_HOST
    crawl.reopen()
    for name in ("a.test", "b.test"):
        order(crawl, "drop", name)
    assert crawl.drain() is Ending.FINISHED


def test_dropping_takes_no_gaps(drive: Drive) -> None:
    many = {SEED: page(*(f"http://a.test/{n}" for n in range(200)))}
    crawl = drive(many, seeds=[SEED], delay=60, **ANY)
    crawl.settle(crawl.next_job())
    order(crawl, "drop", "a.test")
    assert crawl.drain() is Ending.FINISHED
    assert crawl.elapsed_s() < 1
    assert len(crawl.records()) == 201


def test_a_release_undoes_a_drop_for_what_is_still_to_come(drive: Drive) -> None:
    crawl = drive(TWO, seeds=[B], **ANY)
    order(crawl, "drop", "b.test")
    assert crawl.claim() is None
    order(crawl, "release", "b.test")
    steering(crawl).add(["http://b.test/1"])
    assert crawl.drain() is Ending.FINISHED
    assert reasons(crawl) == {B: Reason.HOST_DROPPED, "http://b.test/1": None}


def test_a_kill_forgets_what_no_checkpoint_held_and_nothing_else(drive: Drive) -> None:
    crawl = drive(TWO, seeds=[SEED, B], **ANY)
    order(crawl, "hold", "b.test", None)
    crawl.checkpoint()
    order(crawl, "drop", "a.test")
    steering(crawl).add([C])
    crawl.reopen()
    assert crawl.state.hosts.get("b.test").record.held
    assert not crawl.state.hosts.get("a.test").record.dropped
    assert list(crawl.state.seeds()) == [SEED, B]
    assert crawl.drain() is Ending.HELD
    assert C not in crawl.records()


def test_a_seed_that_is_added_is_crawled_and_does_not_extend_the_scope(drive: Drive) -> None:
    crawl = drive(TWO, seeds=[SEED], robots=False)
    added = steering(crawl).add([C, SEED, C])
    assert (added.new, added.outside) == (1, 1)
    assert crawl.drain() is Ending.FINISHED
    record = crawl.records()[C]
    assert (record.kind, record.depth, record.sources) == (Kind.PAGE, 0, Source.SEED)
    assert "http://c.test/1" not in crawl.records()
    assert OrderReason.STEERING in crawl.state.counters.reasons
    crawl.reopen()
    assert crawl.state.first_seeds() == [SEED]
    assert list(crawl.state.seeds()) == [SEED, C]
    assert (steering(crawl).add([C]).new, steering(crawl).add(["http://d.test/"]).new) == (0, 1)
    crawl.checkpoint()
    assert crawl.state.first_seeds() == [SEED]
    assert list(crawl.state.seeds()) == [SEED, C, "http://d.test/"]


def test_a_known_url_that_is_added_is_at_distance_0_from_then_on(drive: Drive) -> None:
    crawl = drive({SEED: page("http://a.test/1"), "http://a.test/1": page("http://a.test/2")}, seeds=[SEED], robots=False)
    crawl.drain()
    assert [crawl.records()[f"http://a.test/{n}"].depth for n in (1, 2)] == [1, 2]
    crawl.reopen()
    steering(crawl).add(["http://a.test/1"])
    crawl.drain()
    assert [crawl.records()[f"http://a.test/{n}"].depth for n in (1, 2)] == [0, 1]


def test_the_crawl_of_a_finished_one_goes_on_with_an_added_seed(drive: Drive) -> None:
    crawl = drive(TWO, seeds=[SEED], **ANY)
    assert crawl.drain() is Ending.FINISHED
    crawl.reopen()
    steering(crawl).add([C])
    assert not crawl.state.counters.finished
    crawl.checkpoint()
    crawl.reopen()
    assert crawl.drain() is Ending.FINISHED
    assert C in crawl.records()


def test_a_robots_txt_that_leads_to_a_held_host_waits_for_it(drive: Drive) -> None:
    hop = answer(301, location="http://b.test/r")
    web = {**TWO, "http://a.test/robots.txt": hop, "http://b.test/r": answer(404)}
    crawl = drive(web, seeds=[SEED], scope=ScopeMode.HOST)
    order(crawl, "hold", "b.test", None)
    assert crawl.drain() is Ending.HELD
    assert crawl.asked("http://b.test/r") == 0
    order(crawl, "release", "b.test")
    assert crawl.drain() is Ending.FINISHED
    assert crawl.asked("http://b.test/r") == 1


def test_steered_crawls_keep_every_rule(drive: Drive) -> None:
    crawl = drive({**TWO, B: moved("http://b.test/1")}, seeds=[SEED, B], **ANY)
    order(crawl, "hold", "a.test", None)
    order(crawl, "drop", "b.test")
    steering(crawl).add([C])
    assert crawl.drain() is Ending.HELD
    crawl.state.close()
    assert verify(crawl.directory, Thoroughness.FULL).whole


def test_an_added_seed_that_pages_linked_to_before_keeps_every_rule(drive: Drive) -> None:
    crawl = drive({SEED: page(C, "http://a.test/1"), "http://a.test/1": page(C), C: page(SEED)}, seeds=[SEED], robots=False)
    crawl.settle(crawl.next_job())
    steering(crawl).add([C])
    assert crawl.drain() is Ending.FINISHED
    assert crawl.records()[C].sources == Source.SEED  # links to it count before as after
    assert crawl.state.counters.refused == {Refusal.SCOPE: 2}
    crawl.state.close()
    report = verify(crawl.directory, Thoroughness.FULL)
    assert report.whole, report.broken


def test_a_repaired_crawl_is_steered_as_the_first_one_was(drive: Drive) -> None:
    crawl = drive(TWO, seeds=[SEED, B], scope=ScopeMode.HOST, robots=False)
    order(crawl, "hold", "a.test", None)
    order(crawl, "drop", "b.test")
    steering(crawl).add([C])
    crawl.checkpoint()
    crawl.state.close()
    crawl.directory = repair(crawl.directory, crawl.clock.now()).directory
    crawl.reopen()
    assert crawl.state.first_seeds() == [SEED, B]
    assert list(crawl.state.seeds()) == [SEED, B, C]
    assert crawl.drain() is Ending.HELD
    assert reasons(crawl) == {B: Reason.HOST_DROPPED, C: None}
    order(crawl, "release", "a.test")
    assert crawl.drain() is Ending.FINISHED
    assert "http://c.test/1" not in crawl.records()


def test_the_ledger_keeps_the_latest(drive: Drive) -> None:
    crawl = drive(TWO)
    for number in range(MOST_STEERED + 5):
        steering(crawl).note(Action.HOLD, f"h{number}.test", 0.0)
    kept = [steered.what for steered in crawl.state.runs[-1].steered]
    assert (len(kept), kept[-1]) == (MOST_STEERED, f"h{MOST_STEERED + 4}.test")


def test_infinity_survives_the_disk(drive: Drive) -> None:
    crawl = drive(TWO)
    order(crawl, "hold", "a.test", None)
    crawl.checkpoint()
    crawl.reopen()
    assert crawl.state.hosts.get("a.test").record.held_until_s == math.inf


@pytest.mark.parametrize(
    ("text", "name"), [("Example.COM", "example.com"), ("bücher.example", "xn--bcher-kva.example"), ("[::1]", "[::1]")]
)
def test_a_host_is_named_as_crawls_know_it(text: str, name: str) -> None:
    assert read_host(text) == name


@pytest.mark.parametrize("text", ["", "http://a.test", "a.test/b", "a.test:8080", "a b", "user@a.test", "a.test?x"])
def test_what_is_no_host_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="not a host name"):
        read_host(text)
