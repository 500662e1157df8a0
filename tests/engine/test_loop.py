"""The loop under asyncio: stops, limits on what is in flight, checkpoints, and failures that must not be swallowed."""

import asyncio
import json
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from crawlkit.config import Config
from crawlkit.durable import TEMPORARY_SUFFIX
from crawlkit.engine.coordinator import Coordinator
from crawlkit.engine.ending import Ending
from crawlkit.engine.loop import READ_WITHIN_S, RESULTS_A_TURN, Loop
from crawlkit.engine.session import Hooks, Outcome, Surroundings, begin, go_on
from crawlkit.errors import ExitStatus, StorageError
from crawlkit.model import Record
from crawlkit.state.crawl import CrawlState
from crawlkit.state.layout import CHECKPOINT
from crawlkit.testing.clock import ManualClock
from crawlkit.testing.fakeweb import FakeWeb
from crawlkit.testing.site import Reply, Site, page, redirect

SEED = "http://a.test/"
LONG_S = 3600.0
"""Longer than any test: what is due only then must not be waited for."""


def settings(**values: Any) -> Config:
    return Config(
        **{"delay": 0, "host_concurrency": 64, "workers": 8, "timeout": LONG_S, "robots": False, "retries": 0, **values}
    )


def star(leaves: int, *, delay_s: float = 0.0) -> Site:
    """A page that links to `leaves` others, which answer after `delay_s`."""
    paths = [f"/{number}" for number in range(leaves)]
    body = page("leaf").body
    leaf = Reply(200, (("content-type", "text/html"),), body, delay_s=delay_s)
    return Site({"/": page("star", paths), **dict.fromkeys(paths, leaf)})


def run(main: Coroutine[Any, Any, Outcome]) -> Outcome:
    """Run a crawl that has to end long before `LONG_S`."""
    return asyncio.run(asyncio.wait_for(main, 60))


def crawl(web: FakeWeb, directory: Path, config: Config, hooks: Hooks | None = None) -> Coroutine[Any, Any, Outcome]:
    return begin([SEED], directory, config, hooks or Hooks(), Surroundings(transport=web))


def resume(web: FakeWeb, directory: Path, **changes: object) -> Outcome:
    return run(go_on(directory, changes, Hooks(), Surroundings(transport=web)))


def records(directory: Path) -> dict[str, Record]:
    with CrawlState.open(directory) as state:
        return {record.url: record for record in state.pages.walk()}


class Gate:
    """What delayed answers of a fake web wait for; `on_turn` opens it, and acts, once `count` requests are in flight."""

    def __init__(self, count: int, act: Callable[["Gate"], object] = lambda _: None) -> None:
        self.opened = asyncio.Event()
        self.loop: Loop | None = None
        self._count = count
        self._act = act

    async def sleep(self, seconds: float) -> None:
        await self.opened.wait()

    def hooks(self) -> Hooks:
        return Hooks(on_turn=self.on_turn, around=self.around)

    @contextmanager
    def around(self, loop: Loop) -> Iterator[None]:
        self.loop = loop
        yield

    def on_turn(self, coordinator: Coordinator) -> None:
        if coordinator.in_flight == self._count:
            self._act(self)


def stop_and_open(gate: Gate) -> None:
    assert gate.loop is not None
    gate.loop.stop(Ending.SIGTERM)
    gate.loop.stop(Ending.SIGINT)  # the first one counts
    gate.opened.set()


# Turns ----------------------------------------------------------------------------------------------------------------


def test_the_network_has_its_turn_between_results_that_come_all_at_once(tmp_path: Path) -> None:
    workers = 64
    gate = Gate(workers, lambda gate: gate.opened.set())
    web = FakeWeb(star(workers, delay_s=LONG_S), sleep=gate.sleep)
    pages_a_turn = [0]

    async def main() -> Outcome:
        hooks = Hooks(lambda _: pages_a_turn.__setitem__(-1, pages_a_turn[-1] + 1), gate.on_turn, around=gate.around)
        crawling = asyncio.create_task(crawl(web, tmp_path / "crawl", settings(workers=workers), hooks))
        while not crawling.done():
            await asyncio.sleep(0)
            pages_a_turn.append(0)
        return await crawling

    assert run(main()).counters.pages == 1 + workers
    assert sum(pages_a_turn) == 1 + workers
    assert max(pages_a_turn) <= RESULTS_A_TURN


# Stops ----------------------------------------------------------------------------------------------------------------


def test_a_stop_starts_nothing_lets_what_is_in_flight_finish_and_checkpoints_it(tmp_path: Path) -> None:
    gate = Gate(8, stop_and_open)
    web = FakeWeb(star(40, delay_s=LONG_S), sleep=gate.sleep)
    directory = tmp_path / "crawl"

    outcome = run(crawl(web, directory, settings(), gate.hooks()))

    assert outcome.how is Ending.SIGTERM
    assert outcome.status is ExitStatus.SIGTERM
    assert len(web.log) == 9
    assert len(records(directory)) == 9

    assert resume(web, directory).how is Ending.FINISHED
    assert sorted(request.target for request in web.log) == sorted(["/", *(f"/{number}" for number in range(40))])


def test_a_stop_while_every_host_waits_for_its_time_does_not_wait_for_it(tmp_path: Path) -> None:
    gate = Gate(0, stop_and_open)
    web = FakeWeb(star(3))

    outcome = run(crawl(web, tmp_path / "crawl", settings(delay=LONG_S), gate.hooks()))

    assert outcome.how is Ending.SIGTERM
    assert len(web.log) == 1


def test_what_is_in_flight_long_after_a_stop_is_given_up_and_fetched_by_a_resume(tmp_path: Path) -> None:
    clock = ManualClock()

    def stop_and_wait(gate: Gate) -> None:
        assert gate.loop is not None
        gate.loop.stop(Ending.SIGTERM)
        turns.append(clock.now())
        if len(turns) <= 3:
            clock.advance(0.0 if len(turns) == 1 else LONG_S / 2 + READ_WITHIN_S / 2)
            gate.loop.look_again()

    turns: list[float] = []
    gate = Gate(8, stop_and_wait)
    web = FakeWeb(star(20, delay_s=LONG_S), sleep=gate.sleep)
    directory = tmp_path / "crawl"

    outcome = run(begin([SEED], directory, settings(), gate.hooks(), Surroundings(web, clock)))

    assert outcome.how is Ending.SIGTERM
    assert len(turns) >= 3, "half of the time was not enough"
    assert list(records(directory)) == [SEED]
    assert resume(FakeWeb(star(20)), directory).counters.pages == 21


def test_cancellation_abandons_what_is_in_flight_keeps_what_had_settled_and_can_be_resumed(tmp_path: Path) -> None:
    directory = tmp_path / "crawl"

    async def main() -> None:
        full = asyncio.Event()
        gate = Gate(8, lambda _: full.set())
        web = FakeWeb(star(20, delay_s=LONG_S), sleep=gate.sleep)
        task = asyncio.ensure_future(crawl(web, directory, settings(), gate.hooks()))
        await full.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(main())

    with CrawlState.open(directory) as state:
        assert state.runs[-1].how == Ending.CANCELLED
        assert state.runs[-1].ended_s is not None
    assert list(records(directory)) == [SEED]
    assert resume(FakeWeb(star(20)), directory).counters.pages == 21


# Limits ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("workers", [1, 5])
def test_as_many_requests_as_workers_are_in_flight_and_no_more(tmp_path: Path, workers: int) -> None:
    gate = Gate(workers, lambda it: it.opened.set())
    web = FakeWeb(star(40, delay_s=LONG_S), sleep=gate.sleep)

    outcome = run(crawl(web, tmp_path / "crawl", settings(workers=workers), gate.hooks()))

    assert outcome.counters.pages == 41
    assert web.log.in_flight_max == {"a.test": workers}


def spend_time(web: FakeWeb, directory: Path, **values: Any) -> Outcome:
    """Crawl under a clock of which the second wait after the seed's page takes the `max_time` of 10 ms."""
    clock = ManualClock()
    turns: list[Coordinator] = []

    def look(coordinator: Coordinator) -> None:
        if coordinator.state.counters.pages == 1:
            turns.append(coordinator)
            clock.advance(0.01 if len(turns) == 2 else 0.0)  # the first may end at once, by the page's task

    config = settings(max_time=0.01, checkpoint_interval=LONG_S, **values)
    return run(begin([SEED], directory, config, Hooks(on_turn=look), Surroundings(web, clock)))


def test_max_time_ends_the_run_though_the_next_host_is_due_much_later(tmp_path: Path) -> None:
    outcome = spend_time(FakeWeb(star(3)), tmp_path / "crawl", delay=LONG_S)

    assert outcome.how is Ending.LIMIT_TIME
    assert outcome.status is ExitStatus.DONE
    assert outcome.counters.reasons == {"limit.time"}
    assert outcome.counters.elapsed_s == pytest.approx(0.01)


def test_max_time_lets_what_is_in_flight_finish(tmp_path: Path) -> None:
    clock = ManualClock()
    turns: list[float] = []

    def act(gate: Gate) -> None:
        turns.append(clock.advance(0.01))
        if len(turns) > 2:  # turns after the limit was reached
            gate.opened.set()

    gate = Gate(8, act)
    web = FakeWeb(star(20, delay_s=LONG_S), sleep=gate.sleep)
    config = settings(max_time=0.01, checkpoint_interval=0.001)
    outcome = run(begin([SEED], tmp_path / "crawl", config, gate.hooks(), Surroundings(web, clock)))

    assert outcome.how is Ending.LIMIT_TIME
    assert outcome.counters.pages == 9


def test_a_limit_on_time_that_comes_with_the_end_is_no_limit(tmp_path: Path) -> None:
    outcome = run(crawl(FakeWeb(star(3)), tmp_path / "crawl", settings(max_time=LONG_S)))

    assert outcome.how is Ending.FINISHED
    assert not outcome.counters.reasons


def test_a_limit_on_time_spent_in_runs_before_makes_no_request(tmp_path: Path) -> None:
    directory = tmp_path / "crawl"
    web = FakeWeb(star(3))
    spend_time(web, directory, delay=LONG_S)

    assert resume(web, directory, delay=0).how is Ending.LIMIT_TIME
    assert len(web.log) == 1

    assert resume(web, directory, delay=0, max_time=None).how is Ending.FINISHED


def test_a_raised_depth_limit_of_a_finished_crawl_is_told_and_fetched(tmp_path: Path) -> None:
    directory = tmp_path / "crawl"
    web = FakeWeb(star(5))
    assert run(crawl(web, directory, settings(max_depth=0))).how is Ending.FINISHED

    assert resume(web, directory, max_depth=1).how is Ending.FINISHED

    assert len(records(directory)) == 6


# Checkpoints ----------------------------------------------------------------------------------------------------------


def checkpoints(outcome: Outcome) -> int:
    with CrawlState.open(outcome.directory) as state:
        return state.runs[-1].checkpoints


def test_a_checkpoint_is_made_every_interval(tmp_path: Path) -> None:
    often = run(crawl(FakeWeb(star(300)), tmp_path / "often", settings(checkpoint_interval=0.001)))
    seldom = run(crawl(FakeWeb(star(100)), tmp_path / "seldom", settings(checkpoint_interval=LONG_S)))

    assert checkpoints(often) > 5
    assert checkpoints(seldom) == 2  # of the seeds, and the last one


def test_what_has_settled_is_written_within_the_interval_though_nothing_else_happens(tmp_path: Path) -> None:
    gate = Gate(1)

    def look(coordinator: Coordinator) -> None:
        if coordinator.state.counters.pages == 2 and not coordinator.state.changed:
            gate.opened.set()

    slow = Reply(200, (("content-type", "text/html"),), page("slow").body, delay_s=LONG_S)
    web = FakeWeb(Site({"/": page("seed", ["/quick", "/slow"]), "/quick": page("quick"), "/slow": slow}), sleep=gate.sleep)

    outcome = run(crawl(web, tmp_path / "crawl", settings(checkpoint_interval=0.3), Hooks(on_turn=look)))

    assert outcome.counters.pages == 3


def test_on_turn_is_shown_the_coordinator_before_each_wait(tmp_path: Path) -> None:
    gate = Gate(5, lambda it: it.opened.set())
    shown: list[tuple[int, int]] = []

    def look(coordinator: Coordinator) -> None:
        shown.append((coordinator.in_flight, coordinator.state.counters.queued))
        gate.on_turn(coordinator)

    web = FakeWeb(star(5, delay_s=LONG_S), sleep=gate.sleep)
    run(crawl(web, tmp_path / "crawl", settings(), Hooks(on_turn=look)))

    assert (5, 5) in shown


# Steered -------------------------------------------------------------------------------------------------------------


def test_a_change_is_told_on_disk_and_none_is_taken_once_the_run_is_over(tmp_path: Path) -> None:
    directory = tmp_path / "crawl"
    on_disk: list[bool] = []
    seen: list[int] = []

    def act(gate: Gate) -> None:
        assert gate.loop is not None
        promise = gate.loop.look_again()
        assert promise is not None
        promise.add_done_callback(lambda done: on_disk.append(not done.cancelled()))
        promise.add_done_callback(lambda _: seen.append(pages_on_disk(directory)))
        promise.add_done_callback(lambda _: gate.opened.set())

    gate = Gate(5, act)
    web = FakeWeb(star(5, delay_s=LONG_S), sleep=gate.sleep)
    run(crawl(web, directory, settings(checkpoint_interval=LONG_S), gate.hooks()))
    assert all(on_disk)
    assert seen[0] == 1  # the checkpoint came at once, not after its interval
    assert gate.loop is not None
    assert gate.loop.look_again() is None


def test_who_brings_what_is_known_already_is_told_that_it_is_on_disk(tmp_path: Path) -> None:
    loops: list[Loop] = []
    told: list[bool] = []

    @contextmanager
    def standing_by(loop: Loop) -> Iterator[None]:
        loop.stand_by(True)
        loops.append(loop)
        yield

    def bring_nothing_new(coordinator: Coordinator) -> None:
        if coordinator.exhausted and not coordinator.state.changed and not told:
            told.append(False)
            promise = loops[0].promise()
            assert promise is not None
            promise.add_done_callback(lambda done: told.append(not done.cancelled()))
            promise.add_done_callback(lambda _: loops[0].stand_by(False))

    hooks = Hooks(on_turn=bring_nothing_new, around=standing_by)
    run(crawl(FakeWeb(star(2)), tmp_path / "crawl", settings(checkpoint_interval=LONG_S), hooks))
    assert told == [False, True]


def pages_on_disk(directory: Path) -> int:
    found: int = json.loads((directory / CHECKPOINT).read_bytes().splitlines()[0])["counters"]["pages"]
    return found


def test_a_change_that_is_never_written_is_told_so(tmp_path: Path) -> None:
    directory = tmp_path / "crawl"
    told: list[bool] = []

    def act(gate: Gate) -> None:
        (directory / (CHECKPOINT + TEMPORARY_SUFFIX)).mkdir(exist_ok=True)
        assert gate.loop is not None
        promise = gate.loop.look_again()
        assert promise is not None
        promise.add_done_callback(lambda done: told.append(done.cancelled()))

    gate = Gate(5, act)

    with pytest.raises(StorageError, match=CHECKPOINT):
        run(crawl(FakeWeb(star(5, delay_s=LONG_S), sleep=gate.sleep), directory, settings(), gate.hooks()))
    assert told
    assert all(told)


def test_a_paused_crawl_starts_nothing_and_may_be_stopped(tmp_path: Path) -> None:
    gate = Gate(1)

    def turn(coordinator: Coordinator) -> None:
        if coordinator.in_flight:
            coordinator.paused = True
            gate.opened.set()
        elif coordinator.paused:  # it waits, though much is due
            stop_and_open(gate)

    web = FakeWeb(star(20, delay_s=LONG_S), sleep=gate.sleep)
    outcome = run(crawl(web, tmp_path / "crawl", settings(workers=1), Hooks(on_turn=turn, around=gate.around)))
    assert outcome.how is Ending.SIGTERM
    assert outcome.counters.requests == 2


# Failures -------------------------------------------------------------------------------------------------------------


def test_a_storage_failure_of_the_writer_ends_the_run_and_nothing_more_is_written(tmp_path: Path) -> None:
    directory = tmp_path / "crawl"
    in_the_way = directory / (CHECKPOINT + TEMPORARY_SUFFIX)
    pages: list[int] = []

    def fail(_: Record) -> None:
        pages.append(0)
        if len(pages) >= 20:
            with suppress(FileExistsError):  # the writer is at it
                in_the_way.mkdir()

    web = FakeWeb(star(300))
    with pytest.raises(StorageError, match=CHECKPOINT):
        run(crawl(web, directory, settings(checkpoint_interval=0.001), Hooks(on_page=fail)))
    summary = json.loads((directory / CHECKPOINT).read_bytes().splitlines()[0])

    in_the_way.rmdir()
    with CrawlState.open(directory) as state:
        assert state.batch <= summary["batch"] + 1
        assert state.runs[-1].ended_s is None
        assert state.counters.pages < 301
    assert resume(web, directory).how is Ending.FINISHED
    assert len(records(directory)) == 301


def test_a_storage_failure_of_the_last_checkpoint_surfaces(tmp_path: Path) -> None:
    directory = tmp_path / "crawl"
    web = FakeWeb(star(5))

    def fail(_: Record) -> None:
        (directory / (CHECKPOINT + TEMPORARY_SUFFIX)).mkdir(exist_ok=True)

    with pytest.raises(StorageError, match=CHECKPOINT):
        run(crawl(web, directory, settings(checkpoint_interval=LONG_S), Hooks(on_page=fail)))


def test_a_bug_in_a_worker_surfaces_and_leaves_a_crawl_that_can_be_resumed(tmp_path: Path) -> None:
    directory = tmp_path / "crawl"

    def bug() -> Reply:
        raise ZeroDivisionError("a bug")

    web = FakeWeb(star(20) | {"/7": bug})
    with pytest.raises(ZeroDivisionError, match="a bug"):
        run(crawl(web, directory, settings()))

    assert resume(FakeWeb(star(20)), directory).how is Ending.FINISHED
    assert len(records(directory)) == 21


def test_what_a_page_hook_raises_is_raised_after_a_last_checkpoint(tmp_path: Path) -> None:
    directory = tmp_path / "crawl"
    told: list[str] = []

    def hook(record: Record) -> None:
        if len(told) == 3:
            raise KeyError(record.url)
        told.append(record.url)

    web = FakeWeb(star(20))
    with pytest.raises(KeyError) as raised:
        run(crawl(web, directory, settings(workers=1, checkpoint_interval=LONG_S), Hooks(on_page=hook)))

    assert list(records(directory)) == sorted(told)
    with CrawlState.open(directory) as state:
        assert state.runs[-1].how == Ending.HOOK
    again: list[str] = []
    outcome = run(go_on(directory, {}, Hooks(on_page=lambda it: again.append(it.url)), Surroundings(transport=web)))
    assert outcome.how is Ending.FINISHED
    assert raised.value.args[0] in again
    assert sorted(told + again) == sorted(records(directory))


def test_a_hook_that_raises_lets_the_others_in_flight_be_told(tmp_path: Path) -> None:
    told: list[str] = []
    gate = Gate(8, lambda it: it.opened.set())

    def hook(record: Record) -> None:
        told.append(record.url)
        if len(told) == 3:
            raise RuntimeError("once")

    web = FakeWeb(star(30, delay_s=LONG_S), sleep=gate.sleep)
    with pytest.raises(RuntimeError, match="once"):
        run(crawl(web, tmp_path / "crawl", settings(workers=8), Hooks(on_page=hook, on_turn=gate.on_turn)))

    assert len(told) == len(set(told)) == len(web.log) == 9


def test_a_redirect_loop_is_just_redirects(tmp_path: Path) -> None:
    site = Site({"/": redirect("/a"), "/a": redirect("/b"), "/b": redirect("/a")})

    outcome = run(crawl(FakeWeb(site), tmp_path / "crawl", settings()))

    assert (outcome.how, outcome.counters.redirects) == (Ending.FINISHED, 3)
