"""Failpoints: a crawl that dies, or whose disk fails, at a named boundary of the commit protocol.

    CRAWLKIT_FAILPOINT=checkpoint.renamed:2=kill python -m crawlkit.testing.failpoints run URL -d DIR

runs crawlkit's command line with wrappers around the functions where the boundaries lie; the product itself knows nothing of
them. `kill` is SIGKILL at the boundary. `eio` and `enospc` make the next step that writes, syncs or names something fail so,
once: tried again it would succeed, so that an attempt is seen. Any such step after it, in the same thread, ends the process
with `WROTE_ON` (a checkpoint that is being written when the filter cannot grow may well be finished).
"""

import errno
import functools
import os
import runpy
import signal
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, StrEnum, auto
from pathlib import Path
from typing import Any, Self

from crawlkit import durable
from crawlkit.archive import files as archive_files
from crawlkit.archive.writer import Archive
from crawlkit.engine.coordinator import Coordinator
from crawlkit.net.fetch import Fetcher
from crawlkit.state import bloom, directory, store
from crawlkit.state.bloom import MappedBloom
from crawlkit.state.crawl import CrawlState
from crawlkit.state.directory import DirectoryLock
from crawlkit.state.layout import CHECKPOINT, CONFIG, CRAWL
from crawlkit.state.logs import Logs
from crawlkit.state.store import Batch, Store

VARIABLE = "CRAWLKIT_FAILPOINT"
WROTE_ON = 99


class Action(StrEnum):
    """What happens at a boundary."""

    KILL = "kill"
    EIO = "eio"
    ENOSPC = "enospc"


class Moment(Enum):
    """On which side of its function a boundary lies."""

    BEFORE = auto()
    AFTER = auto()


@dataclass(frozen=True, slots=True)
class Failpoint:
    """A boundary: before or after `function` of `owner` (a class or module), for `file` only if it has a name.

    `hits` is how often it is met at least, up to three, in a crawl of two seeds with a few checkpoints.
    """

    owner: object
    function: str
    moment: Moment
    hits: int = 3
    file: str | None = None


def _replacement(file: str, hits: int) -> dict[str, Failpoint]:
    """Return the boundaries in the replacing of a file."""
    return {
        "written": Failpoint(durable, "_sync", Moment.BEFORE, hits, file),
        "synced": Failpoint(durable, "_rename", Moment.BEFORE, hits, file),
        "renamed": Failpoint(durable, "_sync_name", Moment.BEFORE, hits, file),
        "directory_synced": Failpoint(durable, "_sync_name", Moment.AFTER, hits, file),
    }


POINTS: Mapping[str, Failpoint] = {
    "make.directory": Failpoint(DirectoryLock, "__init__", Moment.BEFORE, 1),
    "make.locked": Failpoint(directory, "prepare", Moment.AFTER, 1),
    "make.database": Failpoint(Store, "__init__", Moment.AFTER, 1),
    "make.bloom": Failpoint(MappedBloom, "mark_complete", Moment.BEFORE, 1),
    **{f"make.config_{step}": point for step, point in _replacement(CONFIG, 1).items()},
    "make.seed_listed": Failpoint(CrawlState, "add_seed", Moment.AFTER, 2),
    "make.seeds_admitted": Failpoint(Coordinator, "admit_seeds", Moment.AFTER, 1),
    **{f"make.crawl_{step}": point for step, point in _replacement(CRAWL, 1).items()},
    "make.sealed": Failpoint(CrawlState, "seal", Moment.AFTER, 1),
    "claim": Failpoint(Coordinator, "_start", Moment.AFTER),
    "send": Failpoint(Fetcher, "fetch", Moment.BEFORE),
    "answered": Failpoint(Coordinator, "settle", Moment.BEFORE),
    "settled": Failpoint(Coordinator, "settle", Moment.AFTER),
    "bloom.set": Failpoint(MappedBloom, "add", Moment.AFTER),
    "bloom.full": Failpoint(MappedBloom, "_grow", Moment.BEFORE),
    "bloom.grown": Failpoint(MappedBloom, "_grow", Moment.AFTER),
    "batch.frozen": Failpoint(CrawlState, "freeze", Moment.AFTER),
    "archive.cut": Failpoint(archive_files, "cut_back", Moment.AFTER, 1),
    "archive.begun": Failpoint(Archive, "append", Moment.BEFORE),
    "archive.file_made": Failpoint(archive_files, "create_file", Moment.AFTER),
    "archive.half_written": Failpoint(Archive, "_add", Moment.AFTER),
    "archive.written": Failpoint(archive_files, "sync_file", Moment.BEFORE),
    "archive.synced": Failpoint(archive_files, "sync_file", Moment.AFTER),
    "archive.extents_known": Failpoint(Batch, "add", Moment.AFTER),
    "batch.begun": Failpoint(Store, "write_changes", Moment.BEFORE),
    "batch.synced": Failpoint(Store, "write_changes", Moment.AFTER),
    "logs.synced": Failpoint(Logs, "sync", Moment.AFTER),
    **{f"checkpoint.{step}": point for step, point in _replacement(CHECKPOINT, 3).items()},
    "installed": Failpoint(CrawlState, "installed", Moment.AFTER),
    "end.frozen": Failpoint(Coordinator, "end", Moment.AFTER, 1),
}
"""Every failpoint by name, in the order of their first hits: a batch is met in the making first."""

_STEPS: Sequence[tuple[object, str]] = (
    (vars(store)["plyvel"], "DB"),
    (store, "_write_synced"),
    (bloom, "_reserve"),
    (durable, "_claim"),
    (durable, "_sync"),
    (durable, "_rename"),
    (durable, "_sync_names"),
    (archive_files, "create_file"),
    (archive_files, "write_bytes"),
    (archive_files, "sync_file"),
)
"""What an armed fault strikes: every step that writes, syncs or names something."""


@dataclass(frozen=True, slots=True)
class Order:
    """What is to happen, where, at which hit (counted from 1)."""

    point: str
    hit: int
    action: Action

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the order in `name:hit=action`; ValueError if it is none."""
        place, _, action = text.partition("=")
        point, _, hit = place.partition(":")
        if point not in POINTS or not hit.isdigit() or int(hit) < 1:
            raise ValueError(f"{VARIABLE}={text}: expected NAME:HIT=ACTION, NAME one of {', '.join(POINTS)}")
        return cls(point, int(hit), Action(action))

    def __str__(self) -> str:
        return f"{self.point}:{self.hit}={self.action}"


class _Fault:
    """Counts the hits; strikes once it is armed. Called from the loop's thread and the writer's."""

    def __init__(self, order: Order) -> None:
        self._order = order
        self._hits = 0
        self._armed = False
        self._struck_in: int | None = None
        self._lock = threading.Lock()

    def hit(self) -> None:
        with self._lock:
            self._hits += 1
            if self._hits != self._order.hit:
                return
            if self._order.action is Action.KILL:
                os.kill(os.getpid(), signal.SIGKILL)
            self._armed = True

    def step(self, name: str) -> None:
        with self._lock:
            if self._struck_in == threading.get_ident():
                os.write(2, f"failpoint {self._order}: {name} after the disk had failed\n".encode())
                os._exit(WROTE_ON)
            if self._armed:
                self._armed = False
                self._struck_in = threading.get_ident()
                number = errno.EIO if self._order.action is Action.EIO else errno.ENOSPC
                raise _disk_error(name, number)


def _disk_error(step: str, number: int) -> Exception:
    error = OSError(number, os.strerror(number))
    if step == "DB":  # as LevelDB tells it
        leveldb_error: Exception = vars(store)["plyvel"].IOError(f"IO error: {error.strerror}".encode())
        return leveldb_error
    return error


def install(order: Order) -> None:
    """Put the wrappers for one order into this process, for good. Before anything runs."""
    fault = _Fault(order)
    if order.action is not Action.KILL:
        for owner, name in _STEPS:
            _wrap(owner, name, before=functools.partial(_step, fault, name))
    point = POINTS[order.point]

    def hit(*args: Any) -> None:
        if point.file is None or point.file == _name_of(args[0]):
            fault.hit()

    if point.moment is Moment.BEFORE:
        _wrap(point.owner, point.function, before=hit)
    else:
        _wrap(point.owner, point.function, after=hit)


def _step(fault: _Fault, name: str, *_: object) -> None:
    fault.step(name)


def _name_of(file: Any) -> str:
    """Return the name of the file that is being replaced, of a path or an open file."""
    return Path(file.name).name.removesuffix(durable.TEMPORARY_SUFFIX)


def _nothing(*_: object) -> None:
    pass


def _wrap(owner: object, name: str, *, before: Callable[..., None] = _nothing, after: Callable[..., None] = _nothing) -> None:
    """Replace a function wherever crawlkit knows it: in its class or module, and where it was imported by name."""
    original = getattr(owner, name)

    def wrapper(*args: Any, **kwargs: Any) -> Any:
        before(*args)
        result = original(*args, **kwargs)
        after(*args)
        return result

    modules = [vars(module) for known, module in sys.modules.items() if known.split(".")[0] == "crawlkit"]
    for space in modules:
        for known in [known for known, value in space.items() if value is original]:
            space[known] = wrapper
    setattr(owner, name, wrapper)


def command_line(arguments: Sequence[str]) -> None:
    """Be `python -m crawlkit` with `arguments`; ends with SystemExit, as it does."""
    sys.argv = ["crawlkit", *arguments]
    runpy.run_module("crawlkit", run_name="__main__")


if __name__ == "__main__":
    if VARIABLE in os.environ:
        install(Order.parse(os.environ[VARIABLE]))
    command_line(sys.argv[1:])
