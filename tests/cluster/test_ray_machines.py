"""Which machine of a Ray cluster has which partition, a partition that is left alone, the file for the launcher."""

import importlib
import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest

from crawlkit.cluster.on_ray.machines import Machine, Stock, check_versions, locate, read_places, spread, write_places
from crawlkit.config import VERSION
from crawlkit.errors import StateError
from crawlkit.state.partitions import Table
from tests.processes import ROOT, environment

TABLE = Table("crawl", ["a", "b"], [])


def stock(*found: tuple[int, str, int], is_ours: bool = False, version: str = VERSION) -> Stock:
    return Stock(version, is_ours, {number: (crawl_id, batch) for number, crawl_id, batch in found})


def machine(name: str, cores: float) -> Machine:
    return Machine(name, (name,), cores)


def test_partitions_are_spread_as_the_cores_of_machines_are_worth() -> None:
    names = spread([machine("small", 2), machine("large", 6), machine("none", 0)], 8)
    assert {name: names.count(name) for name in set(names)} == {"small": 2, "large": 6}
    assert spread([machine("none", 0)], 2) == ["none", "none"]


def test_a_partition_is_where_it_is_found_whatever_the_record_says(tmp_path: Path) -> None:
    write_places(tmp_path, ["gone", "gone"])
    stocks = {"one": stock((0, "a", 3), is_ours=True), "two": stock((1, "b", 4))}
    assert locate(tmp_path, TABLE, stocks) == ["one", "two"]


@pytest.mark.parametrize(("recorded", "expected"), [([], "two"), (["one", "two"], "one"), (["three", "two"], "two")])
def test_of_machines_that_share_a_disk_the_record_decides_else_the_driver_has_it(
    tmp_path: Path, recorded: list[str], expected: str
) -> None:
    write_places(tmp_path, recorded)
    both = ((0, "a", 3), (1, "b", 4))
    assert locate(tmp_path, TABLE, {"one": stock(*both), "two": stock(*both, is_ours=True)})[0] == expected


@pytest.mark.parametrize(
    ("stocks", "words"),
    [
        ({"one": stock((0, "a", 3))}, "partition 1 of .* is on no machine of the Ray cluster; it was on two: start Ray there"),
        ({"one": stock((0, "a", 3), (1, "x", 1))}, "/001 on one is of another crawl"),
        ({"one": stock((0, "a", 3), (1, "b", 4)), "two": stock((1, "b", 5))}, "is on one and two, and they differ"),
    ],
)
def test_a_partition_that_is_missing_or_in_doubt_is_refused(tmp_path: Path, stocks: dict[str, Stock], words: str) -> None:
    write_places(tmp_path, ["one", "two"])
    with pytest.raises(StateError, match=words) as refused:
        locate(tmp_path, TABLE, stocks)
    assert len(str(refused.value).splitlines()) == 1


def test_a_record_that_cannot_be_read_says_nothing(tmp_path: Path) -> None:
    assert read_places(tmp_path) == ()
    (tmp_path / "PLACES").write_bytes(b"{")
    assert read_places(tmp_path) == ()


def test_a_machine_with_another_version_is_refused() -> None:
    check_versions({"one": stock()})
    with pytest.raises(StateError, match=r"machine two .* has crawlkit 9\.9"):
        check_versions({"one": stock(), "two": stock(version="9.9")})


LEFT_ALONE = """
import asyncio
from pathlib import Path
from crawlkit.cluster.on_ray import actor
from crawlkit.surfaces.partition import hooks_of
actor.SILENCE_S = 1
async def main():
    partition = actor.Partition()
    await partition.begin(actor.Terms(hooks_of, {}, Path(), {}))
    for _ in range(2):
        heard = await partition.listen()
        assert heard == ([], "", False)
    print("heard", flush=True)
    await asyncio.Event().wait()
asyncio.run(main())
"""


def test_a_partition_that_its_driver_does_not_listen_to_any_more_ends() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", LEFT_ALONE], env=environment(), capture_output=True, timeout=30, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (1, b"heard\n", b"")


@pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="Ray, which has the schema, is not installed")
def test_the_configuration_of_a_cluster_is_one_for_rays_launcher() -> None:
    package = importlib.util.find_spec("ray")
    assert package is not None
    assert package.origin is not None
    schema = json.loads((Path(package.origin).parent / "autoscaler" / "ray-schema.json").read_text())
    given = importlib.import_module("yaml").safe_load((ROOT / "config" / "ray-cluster.yaml").read_text())
    jsonschema.validate(given, schema)
    for command in ("head_start_ray_commands", "worker_start_ray_commands"):
        assert "--node-name=$(hostname)" in given[command][-1]
