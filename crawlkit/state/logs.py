"""LevelDB's logs seen from outside: what it does not keep durable by itself, and what it takes for the end of a log.

The logs are the files that grow by appending: `*.log` holds the last batches, `MANIFEST-*` which tables make up the database.
`CHECKPOINT` keeps their sizes, because LevelDB reads a log that was cut, or has a hole of zeros, as one that ended there: rows
are gone without an error (a MANIFEST cut so even has it delete the tables that were named behind the cut).

The format of a log (LevelDB, doc/log_format.md): blocks of 32 KiB, in them records with a head of 7 bytes: checksum (4),
length (2, little-endian), type (1). What is left of a block and is too short for a head is zero.
"""

import mmap
import os
import struct
from collections.abc import Mapping
from pathlib import Path

from crawlkit.durable import sync_directory
from crawlkit.errors import StorageError
from crawlkit.state.layout import DATABASE, TORN

_BLOCK_BYTES = 32 * 1024
_HEAD = struct.Struct("<4xHB")


class Logs:
    """The logs of a database in use."""

    def __init__(self, directory: Path) -> None:
        self._database = directory / DATABASE
        self._synced: dict[str, int] = {}

    def sync(self) -> dict[str, int]:
        """Make durable what LevelDB leaves to chance, return the sizes of the logs by name; StorageError if that fails.

        A batch is synced, but not the name of the log that it began; a MANIFEST may have grown since it was synced.
        """
        sizes = _sizes(self._database)
        for name in sizes.keys() - self._synced.keys():
            if not name.endswith(".log"):
                continue
            sync_directory(self._database)
            break
        for name, size in sizes.items():
            if name.startswith("MANIFEST") and self._synced.get(name) != size:
                _sync_file(self._database / name)
        self._synced = sizes
        return sizes


def _sizes(database: Path) -> dict[str, int]:
    sizes = {}
    for path in sorted([*database.glob("*.log"), *database.glob("MANIFEST-*")]):
        try:
            sizes[path.name] = path.stat().st_size
        except FileNotFoundError:  # LevelDB's own thread has just removed a log that it needs no more
            continue
    return sizes


def _sync_file(path: Path) -> None:
    try:
        with path.open("rb") as file:
            os.fdatasync(file.fileno())
    except OSError as error:
        raise StorageError(f"cannot sync {path}: {error.strerror}; mend the disk, then resume") from error


def lost_bytes(directory: Path, sizes: Mapping[str, int]) -> str | None:
    """Return which log no longer holds, whole, what it held at the size given for it, and why; None if all do.

    A log that is not there any more proves nothing: LevelDB removes those that it has made a table of.
    """
    for name, size in sizes.items():
        path = directory / DATABASE / name
        try:
            now = path.stat().st_size
        except FileNotFoundError:
            continue
        if now < size:
            return f"{path} has {now} bytes left of {size}"
        if not _is_whole(path, size):
            return f"{path} has a hole or a wrong record in its first {size} bytes"
    return None


def _is_whole(path: Path, size: int) -> bool:
    """Whether records follow each other without a hole, the last ending at `size` (LevelDB looks at the checksums)."""
    if size == 0:
        return True
    at = 0
    with path.open("rb") as file, mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ) as log:
        while at < size:
            left = _BLOCK_BYTES - at % _BLOCK_BYTES
            if left < _HEAD.size:
                at += left
                continue
            if at + _HEAD.size > size:
                return False
            length, kind = _HEAD.unpack_from(log, at)
            if kind == 0 or _HEAD.size + length > left:
                return False
            at += _HEAD.size + length
    return at == size


def set_tails_aside(directory: Path, sizes: Mapping[str, int]) -> bool:
    """Cut the logs of batches back to `sizes`, keeping what is cut in `db.torn/`; return whether anything was cut.

    A log without a size is younger than they are: nothing of it was acknowledged. StorageError if it cannot be done.
    """
    names = sorted(path.name for path in (directory / DATABASE).glob("*.log"))
    cut = [_cut(directory, name, sizes.get(name, 0)) for name in names]
    return any(cut)


def set_manifest_tails_aside(directory: Path, sizes: Mapping[str, int]) -> bool:
    """Do the same for the MANIFEST: what was appended after a checkpoint, by LevelDB's own thread, may be torn too.

    Only where cutting the logs was not enough: what is whole behind `sizes` names tables whose logs LevelDB has removed.
    """
    cut = [_cut(directory, name, size) for name, size in sorted(sizes.items()) if name.startswith("MANIFEST")]
    return any(cut)


def _cut(directory: Path, name: str, size: int) -> bool:
    path = directory / DATABASE / name
    torn = directory / TORN
    try:
        if not path.exists() or path.stat().st_size <= size:
            return False
        torn.mkdir(exist_ok=True)
        with path.open("r+b") as log:
            log.seek(size)
            with (torn / f"{name}.from-{size}").open("wb") as tail:
                while chunk := log.read(1 << 20):
                    tail.write(chunk)
                tail.flush()
                os.fsync(tail.fileno())
            sync_directory(torn)
            log.truncate(size)
            os.fsync(log.fileno())
    except OSError as error:
        raise StorageError(f"cannot cut {path} back to {size} bytes: {error.strerror}; free space, then resume") from error
    return True
