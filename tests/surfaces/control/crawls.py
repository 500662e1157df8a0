"""Crawls that run as processes of their own: each host is asked once, and then waits for an hour."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import Popen
from typing import Any

from crawlkit.testing.server import SiteServer
from crawlkit.testing.site import Site, page
from tests.processes import Ended, command, crawlkit, started, wait_until

PAGES = {f"a.test/{n}": page(str(n)) for n in range(4)}
SITE = Site({"a.test/": page("A", ["/1", "/2", "/3"]), "b.test/": page("B", ["/x", "http://a.test/9"]), **PAGES})
A, B = "http://a.test/", "http://b.test/"


@contextmanager
def running(cwd: Path, server: SiteServer, *arguments: str, name: str = "x.crawl") -> Iterator["Popen[bytes]"]:
    """Run a crawl from http://a.test/ into `name`; when the block begins its first page has settled, on disk."""
    resolve = f"*.test=127.0.0.1:{server.port}"
    settings = ("--delay", "1h", "--no-robots", "--retries", "0", "--checkpoint-interval", "50ms", "--resolve", resolve)
    with started(command("run", A, "-d", name, *settings, *arguments), cwd) as process:
        wait_until(lambda: process.poll() is not None or is_settled(cwd / name))
        yield process


def is_settled(directory: Path) -> bool:
    """Whether a checkpoint holds a page."""
    path = directory / "CHECKPOINT"
    return path.exists() and b'"pages":0' not in path.read_bytes().partition(b'"runs"')[0]


def status_of(cwd: Path, *arguments: str, name: str = "x.crawl") -> dict[str, Any]:
    """Return what `status --json` says."""
    ended = crawlkit("status", name, "--json", *arguments, cwd=cwd)
    assert ended.status == 0, ended.err
    found: dict[str, Any] = json.loads(ended.out)
    return found


def said(ended: Ended) -> str:
    """Return what a command that was carried out said on standard error."""
    assert (ended.status, ended.out) == (0, b""), ended.err
    return ended.err
