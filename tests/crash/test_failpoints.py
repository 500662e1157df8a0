"""Every boundary of the commit protocol, its first hits, and what can go wrong there: the crawl ends, and then is finished."""

import itertools
import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from crawlkit.errors import ExitStatus
from crawlkit.state.checkpoint import read_summary
from crawlkit.testing.failpoints import POINTS, VARIABLE, Action, Order
from crawlkit.testing.forks import Ended, Faults, Nursery
from crawlkit.testing.server import SiteServer
from tests.crash.crawls import ARCHIVE, OPTIONS, SMALL_BLOOM, Crawls, assert_ended_as_storage_failed, scratch, small_graph

HITS = 3


@pytest.fixture(scope="module")
def crawls() -> Iterator[Crawls]:
    with SiteServer(small_graph().site(delay_s=0.001)) as server, Nursery() as nursery, scratch() as place:
        crawls = Crawls(nursery, server, place, options=ARCHIVE)
        crawls.crawl_undisturbed(faults=Faults(constants=SMALL_BLOOM))
        yield crawls


def order(point: str, hit: int, action: Action) -> Faults:
    return Faults(failpoint=str(Order(point, hit, action)), constants=SMALL_BLOOM)


def assert_ended_as_ordered(ended: Ended, action: Action, directory: Path) -> None:
    if action is Action.KILL:
        assert ended == Ended(-signal.SIGKILL)
    else:
        assert_ended_as_storage_failed(ended, directory)


@pytest.mark.parametrize("point", POINTS)
def test_a_crawl_that_fails_at_a_boundary_is_finished_as_if_nothing_had_been(crawls: Crawls, point: str, seed: int) -> None:
    rng = random.Random(f"{seed} {point}")
    for hit in range(1, POINTS[point].hits + 1):
        fail_and_finish(crawls, point, hit, rng.choice(list(Action)))


@pytest.mark.long
@pytest.mark.parametrize("point", POINTS)
def test_a_crawl_that_fails_in_any_way_at_a_boundary_is_finished_as_if_nothing_had_been(crawls: Crawls, point: str) -> None:
    for hit, action in itertools.product(range(1, POINTS[point].hits + 1), Action):
        fail_and_finish(crawls, point, hit, action)


def fail_and_finish(crawls: Crawls, point: str, hit: int, action: Action) -> None:
    directory = crawls.directory("disturbed")
    ended = crawls.run(directory, faults=order(point, hit, action))
    assert_ended_as_ordered(ended, action, directory)
    crawls.finish(directory, faults=Faults(constants=SMALL_BLOOM))


@pytest.mark.parametrize("point", [point for point in POINTS if POINTS[point].hits < HITS])
def test_a_boundary_that_is_said_to_be_met_less_than_three_times_is(crawls: Crawls, point: str) -> None:
    directory = crawls.directory("counted")
    ended = crawls.run(directory, faults=order(point, POINTS[point].hits + 1, Action.KILL))
    assert ended == Ended(ExitStatus.PAGES_FAILED)


@pytest.mark.parametrize("point", [point for point in POINTS if not point.startswith("make.")])
def test_a_resume_that_fails_at_a_boundary_is_resumed_once_more(crawls: Crawls, point: str) -> None:
    for action in Action:
        directory = crawls.directory("resumed")
        assert crawls.run(directory, faults=order("installed", 2, Action.KILL)).status == -signal.SIGKILL
        ended = crawls.resume(directory, faults=order(point, 1, action))
        assert_ended_as_ordered(ended, action, directory)
        crawls.finish(directory, faults=Faults(constants=SMALL_BLOOM))


def test_a_crawl_killed_at_each_of_its_checkpoints_is_finished(crawls: Crawls) -> None:
    directory = crawls.directory("often")
    assert crawls.run(directory, faults=order("installed", 2, Action.KILL)).status == -signal.SIGKILL
    kills = 1
    while not read_summary(directory).counters.finished:
        kills += 1
        assert crawls.resume(directory, faults=order("installed", 2, Action.KILL)).status == -signal.SIGKILL
    assert kills > HITS
    crawls.finish(directory)


def run_module(crawls: Crawls, directory: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "crawlkit.testing.failpoints", "run", f"{crawls.server.url}/", "-d", str(directory)]
    return subprocess.run(
        [*command, *OPTIONS], env={**os.environ, **environment, "PYTHONASYNCIODEBUG": ""}, capture_output=True, text=True,
        check=False, timeout=60,
    )  # fmt: skip


def test_a_failpoint_is_set_from_the_environment(crawls: Crawls) -> None:
    directory = crawls.directory("environment")
    ended = run_module(crawls, directory, **{VARIABLE: "checkpoint.renamed:2=eio"})
    assert_ended_as_storage_failed(Ended(ended.returncode, ended.stderr), directory)


def test_the_product_knows_no_failpoint(crawls: Crawls) -> None:
    directory = crawls.directory("product")
    environment = {**os.environ, VARIABLE: "claim:1=kill", "PYTHONASYNCIODEBUG": ""}
    command = [sys.executable, "-m", "crawlkit", "run", f"{crawls.server.url}/", "-d", str(directory), *OPTIONS]
    ended = subprocess.run(command, env=environment, capture_output=True, check=False, timeout=60)
    assert ended.returncode == ExitStatus.PAGES_FAILED


@pytest.mark.parametrize("text", ["", "claim", "claim:0=kill", "claim:1=sleep", "nowhere:1=kill", "claim:x=kill"])
def test_an_order_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"expected NAME:HIT=ACTION|is not a valid Action"):
        Order.parse(text)
