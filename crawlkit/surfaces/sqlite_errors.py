"""What SQLite says when it cannot write, as errors for people."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from crawlkit.errors import StorageError, UsageError

_STORAGE = frozenset({sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY})
_PRIMARY = 0xFF  # extended codes say more above it


@contextmanager
def sqlite_errors(what: str) -> Iterator[None]:
    """Raise StorageError, beginning with `what`, for a full or broken disk; UsageError if this SQLite has no FTS5."""
    try:
        yield
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode & _PRIMARY in _STORAGE:
            raise StorageError(f"{what}: {error}") from error
        if "no such module" in str(error):
            raise UsageError(f"{what}: the SQLite of this Python was built without full text ({error})") from error
        raise
