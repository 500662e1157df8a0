"""Which pages lead to some of the URLs: links turned around.

Two walks: the first notes the targets, the second what leads to one of them. Most links lead to none, so a filter in memory
answers first and the database only where that says "maybe".
"""

from collections.abc import Callable, Iterable, Iterator
from sqlite3 import Connection

import msgspec
from bitarray import bitarray

from crawlkit.model import Record
from crawlkit.state.reading import CrawlReader
from crawlkit.surfaces.health.scratch import scratch_database

MOST_LISTED = 100
"""Pages that are named of those that lead to a target; all are counted."""

_FILTER_BITS = 1 << 26  # 8 MiB; of a million targets it lets 1.5 % of the other links through
_ROWS_AT_ONCE = 10_000
_TABLES = """
    CREATE TABLE targets (url TEXT PRIMARY KEY, id INTEGER NOT NULL) WITHOUT ROWID;
    CREATE TABLE links (target INTEGER NOT NULL, page TEXT NOT NULL);
"""
_LINK = "INSERT INTO links SELECT id, ? FROM targets WHERE url = ?"


class Referred(msgspec.Struct, frozen=True):
    """A target, how many other URLs lead to it, and the first of them in the order of URLs."""

    record: Record
    pages: int
    first: tuple[str, ...]


def with_referrers(
    crawl: CrawlReader, is_target: Callable[[Record], bool], leads_to: Callable[[Record], Iterable[str]]
) -> Iterator[Referred]:
    """Yield the records that are targets, in the order of URLs, each with those that lead to it, itself left out."""
    with scratch_database(_TABLES) as database:
        maybe = _note_targets(database, filter(is_target, crawl.pages.walk()))
        _note_links(database, maybe, crawl.pages.walk(), leads_to)
        database.execute("CREATE INDEX by_target ON links (target)")
        for number, record in enumerate(filter(is_target, crawl.pages.walk())):
            ((pages,),) = database.execute("SELECT count(*) FROM links WHERE target = ?", (number,))
            found = database.execute("SELECT page FROM links WHERE target = ? ORDER BY rowid LIMIT ?", (number, MOST_LISTED))
            yield Referred(record, pages, tuple(page for (page,) in found))


def _note_targets(database: Connection, targets: Iterator[Record]) -> bitarray:
    """Put the targets into the database and return the filter that knows them."""
    maybe = bitarray(_FILTER_BITS)
    maybe.setall(0)
    for number, record in enumerate(targets):
        maybe[hash(record.url) % _FILTER_BITS] = 1
        database.execute("INSERT INTO targets VALUES (?, ?)", (record.url, number))
    return maybe


def _note_links(
    database: Connection, maybe: bitarray, records: Iterator[Record], leads_to: Callable[[Record], Iterable[str]]
) -> None:
    rows: list[tuple[str, str]] = []
    for record in records:
        url = record.url
        rows += ((url, link) for link in leads_to(record) if maybe[hash(link) % _FILTER_BITS] and link != url)
        if len(rows) >= _ROWS_AT_ONCE:
            database.executemany(_LINK, rows)
            rows.clear()
    database.executemany(_LINK, rows)
