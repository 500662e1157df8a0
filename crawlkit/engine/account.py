"""What a run adds to the crawl's sums and to its line in the ledger: time and requests."""

import math

from crawlkit.state.crawl import CrawlState


class RunAccount:
    """One run's account; it begins at `now`, in seconds since the epoch."""

    def __init__(self, state: CrawlState, now: float) -> None:
        self._state = state
        self._began_s = now
        self._elapsed_before_s = state.counters.elapsed_s
        self._requests_noted = state.counters.requests

    def deadline_s(self, limit_s: float | None) -> float:
        """Return when a limit on the time over all runs is reached, infinity without one."""
        return math.inf if limit_s is None else self._began_s + limit_s - self._elapsed_before_s

    def note(self, now: float) -> None:
        """Bring the crawl's elapsed time and the run's line up to date."""
        counters, run = self._state.counters, self._state.runs[-1]
        counters.elapsed_s = self._elapsed_before_s + (now - self._began_s)
        run.requests += counters.requests - self._requests_noted
        run.pages = counters.pages
        self._requests_noted = counters.requests
