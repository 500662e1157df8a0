"""Bringing partitions home: from the machines of a Ray cluster into the crawl's directory on this one.

A partition is copied whole beside its place, synced, renamed into it, recorded in `PLACES`, and only then removed where it was.
So whatever ends this, each partition is whole in one place or, alike, in two.
"""

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple

from crawlkit.cluster.on_ray.engine import RayEngine
from crawlkit.durable import sync_directory
from crawlkit.errors import StateError, StorageError
from crawlkit.state import directory as files
from crawlkit.state import layout
from crawlkit.state.partitions import member_directory, read_table

PIECE_BYTES = 8 * 1024 * 1024
"""What is sent at once: it passes through the memory of both machines."""

_LEFT_OUT = frozenset({layout.LOCK, layout.CONTROL, layout.BLOOM, layout.SEARCH})
"""Caches, and what only a running crawl has."""


class Item(NamedTuple):
    """A file of a partition, seen from its directory."""

    name: str
    size_bytes: int


async def gather(directory: Path, engine: RayEngine, say: Callable[[str], object]) -> None:
    """Bring every partition that lies elsewhere here. StateError and its kinds, StorageError if there is no room."""
    with files.DirectoryLock(directory):
        await engine.find(directory, read_table(directory))
        for number, machine in engine.elsewhere():
            items = await engine.at(number, _items)
            await _copy(directory, number, items, engine)
            engine.is_here(number)
            await engine.call(machine, partial(_remove, engine.member(number)))
            say(f"partition {number} is here: {sum(item.size_bytes for item in items)} bytes from {machine}")


async def _copy(directory: Path, number: int, items: list[Item], engine: RayEngine) -> None:
    member = member_directory(directory, number)
    coming = member.with_suffix(".coming")
    try:
        if coming.exists():
            shutil.rmtree(coming)
        coming.mkdir(parents=True)
        for item in items:
            path = coming / item.name
            path.parent.mkdir(exist_ok=True)
            with path.open("wb") as file:
                for offset in range(0, item.size_bytes, PIECE_BYTES):
                    file.write(await engine.at(number, partial(_piece, item.name, offset)))
                file.flush()
                os.fsync(file.fileno())
        for folder in {coming, *(path.parent for path in map(coming.joinpath, (item.name for item in items)))}:
            sync_directory(folder)
        coming.rename(member)
        sync_directory(member.parent)
    except OSError as error:
        raise StorageError(f"cannot write {coming}: {error.strerror or error}") from error


def _items(member: Path) -> list[Item]:
    """Return the files of a partition that does not run. Called where it lies."""
    if files.is_held(member):
        raise StateError(f"{member} is in use by another crawlkit; wait for it to end, or stop it")
    return sorted(_walk(member))


def _walk(member: Path) -> Iterator[Item]:
    for path in member.rglob("*"):
        name = str(path.relative_to(member))
        if path.is_file() and name not in _LEFT_OUT:
            yield Item(name, path.stat().st_size)


def _piece(name: str, offset: int, member: Path) -> bytes:
    with (member / name).open("rb") as file:
        file.seek(offset)
        return file.read(PIECE_BYTES)


def _remove(member: Path) -> None:
    """Remove a partition that has gone elsewhere. What makes it a crawl goes first, so that a half of it is none."""
    with suppress(FileNotFoundError):
        (member / layout.CRAWL).unlink()
        sync_directory(member)
        shutil.rmtree(member)
