"""Changing the number of partitions: all rows change hands, each once, whatever ends it on the way."""

import random
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from crawlkit.engine.partitions import Partitions
from crawlkit.engine.verify import Thoroughness
from crawlkit.engine.verify_partitions import verify_partitions
from crawlkit.policy.partition import Owners
from crawlkit.state.partitions import Table
from crawlkit.testing.moving_simulation import killed_at, simulate
from crawlkit.testing.outcome import dump
from tests.cluster.partitioned import PartitionedCrawl, world_of_hosts
from tests.cluster.rows import ACCOUNTS, everything, owned, sums

_SHARED_MEMORY = Path("/dev/shm")


@pytest.fixture
def place() -> Iterator[Path]:
    """A directory in memory, where there is such a place: a thousand syncs are then soon over."""
    with tempfile.TemporaryDirectory(dir=_SHARED_MEMORY if _SHARED_MEMORY.is_dir() else None) as name:
        yield Path(name)


ROWS_A_BATCH = 40


def expected(crawl: PartitionedCrawl) -> bytes:
    return dump(crawl.expected[url] for url in sorted(crawl.expected, key=str.encode))


def finish(crawl: PartitionedCrawl) -> None:
    """Run to the end, and check what came of it."""
    assert crawl.run()
    assert crawl.dump() == expected(crawl)
    crawl.watch.check_repeats()
    assert verify_partitions(Partitions.read(crawl.directory), Thoroughness.FULL).report.whole


def whole(crawl: PartitionedCrawl) -> tuple[object, object]:
    """What moving must not change."""
    return everything(crawl.directory, crawl.table), sums(crawl.directory, crawl.table)


def check_settled(crawl: PartitionedCrawl, partitions: int) -> Table:
    """Check that so many partitions have what they own, and nothing else."""
    table = crawl.table
    assert table.settled
    assert len(Owners(tuple(table.owners)).partitions) == partitions
    assert verify_partitions(Partitions.read(crawl.directory), Thoroughness.FULL).report.whole
    found = everything(crawl.directory, table)
    assert owned(crawl.directory, table) == {row: n for row, n in found.items() if row[0][:1] not in ACCOUNTS}
    return table


@pytest.mark.parametrize("seed", range(20, 26))
def test_all_rows_change_hands_and_the_report_is_that_of_one_crawl(place: Path, seed: int) -> None:
    rng = random.Random(seed)
    crawl = PartitionedCrawl(world_of_hosts(seed), place / "crawl", rng, 1)
    for partitions in (3, 2, 4, 1):
        crawl.run(rng.randint(1, 200), stop=rng.random() < 0.3)
        before = whole(crawl)
        crawl.repartition(partitions)
        assert whole(crawl) == before
        check_settled(crawl, partitions)
    finish(crawl)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("seed", "partitions", "to", "stride"),
    [(7, 1, 3, 7), pytest.param(7, 1, 3, 1, marks=pytest.mark.long), (8, 3, 2, 4), (10, 2, 4, 5)],
)
def test_a_move_that_is_killed_at_any_step_is_done_again(place: Path, seed: int, partitions: int, to: int, stride: int) -> None:
    crawl = PartitionedCrawl(world_of_hosts(seed), place / "crawl", random.Random(seed), partitions)
    assert not crawl.run(150)
    before, at_owners = whole(crawl), owned(crawl.directory, crawl.table)
    original = place / "original"
    shutil.copytree(crawl.directory, original)
    with killed_at(None, ROWS_A_BATCH) as steps:
        crawl.repartition(to)
    assert steps.count > 50
    phases = set()
    for fatal in range(0, steps.count, stride):
        shutil.rmtree(crawl.directory)
        shutil.copytree(original, crawl.directory)
        with killed_at(fatal, ROWS_A_BATCH):
            crawl.repartition(to)
        table = crawl.table
        phases.add((table.moving is None, table.before is None))
        assert owned(crawl.directory, table) == at_owners
        with killed_at(fatal // 2, ROWS_A_BATCH):
            crawl.finish_moves()
        assert owned(crawl.directory, crawl.table) == at_owners
        crawl.repartition(to)
        assert whole(crawl) == before
        check_settled(crawl, to)
    assert phases == {(True, True), (False, True), (True, False)}
    finish(crawl)


Life = st.lists(st.tuples(st.integers(1, 150), st.booleans(), st.integers(1, 4), st.integers(0, 120)), max_size=4)


@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 500), first=st.integers(1, 3), life=Life)
def test_any_life_of_moves_and_kills_leads_to_the_same_report(
    seed: int, first: int, life: list[tuple[int, bool, int, int]]
) -> None:
    with tempfile.TemporaryDirectory(dir=_SHARED_MEMORY if _SHARED_MEMORY.is_dir() else None) as name:
        crawl = PartitionedCrawl(world_of_hosts(seed), Path(name) / "crawl", random.Random(seed), first)
        for steps, stop, partitions, fatal in life:
            crawl.run(steps, stop=stop)
            with killed_at(fatal, ROWS_A_BATCH):
                crawl.repartition(partitions)
            crawl.finish_moves()
        finish(crawl)


@pytest.mark.slow
@pytest.mark.parametrize("first", [3, 7])
def test_simulated_crawls_keep_all_promises_in_any_number_of_partitions(first: int) -> None:
    moves = simulate(first) + simulate(first + 1)
    assert moves["made"]


@pytest.mark.slow
@pytest.mark.parametrize("seed", [100_018, 100_051, 100_103, 200_223])
def test_simulated_moves_that_once_broke_a_promise_break_none(seed: int) -> None:
    assert simulate(seed)["made"]
