"""The search index of a crawl: `search.sqlite` in its directory, a cache that may be deleted at any time.

It notes the crawl and the batch that `CHECKPOINT` named when it was made. While that is the last batch, the index is asked
without opening the crawl; else it is made anew, for which the crawl must not be running.
"""

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import msgspec

from crawlkit.durable import open_replacement
from crawlkit.engine.partitions import open_for_reading, summary_of
from crawlkit.errors import StorageError
from crawlkit.model import Kind
from crawlkit.state.layout import SEARCH
from crawlkit.state.reading import CrawlReader
from crawlkit.surfaces.interrupts import files_removed_when_ended
from crawlkit.surfaces.search.full_text import UNSAFE_AND_FAST, WEIGHTS, full_text_index
from crawlkit.surfaces.speech import say
from crawlkit.surfaces.sqlite_errors import sqlite_errors

_FORMAT = 1
_TABLES = """
    CREATE TABLE stamp (format INTEGER, crawl_id TEXT, batch INTEGER);
    CREATE TABLE records (id INTEGER PRIMARY KEY, url TEXT NOT NULL, title TEXT, description TEXT, text TEXT);
"""


class Stamp(msgspec.Struct, frozen=True, array_like=True):
    """What an index was made of."""

    format: int
    crawl_id: str
    batch: int


class Entry(msgspec.Struct, frozen=True, array_like=True):
    """What is searched of one page."""

    url: str
    title: str | None
    description: str | None
    text: str | None = None


@contextmanager
def open_index(directory: Path) -> Iterator[sqlite3.Connection]:
    """Give the index of the crawl in `directory`, made anew if it is not the crawl's as it is now.

    Raises:
        StateError: there is no crawl, or it has to be read and is running (StateLocked).
        StorageError: the index could not be written, or is damaged.
    """
    path = directory / SEARCH
    if not _is_fresh(path, _stamp_of(directory)):
        with files_removed_when_ended(), open_for_reading(directory) as crawl:
            say(f"crawlkit: making {path} for this search and later ones")
            write_index(path, _entries(crawl), _stamp_of(directory))
    try:
        with closing(_connect(path)) as database:
            yield database
    except sqlite3.DatabaseError as error:
        raise StorageError(f"{path} cannot be read ({error}): delete it, and the next search makes it anew") from error


def write_index(path: Path, entries: Iterable[Entry], stamp: Stamp) -> None:
    """Replace `path` by an index of `entries`, which come in the order of their URLs; StorageError if it cannot be written."""
    with (
        sqlite_errors(f"cannot write {path}"),
        open_replacement(path) as out,
        closing(sqlite3.connect(out.name, isolation_level=None)) as database,
    ):
        database.executescript(f"{UNSAFE_AND_FAST} {_TABLES} BEGIN;")
        database.execute("INSERT INTO stamp VALUES (?, ?, ?)", msgspec.structs.astuple(stamp))
        rows = map(msgspec.structs.astuple, entries)
        database.executemany("INSERT INTO records (url, title, description, text) VALUES (?, ?, ?, ?)", rows)
        database.execute("COMMIT")
        database.executescript(full_text_index(tuple(WEIGHTS)))


def _stamp_of(directory: Path) -> Stamp:
    summary = summary_of(directory)
    return Stamp(_FORMAT, summary.crawl_id, summary.batch)


def _is_fresh(path: Path, stamp: Stamp) -> bool:
    """Whether there is an index with this stamp; one that cannot be read is none."""
    if not path.is_file():
        return False
    try:
        with closing(_connect(path)) as database:
            return database.execute("SELECT format, crawl_id, batch FROM stamp").fetchall() == [msgspec.structs.astuple(stamp)]
    except sqlite3.DatabaseError:
        return False


def _connect(path: Path) -> sqlite3.Connection:
    # Immutable: the file is only ever replaced, so nothing has to be locked or looked at again.
    return sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro&immutable=1", uri=True)


def _entries(crawl: CrawlReader) -> Iterator[Entry]:
    for record in crawl.pages.walk():
        if record.kind is Kind.PAGE:
            content = crawl.pages.content(record.url)
            yield Entry(record.url, record.title, record.description, None if content is None else content.text)
