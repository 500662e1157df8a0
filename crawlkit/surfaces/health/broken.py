"""Targets that failed or redirect, each with the pages that link to it.

Links are turned around in two walks: the first notes the targets, the second the links that lead to one of them. Most links
lead to none, so a filter in memory answers first and the database only where it says "maybe".
"""

from collections.abc import Iterator
from sqlite3 import Connection

import msgspec
from bitarray import bitarray

from crawlkit.model import Kind, Reason, Record
from crawlkit.state.reading import CrawlReader
from crawlkit.surfaces.health.scratch import scratch_database

MOST_LISTED = 100
"""Pages that are named of those that link to a target; all are counted."""

_FILTER_BITS = 1 << 26  # 8 MiB; of a million targets it lets 1.5 % of the other links through
_ROWS_AT_ONCE = 10_000
_TABLES = """
    CREATE TABLE targets (url TEXT PRIMARY KEY, id INTEGER NOT NULL) WITHOUT ROWID;
    CREATE TABLE links (target INTEGER NOT NULL, page TEXT NOT NULL);
"""
_LINK = "INSERT INTO links SELECT id, ? FROM targets WHERE url = ?"


class Broken(msgspec.Struct, frozen=True, kw_only=True):
    """A target, how many pages link to it, and the first of them in the order of URLs."""

    url: str
    kind: Kind
    status: int | None
    reason: Reason | None
    redirect_to: str | None
    pages: int
    linked_from: tuple[str, ...]

    def text(self) -> str:
        """Return the row for people: the target, then a line for each page."""
        what = str(self.status or self.reason) + (f" -> {self.redirect_to}" if self.redirect_to else "")
        more = self.pages - len(self.linked_from)
        lines = [f"{self.url} {what}, linked from {self.pages}", *(f"  {page}" for page in self.linked_from)]
        return "\n".join([*lines, f"  and {more} more"] if more else lines)


def find_broken(crawl: CrawlReader) -> Iterator[Broken]:
    """Yield the targets in the order of URLs, those too that no page links to (seeds, targets of redirects)."""
    with scratch_database(_TABLES) as database:
        maybe = _note_targets(database, crawl.pages.walk())
        _note_links(database, maybe, crawl.pages.walk())
        database.execute("CREATE INDEX by_target ON links (target)")
        for number, record in enumerate(filter(_is_broken, crawl.pages.walk())):
            ((pages,),) = database.execute("SELECT count(*) FROM links WHERE target = ?", (number,))
            found = database.execute("SELECT page FROM links WHERE target = ? ORDER BY rowid LIMIT ?", (number, MOST_LISTED))
            yield Broken(
                url=record.url,
                kind=record.kind,
                status=record.status,
                reason=record.reason,
                redirect_to=record.redirect_to,
                pages=pages,
                linked_from=tuple(page for (page,) in found),
            )


def _is_broken(record: Record) -> bool:
    return record.kind in (Kind.FAILURE, Kind.REDIRECT)


def _note_targets(database: Connection, records: Iterator[Record]) -> bitarray:
    """Put the targets into the database and return the filter that knows them."""
    maybe = bitarray(_FILTER_BITS)
    maybe.setall(0)
    for number, record in enumerate(filter(_is_broken, records)):
        maybe[hash(record.url) % _FILTER_BITS] = 1
        database.execute("INSERT INTO targets VALUES (?, ?)", (record.url, number))
    return maybe


def _note_links(database: Connection, maybe: bitarray, records: Iterator[Record]) -> None:
    rows: list[tuple[str, str]] = []
    for record in records:
        rows += ((record.url, link) for link in record.links if maybe[hash(link) % _FILTER_BITS])
        if len(rows) >= _ROWS_AT_ONCE:
            database.executemany(_LINK, rows)
            rows.clear()
    database.executemany(_LINK, rows)
