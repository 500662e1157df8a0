"""URLs that a sitemap names and nothing else leads to.

That a record has no source `link` would not do: a page that links to itself, or is its own canonical, has one.
"""

from collections.abc import Iterator

import msgspec

from crawlkit.model import Kind, Record, Source
from crawlkit.state.pages import as_reported
from crawlkit.state.reading import CrawlReader
from crawlkit.surfaces.health.scratch import scratch_database

_REMEMBERED = 50_000


class Orphan(msgspec.Struct, frozen=True, kw_only=True):
    """A URL with what became of it; `lastmod` is the sitemap's."""

    url: str
    kind: Kind
    status: int | None
    lastmod: str | None

    def text(self) -> str:
        """Return the row for people: one line."""
        return f"{self.url} {self.status or self.kind}"


def find_orphans(crawl: CrawlReader) -> Iterator[Orphan]:
    """Yield the orphans in the order of URLs. A link of a page that was not crawled is not known."""
    with scratch_database("CREATE TABLE listed (url TEXT PRIMARY KEY) WITHOUT ROWID;") as database:
        listed = ((record.url,) for record in crawl.pages.walk() if record.sources & Source.SITEMAP)
        database.executemany("INSERT INTO listed VALUES (?)", listed)
        database.executemany("DELETE FROM listed WHERE url = ?", _led_to(crawl.pages.walk()))
        for (url,) in database.execute("SELECT url FROM listed ORDER BY url"):
            record = crawl.pages.get(url)
            assert record is not None, "a crawl does not change while it is read"
            record = as_reported(crawl.pages.with_note(record))
            yield Orphan(url=url, kind=record.kind, status=record.status, lastmod=record.lastmod)


def _led_to(records: Iterator[Record]) -> Iterator[tuple[str]]:
    """Yield what other URLs link or redirect to; the same again only after many others, since pages share most links."""
    met: set[str] = set()
    for record in records:
        if len(met) >= _REMEMBERED:
            met.clear()
        ways = set(record.links) if record.redirect_to is None else {*record.links, record.redirect_to}
        ways.discard(record.url)
        for url in ways - met:
            yield (url,)
        met |= ways
