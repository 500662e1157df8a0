"""Changing the number of partitions: all rows change hands, each once, whatever ends it on the way."""

import random
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlkit.policy.partition import VIRTUAL_NODES, Owners
from crawlkit.state import moving
from crawlkit.state.partitions import member_directory
from crawlkit.testing.simulation import dump
from tests.cluster.kills import killed_at
from tests.cluster.partitioned import PartitionedCrawl, world_of_hosts
from tests.cluster.rows import broken, everything, owned, sums

_SHARED_MEMORY = Path("/dev/shm")


@pytest.fixture
def place() -> Iterator[Path]:
    """A directory in memory, where there is such a place: a thousand syncs are then soon over."""
    with tempfile.TemporaryDirectory(dir=_SHARED_MEMORY if _SHARED_MEMORY.is_dir() else None) as name:
        yield Path(name)


def expected(crawl: PartitionedCrawl) -> bytes:
    return dump(crawl.expected[url] for url in sorted(crawl.expected, key=str.encode))


def half_way(directory: Path, seed: int, partitions: int, steps: int = 150) -> PartitionedCrawl:
    """A crawl that has been killed."""
    crawl = PartitionedCrawl(world_of_hosts(seed), directory, random.Random(seed), partitions)
    assert not crawl.run(steps)
    return crawl


def moved_to(crawl: PartitionedCrawl, partitions: int) -> None:
    """Change the number of partitions, and check that nothing else changed."""
    table = crawl.table
    before = everything(crawl.directory, table), sums(crawl.directory, table)
    table = crawl.repartition(partitions)
    assert table == crawl.table
    assert table.settled
    assert len(Owners(tuple(table.owners)).partitions) == partitions
    assert (everything(crawl.directory, table), sums(crawl.directory, table)) == before
    assert not broken(crawl.directory, table)
    everywhere = everything(crawl.directory, table)
    assert owned(crawl.directory, table) == {row: count for row, count in everywhere.items() if row[0][:1] not in b"xy"}
