"""What becomes of letters from other partitions: each does here what its sender would have done in a crawl that is one."""

from typing import assert_never

from crawlkit.engine.budget import Budget
from crawlkit.engine.growth import Growth
from crawlkit.engine.sitemaps import SitemapReader
from crawlkit.sitemap import SitemapEntry
from crawlkit.state.crawl import CrawlState
from crawlkit.state.letters import Letter, LetterKind


class Inbox:
    """Takes in letters, on behalf of the coordinator."""

    def __init__(self, state: CrawlState, growth: Growth, sitemaps: SitemapReader, budget: Budget) -> None:
        self._state = state
        self._growth = growth
        self._sitemaps = sitemaps
        self._budget = budget

    def take(self, letter: Letter) -> None:
        """Meet the URL or sitemap of a letter, or give the credit that it tells of."""
        match letter.kind:
            case LetterKind.LINK:
                self._growth.receive(letter)
                if self._state.seen.recent(letter.url) is not None:  # it was admitted
                    self._state.pages.note(SitemapEntry(letter.url, letter.lastmod, letter.priority))
            case LetterKind.SITEMAP:
                self._sitemaps.meet(letter.url, letter.depth)
            case LetterKind.FRESH:
                self._budget.reward(letter.url)
            case unknown:
                assert_never(unknown)
