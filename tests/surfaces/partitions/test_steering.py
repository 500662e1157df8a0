"""Status, hosts and orders of a crawl in partitions, at rest and while its partitions run."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from crawlkit.engine.partitions import Partitions
from crawlkit.errors import StateError
from crawlkit.state.directory import DirectoryLock
from crawlkit.state.partitions import member_directory, read_table, write_table
from crawlkit.testing.server import SiteServer
from tests.processes import crawlkit
from tests.surfaces.conftest import Cli
from tests.surfaces.control.crawls import said
from tests.surfaces.partitions.conftest import Pair
from tests.surfaces.partitions.live import LIVE_SITE, two_running

NOT_ALIKE = ("runs", "partitions", "disk_bytes", "disk_free_bytes")


def status(cli: Cli, directory: Path) -> dict[str, Any]:
    ended = cli("status", directory, "--json")
    assert ended.status == 0, ended.err
    found: dict[str, Any] = json.loads(ended.out)
    return found


@pytest.mark.parametrize("name", ["finished", "stopped"])
def test_the_status_sums_the_partitions(cli: Cli, request: pytest.FixtureRequest, name: str) -> None:
    pair: Pair = request.getfixturevalue(name)
    whole, parts = status(cli, pair.whole), status(cli, pair.parts)
    assert {key: value for key, value in parts.items() if key not in NOT_ALIKE} == {
        key: value for key, value in whole.items() if key not in NOT_ALIKE
    }
    assert "partitions" not in whole
    assert parts["state"] == name
    assert [run["number"] for run in parts["runs"]] == [1]
    each = parts["partitions"]
    assert [part["number"] for part in each] == list(range(len(each)))
    assert sum(part["nodes"] for part in each) == 1024
    for figure in ("pages", "failures", "queued", "seen", "hosts", "requests"):
        assert sum(part[figure] for part in each) == parts[figure], figure
    assert sum(part["pages"] > 0 for part in each) > 1


def test_the_text_has_a_line_for_each_partition(cli: Cli, stopped: Pair) -> None:
    lines = [line for line in cli("status", stopped.parts).out.splitlines() if line.startswith("partition ")]
    assert [line[:22] for line in lines] == ["partition 000 stopped;", "partition 001 stopped;"]
    assert all("512 virtual nodes" in line for line in lines)


def test_a_crawl_has_finished_only_when_all_partitions_have(cli: Cli, parts: Path) -> None:
    assert status(cli, parts)["state"] == "finished"
    assert cli("add", parts, "http://e.test/one-more").status == 0
    found = status(cli, parts)
    assert found["state"] == "stopped"
    assert sorted(part["state"] for part in found["partitions"]) == ["finished", "finished", "stopped"]


def test_a_partition_that_owns_nothing_any_more_is_said_to(cli: Cli, parts: Path) -> None:
    table = read_table(parts)
    write_table(parts, msgspec.structs.replace(table, owners=[0 if owner == 2 else owner for owner in table.owners]))
    [line] = [line for line in cli("status", parts).out.splitlines() if line.startswith("partition 002")]
    assert line.endswith("owns nothing any more")


def test_a_crawl_whose_driver_runs_is_running(cli: Cli, parts: Path) -> None:
    with DirectoryLock(parts):
        assert status(cli, parts)["state"] == "running"
        assert {part["state"] for part in status(cli, parts)["partitions"]} == {"finished"}
    assert status(cli, parts)["state"] == "finished"


def test_no_order_is_given_to_a_partition_that_is_just_being_started(cli: Cli, parts: Path) -> None:
    with DirectoryLock(parts):
        for order in (["pause", parts], ["hosts", parts, "hold", "a.test"], ["add", parts, "http://a.test/x"]):
            refused = cli(*order)
            assert refused.status == StateError.exit_status
            assert refused.err.count("\n") == 1
            assert "is being started or ended; try again" in refused.err


def hosts(cli: Cli, directory: Path, *options: str) -> list[dict[str, Any]]:
    ended = cli("hosts", directory, "list", "--json", *options)
    assert ended.status == 0, ended.err
    return [{key: value for key, value in json.loads(line).items() if key != "next_s"} for line in ended.out.splitlines()]


def test_hosts_are_those_of_all_partitions(cli: Cli, stopped: Pair) -> None:
    whole = hosts(cli, stopped.whole)
    assert len(whole) > 2
    assert hosts(cli, stopped.parts) == whole
    assert hosts(cli, stopped.parts, "--limit", "1") == whole[:1]


def test_an_order_about_a_host_is_its_owner_s(cli: Cli, parts: Path) -> None:
    assert "e.test is dropped" in cli("hosts", parts, "drop", "e.test").err
    assert "b.test is held until" in cli("hosts", parts, "hold", "b.test").err
    assert [(host["host"], host["state"]) for host in hosts(cli, parts)] == [("b.test", "held"), ("e.test", "dropped")]
    found = status(cli, parts)
    assert found["reasons"] == ["steering"]
    done = [(order["action"], order["what"]) for order in found["runs"][0]["steered"]]
    assert done == [("drop", "e.test"), ("hold", "b.test")]
    assert "released" in cli("hosts", parts, "release", "b.test").err
    owner = Partitions.read(parts).owner_of("e.test")
    for number in range(3):
        dropped = [host["host"] for host in hosts(cli, member_directory(parts, number))]
        assert dropped == (["e.test"] if number == owner else [])


def test_seeds_are_added_to_the_owners_of_their_hosts(cli: Cli, parts: Path) -> None:
    before = status(cli, parts)["queued"]
    ended = cli("add", parts, "http://a.test/new", "http://b.test/new", "http://a.test/", "http://outside.example/")
    assert ended.status == 0
    assert "added 1 of 2 seeds; 1 were seeds already" in ended.err
    assert "1 are outside of the scope" in ended.err
    assert status(cli, parts)["queued"] == before + 3
    assert "added 0 of 1 seeds; 1 were seeds already" in cli("add", parts, "http://b.test/new").err


def test_a_pause_of_what_does_not_run_is_refused_in_one_line(cli: Cli, parts: Path) -> None:
    refused = cli("pause", parts)
    assert (refused.status, refused.err.count("\n")) == (StateError.exit_status, 1)
    assert "no crawl runs" in refused.err
    assert cli("hosts", parts, "hold", "not a host").status == 2


# While partitions run -----------------------------------------------------------------------------------------------------


def live(cwd: Path) -> dict[str, Any]:
    ended = crawlkit("status", "x.crawl", "--json", cwd=cwd)
    assert ended.status == 0, ended.err
    found: dict[str, Any] = json.loads(ended.out)
    return found


def test_partitions_that_run_are_asked_and_steered_together(tmp_path: Path) -> None:
    with SiteServer(LIVE_SITE) as server, two_running(tmp_path, server):
        found = live(tmp_path)
        assert (found["state"], found["live"], found["paused"], found["pages"]) == ("running", True, False, 2)
        assert [(part["state"], part["live"], part["pages"]) for part in found["partitions"]] == [("running", True, 1)] * 2
        assert {host["host"] for host in found["waiting"]} == {"a.test", "e.test"}
        assert "paused: no new fetches" in said(crawlkit("pause", "x.crawl", cwd=tmp_path))
        assert live(tmp_path)["paused"]
        assert said(crawlkit("pause", "x.crawl", cwd=tmp_path)).count("paused already") == 1
        said(crawlkit("hosts", "x.crawl", "hold", "e.test", cwd=tmp_path))
        said(crawlkit("continue", "x.crawl", cwd=tmp_path))
        listed = crawlkit("hosts", "x.crawl", "--json", cwd=tmp_path).out.splitlines()
        assert {host["host"]: host["state"] for host in map(json.loads, listed)} == {"a.test": "gap", "e.test": "held"}
        assert "added 1 of 1 seeds" in said(crawlkit("add", "x.crawl", "http://e.test/more", cwd=tmp_path))
        assert live(tmp_path)["partitions"][1]["queued"] == 4
        [run] = live(tmp_path)["runs"]
        assert [event["action"] for event in run["steered"]] == ["pause", "hold", "continue", "add"]
    found = live(tmp_path)
    assert (found["state"], found["live"]) == ("stopped", False)
