"""Whole crawls over loopback against a graph's oracle: the same answer for any number of workers."""

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pytest

from crawlkit.config import Config
from crawlkit.engine.ending import Ending
from crawlkit.engine.session import Hooks, Outcome, Surroundings, begin
from crawlkit.model import Kind
from crawlkit.state.crawl import CrawlState
from crawlkit.testing.graph import Features, Graph, make_graph
from crawlkit.testing.log import read_log
from crawlkit.testing.outcome import dump
from crawlkit.testing.server import SiteServer
from tests.processes import environment

PAGES = 600


SEED = 20
LINKS_PER_PAGE = 6
FEATURES = Features(redirects=36, chain=12, canonicals=30, missing=20, errors=3, outside=10, nofollow=20, unreachable=5)
"""Everything in it; chains of twelve redirects, so that two of each do not arrive."""


@dataclass(frozen=True, slots=True)
class Served:
    """The graph, where a process of its own serves it, and the log of that."""

    graph: Graph
    log: Path

    def requests(self) -> int:
        return len(read_log(self.log))


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    log = tmp_path_factory.mktemp("served") / "log"
    options = {"pages": PAGES, "seed": SEED, "links-per-page": LINKS_PER_PAGE, "log": log, **asdict(FEATURES)}
    arguments = [text for name, value in options.items() for text in (f"--{name}", str(value))]
    server = [sys.executable, "-m", "crawlkit.testing.server", *arguments]
    with subprocess.Popen(server, env=environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        graph = make_graph(PAGES, SEED, links_per_page=LINKS_PER_PAGE, features=FEATURES)
        yield Served(graph.at(url), log)
        process.terminate()


def crawl(graph: Graph, directory: Path, **values: Any) -> Outcome:
    config = Config(**{"delay": 0, "host_concurrency": 64, "retries": 0, **values})
    with asyncio.Runner(debug=False) as runner:  # which would double the time
        return runner.run(asyncio.wait_for(begin(graph.seeds, directory, config, Hooks(), Surroundings()), 100))


def found(directory: Path) -> tuple[dict[str, tuple[Kind, int | None, int, int, int]], dict[str, tuple[str, ...]], bytes]:
    """Return what the crawl found of each URL, its links, and the dump of all."""
    with CrawlState.open(directory) as state:
        records = list(state.pages.walk())
    answers = {record.url: (record.kind, record.status, record.depth, record.hops, record.sources) for record in records}
    return answers, {record.url: record.links for record in records}, dump(records)


def expected(graph: Graph, max_depth: int | None = None) -> dict[str, tuple[Kind, int | None, int, int, int]]:
    answers = graph.answers(max_depth=max_depth)
    return {url: (answer.kind, answer.status, answer.depth, answer.hops, answer.sources) for url, answer in answers.items()}


def test_one_eight_and_forty_eight_workers_find_what_the_oracle_says_and_the_same_bytes(served: Served, tmp_path: Path) -> None:
    dumps = set()
    for workers in (1, 8, 48):
        asked = served.requests()
        outcome = crawl(served.graph, tmp_path / str(workers), workers=workers)
        assert outcome.how is Ending.FINISHED

        answers, links, dumped = found(tmp_path / str(workers))
        assert answers == expected(served.graph)
        assert links == {url: served.graph.links(url) for url in answers}
        assert served.requests() - asked == len(answers) + 1  # each once, and robots.txt
        dumps.add(dumped)

    assert len(dumps) == 1
    assert {answer[0] for answer in answers.values()} == {Kind.PAGE, Kind.REDIRECT, Kind.FAILURE}


@pytest.mark.parametrize("max_depth", [0, 2])
def test_max_depth_is_exact(served: Served, tmp_path: Path, max_depth: int) -> None:
    crawl(served.graph, tmp_path / "crawl", workers=16, max_depth=max_depth)

    answers, _, _ = found(tmp_path / "crawl")
    assert answers == expected(served.graph, max_depth)
    assert len(answers) < PAGES / 2


@pytest.mark.parametrize("workers", [1, 16])
def test_max_pages_is_exact(served: Served, tmp_path: Path, workers: int) -> None:
    outcome = crawl(served.graph, tmp_path / "crawl", workers=workers, max_pages=37)

    assert outcome.how is Ending.LIMIT_PAGES
    answers, _, _ = found(tmp_path / "crawl")
    assert sum(kind is Kind.PAGE for kind, *_ in answers.values()) == outcome.counters.pages == 37


def test_several_hosts_are_crawled_side_by_side(tmp_path: Path) -> None:
    graph = make_graph(120, 3, hosts=4, features=Features(redirects=8, chain=2, missing=5))
    with SiteServer(graph.site()) as server:
        resolve = (f"*.test=127.0.0.1:{server.port}",)
        outcome = crawl(graph, tmp_path / "crawl", host_concurrency=4, resolve=resolve)

        assert max(server.log.in_flight_max.values()) <= 4
    assert outcome.counters.hosts == 4
    assert found(tmp_path / "crawl")[0] == expected(graph)
