"""URLs that a sitemap names and nothing else leads to.

That a record has no source `link` would not do: a page that links to itself, or is its own canonical, has one.
"""

from collections.abc import Iterable, Iterator

import msgspec

from crawlkit.model import Kind, Record, Source
from crawlkit.state.reading import CrawlReader
from crawlkit.surfaces.health.referrers import with_referrers


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
    for target in with_referrers(crawl, _is_in_a_sitemap, _ways_on):
        if not target.pages:
            record = target.record
            yield Orphan(url=record.url, kind=record.kind, status=record.status, lastmod=record.lastmod)


def _is_in_a_sitemap(record: Record) -> bool:
    return bool(record.sources & Source.SITEMAP)


def _ways_on(record: Record) -> Iterable[str]:
    return record.links if record.redirect_to is None else (*record.links, record.redirect_to)
