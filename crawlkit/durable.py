"""Replacing files so that a crash leaves the old one or the new one, whole.

The order is that of LevelDB's `SetCurrentFile`: write a temporary file beside it, fsync, rename over it, fsync the
directory. A failed fsync is never tried again: what the disk then holds is unknown.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from crawlkit.errors import StorageError

TEMPORARY_SUFFIX = ".tmp"
"""What the temporary file adds to the name of the one it will replace. A kill leaves at most this one file behind."""


def replace_file(path: Path, data: bytes) -> None:
    """Make `data` the content of `path`, atomically and durably; StorageError says why it could not be."""
    with open_replacement(path) as file:
        file.write(data)


@contextmanager
def open_replacement(path: Path) -> Iterator[BinaryIO]:
    """Give a file to write to that takes the place of `path` when the block ends; if it raises, `path` stays as it was.

    A symbolic link is followed, so that it stays a link.

    Raises:
        StorageError: the file could not be written, is no regular file, or another process is replacing it; an OSError
            is its cause.
    """
    try:
        target = path.resolve()
        if target.exists() and not target.is_file():
            raise StorageError(f"cannot replace {path}: it is not a regular file")
        with _claim(target.with_name(target.name + TEMPORARY_SUFFIX)) as file:
            temporary = Path(file.name)
            try:
                yield file
                file.flush()
                _sync(file)
                _rename(temporary, target)
            except BaseException:
                temporary.unlink(missing_ok=True)
                raise
    except OSError as error:
        raise _storage_error(path, error) from error
    _sync_name(target)


def _sync(file: BinaryIO) -> None:
    os.fsync(file.fileno())


def _rename(temporary: Path, target: Path) -> None:
    temporary.replace(target)


def _sync_name(target: Path) -> None:
    sync_directory(target.parent)


def sync_directory(path: Path) -> None:
    """Make the names in directory `path` durable: a rename is not, until then. StorageError if that fails."""
    try:
        _sync_names(path)
    except OSError as error:
        raise _storage_error(path, error) from error


def _sync_names(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _claim(temporary: Path) -> BinaryIO:
    """Open the temporary file, empty, for this process alone; OSError if another has it.

    The name is fixed, so that kills leave no litter behind; the lock keeps two writers apart and dies with its process.
    """
    file = temporary.open("ab")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if not os.path.samestat(os.fstat(file.fileno()), temporary.stat()):
            raise BlockingIOError(None, "")  # the other one renamed or removed it between our two steps
        file.truncate(0)
    except BaseException:
        file.close()
        raise
    return file


def _storage_error(path: Path, error: OSError) -> StorageError:
    if isinstance(error, BlockingIOError):
        return StorageError(f"cannot write {path}: another process is writing it")
    return StorageError(f"cannot write {path}: {error.strerror or error}")
