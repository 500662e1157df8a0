"""The machines of a Ray cluster, and which partition lies on which.

A machine goes by its name as a node of Ray, which is its address unless `ray start --node-name` says otherwise; the id that Ray
gives it is another one after each start. Where a partition lies is found by looking for it. What `PLACES` says decides between
machines that share a disk, and names the one that is missing.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import msgspec

from crawlkit.config import VERSION
from crawlkit.durable import replace_file
from crawlkit.errors import CrawlError, StateError
from crawlkit.shell import as_argument
from crawlkit.state import directory as files
from crawlkit.state import layout
from crawlkit.state.checkpoint import read_summary
from crawlkit.state.partitions import Table, member_directory


class Machine(NamedTuple):
    """A machine that is there now: its name, the ids of Ray's nodes on it, and how many cores they offer."""

    name: str
    nodes: tuple[str, ...]
    cores: float


class Mark(NamedTuple):
    """What tells the driver's disk from a machine's own: its lock file was written just now."""

    inode: int
    written_ns: int


class Stock(NamedTuple):
    """What a machine has of a crawl: by partition its crawl id and its last batch; whether that is on the driver's disk."""

    version: str
    is_ours: bool
    found: Mapping[int, tuple[str, int]]


class Record(msgspec.Struct, frozen=True):
    """The content of `PLACES`: the name of the machine of each partition."""

    machines: list[str]


def machines_of(ray: ModuleType) -> dict[str, Machine]:
    """Return the machines that are in the cluster now, by name."""
    machines: dict[str, Machine] = {}
    for node in sorted(ray.nodes(), key=lambda node: str(node["NodeID"])):
        if node["Alive"]:
            name = node.get("NodeName") or node["NodeManagerAddress"]
            known = machines.get(name, Machine(name, (), 0.0))
            cores = known.cores + float(node["Resources"].get("CPU", 0.0))
            machines[name] = Machine(name, (*known.nodes, str(node["NodeID"])), cores)
    return machines


def mark_of(directory: Path) -> Mark | None:
    """Return the mark of a crawl directory that is locked, None if there is none."""
    try:
        stat = (directory / layout.LOCK).stat()
    except OSError:
        return None
    return Mark(stat.st_ino, stat.st_mtime_ns)


def take_stock(directory: Path, partitions: int, mark: Mark | None) -> Stock:
    """Return what this machine has of the crawl in `directory`. Called on each machine."""
    found: dict[int, tuple[str, int]] = {}
    for number in range(partitions):
        member = member_directory(directory, number)
        if (member / layout.CRAWL).exists():
            found[number] = (files.read_manifest(member).crawl_id, read_summary(member).batch)
    return Stock(VERSION, mark is not None and mark_of(directory) == mark, found)


def make_ready(directory: Path) -> None:
    """Make room for partitions of a new crawl on a machine of their own; StateExists and its kinds if there is something."""
    files.prepare(directory).release()


def check_versions(stocks: Mapping[str, Stock]) -> None:
    """StateError if a machine runs another version of crawlkit."""
    for name, stock in sorted(stocks.items()):
        if stock.version != VERSION:
            raise StateError(
                f"machine {name} of the Ray cluster has crawlkit {stock.version}, this one {VERSION}: install the same"
            )


def spread(machines: Iterable[Machine], partitions: int) -> list[str]:
    """Return a machine's name for each partition, so many on each as its cores are worth."""
    able = sorted(machine for machine in machines if machine.cores) or sorted(machines)
    given = dict.fromkeys((machine.name for machine in able), 0)
    chosen: list[str] = []
    for _ in range(partitions):
        least = min(able, key=lambda machine: ((given[machine.name] + 1) / (machine.cores or 1), machine.name))
        given[least.name] += 1
        chosen.append(least.name)
    return chosen


def locate(directory: Path, table: Table, stocks: Mapping[str, Stock]) -> list[str]:
    """Return the name of the machine on which each partition lies; StateError, naming one, if it is missing or in doubt."""
    recorded = read_places(directory)
    return [
        _locate(directory, number, crawl_id, stocks, recorded[number] if number < len(recorded) else None)
        for number, crawl_id in enumerate(table.members)
    ]


def _locate(directory: Path, number: int, crawl_id: str, stocks: Mapping[str, Stock], recorded: str | None) -> str:
    batches = {name: stock.found[number] for name, stock in sorted(stocks.items()) if number in stock.found}
    places = [name for name, (found, _) in batches.items() if found == crawl_id]
    if not places:
        if batches:
            name = next(iter(batches))
            raise StateError(f"{member_directory(directory, number)} on {name} is of another crawl than {directory}")
        raise StateError(
            f"partition {number} of {directory} is on no machine of the Ray cluster"
            f"{'' if recorded is None else f'; it was on {recorded}'}: start Ray there, or restore it from a copy, then: "
            f"crawlkit resume {as_argument(directory)}"
        )
    if len({batches[name] for name in places}) > 1:
        raise StateError(
            f"partition {number} of {directory} is on {' and '.join(places)}, and they differ: move one out of the way"
        )
    if recorded in places:
        return recorded
    return next((name for name in places if stocks[name].is_ours), places[0])


def read_places(directory: Path) -> Sequence[str]:
    """Return what `PLACES` says, nothing if it cannot be read: what is there decides."""
    try:
        return msgspec.json.decode((directory / layout.PLACES).read_bytes(), type=Record).machines
    except (OSError, msgspec.DecodeError):
        return ()


def write_places(directory: Path, machines: Sequence[str]) -> None:
    """Replace `PLACES`; StorageError if that fails."""
    if list(read_places(directory)) != list(machines):
        replace_file(directory / layout.PLACES, msgspec.json.encode(Record(list(machines))) + b"\n")


def gone(directory: Path, number: int, name: str) -> CrawlError:
    """Return the error for a partition whose machine has left the cluster."""
    return StateError(
        f"partition {number} of {directory} is on {name}, which is not in the Ray cluster any more: start Ray there, then: "
        f"crawlkit resume {as_argument(directory)}"
    )
