"""Streams that end, fill up or are not there, terminals and full disks: for processes of their own."""

import contextlib
import os
import pty
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from crawlkit import report
from crawlkit.surfaces.cli import run_cli
from crawlkit.testing.graph import make_graph
from crawlkit.testing.server import SiteServer
from crawlkit.testing.site import Site, page, status
from tests.processes import Ended, command, crawlkit, environment, run

FAST = ("--delay", "0", "--host-concurrency", "8", "--retries", "0")


@pytest.fixture(scope="module")
def server() -> Iterator[SiteServer]:
    with SiteServer(make_graph(150, 4, links_per_page=20).site() | {"/p3": status(404)}) as running:
        yield running


@pytest.fixture(scope="module")
def crawl(server: SiteServer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("streams") / "x.crawl"
    assert run_cli(["run", f"{server.url}/", "-d", str(directory), "-q", *FAST]) == 1
    return directory


def shell(script: str, *arguments: str | Path, cwd: Path) -> Ended:
    """Run a crawlkit command as `"$@"` of a script."""
    return run(["sh", "-c", script, "sh", *command(*arguments)], cwd=cwd)


@pytest.mark.parametrize("format_", ["text", "jsonl"])
def test_a_reader_that_has_read_enough_is_no_failure(crawl: Path, tmp_path: Path, format_: str) -> None:
    result = shell('{ "$@"; echo $? >status; } | head -n 1', "report", crawl, "--format", format_, cwd=tmp_path)
    assert len(result.out.splitlines()) == 1
    assert (tmp_path / "status").read_text() == "0\n"


@pytest.mark.parametrize("arguments", [("report", "--format", "jsonl"), ("config", "show"), ("--version",)])
def test_a_full_standard_output_is_status_4(crawl: Path, tmp_path: Path, arguments: tuple[str, ...]) -> None:
    where = [crawl] if arguments[0] == "report" else []
    result = shell('"$@" >/dev/full', *arguments, *where, cwd=tmp_path)
    assert (result.status, result.err) == (4, "crawlkit: cannot write standard output: No space left on device\n")


def test_a_standard_output_that_is_closed_is_status_4(crawl: Path, tmp_path: Path) -> None:
    result = shell('"$@" >&-', "report", crawl, "--only", "redirects", "--format", "jsonl", cwd=tmp_path)
    assert result.status == 0
    result = shell('"$@" >&-', "report", crawl, "--format", "jsonl", cwd=tmp_path)
    assert (result.status, result.err) == (4, "crawlkit: cannot write standard output: Bad file descriptor\n")


def test_a_standard_input_that_is_closed_is_status_2(tmp_path: Path) -> None:
    result = shell('"$@" <&-', "run", "-i", "-", cwd=tmp_path)
    assert (result.status, result.err) == (2, "crawlkit: cannot read the seeds in standard input: Bad file descriptor\n")


@pytest.mark.parametrize("redirection", ["2>&-", "2>/dev/full"])
def test_a_crawl_needs_no_standard_error(server: SiteServer, tmp_path: Path, redirection: str) -> None:
    result = shell(f'"$@" {redirection}', "run", f"{server.url}/", "-d", "x.crawl", *FAST, "--progress", cwd=tmp_path)
    assert (result.status, result.out, result.err) == (1, b"", "")
    assert len(list(report(tmp_path / "x.crawl"))) == 150


@pytest.mark.parametrize("make", [os.pipe, pty.openpty])
def test_a_crawl_goes_on_when_nobody_reads_its_standard_error_any_more(
    tmp_path: Path, make: Callable[[], tuple[int, int]]
) -> None:
    with SiteServer(make_graph(40, 4).site(delay_s=0.1)) as slow:
        reading, writing = make()
        arguments = command("run", f"{slow.url}/", "-d", "x.crawl", *FAST)
        with subprocess.Popen(arguments, cwd=tmp_path, env=environment({"TERM": "xterm"}), stderr=writing) as process:
            os.close(writing)
            assert slow.log.wait_for(lambda log: len(log) > 1)
            os.close(reading)
            assert process.wait(60) == 0
    assert len(list(report(tmp_path / "x.crawl"))) == 40


def test_seeds_are_read_from_standard_input(server: SiteServer, tmp_path: Path) -> None:
    seeds = f"# mine\n{server.url}/p1\n{server.url}/p2\n".encode()
    result = crawlkit("run", "-i", "-", *FAST, "--max-depth", "0", cwd=tmp_path, stdin=seeds)
    assert (result.status, result.out) == (0, b"")
    assert [record.url for record in report(tmp_path / "127.0.0.1.crawl")] == [f"{server.url}/p1", f"{server.url}/p2"]


@pytest.mark.slow
def test_progress_is_shown_on_a_terminal_and_only_there(tmp_path: Path) -> None:
    with SiteServer(make_graph(40, 4).site(delay_s=0.1)) as slow:
        main, terminal = pty.openpty()
        arguments = command("run", f"{slow.url}/", "-d", "x.crawl", *FAST)
        env = environment({"TERM": "xterm", "COLUMNS": "100"})
        with subprocess.Popen(arguments, cwd=tmp_path, env=env, stdout=subprocess.PIPE, stderr=terminal) as process:
            os.close(terminal)
            out, shown = process.communicate(timeout=60)[0], b""
            with contextlib.suppress(OSError):  # the end of a terminal
                while data := os.read(main, 65536):
                    shown += data
        os.close(main)
        assert (process.returncode, out) == (0, b"")
        assert b"in flight" in shown
        assert b"40 pages" in shown
        plain = crawlkit("run", f"{slow.url}/", "-d", "y.crawl", *FAST, "--progress", cwd=tmp_path)
        assert "\x1b" not in plain.err


@pytest.mark.slow
def test_a_full_disk_is_status_4_and_the_resume_goes_on_from_the_last_checkpoint(tmp_path: Path) -> None:
    rng = random.Random(1)
    outside = [[f"http://{rng.randbytes(20).hex()}.test/" for _ in range(200)] for _ in range(150)]
    links = [[f"/{2 * n + 1}", f"/{2 * n + 2}", *outside[n]] for n in range(len(outside))]
    names = ["", *map(str, range(1, len(outside)))]
    with SiteServer(Site({f"/{name}": page(name, links[n]) for n, name in enumerate(names)})) as big:
        options = (*FAST, "--checkpoint-interval", "50ms", "--exit-zero")
        assert run_cli(["run", f"{big.url}/", "-d", str(tmp_path / "whole.crawl"), "-q", *options]) == 0
        # No file may grow beyond 400 KiB (it counts in blocks of 512 bytes): the database's log does.
        result = shell('ulimit -f 800; exec "$@"', "run", f"{big.url}/", "-d", "x.crawl", *options, cwd=tmp_path)
        assert result.status == 4
        _, first, last = result.err.splitlines()
        assert "x.crawl/db failed" in first
        assert last == "resume with: crawlkit resume x.crawl"
        assert run_cli(["resume", str(tmp_path / "x.crawl"), "-q", "--exit-zero"]) == 0
    found, whole = ([(r.url, r.digest, r.links) for r in report(tmp_path / name)] for name in ("x.crawl", "whole.crawl"))
    assert found == whole


def test_nothing_leaks_under_python_s_development_mode(tmp_path: Path) -> None:
    site = Site({"/": page("home", ["/a", "/missing"]), "/a": page("a")})
    with SiteServer(site) as small:
        arguments = [sys.executable, "-X", "dev", *command("run", f"{small.url}/", "-d", "x.crawl", *FAST)[1:]]
        result = run(arguments, cwd=tmp_path)
        assert result.status == 1
        assert run([sys.executable, "-X", "dev", *command("report", "x.crawl")[1:]], cwd=tmp_path).status == 0


def test_a_directory_name_need_not_be_text(server: SiteServer, tmp_path: Path) -> None:
    name = Path(os.fsdecode(b"\xff.crawl"))
    assert crawlkit("run", f"{server.url}/p1", "--max-depth", "0", "-d", name, *FAST, cwd=tmp_path).status == 0
    assert crawlkit("report", name, cwd=tmp_path).out.startswith(b"URL: ")


@pytest.mark.slow
def test_the_demo_kills_a_crawl_and_finds_the_same_report(tmp_path: Path) -> None:
    result = crawlkit("demo", "--dir", tmp_path / "demo", "--kills", "2", cwd=tmp_path)
    assert result.status == 0
    out = result.out.decode()
    assert "reports: identical" in out
    assert out.count("killed with SIGKILL") == 2
    assert sorted(path.name for path in (tmp_path / "demo").iterdir() if path.is_dir()) == ["killed.crawl", "undisturbed.crawl"]
