"""A temporary database to sort in: SQLite spills it to an unnamed file, of which a kill leaves nothing behind."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager

from crawlkit.surfaces.sqlite_errors import sqlite_errors

_CACHE_KIB = 16 * 1024


@contextmanager
def scratch_database(tables: str) -> Iterator[sqlite3.Connection]:
    """Give an empty database with `tables` (SQL), where TMPDIR says, else in /var/tmp; StorageError if that is full."""
    with (
        sqlite_errors("cannot sort in the temporary directory (TMPDIR can name another)"),
        closing(sqlite3.connect("", isolation_level=None)) as database,  # no name: private and on disk
    ):
        database.executescript(f"PRAGMA journal_mode = OFF; PRAGMA cache_size = -{_CACHE_KIB}; {tables} BEGIN;")
        yield database
