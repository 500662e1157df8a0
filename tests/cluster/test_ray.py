"""Partitions as actors on a real Ray cluster of two nodes: the report is that of one crawl, on one disk or on two."""

import contextlib
import importlib.util
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from crawlkit.errors import ExitStatus
from crawlkit.state.checkpoint import read_summary
from crawlkit.state.directory import is_begun, is_held
from crawlkit.state.layout import MEMBERS
from crawlkit.surfaces.cli import run_cli
from crawlkit.testing.graph import make_graph
from crawlkit.testing.log import Request
from crawlkit.testing.server import SiteServer
from tests.cluster.ray_cluster import OWN_DISK
from tests.processes import ROOT, Ended, command, crawlkit, environment, runner, started, wait_until, wait_while_running

needs_ray = pytest.mark.skipif(
    importlib.util.find_spec("ray") is None, reason="Ray is not installed: pip install crawlkit[ray]"
)
pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

PAGES = 150
GAP_S = 0.02
GRAPH = make_graph(PAGES, 5, hosts=6, links_per_page=6)


@dataclass(frozen=True)
class Cluster:
    """A cluster of two nodes. The second one sees a disk of its own at `own`, None where this machine allows no such thing."""

    address: str
    own: Path | None


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    own = Path(tempfile.mkdtemp(prefix="crawlkit-ray-"))
    can_part = subprocess.run([*OWN_DISK, own, "true"], check=False, capture_output=True).returncode == 0
    arguments = [sys.executable, "-m", "tests.cluster.ray_cluster", *([str(own)] if can_part else [])]
    pipe = subprocess.PIPE
    with subprocess.Popen(
        arguments, cwd=ROOT, env=environment(), stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL
    ) as process:
        assert process.stdout is not None
        yield Cluster(process.stdout.readline().decode().strip(), own if can_part else None)
        process.communicate(timeout=60)
    shutil.rmtree(own)


@pytest.fixture
def server() -> Iterator[SiteServer]:
    with SiteServer(GRAPH.site(page_bytes=500)) as serving:
        yield serving


def options(server: SiteServer, *others: str) -> list[str]:
    reached = ["--scope", "any", "--resolve", f"*.test=127.0.0.1:{server.port}", "--checkpoint-interval", "0.2s"]
    return ["-q", *reached, *others]


def on_ray(cluster: Cluster) -> list[str]:
    return ["--engine", "ray", "--ray-address", cluster.address]


def records(directory: Path, output: Path) -> bytes:
    assert run_cli(["report", str(directory), "--format", "jsonl", "-o", str(output)]) == 0
    return output.read_bytes()


@pytest.fixture
def expected(server: SiteServer, tmp_path: Path) -> bytes:
    directory = tmp_path / "one"
    assert run_cli(["run", "http://h1.test/", "-d", str(directory), *options(server, "--delay", "0")]) == 0
    return records(directory, tmp_path / "one.jsonl")


def members(directory: Path) -> list[Path]:
    return sorted((directory / MEMBERS).iterdir())


def pages(directory: Path) -> int:
    return sum(read_summary(member).counters.pages for member in members(directory))


def has_pages(directory: Path, count: int) -> bool:
    return is_begun(directory) and pages(directory) >= count


def check_gaps(requests: Sequence[Request], least_s: float) -> None:
    """Check the site's own log: no host was asked sooner than its gap allows, whoever asked."""
    last: dict[str, float] = {}
    for request in requests:
        before = last.get(request.host)
        assert before is None or request.at_s - before >= least_s - 0.003, request
        last[request.host] = request.at_s


@needs_ray
def test_whatever_is_killed_and_whichever_engine_goes_on_the_report_is_that_of_one_crawl(
    cluster: Cluster, server: SiteServer, tmp_path: Path, expected: bytes, seed: int
) -> None:
    directory = tmp_path / "crawl"
    before = len(server.log)
    others = ["--delay", "20ms", "--partitions", "3", *on_ray(cluster)]
    with started(command("run", "http://h1.test/", "-d", directory, *options(server, *others)), tmp_path) as process:
        wait_while_running(process, lambda: has_pages(directory, 10))
        running = [pid for member in members(directory) if (pid := runner(member, process.pid)) is not None]
        with contextlib.suppress(ProcessLookupError):
            os.kill(random.Random(seed).choice(running), signal.SIGKILL)
        wait_while_running(process, lambda: has_pages(directory, 40))
        process.kill()
    wait_until(lambda: not any(map(is_held, members(directory))))  # actors end with their driver
    with started(command("resume", directory, "-q"), tmp_path) as process:  # as processes
        wait_while_running(process, lambda: has_pages(directory, 70))
        process.kill()
    done = crawlkit("resume", directory, "-q", *on_ray(cluster), cwd=tmp_path)
    assert (done.status, done.err) == (0, "")
    assert records(directory, tmp_path / "crawl.jsonl") == expected
    check_gaps(server.log[before:], GAP_S)


@needs_ray
@pytest.mark.long
def test_a_partition_lies_on_the_disk_of_its_machine_runs_there_again_and_can_be_brought_home(
    cluster: Cluster, server: SiteServer, tmp_path: Path, expected: bytes
) -> None:
    if cluster.own is None:
        pytest.skip("a process may not have a mount of its own here, so no node can have a disk of its own")
    directory = cluster.own / "crawl"
    before = len(server.log)
    others = ["--delay", "0", "--partitions", "2", *on_ray(cluster)]
    limited = crawlkit("run", "http://h1.test/", "-d", directory, *options(server, *others, "--max-pages", "40"), cwd=tmp_path)
    assert limited.status == 0, limited.err
    assert [member.name for member in members(directory)] == ["000"]
    assert (directory / "PLACES").read_text() == '{"machines":["first","second"]}\n'
    more = crawlkit("resume", directory, "-q", *on_ray(cluster), "--set", "max_pages=9999", cwd=tmp_path)
    assert more.status == 0, more.err
    asked = [(request.host, request.target) for request in server.log[before:]]
    assert len(asked) == len(set(asked)) == PAGES + 6  # each URL and each robots.txt once: what was on either disk held
    alone = crawlkit("resume", directory, "-q", cwd=tmp_path)
    assert alone.status == ExitStatus.STATE
    assert f"partition 1 of {directory} is missing" in alone.err
    assert f"crawlkit gather {directory}" in alone.err
    home = crawlkit("gather", directory, "--ray-address", cluster.address, cwd=tmp_path)
    assert home.status == 0, home.err
    assert home.err.startswith("crawlkit: partition 1 is here: ")
    assert records(directory, tmp_path / "crawl.jsonl") == expected
    assert (directory / "PLACES").read_text() == '{"machines":["first","first"]}\n'
    for engine in ([], on_ray(cluster)):  # were it still on `second`, it would be found twice there
        assert crawlkit("resume", directory, "-q", *engine, cwd=tmp_path).status == 0


def refused(tmp_path: Path, *others: str) -> Ended:
    asked = ["--partitions", "2", "--engine", "ray", *others]
    done = crawlkit("run", "http://h1.test/", "-d", tmp_path / "crawl", *asked, cwd=tmp_path)
    assert len(done.err.splitlines()) == 1
    assert not list(tmp_path.iterdir())
    return done


@needs_ray
def test_a_cluster_that_is_not_there_is_refused_in_one_line(tmp_path: Path) -> None:
    done = refused(tmp_path, "--ray-address", "127.0.0.1:1")
    assert done.status == ExitStatus.STATE
    assert "127.0.0.1:1 " in done.err


@needs_ray
@pytest.mark.parametrize("address", ["ray://127.0.0.1:10001", "127.0.0.1", "127.0.0.1:x", "127.0.0.1:65536"])
def test_an_address_that_cannot_be_is_refused(tmp_path: Path, address: str) -> None:
    done = refused(tmp_path, "--ray-address", address)
    assert done.status == ExitStatus.USAGE
    assert "HOST:PORT" in done.err


def test_where_ray_is_not_installed_the_extra_is_named(tmp_path: Path) -> None:
    hidden = "import importlib.util, sys; sys.modules['ray'] = None; "  # what importing it then raises, or finds, is nothing
    script = f"{hidden}from crawlkit.__main__ import main; main()"
    arguments = ["run", "http://h1.test/", "-d", "crawl", "--partitions", "2", "--engine", "ray"]
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments], cwd=tmp_path, env=environment(), capture_output=True, check=False
    )
    assert done.returncode == ExitStatus.USAGE
    assert b"pip install crawlkit[ray]" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_who_does_not_ask_for_ray_does_not_import_it(server: SiteServer, tmp_path: Path) -> None:
    script = "import sys; from crawlkit.surfaces.cli import run_cli; run_cli(sys.argv[1:]); print('ray' in sys.modules)"
    arguments = ["run", "http://h1.test/", "-d", "crawl", *options(server, "--max-pages", "3", "--partitions", "2")]
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments], cwd=tmp_path, env=environment(), capture_output=True, check=True
    )
    assert done.stdout == b"False\n"
