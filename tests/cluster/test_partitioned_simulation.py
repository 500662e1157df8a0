"""Simulated crawls in partitions: whatever is killed, lost, late or told twice, the report of the crawl that is one.

Each run takes seeds that follow from the session's (`CRAWLKIT_SEED` repeats them); a failure prints its own seed and how to
repeat it alone. Thousands of seeds: `python -m crawlkit.testing.partitioned_simulation --seeds 3000`.
"""

from pathlib import Path

import pytest

from crawlkit.policy.partition import node_of
from crawlkit.policy.urls import host_of
from crawlkit.testing import partitioned_simulation
from crawlkit.testing.partitioned_run import Figures
from crawlkit.testing.partitioned_simulation import PartitionedSimulation, simulate
from crawlkit.testing.simulation import naming
from crawlkit.testing.watch import SimulationError
from crawlkit.testing.world import make_divided_world

PARTS = 12
SEEDS_A_PART = 5


@pytest.mark.parametrize("part", range(PARTS))
def test_crawls_in_partitions_end_as_the_one_that_is_one_and_keep_every_promise_on_the_way(seed: int, part: int) -> None:
    first = (seed * PARTS + part) * SEEDS_A_PART
    trapped = [number for number in range(first, first + SEEDS_A_PART) if simulate(number).traps]
    unlike = [number for number in trapped if not make_divided_world(number).alike]
    assert len(unlike) <= 1  # one in some 1,500 is: a budget of one or two may go to what leads nowhere


@pytest.mark.parametrize("number", [100_036, 100_271, 73_928_476_955, 95_398_191_854])
def test_what_once_broke_a_promise_breaks_none(number: int) -> None:
    assert simulate(number).runs


def test_a_seed_replays_exactly(tmp_path: Path) -> None:
    lives = []
    for name in ("first", "second"):
        life = PartitionedSimulation(2, tmp_path / name)
        lives.append((life.run(), life.clock.now(), life.figures, [watch.requests for watch in life.places.watches]))

    assert lives[0] == lives[1]
    assert lives[0][2].deaths


def test_worlds_have_domains_that_lead_to_one_another_and_texts_half_of_them() -> None:
    worlds = [make_divided_world(number) for number in range(40)]

    assert {len(world.graph.bases) for world in worlds} == {2, 3, 4, 6}
    assert any("www.h1.test" in base for world in worlds for base in world.graph.bases)
    assert 10 < sum(world.has_texts for world in worlds) < 30
    assert 5 < sum(len(world.alike) > 0 for world in worlds) < 15
    for world in worlds:
        for base, origin in world.origins.items():
            assert {node_of(host_of(f"{other}/")) for other in origin.via} == {node_of(host_of(f"{base}/"))}


def test_the_command_tells_what_it_did(capsys: pytest.CaptureFixture[str]) -> None:
    partitioned_simulation.main(["--seeds", "2", "--first", "5"])

    assert capsys.readouterr().out.startswith("2 seeds from 5 in ")


def test_figures_are_told_in_words() -> None:
    figures = Figures(runs=7, driver_deaths=2, deaths=5, late_deaths=1, letters=99, walks=3, traps=4)

    assert figures.line() == (
        "7 runs, 2 drivers and 5 partitions killed (1 at the end), 99 letters, 3 walks of what was held, 4 trapped"
    )


def test_a_broken_promise_names_its_seed_and_how_to_repeat_it(tmp_path: Path) -> None:
    (tmp_path / "crawl").mkdir()
    (tmp_path / "crawl" / "CRAWL").touch()
    crawl = PartitionedSimulation(7, tmp_path / "crawl")

    with (
        pytest.raises(SimulationError, match=r"seed 7: .*partitioned_simulation --first 7 --seeds 1"),
        naming(7, "partitioned_simulation"),
    ):
        crawl.run()
