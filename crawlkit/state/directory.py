"""The crawl directory: who holds it, and whether it holds a crawl."""

import errno
import fcntl
import os
import shutil
import time
import uuid
from pathlib import Path
from typing import BinaryIO, Self

import msgspec

from crawlkit.config import VERSION
from crawlkit.durable import TEMPORARY_SUFFIX, replace_file, sync_directory
from crawlkit.errors import StateDamaged, StateError, StateExists, StateLocked, StateVersion, StorageError
from crawlkit.shell import as_argument
from crawlkit.state import keys
from crawlkit.state.checkpoint import read_summary
from crawlkit.state.damage import damaged
from crawlkit.state.layout import ARCHIVE, CHECKPOINT, CRAWL, DATABASE, LOCK, MEMBERS, OURS
from crawlkit.state.store import Store

FORMAT = 1
PARTITIONED_FORMAT = 101
"""Of a crawl in partitions: a series of its own, as the two are changed apart."""

_LEFTOVERS = frozenset(name + TEMPORARY_SUFFIX for name in OURS)
_CLAIMS = 100
_NOT_OURS = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})
_STORAGE_ERRORS = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})


class Manifest(msgspec.Struct, frozen=True):
    """The content of `CRAWL`."""

    format: int
    crawl_id: str
    made_by: str = f"crawlkit {VERSION}"


def new_crawl_id() -> str:
    """Return an id that no other crawl has."""
    return uuid.uuid4().hex


class DirectoryLock:
    """The one owner of a crawl directory, by flock: released by the kernel however the process ends."""

    def __init__(self, directory: Path) -> None:
        """Take the lock. StateLocked, naming the pid that has it; StateError or StorageError if the file cannot be written."""
        path = directory / LOCK
        try:
            self._file: BinaryIO = path.open("a+b", buffering=0)
        except OSError as error:
            needed = "; a crawl is opened where it can be written: copy it to such a place" if error.errno in _NOT_OURS else ""
            raise _refused(f"cannot open {path}", error, needed) from error
        try:
            if not _claim(self._file):
                owner = holder(directory)
                raise StateLocked(
                    f"{directory} is in use by another crawlkit{f' (pid {owner})' if owner else ''}; "
                    "wait for it to end, or stop it"
                )
            self._file.truncate(0)
            self._file.write(f"{os.getpid()}\n".encode())
        except OSError as error:
            self._file.close()
            raise _refused(f"cannot write {path}", error) from error
        except StateLocked:
            self._file.close()
            raise

    def release(self) -> None:
        """Let go; the file stays."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


def _claim(file: BinaryIO) -> bool:
    """Take the lock; False if another owner has it. Who only looks (`is_held`) shares it, for some microseconds."""
    for _ in range(_CLAIMS):
        if _try_lock(file, fcntl.LOCK_EX):
            return True
        if not _try_lock(file, fcntl.LOCK_SH):
            return False
        time.sleep(0.001)
    return False


def _try_lock(file: BinaryIO, kind: int) -> bool:
    try:
        fcntl.flock(file, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


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
            return not _try_lock(file, fcntl.LOCK_SH)
    except OSError:
        return False


def prepare(directory: Path) -> DirectoryLock:
    """Make `directory` ready for a new crawl and lock it.

    What an interrupted attempt left is removed, if all of it is ours and it made no request. StateExists if there is a crawl,
    StateDamaged if there is one that lost its `CRAWL`, StateError if there is something else, StateLocked if it is in use.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
        _refuse_what_is_there(directory)
    except FileExistsError as error:
        raise StateError(f"{directory} exists and is not a directory; choose another with --dir") from error
    except OSError as error:
        raise _refused(f"cannot make the crawl directory {directory}", error) from error
    lock = DirectoryLock(directory)
    try:
        _refuse_what_is_there(directory)  # again: before we had the lock another one may have made a crawl here
        _refuse_lost_manifest(directory)
        _refuse_records(directory)
        _clear(directory)
    except OSError as error:
        lock.release()
        raise _refused(f"cannot clear the crawl directory {directory}", error) from error
    except BaseException:
        lock.release()
        raise
    return lock


def _refuse_what_is_there(directory: Path) -> None:
    """Raise StateExists for a crawl, StateError for what is not ours."""
    entries = {entry.name for entry in directory.iterdir()}
    if CRAWL in entries:
        raise StateExists(f"{directory} already holds a crawl; go on with it: crawlkit resume {as_argument(directory)}")
    foreign = sorted(entries - OURS - _LEFTOVERS)
    if foreign:
        raise StateError(f"{directory} is not empty and not a crawl (it holds {foreign[0]}); choose another with --dir")


def _refuse_lost_manifest(directory: Path) -> None:
    """Raise StateDamaged if a `CHECKPOINT` knows of requests: `CRAWL`, which is written before the first one, was lost."""
    for checkpoint in (directory / CHECKPOINT, *directory.glob(f"{MEMBERS}/*/{CHECKPOINT}")):
        if checkpoint.exists():
            counters = read_summary(checkpoint.parent).counters
            if counters.requests or counters.records:
                raise _lost_manifest(directory)


def _refuse_records(directory: Path) -> None:
    """Raise StateDamaged if the database holds records, or data that cannot be opened, or if there is an archive."""
    archive = directory / ARCHIVE
    if archive.is_dir() and any(archive.iterdir()):
        raise _lost_manifest(directory)
    database = directory / DATABASE
    if (database / "CURRENT").exists():
        try:
            with Store(database, create=False) as store:
                records = next(store.walk(keys.PAGE, keys.after(keys.PAGE)), None) is not None
        except StateDamaged:
            # A power cut in the making leaves it so, before its first batch is synced: then it has no table yet.
            if any(database.glob("*.ldb")):
                raise
            records = False
        if records:
            raise _lost_manifest(directory)
    elif any(path.stat().st_size for path in [*database.glob("*.ldb"), *database.glob("*.log")]):
        raise damaged(f"the database in {database} has data, but its CURRENT is missing", directory)


def _lost_manifest(directory: Path) -> StateDamaged:
    what = f"{directory} holds a crawl that made requests, but its {CRAWL} file is missing: restore it from a copy"
    return damaged(what, directory)


def _refused(what: str, error: OSError, way_out: str = "") -> StateError | StorageError:
    """Return the refusal for a system call that failed: a full or broken disk is resumable, the rest is not ours to mend."""
    kind = StorageError if error.errno in _STORAGE_ERRORS else StateError
    return kind(f"{what}: {error.strerror}{way_out}")


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
    try:
        return (directory / CRAWL).exists()
    except OSError:  # no way in, a name that is too long: nothing can be resumed there
        return False


def seal(directory: Path, crawl_id: str) -> None:
    """Write `CRAWL`: from now on the directory is a crawl."""
    replace_file(directory / CRAWL, msgspec.json.encode(Manifest(FORMAT, crawl_id)) + b"\n")
    sync_directory(directory.parent)


def read_manifest(directory: Path, format_: int = FORMAT) -> Manifest:
    """Return what `CRAWL` says; StateError, StateDamaged or StateVersion with the way out if it is none of this version.

    One in partitions has a format of its own: who reads one kind refuses the other.
    """
    path = directory / CRAWL
    try:
        data = path.read_bytes()
    except NotADirectoryError as error:
        raise StateError(f"{directory} is no crawl directory: it is a file, or lies in one") from error
    except FileNotFoundError as error:
        start = f"crawlkit run SEED --dir {as_argument(directory)}"
        if not directory.is_dir():
            raise StateError(f"there is no crawl directory {directory}; start one: {start}") from error
        _refuse_lost_manifest(directory)
        raise StateError(f"{directory} holds no crawl that was begun (no {CRAWL} file); start it: {start}") from error
    except OSError as error:
        raise _refused(f"cannot read {path}", error) from error
    try:
        manifest = msgspec.json.decode(data, type=Manifest)
    except msgspec.DecodeError as error:
        raise damaged(f"{path} is damaged: {error}", directory) from error
    if manifest.format == format_:
        return manifest
    if manifest.format in (FORMAT, PARTITIONED_FORMAT):
        whole = "is one crawl, not one in partitions" if manifest.format == FORMAT else "is a crawl in partitions"
        raise StateError(f"{directory} {whole}: this cannot be done with it")
    if manifest.made_by == Manifest.__struct_defaults__[-1]:
        raise damaged(f"{path} names a format that this version never wrote", directory)
    raise StateVersion(
        f"{directory} has format {manifest.format}, made by {manifest.made_by}; "
        f"this is crawlkit {VERSION}, which reads format {FORMAT}: use the version that made it, or a newer one"
    )
