"""The views on a site's health: which there are, and the rows of each."""

from collections.abc import Iterator
from enum import StrEnum
from typing import assert_never

from crawlkit.state.reading import CrawlReader
from crawlkit.surfaces.health.broken import Broken, find_broken
from crawlkit.surfaces.health.canonicals import Canonical, find_canonicals
from crawlkit.surfaces.health.duplicates import Duplicate, find_duplicates
from crawlkit.surfaces.health.orphans import Orphan, find_orphans
from crawlkit.surfaces.health.redirects import Redirected, find_redirects
from crawlkit.surfaces.health.titles import Titled, find_titles

Row = Broken | Orphan | Redirected | Titled | Canonical | Duplicate


class View(StrEnum):
    """What is looked at, by the option's name."""

    BROKEN = "broken"
    ORPHANS = "orphans"
    REDIRECTS = "redirects"
    TITLES = "titles"
    CANONICALS = "canonicals"
    DUPLICATES = "duplicates"


def row_type(view: View) -> type[Row]:
    """Return the type of a view's rows: its fields are the columns."""
    match view:
        case View.BROKEN:
            return Broken
        case View.ORPHANS:
            return Orphan
        case View.REDIRECTS:
            return Redirected
        case View.TITLES:
            return Titled
        case View.CANONICALS:
            return Canonical
        case View.DUPLICATES:
            return Duplicate
        case unknown:
            assert_never(unknown)


def rows_of(view: View, crawl: CrawlReader) -> Iterator[Row]:
    """Yield the rows of a view, in its order. StorageError if there is no room to sort in."""
    match view:
        case View.BROKEN:
            return find_broken(crawl)
        case View.ORPHANS:
            return find_orphans(crawl)
        case View.REDIRECTS:
            return find_redirects(crawl)
        case View.TITLES:
            return find_titles(crawl)
        case View.CANONICALS:
            return find_canonicals(crawl)
        case View.DUPLICATES:
            return find_duplicates(crawl)
        case unknown:
            assert_never(unknown)
