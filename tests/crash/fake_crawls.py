"""Small crawls of a fake web on disk, as tests of damage want them: finished, stopped, killed; and their reports."""

import asyncio
import io
from collections.abc import Callable
from pathlib import Path

from crawlkit.config import Config
from crawlkit.engine.coordinator import Coordinator
from crawlkit.engine.session import Hooks, Outcome, Surroundings, begin, go_on
from crawlkit.state.reading import open_crawl_for_reading
from crawlkit.surfaces.report import ReportFormat, ReportOptions, write_report
from crawlkit.testing.fakeweb import FakeWeb
from crawlkit.testing.graph import Features, Graph, make_graph

FEATURES = Features(redirects=8, chain=2, canonicals=4, missing=3, outside=3, nofollow=4, unreachable=3)
GRAPH = make_graph(80, 7, hosts=3, links_per_page=6, features=FEATURES)
CONFIG = Config(delay=0.0, checkpoint_interval=0.01, workers=4)


class Killed(Exception):
    """Ends a run without a last checkpoint, as SIGKILL does."""


def _nothing(_: Coordinator) -> None:
    pass


def crawl(
    directory: Path, on_turn: Callable[[Coordinator], object] = _nothing, *, graph: Graph = GRAPH, config: Config = CONFIG
) -> Outcome:
    """Begin a crawl of `graph` in `directory`."""
    return asyncio.run(begin(graph.seeds, directory, config, Hooks(on_turn=on_turn), _surroundings(graph)))


def resume(directory: Path, on_turn: Callable[[Coordinator], object] = _nothing, *, graph: Graph = GRAPH) -> Outcome:
    """Go on with the crawl in `directory`."""
    return asyncio.run(go_on(directory, {}, Hooks(on_turn=on_turn), _surroundings(graph)))


def _surroundings(graph: Graph) -> Surroundings:
    return Surroundings(FakeWeb(graph.site(delay_s=0.002), sleep=asyncio.sleep))


def kill(directory: Path, records: int, start: Callable[..., Outcome]) -> None:
    """Run `start` (`crawl` or `resume`) until so many URLs have settled, then kill it."""

    def kill_it(coordinator: Coordinator) -> None:
        if coordinator.state.counters.records >= records:
            raise Killed

    try:
        start(directory, kill_it)
    except Killed:
        return
    raise AssertionError("the crawl was over before it could be killed")


def dump(directory: Path) -> bytes:
    """Return the report of the crawl in `directory`: one line a record, nothing that depends on time or order."""
    out = io.BytesIO()
    with open_crawl_for_reading(directory) as reader:
        write_report(reader.pages.walk_marked(), out, io.StringIO(), ReportOptions(ReportFormat.JSONL))
    return out.getvalue()
