"""LevelDB, and the overlay of what is not yet written.

Rule 1: only this file names plyvel. Rule 2: every write is a synced batch; there is no single put. Rule 3: no policy here.
Rule 4: after a failed write nothing more is written (whether a failed sync reached the disk is unknowable: fsync must not be
tried again, Rebello et al., ATC 2020).

`stage` changes the overlay only; `get` and `scan` see staged values. `freeze` takes what was staged as one `Batch`, whose
`write` may run on another thread while the next changes gather; `install` drops it from the overlay once it is on disk.
"""

import itertools
import os
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import plyvel

from crawlkit.errors import StateDamaged, StateError, StateLocked, StorageError
from crawlkit.state import keys
from crawlkit.state.damage import damaged

# Memory held by LevelDB: two memtables and the block cache. 16 MiB memtables keep level 0 from filling up (measured: with
# the default 4 MiB a batch of 4 KB records stalls for seconds); larger files keep the table cache from thrashing.
WRITE_BUFFER_BYTES = 16 * 1024 * 1024
BLOCK_CACHE_BYTES = 32 * 1024 * 1024
MAX_FILE_BYTES = 16 * 1024 * 1024

# I/O errors that are not the disk's: a file that is missing, is empty, or is named wrongly in CURRENT.
_SIGNS_OF_DAMAGE = ("No such file", "Not a directory", "Is a directory", "Invalid argument")
_TABLE = rb"(?m)^ (\d+):(\d+)\["  # number and size in a line of LevelDB's own listing


class _Generation:
    """Changes that are not on disk yet: value or None for a removal, and which keys lie in which scanned range."""

    __slots__ = ("buckets", "changes")

    def __init__(self) -> None:
        self.changes: dict[bytes, bytes | None] = {}
        self.buckets: defaultdict[bytes, set[bytes]] = defaultdict(set)

    def set(self, key: bytes, value: bytes | None) -> None:
        self.changes[key] = value
        bucket = keys.bucket_of(key)
        if bucket is not None:
            self.buckets[bucket].add(key)


class Batch:
    """All that was staged up to one `freeze`: written whole or not at all."""

    def __init__(self, store: "Store", changes: dict[bytes, bytes | None]) -> None:
        self._store = store
        self._changes = changes
        self._late: dict[bytes, bytes | None] = {}

    def __len__(self) -> int:
        return len(self._changes)

    def add(self, rows: Mapping[bytes, bytes]) -> None:
        """Add rows that are only known now, on the writing thread. No look-up sees them before they are on disk."""
        self._late.update(rows)

    def read(self, key: bytes) -> bytes | None:
        """Return a value as on disk, on the writing thread."""
        return self._store.read(key)

    def write(self) -> None:
        """Write and sync. StorageError if that fails, and for every batch after it."""
        self._store.write_changes(self._changes, self._late)


class Store:
    """One open database. Not for use by two threads at once, except `Batch`.

    Opening and reading raise StateLocked (in use), StorageError (the disk failed) or StateDamaged.
    """

    def __init__(self, path: Path, *, create: bool) -> None:
        self._path = path
        self._failed: str | None = None
        try:
            self._db: Any = plyvel.DB(
                os.fsencode(path),  # a name that is not UTF-8 too
                create_if_missing=create,  # only when a crawl is made: a lost CURRENT must not read as a new database
                error_if_exists=create,
                paranoid_checks=True,  # without it 64 zeroed bytes in the log lose rows silently
                bloom_filter_bits=10,
                write_buffer_size=WRITE_BUFFER_BYTES,
                lru_cache_size=BLOCK_CACHE_BYTES,
                max_file_size=MAX_FILE_BYTES,
                compression="snappy",
            )
        except plyvel.Error as error:
            raise _failure(path, error) from error
        self._staged = _Generation()
        self._writing: _Generation | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Close the database; what is staged and not written is dropped, as by a kill."""
        self._db.close()

    @property
    def staged_rows(self) -> int:
        """How many changes wait for the next batch."""
        return len(self._staged.changes)

    def stage(self, key: bytes, value: bytes) -> None:
        """Set `key` in the overlay, for the next batch."""
        self._staged.set(key, value)

    def unstage(self, key: bytes) -> None:
        """Remove `key` in the overlay, for the next batch."""
        self._staged.set(key, None)

    def get(self, key: bytes) -> bytes | None:
        """Return the value as staged, being written, or on disk."""
        changes = self._staged.changes
        if key in changes:
            return changes[key]
        writing = self._writing
        if writing is not None and key in writing.changes:
            return writing.changes[key]
        return self.read(key)

    def read(self, key: bytes) -> bytes | None:
        """Return the value on disk, the overlay not applied; from any thread."""
        try:
            value: bytes | None = self._db.get(key, verify_checksums=True)
        except plyvel.Error as error:
            raise _failure(self._path, error) from error
        return value

    def scan(self, bucket: bytes, start: bytes, limit: int) -> list[tuple[bytes, bytes]]:
        """Return up to `limit` rows of one range from `start` on, in key order, the overlay applied.

        Cost: what is on disk row by row, a look at each of the range's staged keys, and a sort of those among the rows.
        """
        rows: list[tuple[bytes, bytes]] = []
        stop = keys.after(bucket)
        while len(rows) < limit:
            on_disk = list(itertools.islice(self.walk(start, stop), limit - len(rows)))
            is_last = len(on_disk) < limit - len(rows)
            after_these = stop if is_last else on_disk[-1][0] + b"\0"
            rows += self._with_overlay(on_disk, bucket, start, after_these)
            if is_last:
                break
            start = after_these
        return rows[:limit]

    def _with_overlay(
        self, on_disk: list[tuple[bytes, bytes]], bucket: bytes, start: bytes, stop: bytes
    ) -> list[tuple[bytes, bytes]]:
        """Return the rows of one range in [start, stop), of which `on_disk` are on disk."""
        merged: dict[bytes, bytes | None] | None = None
        for generation in (self._writing, self._staged):  # the newer one counts
            if generation is None:
                continue
            found = [key for key in generation.buckets.get(bucket, ()) if start <= key < stop]
            if found:
                merged = dict(on_disk) if merged is None else merged
                merged.update((key, generation.changes[key]) for key in found)
        if merged is None:
            return on_disk
        return sorted((key, value) for key, value in merged.items() if value is not None)

    def walk(self, start: bytes, stop: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Yield the rows on disk in [start, stop), in key order, as of now; the overlay is not applied."""
        try:
            with self._db.iterator(start=start, stop=stop, verify_checksums=True) as rows:
                yield from rows
        except plyvel.Error as error:
            raise _failure(self._path, error) from error

    def walk_keys(self, start: bytes, stop: bytes) -> Iterator[bytes]:
        """Yield the keys on disk in [start, stop), in order, as of now; the overlay is not applied."""
        try:
            with self._db.iterator(start=start, stop=stop, include_value=False, verify_checksums=True) as found:
                yield from found
        except plyvel.Error as error:
            raise _failure(self._path, error) from error

    def cursor(self) -> "Cursor":
        """Return what finds first keys, on disk as of now."""
        return Cursor(self._path, self._db.iterator(include_value=False, verify_checksums=True))

    def tables(self) -> list[tuple[Path, int]]:
        """Return the tables that make up the database, each with the size in bytes that it was written with."""
        listing = self._db.get_property(b"leveldb.sstables") or b""
        return [(self._path / f"{int(number):06}.ldb", int(size)) for number, size in re.findall(_TABLE, listing)]

    def snapshot(self) -> "Snapshot":
        """Return what is on disk now, to be read while more is written. It is to be closed before the store is."""
        return Snapshot(self._path, self._db.snapshot())

    def freeze(self) -> Batch:
        """Take what is staged as one batch; look-ups go on seeing it. One batch is in the making at a time."""
        if self._writing is not None:
            raise RuntimeError("a batch is still being written")
        self._writing, self._staged = self._staged, _Generation()
        return Batch(self, self._writing.changes)

    def install(self) -> None:
        """Forget the batch that was written: the disk answers for it from now on."""
        self._writing = None

    def write_changes(self, *changes: dict[bytes, bytes | None]) -> None:
        """Write and sync one batch (called by `Batch.write`, on the writer thread)."""
        if self._failed is not None:
            raise StorageError(self._failed)
        try:
            _write_synced(self._db, itertools.chain.from_iterable(rows.items() for rows in changes))
        except plyvel.CorruptionError as error:  # a table that was to be compacted
            self._failed = f"the database in {self._path} is damaged"
            raise _failure(self._path, error) from error
        except (plyvel.Error, OSError) as error:
            self._failed = f"writing to {self._path} failed: {_text(error)}; free space or mend the disk, then resume"
            raise StorageError(self._failed) from error


class Cursor:
    """Finds first keys, as they were when it was made: a quarter of what a walk costs that is begun for one key."""

    def __init__(self, path: Path, found: Any) -> None:
        self._path = path
        self._found = found

    def first(self, prefix: bytes) -> bytes | None:
        """Return the first key that starts with `prefix`, None if none does."""
        return self._first_from(prefix, prefix)

    def firsts(self, prefix: bytes, length: int) -> Iterator[bytes]:
        """Yield, of the keys that start with `prefix`, the first of each group with the same first `length` bytes."""
        key = self.first(prefix)
        while key is not None:
            yield key
            key = self._first_from(keys.after(key[:length]), prefix)

    def _first_from(self, start: bytes, prefix: bytes) -> bytes | None:
        try:
            self._found.seek(start)
            key: bytes | None = next(self._found, None)
        except plyvel.Error as error:
            raise _failure(self._path, error) from error
        return key if key is not None and key.startswith(prefix) else None


class Snapshot:
    """The database as one checkpoint left it. For use by one thread at a time, which need not be the store's."""

    def __init__(self, path: Path, snapshot: Any) -> None:
        self._path = path
        self._snapshot = snapshot

    def walk(self, start: bytes, stop: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Yield the rows in [start, stop), in key order."""
        try:
            with self._snapshot.iterator(start=start, stop=stop, verify_checksums=True) as rows:
                yield from rows
        except plyvel.Error as error:
            raise _failure(self._path, error) from error

    def close(self) -> None:
        """Let go of it: as long as it is held, what is overwritten stays on disk."""
        self._snapshot.close()


def _write_synced(db: Any, changes: Iterable[tuple[bytes, bytes | None]]) -> None:
    with db.write_batch(transaction=True, sync=True) as batch:
        put, delete = batch.put, batch.delete
        for key, value in changes:
            if value is None:
                delete(key)
            else:
                put(key, value)


def mend(path: Path) -> None:
    """Make a database in place of every table block and log record whose checksum is right. StateDamaged if that fails.

    LevelDB's repair does not look at the checksums of logs, so it sees the tables only; the logs are then read as on any
    opening that is not paranoid: what is wrong in them is left out, up to the next block.
    """
    logs = list(path.glob("*.log"))
    kept = [log.rename(log.with_suffix(".kept")) for log in logs]
    try:
        plyvel.repair_db(str(path), paranoid_checks=True, bloom_filter_bits=10, max_file_size=MAX_FILE_BYTES)
        for file, log in zip(kept, logs, strict=True):
            file.rename(log)
        plyvel.DB(str(path), paranoid_checks=False, bloom_filter_bits=10, max_file_size=MAX_FILE_BYTES).close()
    except plyvel.Error as error:
        raise StateDamaged(f"LevelDB cannot repair the database in {path}: {_text(error)}") from error


def _failure(path: Path, error: Exception) -> StateError | StorageError:
    """Return what LevelDB's error means: in use, the disk failed (LevelDB writes on opening too), or damaged."""
    text = _text(error)
    if text.startswith(f"IO error: lock {path}"):
        return StateLocked(f"{path} is in use by another process")
    if isinstance(error, plyvel.IOError) and not any(sign in text for sign in _SIGNS_OF_DAMAGE):
        return StorageError(f"the database in {path} cannot be used: {text}; free space or mend the disk, then try again")
    return damaged(f"the database in {path} is damaged: {text}", path.parent)


def _text(error: Exception) -> str:
    """Return an error's own words; plyvel gives them as bytes."""
    words = error.args[0] if error.args else ""
    return words.decode(errors="replace") if isinstance(words, bytes) else str(error)
