"""`crawlkit demo`: crawl a built-in site twice, once undisturbed and once killed and resumed, and compare the reports.

The one surface that uses `crawlkit.testing`: its site is the demo's. The crawls are processes of their own, killed with
SIGKILL, so that this is also a self-test of the disk it runs on.
"""

import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import click

from crawlkit.errors import CrawlError, ExitStatus, UsageError
from crawlkit.testing.graph import Features, Graph, make_graph
from crawlkit.testing.log import RequestLog
from crawlkit.testing.server import SiteServer

PAGES = 500
PAGE_BYTES = 4_000
ANSWER_DELAY_S = 0.02
FEATURES = Features(redirects=12, chain=3, canonicals=10, missing=6, outside=5, nofollow=5)
OPTIONS = ("--delay", "0", "--host-concurrency", "8", "--checkpoint-interval", "250ms", "--retries", "0")
PATIENCE_S = 60.0


@dataclass(frozen=True, slots=True)
class Crawled:
    """What one crawl of the demo came to: its report, the server's requests by target, kills, seconds."""

    report: bytes
    requests: Counter[str]
    kills: int
    seconds: float

    @property
    def repeated(self) -> int:
        """How many requests asked for what had been asked for before."""
        return self.requests.total() - len(self.requests)


@click.command("demo")
@click.option("--kills", type=click.IntRange(min=1), default=1, show_default=True, help="Kill the second crawl this often.")
@click.option("--seed", type=int, default=1, show_default=True, help="Of the site and of the moments of the kills.")
@click.option("-d", "--dir", "directory", type=click.Path(path_type=Path), help="Crawl in here, and keep it.")
def demo_command(kills: int, seed: int, directory: Path | None) -> int:
    """Crawl a built-in site on loopback, kill -9 the crawl half way, resume, compare."""
    where = directory or Path(tempfile.mkdtemp(prefix="crawlkit-demo-"))
    try:
        where.mkdir(parents=True, exist_ok=True)
        return _compare(where, kills, seed)
    except OSError as error:
        raise UsageError(f"the demo cannot use {where}: {error.strerror}") from error
    finally:
        if directory is None:
            shutil.rmtree(where, ignore_errors=True)


def _compare(where: Path, kills: int, seed: int) -> int:
    graph = make_graph(PAGES, seed, features=FEATURES)
    with SiteServer(graph.site(page_bytes=PAGE_BYTES, delay_s=ANSWER_DELAY_S)) as server:
        click.echo(f"demo: a site of {len(graph.nodes)} URLs on {server.url}")
        undisturbed = _crawl(server, graph, where / "undisturbed.crawl", ())
        rng = random.Random(seed)
        shares = sorted(rng.uniform(0.1, 0.9) for _ in range(kills)) if kills > 1 else [0.5]
        disturbed = _crawl(server, graph, where / "killed.crawl", tuple(shares))
    return _tell(undisturbed, disturbed)


def _crawl(server: SiteServer, graph: Graph, directory: Path, kill_at: tuple[float, ...]) -> Crawled:
    """Crawl the site into `directory`, killing the process when these shares of the site have been asked for."""
    if directory.exists():
        raise UsageError(f"{directory} exists already; choose another place with --dir")
    before, began_s = len(server.log), time.monotonic()
    command = ["run", f"{server.url}/", "--dir", str(directory), *OPTIONS]
    for share in kill_at:
        enough = before + int(share * len(graph.nodes))
        with _start(command) as process:
            if server.log.wait_for(partial(_holds, enough), PATIENCE_S):
                process.kill()
                click.echo(f"demo: killed with SIGKILL after {len(server.log) - before} requests; resuming")
        command = ["resume", str(directory)]
    with _start(command) as process:
        status = process.wait()
    if status not in (ExitStatus.DONE, ExitStatus.PAGES_FAILED):
        raise CrawlError(f"the crawl ended with status {status}: crawlkit {' '.join(command)}")
    seconds = time.monotonic() - began_s
    output = directory.with_suffix(".jsonl")
    subprocess.run(_command(["report", str(directory), "--format", "jsonl", "-o", str(output)]), check=True)
    requests = Counter(request.target for request in server.log[before:])
    return Crawled(output.read_bytes(), requests, len(kill_at), seconds)


def _holds(enough: int, log: RequestLog) -> bool:
    return len(log) >= enough


def _command(arguments: list[str]) -> list[str]:
    return [sys.executable, "-m", "crawlkit", *arguments]


def _start(arguments: list[str]) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(_command(arguments))


def _tell(undisturbed: Crawled, disturbed: Crawled) -> int:
    urls, again = undisturbed.report.count(b"\n"), disturbed.report.count(b"\n")
    same = undisturbed.report == disturbed.report
    click.echo(f"undisturbed: {urls} URLs in {undisturbed.seconds:.1f} s, {urls / undisturbed.seconds:.0f} a second")
    often = "once" if disturbed.kills == 1 else f"{disturbed.kills} times"
    click.echo(
        f"killed {often} and resumed: {again} URLs in {disturbed.seconds:.1f} s, "
        f"{disturbed.repeated - undisturbed.repeated} requests repeated because of it"
    )
    click.echo(f"reports: {'identical' if same else 'DIFFERENT'}, {len(undisturbed.report)} bytes")
    click.echo("the report begins:")
    for line in undisturbed.report.splitlines()[:3]:
        text = line.decode()
        click.echo(f"  {text[:110]}{'...' if len(text) > 110 else ''}")
    return ExitStatus.DONE if same else ExitStatus.PAGES_FAILED
