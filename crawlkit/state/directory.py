"""The crawl directory: which files it has, who holds it, and whether it holds a crawl.

CRAWL        format version and crawl id; written last when a crawl is made: without it nothing is opened
CHECKPOINT   what the last batch held, in short (`state.checkpoint`)
config.toml  a readable copy of the settings, which the database holds
LOCK         flock decides who owns the crawl; its text (pid) only informs
db/          LevelDB
seen.bloom   the Bloom filter's bits
"""

import fcntl
import os
import shutil
from pathlib import Path
from typing import BinaryIO, Self

import msgspec

from crawlkit.config import VERSION
from crawlkit.durable import TEMPORARY_SUFFIX, replace_file, sync_directory
from crawlkit.errors import StateDamaged, StateError, StateExists, StateLocked, StateVersion

FORMAT = 1

CRAWL = "CRAWL"
CHECKPOINT = "CHECKPOINT"
CONFIG = "config.toml"
LOCK = "LOCK"
DATABASE = "db"
BLOOM = "seen.bloom"
OURS = frozenset({CRAWL, CHECKPOINT, CONFIG, LOCK, DATABASE, BLOOM})
_LEFTOVERS = frozenset(name + TEMPORARY_SUFFIX for name in OURS)


class Manifest(msgspec.Struct, frozen=True):
    """The content of `CRAWL`."""

    format: int
    crawl_id: str
    made_by: str = f"crawlkit {VERSION}"


class DirectoryLock:
    """The one owner of a crawl directory, by flock: released by the kernel however the process ends."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / LOCK
        try:
            self._file: BinaryIO = self._path.open("a+b")
        except OSError as error:
            raise StateError(f"cannot open {self._path}: {error.strerror}") from error
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            owner = holder(directory)
            self._file.close()
            raise StateLocked(f"{directory} is in use by another crawlkit{f' (pid {owner})' if owner else ''}") from error
        self._file.truncate(0)
        self._file.write(f"{os.getpid()}\n".encode())
        self._file.flush()

    def release(self) -> None:
        """Let go; the file stays."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


def holder(directory: Path) -> int | None:
    """Return the pid that the lock file names, None if it names none."""
    try:
        return int((directory / LOCK).read_text().split()[0])
    except (OSError, ValueError, IndexError):
        return None


def is_held(directory: Path) -> bool:
    """Whether a process holds the crawl directory now."""
    try:
        with (directory / LOCK).open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def prepare(directory: Path) -> DirectoryLock:
    """Make `directory` ready for a new crawl and lock it.

    What an interrupted attempt left is removed, if all of it is ours. StateExists if there is a crawl, StateError if there
    is something else, StateLocked if it is in use.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
        entries = {entry.name for entry in directory.iterdir()}
    except FileExistsError as error:
        raise StateError(f"{directory} exists and is not a directory") from error
    except OSError as error:
        raise StateError(f"cannot make the crawl directory {directory}: {error.strerror}") from error
    if CRAWL in entries:
        raise StateExists(f"{directory} already holds a crawl; go on with it: crawlkit resume {directory}")
    foreign = sorted(name for name in entries if name not in OURS | _LEFTOVERS)
    if foreign:
        raise StateError(f"{directory} is not empty and not a crawl (it holds {foreign[0]}); choose another with --dir")
    lock = DirectoryLock(directory)
    try:
        _clear(directory)
    except BaseException:
        lock.release()
        raise
    return lock


def _clear(directory: Path) -> None:
    for entry in directory.iterdir():
        if entry.name == LOCK:
            continue
        if entry.is_dir():
            shutil.rmtree(entry)
        else:
            entry.unlink()


def is_begun(directory: Path) -> bool:
    """Whether a crawl was made here, so that it is resumed and not run."""
    return (directory / CRAWL).exists()


def seal(directory: Path, crawl_id: str) -> None:
    """Write `CRAWL`: from now on the directory is a crawl."""
    replace_file(directory / CRAWL, msgspec.json.encode(Manifest(FORMAT, crawl_id)) + b"\n")
    sync_directory(directory.parent)


def read_manifest(directory: Path) -> Manifest:
    """Return what `CRAWL` says; StateError, StateDamaged or StateVersion with the way out if it is none of this version."""
    path = directory / CRAWL
    if not directory.is_dir():
        raise StateError(f"there is no crawl directory {directory}; start one: crawlkit run SEED --dir {directory}")
    try:
        data = path.read_bytes()
    except FileNotFoundError as error:
        raise StateError(
            f"{directory} holds no crawl that was begun (no {CRAWL} file); start it: crawlkit run SEED --dir {directory}"
        ) from error
    except OSError as error:
        raise StateError(f"cannot read {path}: {error.strerror}") from error
    try:
        manifest = msgspec.json.decode(data, type=Manifest)
    except msgspec.DecodeError as error:
        raise StateDamaged(f"{path} is damaged: {error}") from error
    if manifest.format != FORMAT:
        raise StateVersion(
            f"{directory} has format {manifest.format}, made by {manifest.made_by}; "
            f"this is crawlkit {VERSION}, which reads format {FORMAT}: use the version that made it, or a newer one"
        )
    return manifest
