"""Redirects, each with the chain that it begins."""

from collections.abc import Callable, Iterator
from enum import StrEnum

import msgspec

from crawlkit.model import MAX_HOPS, Kind, Record
from crawlkit.state.reading import CrawlReader

MOST_FOLLOWED = 2 * MAX_HOPS
"""Redirects that are followed of one chain; browsers give up at twenty too."""


class ChainProblem(StrEnum):
    """Why a chain does not end at a page."""

    LOOP = "loop"
    TOO_MANY = "too_many"
    FAILURE = "failure"
    EXCLUDED = "excluded"
    NOT_CRAWLED = "not_crawled"  # out of scope, mostly


class Hop(msgspec.Struct, frozen=True, kw_only=True):
    """One URL of a chain with its status, null where there is none."""

    url: str
    status: int | None


class Redirected(msgspec.Struct, frozen=True, kw_only=True):
    """A chain: from `url` over `hops` redirects to the last URL that is known. A loop ends where it comes back."""

    url: str
    status: int | None
    hops: int
    final: str
    final_status: int | None
    problem: ChainProblem | None
    chain: tuple[Hop, ...]

    def text(self) -> str:
        """Return the row for people: the whole chain on one line."""
        chain = " -> ".join(hop.url if hop.status is None else f"{hop.url} {hop.status}" for hop in self.chain)
        return f"{chain} [{self.problem}]" if self.problem else chain


def find_redirects(crawl: CrawlReader) -> Iterator[Redirected]:
    """Yield the chain of each URL that redirects, in the order of URLs: the later URLs of a chain begin one too."""
    for record in crawl.pages.walk():
        if record.redirect_to is not None:
            yield _follow(record, crawl.pages.get)


def _follow(first: Record, find: Callable[[str], Record | None]) -> Redirected:
    chain = [first]
    met = {first.url}
    problem = None
    final = first.redirect_to
    while final is not None:
        record = find(final)
        if final in met:
            problem = ChainProblem.LOOP
        elif record is None:
            problem = ChainProblem.TOO_MANY if chain[-1].hops >= MAX_HOPS else ChainProblem.NOT_CRAWLED
        elif len(chain) == MOST_FOLLOWED and record.redirect_to is not None:
            problem = ChainProblem.TOO_MANY
        if problem is not None or record is None:
            return _as_row(chain, Hop(url=final, status=None if record is None else record.status), problem)
        chain.append(record)
        met.add(final)
        final = record.redirect_to
    last = chain.pop()
    return _as_row(chain, Hop(url=last.url, status=last.status), _PROBLEMS.get(last.kind))


_PROBLEMS = {Kind.FAILURE: ChainProblem.FAILURE, Kind.EXCLUDED: ChainProblem.EXCLUDED}


def _as_row(redirects: list[Record], final: Hop, problem: ChainProblem | None) -> Redirected:
    first = redirects[0]
    return Redirected(
        url=first.url,
        status=first.status,
        hops=len(redirects),
        final=final.url,
        final_status=final.status,
        problem=problem,
        chain=(*(Hop(url=record.url, status=record.status) for record in redirects), final),
    )
