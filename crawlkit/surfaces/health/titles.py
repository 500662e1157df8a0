"""Pages without a title, and pages that share theirs, among those that may be indexed."""

from collections.abc import Iterator
from enum import StrEnum

import msgspec

from crawlkit.policy.indexing import is_indexable
from crawlkit.state.reading import CrawlReader
from crawlkit.surfaces.health.scratch import scratch_database
from crawlkit.surfaces.terminal import printable


class TitleProblem(StrEnum):
    """What is wrong with a title."""

    MISSING = "missing"
    DUPLICATE = "duplicate"


class Titled(msgspec.Struct, frozen=True, kw_only=True):
    """A page; `pages` counts those with the same title, or without one."""

    url: str
    problem: TitleProblem
    title: str | None
    pages: int

    def text(self) -> str:
        """Return the row for people: one line."""
        if self.title is None:
            return f"{self.problem} {self.url}"
        return f"{self.problem} {self.url} shares with {self.pages - 1}: {printable(self.title)}"


def find_titles(crawl: CrawlReader) -> Iterator[Titled]:
    """Yield first the pages without a title, then the others by title, each in the order of URLs."""
    with scratch_database("CREATE TABLE pages (title TEXT NOT NULL, url TEXT NOT NULL);") as database:
        pages = ((record.title or "", record.url) for record in crawl.pages.walk() if is_indexable(record))
        database.executemany("INSERT INTO pages VALUES (?, ?)", pages)
        database.execute("CREATE INDEX by_title ON pages (title)")
        groups = database.execute("SELECT title, count(*) FROM pages GROUP BY title HAVING count(*) > 1 OR title = ''")
        for title, count in groups:
            problem = TitleProblem.DUPLICATE if title else TitleProblem.MISSING
            for (url,) in database.execute("SELECT url FROM pages WHERE title = ? ORDER BY rowid", (title,)):
                yield Titled(url=url, problem=problem, title=title or None, pages=count)
