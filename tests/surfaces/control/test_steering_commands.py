"""Crawls are steered by the command line, while they run and while they do not."""

import json
import re
import signal
from pathlib import Path
from typing import Any

import pytest

from crawlkit.testing.server import SiteServer
from tests.processes import command, crawlkit, ended, started, wait_while_running
from tests.surfaces.control.crawls import A, B, running, said, status_of


def report(cwd: Path) -> dict[str, dict[str, Any]]:
    lines = crawlkit("report", "x.crawl", "--format", "jsonl", cwd=cwd).out.splitlines()
    return {record["url"]: record for record in map(json.loads, lines)}


def steered(cwd: Path) -> list[str]:
    """What the ledger says was done."""
    return [event["action"] for run in status_of(cwd)["runs"] for event in run["steered"]]


def hosts(cwd: Path) -> dict[str, str]:
    ended = crawlkit("hosts", "x.crawl", "list", "--json", cwd=cwd)
    assert ended.status == 0, ended.err
    return {host["host"]: host["state"] for host in map(json.loads, ended.out.splitlines())}


def test_a_paused_crawl_starts_nothing_until_it_goes_on(server: SiteServer, tmp_path: Path) -> None:
    with running(tmp_path, server) as process:
        assert "paused" in said(crawlkit("pause", "x.crawl", cwd=tmp_path))
        assert "already" in said(crawlkit("pause", "x.crawl", cwd=tmp_path))
        said(crawlkit("add", "x.crawl", B, cwd=tmp_path))
        assert status_of(tmp_path)["paused"]
        assert len(server.log) == 1
        assert "going on" in said(crawlkit("continue", "x.crawl", cwd=tmp_path))
        assert server.log.wait_for(lambda log: len(log) == 2)
        assert steered(tmp_path) == ["pause", "add", "continue"]
        assert f"\n  pause\n  add {B}\n  continue\n" in crawlkit("status", "x.crawl", cwd=tmp_path).out.decode()
        said(crawlkit("pause", "x.crawl", cwd=tmp_path))
        process.send_signal(signal.SIGINT)
        stopped = ended(process)
        assert stopped.status == 130
        told = re.findall(r"^[\dT:.-]+Z steered (.*)$", stopped.err, re.MULTILINE)
        assert told == ["action=pause", f"action=add what={B}", "action=continue", "action=pause"]
    refused = crawlkit("pause", "x.crawl", cwd=tmp_path)
    assert (refused.status, len(refused.err.splitlines())) == (3, 1)
    assert "no crawl runs" in refused.err


def test_a_seed_is_added_to_a_running_crawl_and_dropping_ends_it(server: SiteServer, tmp_path: Path) -> None:
    with running(tmp_path, server) as process:
        line = said(crawlkit("add", "x.crawl", B, A, cwd=tmp_path))
        assert "added 1 of 2 seeds; 1 were seeds already; 1 are outside of the scope" in line
        assert server.log.wait_for(lambda log: len(log) == 2)
        wait_while_running(process, lambda: status_of(tmp_path)["pages"] == 2)
        assert hosts(tmp_path) == {"a.test": "gap"}
        said(crawlkit("hosts", "x.crawl", "drop", "A.test", cwd=tmp_path))
        assert ended(process).status == 1
    assert len(server.log) == 2
    found = report(tmp_path)
    assert {url for url, record in found.items() if record["kind"] == "page"} == {A, B}
    assert {record["reason"] for record in found.values() if record["kind"] == "failure"} == {"host.dropped"}
    assert found[B]["sources"] == ["seed"]
    assert status_of(tmp_path)["reasons"] == ["steering"]
    assert status_of(tmp_path)["state"] == "finished"
    resumed = crawlkit("resume", "x.crawl", "--retry-failed=host.dropped", "--set", "delay=0", cwd=tmp_path)
    assert resumed.status == 1  # /9, to which http://b.test/ leads, is not there
    assert len(server.log) == 6
    assert crawlkit("verify", "x.crawl", cwd=tmp_path).status == 0


def test_a_held_host_waits_until_it_is_released_and_its_crawl_ends_as_stopped(server: SiteServer, tmp_path: Path) -> None:
    with running(tmp_path, server) as process:
        said(crawlkit("hosts", "x.crawl", "hold", "a.test", "2h", cwd=tmp_path))
        assert hosts(tmp_path) == {"a.test": "held"}
        assert status_of(tmp_path)["waiting"][0]["next_s"] > 7000
        said(crawlkit("hosts", "x.crawl", "release", "a.test", cwd=tmp_path))
        assert hosts(tmp_path) == {"a.test": "gap"}
        said(crawlkit("hosts", "x.crawl", "hold", "a.test", cwd=tmp_path))
        done = ended(process)
        assert done.status == 0
        assert "hosts that are held" in done.err
        assert "resume with: crawlkit resume x.crawl" in done.err
    assert hosts(tmp_path) == {"a.test": "held"}
    assert status_of(tmp_path)["state"] == "stopped"
    assert crawlkit("resume", "x.crawl", "--set", "delay=0", cwd=tmp_path).status == 0
    assert len(server.log) == 1
    said(crawlkit("hosts", "x.crawl", "release", "a.test", cwd=tmp_path))
    assert crawlkit("resume", "x.crawl", cwd=tmp_path).status == 0
    assert len(server.log) == 4
    assert status_of(tmp_path)["deterministic"]


def test_a_stopped_crawl_is_steered_in_its_directory(server: SiteServer, tmp_path: Path) -> None:
    with running(tmp_path, server) as process:
        process.kill()
        ended(process)
    said(crawlkit("add", "x.crawl", B, cwd=tmp_path))
    said(crawlkit("hosts", "x.crawl", "drop", "a.test", cwd=tmp_path))
    assert hosts(tmp_path) == {"a.test": "dropped", "b.test": "ready"}
    assert steered(tmp_path) == ["add", "drop"]
    assert len(status_of(tmp_path)["runs"]) == 1
    assert crawlkit("verify", "x.crawl", cwd=tmp_path).status == 0
    assert crawlkit("resume", "x.crawl", "--set", "delay=0", cwd=tmp_path).status == 1
    assert {url: record["kind"] for url, record in report(tmp_path).items() if "b.test" in url} == {B: "page"}
    assert len(server.log) == 2


def test_what_was_answered_is_on_disk(server: SiteServer, tmp_path: Path) -> None:
    resolve = f"*.test=127.0.0.1:{server.port}"
    settings = ("--delay", "1h", "--no-robots", "--checkpoint-interval", "1h", "--resolve", resolve)
    with started(command("run", A, "-d", "x.crawl", *settings), tmp_path) as process:
        assert server.log.wait_for(lambda log: len(log) == 1)
        wait_while_running(process, lambda: status_of(tmp_path)["pages"] == 1)
        said(crawlkit("pause", "x.crawl", cwd=tmp_path))
        said(crawlkit("hosts", "x.crawl", "hold", "a.test", "1h", cwd=tmp_path))
        said(crawlkit("add", "x.crawl", "http://c.test/", cwd=tmp_path))
        process.kill()
        ended(process)
    assert steered(tmp_path) == ["pause", "hold", "add"]
    assert hosts(tmp_path) == {"a.test": "held", "c.test": "ready"}


def test_many_seeds_come_some_a_turn_and_are_all_on_disk_when_that_is_said(server: SiteServer, tmp_path: Path) -> None:
    seeds = [f"http://n{number}.test/" for number in range(600)]
    with running(tmp_path, server) as process:
        said(crawlkit("pause", "x.crawl", cwd=tmp_path))
        assert "added 600 of 600 seeds" in said(crawlkit("add", "x.crawl", *seeds, cwd=tmp_path))
        process.kill()
        ended(process)
    assert status_of(tmp_path)["queued"] == 3 + 600
    assert crawlkit("verify", "x.crawl", cwd=tmp_path).status == 0


def test_two_steer_at_once_while_the_crawl_is_killed(server: SiteServer, tmp_path: Path) -> None:
    with running(tmp_path, server) as process:
        orders = [command("add", "x.crawl", f"http://c{n}.test/") for n in range(2)]
        with started(orders[0], tmp_path) as first, started(orders[1], tmp_path) as second:
            assert (ended(first).status, ended(second).status) == (0, 0)
        with started(command("hosts", "x.crawl", "drop", "a.test"), tmp_path) as third:
            process.kill()
            ended(process)
            ended(third)  # done to the running one, or to its directory, or it says that it was not
    assert crawlkit("verify", "x.crawl", cwd=tmp_path).status == 0
    assert [line.split("|")[0] for line in steered(tmp_path)][:2] == ["add", "add"]
    assert crawlkit("resume", "x.crawl", "--set", "delay=0", cwd=tmp_path).status == 1
    found = report(tmp_path)
    assert {"http://c0.test/", "http://c1.test/", A} <= found.keys()
    assert len(found) == 6


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["hosts", "x.crawl", "hold"], "needs a HOST"),
        (["hosts", "x.crawl", "list", "a.test"], "no HOST"),
        (["hosts", "x.crawl", "hold", "a.test/b"], "not a host name"),
        (["hosts", "x.crawl", "hold", "a.test", "soon"], "not a duration"),
        (["hosts", "x.crawl", "drop", "a.test", "1h"], "no duration"),
        (["add", "x.crawl", "b.test"], "no scheme"),
        (["add", "x.crawl"], "Missing argument"),
    ],
)
def test_wrong_orders_are_one_line_and_status_2(server: SiteServer, tmp_path: Path, arguments: list[str], words: str) -> None:
    crawlkit("run", f"{server.url}/", "-d", "x.crawl", "--retries", "0", cwd=tmp_path)
    refused = crawlkit(*arguments, cwd=tmp_path)
    assert (refused.status, refused.out, len(refused.err.splitlines())) == (2, b"", 1)
    assert words in refused.err


def test_wrong_orders_to_a_running_crawl_are_refused_by_it(server: SiteServer, tmp_path: Path) -> None:
    with running(tmp_path, server):
        for arguments in (("hosts", "x.crawl", "hold", "a.test/b"), ("add", "x.crawl", "b.test")):
            refused = crawlkit(*arguments, cwd=tmp_path)
            assert (refused.status, len(refused.err.splitlines())) == (2, 1)
        assert steered(tmp_path) == []


@pytest.mark.parametrize("name", ["pause", "continue", "hosts", "add"])
def test_a_directory_without_a_crawl_is_refused(tmp_path: Path, name: str) -> None:
    refused = crawlkit(name, "x.crawl", *([B] if name == "add" else []), cwd=tmp_path)
    assert refused.status == 3
    assert "there is no crawl directory x.crawl" in refused.err
    assert list(tmp_path.iterdir()) == []
