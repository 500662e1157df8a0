"""`run --partitions` and `resume` of a crawl in partitions: from options to a driver."""

import sys
from collections.abc import Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from crawlkit.clock import SystemClock
from crawlkit.cluster.driver import Engine, Orderly, Watching
from crawlkit.cluster.founding import found_crawl
from crawlkit.cluster.messages import Standing
from crawlkit.cluster.processes import Processes
from crawlkit.cluster.running import drive
from crawlkit.config import Config
from crawlkit.engine.session import Hooks, Outcome, read_seeds
from crawlkit.errors import UsageError
from crawlkit.model import Reason
from crawlkit.state.counters import Counters, summed
from crawlkit.surfaces.log import Verbosity
from crawlkit.surfaces.partition_options import read_partitions
from crawlkit.surfaces.progress import Progress

Session = Callable[[Hooks, Progress], Coroutine[Any, Any, Outcome]]

_NOT_WITH_PARTITIONS = {"ui": "--ui", "metrics": "--metrics", "otel": "--otel"}


def check_together(params: Mapping[str, Any]) -> None:
    """UsageError for an option that a crawl in partitions does not know."""
    for name, option in _NOT_WITH_PARTITIONS.items():
        if params.get(name):
            raise UsageError(f"{option} cannot go with --partitions: ask the crawl by crawlkit status DIR --watch")


def run_session(seeds: Sequence[str], directory: Path, config: Config, partitions: int, params: Mapping[str, Any]) -> Session:
    """Return the run of a new crawl in partitions."""
    check_together(params)
    if params.get("since") is not None:
        raise UsageError("--since cannot go with --partitions")
    engine = _engine(params)

    async def session(hooks: Hooks, progress: Progress) -> Outcome:
        await found_crawl(read_seeds(seeds), directory, config, partitions, SystemClock())
        return await drive(directory, engine, _watching(hooks, progress), Orderly(options=_options(params)))

    return session


def resume_session(
    directory: Path, changes: Mapping[str, object], retry: frozenset[Reason], params: Mapping[str, Any]
) -> Session:
    """Return the run that goes on with a crawl in partitions."""
    check_together(params)
    engine = _engine(params)
    partitions = read_partitions(params["partitions"])

    async def session(hooks: Hooks, progress: Progress) -> Outcome:
        orderly = Orderly(changes, tuple(map(str, sorted(retry))), _options(params), partitions)
        return await drive(directory, engine, _watching(hooks, progress), orderly)

    return session


def _engine(params: Mapping[str, Any]) -> Engine:
    if params.get("engine") == "ray":
        raise UsageError("--engine ray needs Ray, which is not installed: pip install crawlkit[ray]")
    if params.get("ray_address") is not None:
        raise UsageError("--ray-address goes with --engine ray")
    return Processes([sys.executable, "-m", "crawlkit.surfaces.partition"])


def _options(params: Mapping[str, Any]) -> dict[str, Any]:
    verbosity = Verbosity.QUIET if params["quiet"] else min(Verbosity.NORMAL + params["verbose"], Verbosity.ALL)
    return {"verbosity": int(verbosity), "log_format": params["log_format"]}


def _watching(hooks: Hooks, progress: Progress) -> Watching:
    def show(standings: Mapping[int, Standing]) -> None:
        if standings:
            counters = [msgspec.msgpack.decode(each.counters, type=Counters) for each in standings.values()]
            progress.show_counts(summed(counters), sum(each.in_flight for each in standings.values()))

    return Watching(on_turn=show, on_warning=hooks.on_warning, around=hooks.around)
