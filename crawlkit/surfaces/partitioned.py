"""`run --partitions` and `resume` of a crawl in partitions: from options to a driver."""

import os
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
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
from crawlkit.engine.credentials import environment_names
from crawlkit.engine.session import Hooks, Outcome, read_seeds
from crawlkit.errors import UsageError
from crawlkit.model import Reason
from crawlkit.state.counters import Counters, summed
from crawlkit.state.partitions import read_table
from crawlkit.surfaces.log import Verbosity
from crawlkit.surfaces.partition import hooks_of
from crawlkit.surfaces.partition_options import RAY, read_partitions
from crawlkit.surfaces.progress import Progress
from crawlkit.surfaces.speech import say

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
    check_engine(params)

    async def session(hooks: Hooks, progress: Progress) -> Outcome:
        async with engine_of(params, config) as engine:
            await found_crawl(read_seeds(seeds), directory, config, partitions, SystemClock(), engine)
            return await drive(directory, engine, _watching(hooks, progress), Orderly(options=_options(params)))

    return session


def resume_session(
    directory: Path, changes: Mapping[str, object], retry: frozenset[Reason], params: Mapping[str, Any]
) -> Session:
    """Return the run that goes on with a crawl in partitions."""
    check_together(params)
    check_engine(params)
    partitions = read_partitions(params["partitions"])

    async def session(hooks: Hooks, progress: Progress) -> Outcome:
        orderly = Orderly(changes, tuple(map(str, sorted(retry))), _options(params), partitions)
        config = Config.from_values(read_table(directory).settings)
        async with engine_of(params, config) as engine:
            return await drive(directory, engine, _watching(hooks, progress), orderly)

    return session


def check_engine(params: Mapping[str, Any]) -> None:
    """UsageError for an engine that is not there, or an address that cannot be."""
    if params.get("engine") == RAY:
        from crawlkit.cluster.on_ray.connecting import check_address, check_installed  # noqa: PLC0415

        check_installed()
        check_address(params.get("ray_address"))
    elif params.get("ray_address") is not None:
        raise UsageError("--ray-address goes with --engine ray")


@asynccontextmanager
async def engine_of(params: Mapping[str, Any], config: Config) -> AsyncIterator[Engine]:
    """Give the engine that was asked for while the block runs."""
    if params.get("engine") != RAY:
        yield Processes([sys.executable, "-m", "crawlkit.surfaces.partition"])
        return
    from crawlkit.cluster.on_ray.connecting import connected  # noqa: PLC0415  (who does not ask for Ray does not wait for it)
    from crawlkit.cluster.on_ray.engine import RayEngine  # noqa: PLC0415

    environ = {name: os.environ[name] for name in environment_names(config) if name in os.environ}
    async with connected(params.get("ray_address")) as ray:
        yield RayEngine(ray, hooks_of, environ, _pass_on)


def _pass_on(text: str) -> None:
    """Write what a partition on Ray says on standard error, as one that is a process does by itself."""
    say(*text.splitlines())


def _options(params: Mapping[str, Any]) -> dict[str, Any]:
    verbosity = Verbosity.QUIET if params["quiet"] else min(Verbosity.NORMAL + params["verbose"], Verbosity.ALL)
    return {"verbosity": int(verbosity), "log_format": params["log_format"]}


def _watching(hooks: Hooks, progress: Progress) -> Watching:
    def show(standings: Mapping[int, Standing]) -> None:
        if standings:
            counters = [msgspec.msgpack.decode(each.counters, type=Counters) for each in standings.values()]
            progress.show_counts(summed(counters), sum(each.in_flight for each in standings.values()))

    return Watching(on_turn=show, on_warning=hooks.on_warning, around=hooks.around)
