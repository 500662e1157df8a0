"""`fetch`: a whole crawl of a static site on loopback, by crawlkit, Scrapy with JOBDIR, wget2 and the floor, in turn.

The peers take turns within each repeat, so that what else the machine does hits all of them alike. The server's CPU is
not counted. Pages a second are wall time, start of the process included, and suffer from a busy machine; CPU does not.
"""

import shutil
import statistics
import tempfile
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

from benchmarks import peers
from benchmarks.figures import Unit, emit, emit_medians, note
from benchmarks.peers import Peer
from benchmarks.processes import BenchError, python_environment, run_measured
from benchmarks.servers import serving
from benchmarks.static_site import LINKS, PAGE_BYTES, Kind, StaticSite, write_site

ARCHIVING = "crawlkit-warc"

UNITS = {
    "cpu_ms": Unit("cpu a page", "ms"),
    "pages_per_s": Unit("pages a second", "1/s"),
    "peak_mib": Unit("peak resident memory", "MiB"),
    "pages": Unit("pages crawled", "1"),
}


@dataclass(frozen=True, slots=True)
class FetchOptions:
    """What is crawled, how, and by whom (`only` these peers, where any are named)."""

    kinds: tuple[Kind, ...]
    only: frozenset[str]
    pages: int
    connections: int
    repeat: int
    seed: int
    cache: Path
    install: bool
    timeout_s: float


def bench_fetch(options: FetchOptions) -> None:
    """Print the figures of each peer on each site."""
    crawlers = _crawlers(options)
    for kind in options.kinds:
        with tempfile.TemporaryDirectory(prefix="bench-fetch-") as work:
            _bench_site(kind, crawlers, options, Path(work))


def _crawlers(options: FetchOptions) -> list[Peer]:
    python = peers.peers_python(options.cache, install=options.install)
    if python is None:
        note("no environment with the floor and Scrapy: they are left out")
    found = [peers.floor(python)] if python else []
    found += [peers.crawlkit(), peers.crawlkit(ARCHIVING, "--warc")]
    wget2 = peers.wget2()
    if wget2 is None:
        note("wget2 is not installed: it is left out (Debian: apt-get install wget2)")
    found += [*([wget2] if wget2 else []), *([peers.scrapy(python)] if python else [])]
    return [peer for peer in found if not options.only or peer.name in options.only]


def _bench_site(kind: Kind, crawlers: list[Peer], options: FetchOptions, work: Path) -> None:
    site = work / "site"
    site.mkdir()
    write_site(StaticSite(kind, options.pages, options.seed), site)
    runs: dict[str, list[dict[str, float]]] = defaultdict(list)
    with serving(site, work) as (server, url):
        if server != "nginx":
            note("nginx is not installed: the site is served by benchmarks.static_server (Debian: apt-get install nginx-light)")
        for _ in range(options.repeat):
            for peer in crawlers:
                runs[peer.name].append(_crawl(peer, url, options, work))
    context = {"site": kind, "site_pages": options.pages, "page_bytes": PAGE_BYTES, "links": LINKS, "server": server}
    for peer in crawlers:
        named = {"peer": peer.name, "version": peer.version, "connections": options.connections, **context}
        emit_medians("fetch", UNITS, runs[peer.name], **named)
        if peer.name == ARCHIVING and "crawlkit" in runs:
            ratio = _median(runs[ARCHIVING], "cpu_ms") / _median(runs["crawlkit"], "cpu_ms")
            emit("fetch", "cpu a page, times without an archive", ratio, "x", **named)
        if "floor" in runs:
            ratio = _median(runs[peer.name], "cpu_ms") / _median(runs["floor"], "cpu_ms")
            emit("fetch", "cpu a page, times the floor", ratio, "x", **named)


def _median(runs: list[dict[str, float]], key: str) -> float:
    return statistics.median(run[key] for run in runs)


def _crawl(peer: Peer, url: str, options: FetchOptions, work: Path) -> dict[str, float]:
    folder = work / "crawler"
    folder.mkdir()
    usage = run_measured(
        peer.command(url, options.connections), cwd=folder, timeout_s=options.timeout_s, environment=python_environment()
    )
    if usage.status != 0:
        raise BenchError(f"{peer.name} ended with status {usage.status}")
    pages = peer.pages(usage, folder)
    shutil.rmtree(folder)
    if pages != options.pages:
        note(f"{peer.name} crawled {pages} of {options.pages} pages")
    return {
        "cpu_ms": usage.cpu_s * 1000 / max(pages, 1),
        "pages_per_s": pages / usage.wall_s,
        "peak_mib": usage.peak_mib,
        "pages": pages,
    }
