"""Targets that failed or redirect, each with the pages that link to it."""

from collections.abc import Iterator

import msgspec

from crawlkit.model import Kind, Reason, Record
from crawlkit.state.reading import CrawlReader
from crawlkit.surfaces.health.referrers import with_referrers


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
    for target in with_referrers(crawl, _is_broken, _links):
        record = target.record
        yield Broken(
            url=record.url,
            kind=record.kind,
            status=record.status,
            reason=record.reason,
            redirect_to=record.redirect_to,
            pages=target.pages,
            linked_from=target.first,
        )


def _is_broken(record: Record) -> bool:
    return record.kind in (Kind.FAILURE, Kind.REDIRECT)


def _links(record: Record) -> tuple[str, ...]:
    return record.links
