"""Limits on depth when virtual nodes change hands: no record misses that one was raised."""

from pathlib import Path

import msgspec
import pytest

from crawlkit.cluster.moves import repartition
from crawlkit.config import Config
from crawlkit.model import Source
from crawlkit.state import keys
from crawlkit.state.layout import CONFIG
from crawlkit.state.partitions import member_directory
from crawlkit.state.reading import Rescan, read_config, read_rescan
from tests.cluster.furnished import HOSTS, NOW, changed, empty, stored

LATER = NOW + 1_000


def test_a_raised_depth_limit_that_is_half_told_is_told_again_where_records_went(tmp_path: Path) -> None:
    empty(tmp_path, 2, Config(max_depth=4))
    with stored(tmp_path, 1) as store:
        store.stage(keys.meta_key("rescan"), msgspec.msgpack.encode(Rescan(2, 3, b"phttp://m")))
        store.freeze().write()
    repartition(tmp_path, 1, LATER)
    with stored(tmp_path, 0) as store:
        assert read_rescan(store) == Rescan(2, 3)
    with stored(tmp_path, 1) as store:
        assert read_rescan(store) is None


def test_records_that_were_not_told_of_a_raised_limit_are_told_where_it_is_raised(tmp_path: Path) -> None:
    empty(tmp_path, 2, Config(max_depth=2))
    with changed(tmp_path, 0) as state:
        state.change_settings(Config(max_depth=5), {"max_depth": 5})
        state.counters.finished = False
    repartition(tmp_path, 1, LATER)
    with stored(tmp_path, 0) as store:
        assert read_rescan(store) == Rescan(2, 2)


def test_a_limit_that_is_half_told_and_one_that_is_not_told_are_told_together(tmp_path: Path) -> None:
    empty(tmp_path, 2, Config(max_depth=3))
    with changed(tmp_path, 0) as state:
        state.change_settings(Config(max_depth=5), {"max_depth": 5})
        state.rescan(100)
        assert not state.rescanning
    with stored(tmp_path, 1) as store:
        store.stage(keys.meta_key("rescan"), msgspec.msgpack.encode(Rescan(1, 2)))
        store.freeze().write()
    repartition(tmp_path, 1, LATER)
    with stored(tmp_path, 0) as store:
        assert read_rescan(store) == Rescan(1, 3)


@pytest.mark.parametrize("limit", [3, None])
def test_a_partition_that_had_no_part_in_raising_a_limit_has_the_raised_one_with_the_records(
    tmp_path: Path, limit: int | None
) -> None:
    empty(tmp_path, 2, Config(max_depth=1))
    with changed(tmp_path, 1) as state:
        state.change_settings(Config(max_depth=limit), {"max_depth": limit})
        state.rescan(100)
        assert not state.rescanning
    with changed(tmp_path, 0) as state:
        state.frontier.add(f"http://{HOSTS[0]}/", state.hosts.get(HOSTS[0]), 0, 0, None, Source.SEED)

    repartition(tmp_path, 1, LATER)

    with stored(tmp_path, 0) as store:
        assert (read_config(store).max_depth, read_rescan(store)) == (limit, Rescan(1, 1))
    told = f"max_depth = {limit}" if limit else 'max_depth = "none"'
    assert told in (member_directory(tmp_path, 0) / CONFIG).read_text()


def test_what_raises_the_limit_next_is_told_to_the_records_that_came_in(tmp_path: Path) -> None:
    empty(tmp_path, 2, Config(max_depth=1))
    with changed(tmp_path, 1) as state:
        state.change_settings(Config(max_depth=3), {"max_depth": 3})
        state.rescan(100)
    repartition(tmp_path, 1, LATER)
    with changed(tmp_path, 0) as state:
        assert not state.rescanning  # there was nothing here
        state.change_settings(Config(max_depth=5), {"max_depth": 5})

    with stored(tmp_path, 0) as store:
        assert read_rescan(store) == Rescan(3, 3)
