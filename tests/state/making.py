"""What the tests of the state share: crawls to begin with, records, and children to be killed."""

import subprocess
import sys
import tempfile
from pathlib import Path

from crawlkit.config import Config
from crawlkit.model import Kind, Record, Source
from crawlkit.state.codec import Head, QueueRow
from crawlkit.state.crawl import CrawlState
from crawlkit.state.hosts import Host
from crawlkit.state.pages import reported_kind
from crawlkit.state.store import Store

NOW = 1_700_000_000.0
_SHARED_MEMORY = Path("/dev/shm")


def scratch_directory() -> Path:
    """Return a new directory, in memory if the system has a place for it: a thousand syncs are then soon over."""
    return Path(tempfile.mkdtemp(prefix="crawlkit-test-", dir=_SHARED_MEMORY if _SHARED_MEMORY.is_dir() else None))


def begin_crawl(directory: Path) -> CrawlState:
    """Return a new crawl with a run begun, a first checkpoint and its seal."""
    state = CrawlState.create(directory, Config())
    state.begin_run(NOW)
    state.checkpoint()
    state.seal()
    return state


def reopen(directory: Path) -> CrawlState:
    """Return the crawl as a resume finds it, with a run begun."""
    state = CrawlState.open(directory)
    state.begin_run(NOW)
    return state


def host_name(url: str) -> str:
    """Return the host of `http://host/path`."""
    return url.split("/")[2]


def host_of(state: CrawlState, url: str) -> Host:
    """Return the host of a URL."""
    return state.hosts.get(host_name(url))


def meet(state: CrawlState, url: str, depth: int, hops: int = 0) -> None:
    """Do as admission does, scope and limits apart: add a URL that is unseen, lower one that is seen."""
    host = host_of(state, url)
    entry = state.seen.find(url, host.id)
    if entry is None:
        state.frontier.add(url, host, depth, hops, None)
    elif depth < entry.depth or hops < entry.hops:
        state.distances.lower(url, host, entry, entry.joined(Head(depth, hops, Source.LINK)))


def claim(state: CrawlState, host: Host) -> QueueRow | None:
    """Do as the coordinator does: claim the host's first URL that has no record yet."""
    while (row := state.frontier.peek(host, state.distances.lower)) is not None:
        found = state.pages.head(row.url)
        if found is None:
            state.frontier.take(host, row)
            host.in_flight += 1
            return row
        state.frontier.discard(host, row, found.settled(), state.distances.lower)
    return None


def settle(state: CrawlState, url: str, links: tuple[str, ...] = (), redirect_to: str | None = None) -> Record:
    """Settle a claimed URL as a page with `links`, or as a redirect, and return its record."""
    host = host_of(state, url)
    entry = state.frontier.finish(url, host)
    host.in_flight -= 1
    kind = Kind.PAGE if redirect_to is None else Kind.REDIRECT
    record = Record(url=url, kind=kind, **entry.head._asdict(), links=links, redirect_to=redirect_to)
    state.pages.put(record)
    state.counters.settled(reported_kind(record))
    return record


def crawled(directory: Path, requests: int = 0, records: int = 0) -> None:
    """Leave a crawl that made requests and has records."""
    with begin_crawl(directory) as state:
        state.counters.requests = requests
        for n in range(records):
            state.pages.put(Record(url=f"http://a.test/{n}", kind=Kind.PAGE, depth=0))
            state.counters.pages += 1
        state.checkpoint()


def write_all(store: Store) -> None:
    """Write what is staged as one batch."""
    store.freeze().write()
    store.install()


def run_child(program: str, *arguments: str | Path) -> "subprocess.CompletedProcess[str]":
    """Run a Python program as a process of its own, which may come to a bad end."""
    command = [sys.executable, "-X", "dev", "-c", program, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


FULL_DISK = """
import resource, signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
HARD = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
def fill_disk(bytes_left=0):  # a limit on file sizes stands for the full disk: writes fail, and nothing else does
    resource.setrlimit(resource.RLIMIT_FSIZE, (bytes_left, HARD))
def free_disk():
    resource.setrlimit(resource.RLIMIT_FSIZE, (HARD, HARD))
"""
