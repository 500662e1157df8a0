"""Bounds that the coordinator keeps: on pages, and on what gathers until a checkpoint."""

from crawlkit.state.counters import Counters
from crawlkit.state.crawl import CrawlState

# Results, changed rows, or bytes to be archived, after which a checkpoint is made before its interval is over.
RESULTS_A_CHECKPOINT = 1_000
ROWS_A_CHECKPOINT = 100_000
ARCHIVED_BYTES_A_CHECKPOINT = 32 * 1024 * 1024


def is_urgent(state: CrawlState, unwritten: int) -> bool:
    """Whether so much has changed, `unwritten` results among it, that a checkpoint should be made at once."""
    if state.outbox.waiting_bytes >= ARCHIVED_BYTES_A_CHECKPOINT:
        return True
    return unwritten >= RESULTS_A_CHECKPOINT or state.staged_rows >= ROWS_A_CHECKPOINT


class PageLimit:
    """The limit on pages, `most` of them or no limit (None): a claim reserves one, and gives it back if it ends otherwise.

    `claimed` counts the claims. A partition's `most` is its part of the crawl's limit, and changes while it runs.
    """

    def __init__(self, counters: Counters, most: int | None) -> None:
        self._counters = counters
        self.most = most
        self.claimed = 0

    @property
    def spent(self) -> bool:
        """Whether nothing may be claimed now."""
        return self.most is not None and self.used >= self.most

    @property
    def used(self) -> int:
        """Pages, and claims that may become some."""
        return self._counters.pages + self.claimed
