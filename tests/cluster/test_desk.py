"""One partition's part: what its last run said of the end and of pages is no longer in force."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from crawlkit.cluster.desk import Desk
from crawlkit.cluster.shares import Shares
from crawlkit.model import RobotsJob
from crawlkit.policy.partition import Owners
from crawlkit.state.checkpoint import read_summary
from tests.engine.driver import SEED, A, Driver, page

OWNERS = Owners.even(1)
LIMIT = 3


@pytest.fixture
def driver(tmp_path: Path) -> Iterator[Driver]:
    with Driver(tmp_path / "crawl", {SEED: page(f"{A}/1", f"{A}/2")}, delay=0) as driver:
        yield driver


def crawl_one(driver: Driver) -> None:
    """Settle the next page; what asks for a robots.txt before that is answered."""
    while isinstance(job := driver.next_job(), RobotsJob):
        driver.settle(job)
    driver.settle(job)


def test_a_partition_that_goes_on_has_not_finished_whatever_its_last_run_said(driver: Driver) -> None:
    driver.drain()
    assert driver.state.counters.finished
    driver.reopen()
    Desk(driver.coordinator, OWNERS, 0, 1, None)
    driver.checkpoint()
    assert not read_summary(driver.directory).counters.finished


def test_pages_that_a_checkpoint_file_does_not_know_of_are_taken_from_the_limit(driver: Driver) -> None:
    known = read_summary(driver.directory).counters.pages
    crawl_one(driver)
    shares = Shares(LIMIT, {0: known, 1: 0})
    driver.checkpoint()
    driver.reopen()  # killed between the batch and its CHECKPOINT
    desk = Desk(driver.coordinator, OWNERS, 0, 1, shares.of(0))
    standing = desk.standing(0)
    assert (standing.used, standing.most) == (1, 1)
    shares.deal([standing])
    assert shares.left < LIMIT
    assert shares.of(0) == LIMIT - shares.left
