"""SIGINT and SIGTERM: the first stops in order, the second at once; neither costs a page nor prints a traceback."""

import random
import signal
import subprocess
import time
from collections import Counter
from pathlib import Path

import pytest

from crawlkit import Kind, report
from crawlkit.errors import ExitStatus
from crawlkit.state.checkpoint import read_summary
from crawlkit.state.directory import holder, is_begun
from crawlkit.surfaces.cli import run_cli
from crawlkit.testing.graph import make_graph
from crawlkit.testing.log import RequestLog
from crawlkit.testing.server import SiteServer
from crawlkit.testing.site import Fault, Reply, Site, page
from tests.processes import Ended, checked, command, ended, started, wait_until, wait_while_running

pytestmark = pytest.mark.slow

FAST = ("--delay", "0", "--host-concurrency", "8", "--retries", "0")
STOPPING = [(signal.SIGINT, ExitStatus.SIGINT), (signal.SIGTERM, ExitStatus.SIGTERM)]
SLOW_S = 0.4


def run_arguments(server: SiteServer, crawl: Path, *options: str) -> list[str]:
    return command("run", f"{server.url}/", "--dir", crawl, *FAST, *options)


def resume_line(crawl: Path) -> str:
    return f"resume with: crawlkit resume {crawl}"


def pages(log: RequestLog) -> list[str]:
    return [request.target for request in log if request.target != "/robots.txt"]


@pytest.fixture
def crawl(tmp_path: Path) -> Path:
    return tmp_path / "stopped.crawl"


@pytest.mark.parametrize(("number", "status"), STOPPING)
def test_the_first_signal_lets_fetches_finish_and_nothing_is_fetched_twice(
    tmp_path: Path, crawl: Path, number: signal.Signals, status: ExitStatus
) -> None:
    graph = make_graph(40, 3, links_per_page=8)
    # No checkpoint but the last one comes in time.
    with SiteServer(graph.site(delay_s=SLOW_S)) as server:
        with started(run_arguments(server, crawl, "--checkpoint-interval", "1h"), tmp_path) as process:
            assert server.log.wait_for(lambda log: len(pages(log)) >= 6)
            process.send_signal(number)
            asked = len(server.log)
            result = ended(process)
        assert result.status == status
        assert result.out == b""
        assert result.err.splitlines()[-1] == resume_line(crawl)
        assert f"stopped by {number.name}" in result.err
        # What was on its way when the signal came may arrive after it.
        assert len(server.log) <= asked + 8
        assert all(request.ended_s is not None for request in server.log)
        assert read_summary(crawl).counters.pages == len(pages(server.log))
        assert run_cli(["resume", str(crawl), "-q"]) == ExitStatus.DONE
        assert Counter(pages(server.log)) == {url.removeprefix("http://h1.test"): 1 for url in graph.nodes}


def test_a_signal_while_nothing_is_in_flight_ends_the_run_at_once(tmp_path: Path, crawl: Path) -> None:
    with SiteServer(make_graph(5, 1).site()) as server:
        with started(run_arguments(server, crawl, "--delay", "1h", "--no-robots"), tmp_path) as process:
            assert server.log.wait_for(lambda log: len(log) == 1 and log[0].ended_s is not None)
            process.send_signal(signal.SIGTERM)
            result = ended(process, timeout_s=40)
        assert result.status == ExitStatus.SIGTERM
        assert len(list(report(crawl))) == 1


def test_a_fetch_that_stalls_holds_a_stop_no_longer_than_the_timeout(tmp_path: Path, crawl: Path) -> None:
    site = Site({"/": page("a", ["/stalled"]), "/stalled": Reply(body=b"never sent", fault=Fault.STALL)})
    with SiteServer(site) as server:
        with started(run_arguments(server, crawl, "--timeout", "1s"), tmp_path) as process:
            assert server.log.wait_for(lambda log: "/stalled" in pages(log))
            process.send_signal(signal.SIGINT)
            result = ended(process, timeout_s=30)
        assert result.status == ExitStatus.SIGINT
        assert [record.kind for record in report(crawl)] == [Kind.PAGE, Kind.FAILURE]


@pytest.mark.parametrize(("number", "status"), STOPPING)
def test_the_second_signal_ends_the_process_at_once(
    tmp_path: Path, crawl: Path, number: signal.Signals, status: ExitStatus
) -> None:
    site = Site({"/": page("a", ["/stalled"]), "/stalled": Reply(body=b"never sent", fault=Fault.STALL)})
    with SiteServer(site) as server:
        with started(run_arguments(server, crawl, "--timeout", "50s", "--checkpoint-interval", "20ms"), tmp_path) as process:
            assert server.log.wait_for(lambda log: "/stalled" in pages(log))
            wait_while_running(process, lambda: read_summary(crawl).counters.pages == 1)
            process.send_signal(signal.SIGINT)
            with pytest.raises(subprocess.TimeoutExpired):
                process.wait(0.3)
            process.send_signal(number)
            result = ended(process, timeout_s=40)
        assert result.status == status
        assert result.err.splitlines()[-1] == resume_line(crawl)
        server.site = site | {"/stalled": page("b")}
        assert run_cli(["resume", str(crawl), "-q"]) == ExitStatus.DONE
        assert Counter(pages(server.log)) == {"/": 1, "/stalled": 2}


@pytest.mark.skipif(signal.getsignal(signal.SIGHUP) is signal.SIG_IGN, reason="SIGHUP is ignored here, as under nohup")
def test_sighup_ends_the_process_as_a_kill_does(tmp_path: Path, crawl: Path) -> None:
    with SiteServer(make_graph(30, 3).site(delay_s=0.1)) as server:
        with started(run_arguments(server, crawl, "--host-concurrency", "2"), tmp_path) as process:
            assert server.log.wait_for(lambda log: len(log) >= 5)
            process.send_signal(signal.SIGHUP)
            assert ended(process).status == -signal.SIGHUP
        assert run_cli(["resume", str(crawl), "-q", "--set", "host_concurrency=8"]) == ExitStatus.DONE
        assert len(list(report(crawl))) == 30


@pytest.mark.parametrize(("number", "status"), STOPPING)
def test_a_signal_while_a_crawl_is_made_leaves_nothing_begun_or_a_crawl_to_resume(
    tmp_path: Path, number: signal.Signals, status: ExitStatus, seed: int
) -> None:
    rng = random.Random(seed)
    with SiteServer(make_graph(20, 3).site(delay_s=0.02)) as server:
        for turn in range(2):
            crawl = tmp_path / f"stopped{turn}.crawl"
            with started(run_arguments(server, crawl), tmp_path) as process:
                wait_while_running(process, crawl.exists)
                until_s = time.monotonic() + rng.uniform(0, 0.03)
                wait_until(lambda: time.monotonic() >= until_s)  # noqa: B023  (called before the next turn)
                process.send_signal(number)
                result = ended(process, timeout_s=40)
            assert result.status == status
            assert is_begun(crawl) == (resume_line(crawl) in result.err)
            if is_begun(crawl):
                assert run_cli(["resume", str(crawl), "-q"]) == ExitStatus.DONE
                assert len(list(report(crawl))) == 20


@pytest.mark.parametrize(("number", "status"), STOPPING)
def test_a_signal_while_a_crawl_is_opened_ends_with_the_resume_line(
    tmp_path: Path, crawl: Path, number: signal.Signals, status: ExitStatus
) -> None:
    with SiteServer(make_graph(20, 3).site()) as server:
        assert run_cli(["run", f"{server.url}/", "--dir", str(crawl), "-q", *FAST, "--max-pages", "3"]) == ExitStatus.DONE
        with started(command("resume", crawl, "--set", "max_pages=none", "--set", "delay=1h"), tmp_path) as process:
            wait_while_running(process, lambda: holder(crawl) == process.pid)
            process.send_signal(number)
            result = ended(process, timeout_s=40)
        assert result.status == status
        assert result.err.splitlines()[-1] == resume_line(crawl)


def hammered(process: "subprocess.Popen[bytes]", number: signal.Signals, gap_s: float) -> Ended:
    """Send a signal again and again until the process has ended."""
    while process.poll() is None:
        process.send_signal(number)
        try:
            process.wait(gap_s)
        except subprocess.TimeoutExpired:
            continue
    out, err = process.communicate()
    return checked(process.returncode, out, err)


@pytest.mark.parametrize("gap_s", [0.002, 0.02, 0.2])
def test_signals_without_end_never_show_a_traceback(tmp_path: Path, crawl: Path, gap_s: float) -> None:
    with SiteServer(make_graph(30, 3).site(delay_s=0.02)) as server:
        with started(run_arguments(server, crawl, "--host-concurrency", "2"), tmp_path) as process:
            wait_while_running(process, crawl.exists)
            assert hammered(process, signal.SIGINT, gap_s).status == ExitStatus.SIGINT
        if is_begun(crawl):
            assert run_cli(["resume", str(crawl), "-q"]) == ExitStatus.DONE
            assert len(list(report(crawl))) == 30


def test_a_report_that_is_interrupted_shows_no_traceback(tmp_path: Path, crawl: Path) -> None:
    with SiteServer(make_graph(200, 3).site(page_bytes=500)) as server:
        run_cli(["run", f"{server.url}/", "--dir", str(crawl), "-q", *FAST])
    # Nobody reads its output, which is more than a pipe holds.
    with started(command("report", crawl, "--format", "jsonl"), tmp_path) as process:
        wait_while_running(process, lambda: holder(crawl) == process.pid)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.3)
        process.send_signal(signal.SIGINT)
        assert ended(process, timeout_s=40).status == ExitStatus.SIGINT
