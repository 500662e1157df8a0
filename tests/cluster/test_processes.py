"""Crawls in partitions, as processes: the same report for any number of them, whatever is killed, and manners kept."""

import asyncio
import contextlib
import json
import os
import random
import signal
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from crawlkit import Config
from crawlkit.clock import SystemClock
from crawlkit.cluster import founding
from crawlkit.errors import ExitStatus
from crawlkit.state.checkpoint import read_summary
from crawlkit.state.directory import DirectoryLock, holder, is_begun
from crawlkit.state.partitions import member_directory, read_table
from crawlkit.surfaces.cli import run_cli
from crawlkit.testing.graph import Features, make_graph
from crawlkit.testing.log import Request
from crawlkit.testing.server import SiteServer
from tests.processes import Ended, command, crawlkit, ended, runner, started, wait_while_running

pytestmark = pytest.mark.slow

GAP_S = 0.02
GRAPH = make_graph(
    150,
    5,
    hosts=6,
    links_per_page=6,
    features=Features(redirects=9, chain=3, canonicals=6, missing=4, outside=3, nofollow=5, unreachable=3),
)


@pytest.fixture
def server() -> Iterator[SiteServer]:
    with SiteServer(GRAPH.site(page_bytes=500)) as serving:
        yield serving


def options(server: SiteServer, *others: str) -> list[str]:
    pace = [] if "--delay" in others else ["--delay", "0"]
    return [
        *(
            "-q",
            "--scope",
            "any",
            "--exclude",
            r"//outside\.test/",
            "--exit-zero",
            "--resolve",
            f"*.test=127.0.0.1:{server.port}",
        ),
        *("--checkpoint-interval", "0.2s", *pace, *others),
    ]


def run(server: SiteServer, directory: Path, *others: str) -> Ended:
    return crawlkit("run", "http://h1.test/", "-d", directory, *options(server, *others), cwd=directory.parent)


def records(directory: Path) -> bytes:
    output = directory.with_suffix(".jsonl")
    assert run_cli(["report", str(directory), "--format", "jsonl", "-o", str(output)]) == 0
    return output.read_bytes()


@pytest.fixture
def expected(server: SiteServer, tmp_path: Path) -> bytes:
    directory = tmp_path / "one"
    arguments = ["run", "http://h1.test/", "-d", str(directory), *options(server)]
    assert run_cli(arguments) == 0
    return records(directory)


def pids(directory: Path, driver: int) -> list[int]:
    """Return the processes of those partitions that run."""
    members = range(len(read_table(directory).members))
    found = (runner(member_directory(directory, number), driver) for number in members)
    return [pid for pid in found if pid is not None]


def pages(directory: Path) -> int:
    members = range(len(read_table(directory).members))
    return sum(read_summary(member_directory(directory, number)).counters.pages for number in members)


def found_crawl(directory: Path) -> None:
    """Make a crawl in two partitions that asks for nothing."""
    config = Config(resolve=("*.test=127.0.0.1:1",))
    asyncio.run(founding.found_crawl(["http://h1.test/"], directory, config, 2, SystemClock()))


def has_pages(directory: Path, count: int) -> bool:
    return is_begun(directory) and pages(directory) >= count


def test_who_made_a_partition_is_not_taken_for_its_process(tmp_path: Path) -> None:
    found_crawl(tmp_path / "crawl")
    member = member_directory(tmp_path / "crawl", 0)
    assert holder(member) == os.getpid()
    assert runner(member) is None
    with DirectoryLock(member):
        assert runner(member) == os.getpid()
        assert runner(member, driver=os.getpid()) is None  # as a partition that has the lock and has not written its own yet


@pytest.mark.parametrize("partitions", [1, 4])
def test_the_report_is_that_of_one_crawl(server: SiteServer, tmp_path: Path, expected: bytes, partitions: int) -> None:
    asked = len(server.log)
    assert run(server, tmp_path / "crawl", "--partitions", str(partitions)).status == 0
    assert records(tmp_path / "crawl") == expected
    assert len(server.log) == 2 * asked  # each URL and each robots.txt once
    meta = json.loads((tmp_path / "crawl.jsonl.meta.json").read_text())
    assert (meta["deterministic"], meta["reasons"]) == (True, [])
    assert crawlkit("resume", tmp_path / "crawl", "-q", "--exit-zero", cwd=tmp_path).status == 0
    assert len(server.log) == 2 * asked


def test_a_partition_that_is_killed_is_started_again_and_nothing_is_lost(
    server: SiteServer, tmp_path: Path, expected: bytes, seed: int
) -> None:
    rng = random.Random(seed)
    directory = tmp_path / "crawl"
    arguments = command("run", "http://h1.test/", "-d", directory, *options(server, "--delay", "20ms", "--partitions", "2"))
    with started(arguments, tmp_path) as process:
        for moment in sorted(rng.sample(range(1, 120), 3)):
            wait_while_running(process, lambda moment=moment: has_pages(directory, moment))  # type: ignore[misc]
            if running := pids(directory, process.pid):  # none: those that were killed have not been started again yet
                with contextlib.suppress(ProcessLookupError):
                    os.kill(rng.choice(running), signal.SIGKILL)
        assert ended(process).status == 0
    assert records(directory) == expected


def test_whatever_kills_the_driver_the_partitions_end_and_a_resume_goes_on(
    server: SiteServer, tmp_path: Path, expected: bytes, seed: int
) -> None:
    rng = random.Random(seed)
    directory = tmp_path / "crawl"
    before = len(server.log)
    arguments = command("run", "http://h1.test/", "-d", directory, *options(server, "--delay", "20ms", "--partitions", "2"))
    for _ in range(2):
        with started(arguments, tmp_path) as process:
            so_far = pages(directory) if is_begun(directory) else 0
            moment = rng.randint(so_far + 1, so_far + 40)
            wait_while_running(process, lambda moment=moment: has_pages(directory, moment))  # type: ignore[misc]
            process.kill()
            assert ended(process).status == -signal.SIGKILL  # its partitions write to the same pipe: they are gone, in silence
        arguments = command("resume", directory, "-q")
    done = crawlkit("resume", directory, "-q", "--exit-zero", cwd=tmp_path)
    assert done.status == 0, done.err
    assert records(directory) == expected
    check_gaps(server.log[before:], GAP_S)


def test_the_number_of_partitions_may_change_with_each_resume(
    server: SiteServer, tmp_path: Path, expected: bytes, seed: int
) -> None:
    rng = random.Random(seed)
    directory = tmp_path / "crawl"
    before = len(server.log)
    arguments = command("run", "http://h1.test/", "-d", directory, *options(server, "--delay", "20ms", "--partitions", "1"))
    for partitions in (3, 2):
        with started(arguments, tmp_path) as process:
            moment = (pages(directory) if is_begun(directory) else 0) + rng.randint(1, 40)
            wait_while_running(process, lambda moment=moment: has_pages(directory, moment))  # type: ignore[misc]
            process.kill()
        arguments = command("resume", directory, "-q", "--exit-zero", "--partitions", str(partitions))
    with started(arguments, tmp_path) as process:
        assert ended(process).status == 0
    assert len(set(read_table(directory).owners)) == 2
    assert records(directory) == expected
    check_gaps(server.log[before:], GAP_S)
    asked = len(server.log)
    assert crawlkit("resume", directory, "-q", "--exit-zero", "--partitions", "4", cwd=tmp_path).status == 0
    assert len(server.log) == asked  # it had finished, and still has
    assert records(directory) == expected


def check_gaps(requests: Sequence[Request], least_s: float) -> None:
    """Check the site's own log: no host was asked sooner than its gap allows, whoever asked."""
    last: dict[str, float] = {}
    for request in requests:
        before = last.get(request.host)
        assert before is None or request.at_s - before >= least_s - 0.003, request
        last[request.host] = request.at_s


def test_a_first_signal_stops_all_partitions_in_order(server: SiteServer, tmp_path: Path, expected: bytes) -> None:
    directory = tmp_path / "crawl"
    arguments = command("run", "http://h1.test/", "-d", directory, *options(server, "--delay", "20ms", "--partitions", "2"))
    with started(arguments, tmp_path) as process:
        wait_while_running(process, lambda: has_pages(directory, 10))
        process.send_signal(signal.SIGINT)
        stopped = ended(process)
    assert stopped.status == ExitStatus.SIGINT
    assert f"resume with: crawlkit resume {directory}" in stopped.err
    assert all(read_summary(member_directory(directory, number)).runs[-1].how == "sigint" for number in range(2))
    assert crawlkit("resume", directory, "-q", "--exit-zero", cwd=tmp_path).status == 0
    assert records(directory) == expected


def test_the_limit_on_pages_is_that_of_all_partitions_together(server: SiteServer, tmp_path: Path, expected: bytes) -> None:
    directory = tmp_path / "crawl"
    assert run(server, directory, "--partitions", "2", "--max-pages", "50").status == 0
    assert pages(directory) == 50
    assert crawlkit("resume", directory, "-q", "--exit-zero", "--set", "max_pages=90", cwd=tmp_path).status == 0
    assert pages(directory) == 90
    more = crawlkit("resume", directory, "-q", "--exit-zero", "--set", "max_pages=9999", cwd=tmp_path)
    assert more.status == 0, more.err
    assert records(directory) == expected


@pytest.mark.parametrize(
    ("given", "words"),
    [("0", "1 to 1024"), ("1025", "1 to 1024"), ("two", "a number, or cores")],
)
def test_a_number_of_partitions_that_cannot_be_is_refused(tmp_path: Path, given: str, words: str) -> None:
    refused = crawlkit("run", "http://h1.test/", "--partitions", given, cwd=tmp_path)
    assert refused.status == ExitStatus.USAGE
    assert words in refused.err
    assert len(refused.err.splitlines()) == 1
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("other", [["--ui"], ["--metrics", "127.0.0.1:0"], ["--group-by", "address"], ["--ray-address", "x"]])
def test_what_partitions_do_not_know_is_refused(tmp_path: Path, other: list[str]) -> None:
    refused = crawlkit("run", "http://h1.test/", "--partitions", "2", *other, cwd=tmp_path)
    assert refused.status == ExitStatus.USAGE
    assert other[0] in refused.err
    assert not list(tmp_path.iterdir())


def test_a_partition_that_is_missing_or_of_another_crawl_is_refused(tmp_path: Path) -> None:
    directory = tmp_path / "crawl"
    for made in (directory, tmp_path / "other"):
        found_crawl(made)
    member = member_directory(directory, 1)
    member.rename(tmp_path / "away")
    missing = crawlkit("resume", directory, "-q", cwd=tmp_path)
    assert (missing.status, len(missing.err.splitlines())) == (ExitStatus.STATE, 1)
    assert "partition 1" in missing.err
    subprocess.run(["cp", "-r", member_directory(tmp_path / "other", 1), member], check=True)
    foreign = crawlkit("resume", directory, "-q", cwd=tmp_path)
    assert (foreign.status, len(foreign.err.splitlines())) == (ExitStatus.STATE, 1)
    assert "another crawl" in foreign.err


def test_a_crawl_that_is_one_is_not_resumed_in_partitions(server: SiteServer, tmp_path: Path) -> None:
    directory = tmp_path / "crawl"
    assert run(server, directory, "--max-pages", "3").status == 0
    refused = crawlkit("resume", directory, "--partitions", "2", cwd=tmp_path)
    assert refused.status == ExitStatus.USAGE
    assert "--partitions" in refused.err
