"""Simulated crawls: whatever order, delay, stop and kill, the same records, in manners, and no more requests than allowed.

Each run takes seeds that follow from the session's (`CRAWLKIT_SEED` repeats them); a failure prints its own seed and how to
repeat it alone. Thousands of seeds: `python -m crawlkit.testing.simulation --seeds 10000`.
"""

import itertools
import random
from pathlib import Path

import msgspec
import pytest

from crawlkit.config import Config
from crawlkit.model import Kind, PageJob, RobotsJob
from crawlkit.state.crawl import CrawlState
from crawlkit.testing import simulation
from crawlkit.testing.outcome import check_outcome, check_refusals, report_of
from crawlkit.testing.simulation import Simulation, simulate
from crawlkit.testing.watch import SimulationError, Watch
from crawlkit.testing.world import World, make_world

SEEDS_A_PART = 15


@pytest.mark.parametrize("part", range(10))
def test_disturbed_crawls_end_as_undisturbed_ones_and_keep_every_promise_on_the_way(seed: int, part: int) -> None:
    first = seed * 150 + part * SEEDS_A_PART
    for number in range(first, first + SEEDS_A_PART):
        simulate(number)


def test_a_seed_replays_exactly(tmp_path: Path) -> None:
    lives = []
    for name in ("first", "second"):
        life = Simulation(73, tmp_path / name)
        lives.append((life.run(), life.clock.now(), life.watch.requests))

    assert lives[0] == lives[1]


def test_worlds_hold_what_they_are_made_for() -> None:
    worlds = [make_world(number) for number in range(60)]
    records = [record for world in worlds for record in world.expected(None).values()]

    assert all(25 <= len(world.graph.nodes) <= 90 for world in worlds)
    assert {record.kind for record in records} == set(Kind)
    assert max(record.hops for record in records) >= 10
    assert any(world.expected(2).keys() < world.expected(None).keys() for world in worlds)
    assert 5 < sum(world.has_texts for world in worlds) < 15
    assert any(0 < len(world.alike) < len(world.graph.nodes) for world in worlds)


def test_the_command_tells_how_many_seeds_a_minute(capsys: pytest.CaptureFixture[str]) -> None:
    simulation.main(["--seeds", "2", "--first", "5"])

    assert capsys.readouterr().out.startswith("2 seeds from 5 in ")


def trapped(directory: Path) -> Simulation:
    """A crawl whose report says that it met a trap."""
    for number in itertools.count():
        if make_world(number).has_texts:
            crawl = Simulation(number, directory / str(number), calm=True)
            if report_of(crawl.run) is None:
                return crawl
    raise AssertionError


def test_where_a_budget_ran_out_what_is_wrong_in_any_order_is_seen(tmp_path: Path) -> None:
    crawl = trapped(tmp_path)
    with CrawlState.open(crawl.directory) as state:
        found = {record.url: record for record in state.pages.walk()}
        counters = state.counters
        depth = crawl.config.max_depth
        missing = crawl.expected.keys() - found.keys()
        check_outcome(crawl.world, depth, found, counters)
        check_refusals(state, found, missing, depth)
        far = max(found.values(), key=lambda record: record.depth)
        for wrong, complaint in (
            (msgspec.structs.replace(far, depth=far.depth - 1), "nearer than it can be"),
            (msgspec.structs.replace(far, title="another"), "should have ended as"),
            (msgspec.structs.replace(far, url="http://h1.test/unlinked"), "nothing that has one leads to it"),
        ):
            with pytest.raises(SimulationError, match=complaint):
                check_outcome(crawl.world, depth, {**found, wrong.url: wrong}, counters)
        unheld = {url: msgspec.structs.replace(record, held=False) for url, record in found.items()}
        with pytest.raises(SimulationError, match="was lost"):
            check_refusals(state, unheld, missing, depth)
        with pytest.raises(SimulationError, match="the reasons are others"):
            check_outcome(crawl.world, depth, found, msgspec.structs.replace(counters, reasons=set()))


# The watch has to see what is wrong -----------------------------------------------------------------------------------


def watched(**settings: object) -> tuple[Watch, World, Config, str]:
    """Return a watch over a world, and a URL that may be fetched."""
    world = next(world for world in map(make_world, range(100)) if _free_urls(world))
    return Watch(world, random.Random(1), world.expected(None)), world, Config.from_values(settings), _free_urls(world)[0]


def _free_urls(world: World) -> list[str]:
    return [url for url in world.expected(None) if world.refusal(url) is None and not world.crawl_delay_s(url)]


def job_for(url: str) -> PageJob:
    return PageJob(url, "h1.test")


def test_a_request_too_soon_after_the_start_of_the_one_before_is_seen() -> None:
    watch, _, config, url = watched(delay=1, host_concurrency=2)
    watch.start(job_for(url), config, 100.0, -1e9)

    with pytest.raises(SimulationError, match="too soon after the start"):
        watch.start(job_for(url), config, 100.9, -1e9)


def test_a_request_too_soon_after_the_end_of_the_one_before_is_seen() -> None:
    watch, _, config, url = watched(delay=1, host_concurrency=1)
    flight = watch.start(job_for(url), config, 100.0, -1e9)
    watch.settled(flight, flight.landed_s)

    with pytest.raises(SimulationError, match=r"too soon after the (start|end)"):
        watch.start(job_for(url), config, flight.landed_s + 0.9, -1e9)


def test_a_request_before_a_full_gap_after_a_kill_is_seen() -> None:
    watch, _, config, url = watched(delay=1)

    with pytest.raises(SimulationError, match="before a full gap after the kill"):
        watch.start(job_for(url), config, 100.5, 100.0)


def test_one_more_in_flight_than_allowed_is_seen() -> None:
    watch, _, config, url = watched(delay=0, host_concurrency=1)
    watch.start(job_for(url), config, 100.0, -1e9)

    with pytest.raises(SimulationError, match="more in flight"):
        watch.start(job_for(url), config, 101.0, -1e9)


def test_a_request_outside_of_the_crawl_is_seen() -> None:
    watch, _, config, _ = watched(delay=0)

    with pytest.raises(SimulationError, match="outside of scope or limits"):
        watch.start(job_for("http://outside.test/"), config, 100.0, -1e9)


def test_a_repeat_that_nothing_excuses_is_seen_and_one_after_a_kill_is_not() -> None:
    watch, world, config, url = watched(delay=0)
    for number in range(world.needed_requests(url)):
        watch.settled(watch.start(job_for(url), config, 100.0 * number, -1e9), 100.0 * number)
    watch.frozen()
    watch.written()
    watch.check_repeats()
    flight = watch.start(job_for(url), config, 10_000.0, -1e9)

    with pytest.raises(SimulationError, match="times"):
        watch.check_repeats()
    watch.killed([flight], 10_001.0, lost_filter=False)
    watch.check_repeats()


def test_a_robots_txt_is_no_page_and_may_be_asked_again() -> None:
    watch, world, config, _ = watched(delay=0)
    origin = next(iter(world.origins))
    for number in range(5):
        job = RobotsJob(origin, f"{origin}/robots.txt", "h1.test")
        watch.settled(watch.start(job, config, 1000.0 * number, -1e9), 1000.0 * number)

    watch.check_repeats()
    assert watch.requests == {f"{origin}/robots.txt": 5}


def test_a_broken_promise_names_its_seed_and_how_to_repeat_it(tmp_path: Path) -> None:
    (tmp_path / "crawl").mkdir()
    (tmp_path / "crawl" / "CRAWL").touch()
    disturbed = Simulation(7, tmp_path / "crawl")

    with pytest.raises(SimulationError, match=r"seed 7: .*--first 7 --seeds 1"), simulation.naming(7):
        disturbed.run()
