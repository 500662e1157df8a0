"""What belongs to other partitions of the crawl: it is posted there, once for each shorter way.

A cache in front of the outbox drops what was posted before (most links repeat): losing it costs a letter, never a URL.
"""

import sys

from crawlkit.model import Source
from crawlkit.policy.edges import Edge
from crawlkit.policy.partition import Owners, node_of
from crawlkit.policy.urls import host_of
from crawlkit.sitemap import SitemapEntry
from crawlkit.state.codec import Head
from crawlkit.state.letters import Letter, LetterKind, Letters

POSTED_IN_MEMORY = 50_000
HOSTS_IN_MEMORY = 65_536

_NO_WAY = Head(sys.maxsize, sys.maxsize, 0)


class Abroad:
    """Posts what belongs to others than partition `number`, as part of the batch in the making."""

    def __init__(self, letters: Letters, owners: Owners, number: int) -> None:
        self._letters = letters
        self._owners = owners
        self._number = number
        self._posted: dict[str, Head] = {}
        self._levels: dict[str, int] = {}
        self._foreign: dict[str, bool] = {}

    def holds(self, host: str) -> bool:
        """Whether a host belongs to another partition."""
        foreign = self._foreign.get(host)
        if foreign is None:
            if len(self._foreign) >= HOSTS_IN_MEMORY:
                self._foreign.clear()
            foreign = self._foreign[host] = self._owners.of(host) != self._number
        return foreign

    def meet(self, host: str, edge: Edge, via: str | None, source: int) -> None:
        """Post a URL of a foreign host that was met, unless it was posted with this before."""
        met = Head(edge.depth, edge.hops, source)
        posted = self._posted.get(edge.url)
        if posted is not None:
            together = Head(min(posted.depth, met.depth), min(posted.hops, met.hops), posted.sources | met.sources)
            if together == posted:
                return
            met = together
        self._post_link(host, edge, via, source, met)

    def meet_too_deep(self, host: str, edge: Edge, via: str | None, source: int) -> None:
        """Post a URL of a foreign host that was met too deep to be admitted, unless anything was posted of it.

        Its owner takes down why it is not crawled. Such a way counts for nothing: what is met later is not measured by it.
        """
        if edge.url not in self._posted:
            self._post_link(host, edge, via, source, _NO_WAY)

    def _post_link(self, host: str, edge: Edge, via: str | None, source: int, known: Head) -> None:
        if len(self._posted) >= POSTED_IN_MEMORY:
            self._posted.clear()
        self._posted[edge.url] = known
        self._post(host, Letter(LetterKind.LINK, edge.url, edge.depth, edge.hops, source, via))

    def meet_entry(self, host: str, entry: SitemapEntry) -> None:
        """Post a URL of a foreign host that a sitemap names, with what that says of it."""
        if entry.lastmod is None and entry.priority is None:
            self.meet(host, Edge(entry.url, 0, 0), None, Source.SITEMAP)
        else:
            self._post(
                host, Letter(LetterKind.LINK, entry.url, source=Source.SITEMAP, lastmod=entry.lastmod, priority=entry.priority)
            )

    def meet_sitemap(self, host: str, url: str, level: int) -> None:
        """Post a sitemap on a foreign host, unless it was posted with that level or a lower one."""
        if self._levels.get(url, level + 1) <= level:
            return
        if len(self._levels) >= POSTED_IN_MEMORY:
            self._levels.clear()
        self._levels[url] = level
        self._post(host, Letter(LetterKind.SITEMAP, url, level, source=Source.SITEMAP))

    def is_foreign(self, url: str) -> bool:
        """Whether a URL belongs to another partition."""
        return self.holds(host_of(url))

    def earn(self, url: str) -> None:
        """Tell the partition of a page that it led to another one whose text is new."""
        self._post(host_of(url), Letter(LetterKind.FRESH, url))

    def _post(self, host: str, letter: Letter) -> None:
        self._letters.post(node_of(host), letter)
