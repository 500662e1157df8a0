"""Pages with the same bytes as others, and pages whose text is nearly that of others."""

from collections.abc import Iterator
from enum import StrEnum

import msgspec

from crawlkit.state.reading import CrawlReader
from crawlkit.surfaces.health.scratch import scratch_database


class Likeness(StrEnum):
    """How alike two pages are."""

    EXACT = "exact"
    NEAR = "near"


class Duplicate(msgspec.Struct, frozen=True, kw_only=True):
    """A page and the first, by URL, of those that it is like; `pages` counts all that name this one as their first, and it."""

    url: str
    duplicate_of: str
    likeness: Likeness
    pages: int

    def text(self) -> str:
        """Return the row for people: one line."""
        return f"{self.likeness} {self.url} is like {self.duplicate_of} ({self.pages} pages)"


def find_duplicates(crawl: CrawlReader) -> Iterator[Duplicate]:
    """Yield the pages that are not the first of those alike: by the first one, exact before near, then by URL."""
    with scratch_database("CREATE TABLE pages (first TEXT NOT NULL, likeness TEXT NOT NULL, url TEXT NOT NULL);") as database:
        database.executemany("INSERT INTO pages VALUES (?, ?, ?)", _pairs(crawl))
        rows = database.execute(
            "SELECT url, first, likeness, 1 + count(*) OVER (PARTITION BY first, likeness) FROM pages"
            " ORDER BY first, likeness, url"
        )
        for url, first, likeness, pages in rows:
            yield Duplicate(url=url, duplicate_of=first, likeness=Likeness(likeness), pages=pages)


def _pairs(crawl: CrawlReader) -> Iterator[tuple[str, str, str]]:
    for record in crawl.pages.walk_marked():
        if record.duplicate_of is not None:
            yield record.duplicate_of, Likeness.EXACT.value, record.url
        if record.near_duplicate_of not in (None, record.duplicate_of):
            yield record.near_duplicate_of or "", Likeness.NEAR.value, record.url
