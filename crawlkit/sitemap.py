"""What a sitemap says, as values that cross boundaries: `policy.sitemaps` reads it, the engine admits what it names."""

from enum import StrEnum

import msgspec

MOST_BYTES = 50 * 1024 * 1024
"""The protocol's limit on a sitemap, uncompressed; what is beyond is cut."""


class SitemapForm(StrEnum):
    """What a sitemap is, by its content."""

    URLSET = "urlset"
    INDEX = "sitemapindex"
    RSS = "rss"
    ATOM = "atom"
    TEXT = "text"
    NONE = "none"  # no sitemap at all


class SitemapEntry(msgspec.Struct, frozen=True):
    """A URL that a sitemap names, in normal form: when it was changed last (UTC, like `2014-06-03T10:30:00Z`), 0 to 1."""

    url: str
    lastmod: str | None = None
    priority: float | None = None


class Sitemap(msgspec.Struct, frozen=True):
    """What a sitemap says: its entries in order, those of an index being sitemaps; `cut` if that is not all of it."""

    form: SitemapForm
    entries: tuple[SitemapEntry, ...] = ()
    cut: bool = False
