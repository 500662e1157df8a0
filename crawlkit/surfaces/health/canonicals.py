"""Pages that name another URL as canonical, and what is wrong with that one."""

from collections.abc import Iterator
from enum import StrEnum

import msgspec

from crawlkit.model import Kind, Record
from crawlkit.state.pages import as_reported
from crawlkit.state.reading import CrawlReader


class CanonicalProblem(StrEnum):
    """What the canonical URL of a page turned out to be."""

    OTHER = "other"  # a page that counts as itself: no conflict, but this page does not count
    CHAIN = "chain"  # it names another one in turn
    NOINDEX = "noindex"
    STATUS = "status"  # a page, but not with status 200
    REDIRECT = "redirect"
    FAILURE = "failure"
    EXCLUDED = "excluded"
    NOT_CRAWLED = "not_crawled"


class Canonical(msgspec.Struct, frozen=True, kw_only=True):
    """A page and its canonical URL; `leads_to` is where that one redirects to, or its own canonical."""

    url: str
    problem: CanonicalProblem
    canonical: str
    canonical_status: int | None
    leads_to: str | None

    def text(self) -> str:
        """Return the row for people: one line."""
        status = "" if self.canonical_status is None else f" {self.canonical_status}"
        onwards = "" if self.leads_to is None else f" -> {self.leads_to}"
        return f"{self.problem} {self.url} -> {self.canonical}{status}{onwards}"


def find_canonicals(crawl: CrawlReader) -> Iterator[Canonical]:
    """Yield the pages whose canonical is not themselves, in the order of URLs."""
    for record in crawl.pages.walk():
        canonical = record.canonical
        if record.kind is Kind.PAGE and canonical is not None and canonical != record.url:
            target = crawl.pages.get(canonical)
            yield _judge(record.url, canonical, None if target is None else as_reported(target))


def _judge(url: str, canonical: str, target: Record | None) -> Canonical:
    problem, leads_to = (CanonicalProblem.NOT_CRAWLED, None) if target is None else _problem_of(target)
    status = None if target is None else target.status
    return Canonical(url=url, problem=problem, canonical=canonical, canonical_status=status, leads_to=leads_to)


def _problem_of(target: Record) -> tuple[CanonicalProblem, str | None]:
    if target.kind is not Kind.PAGE:
        return CanonicalProblem(target.kind.value), target.redirect_to
    if target.status != 200:
        return CanonicalProblem.STATUS, None
    if target.canonical not in (None, target.url):
        return CanonicalProblem.CHAIN, target.canonical
    if {"noindex", "none"}.intersection(target.directives):
        return CanonicalProblem.NOINDEX, None
    return CanonicalProblem.OTHER, None
