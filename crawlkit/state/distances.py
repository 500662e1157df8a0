"""What changes of a URL after it was met: its sources, its depth and hops, and the work of telling its links of these.

A URL's depth is its graph distance from the seeds. When a shorter way to a settled URL is found, its record gets the lesser
distances and a row in the relax range says that its admitting edges have to be walked again. Rows are taken lowest depth first
and removed in the batch that holds what came of them, so a crash repeats at most the work of one batch.
"""

from crawlkit.model import MAX_HOPS, Kind, Record
from crawlkit.state import keys
from crawlkit.state.codec import Head, QueueRow, SeenEntry, UrlState, encode_row
from crawlkit.state.counters import Counters
from crawlkit.state.damage import damaged
from crawlkit.state.frontier import Frontier
from crawlkit.state.head import RangeHead
from crawlkit.state.hosts import Host
from crawlkit.state.pages import Pages
from crawlkit.state.seen import SeenSet
from crawlkit.state.store import Store

ROWS_IN_MEMORY = 1024
_SETTLED = UrlState.SETTLED  # looked up once (`model`)


class Distances:
    """Lowers distances, and keeps the queue of those still to propagate."""

    def __init__(self, store: Store, seen: SeenSet, frontier: Frontier, pages: Pages, counters: Counters) -> None:
        self._store = store
        self._seen = seen
        self._frontier = frontier
        self._pages = pages
        self._counters = counters
        self._head = RangeHead(keys.RELAX, keys.RELAX)

    def lower(self, url: str, host: Host, entry: SeenEntry, to: Head) -> None:
        """Give a seen URL lesser distances, or more sources; if it has settled, queue the propagation along its edges."""
        if entry.state is not _SETTLED:
            self._frontier.lower(url, host, entry, to)
            return
        depth, hops, _ = to
        self._seen.put(url, host.id, to.settled())
        if (depth, hops) == (entry.depth, entry.hops):
            self._pages.set_head(url, to)
            return
        before = self._pages.head(url)
        if before is None:
            raise damaged(f"{url} settled but has no record")
        is_nearer = depth < before.depth
        is_redirect = (not is_nearer or hops < MAX_HOPS <= before.hops) and self._is_redirect(url)
        self._pages.set_head(url, to)
        if is_redirect and hops < MAX_HOPS <= before.hops:
            self._counters.settled(Kind.FAILURE, -1)
            self._counters.settled(Kind.REDIRECT)
        if is_nearer or is_redirect:  # links carry depth only, redirects both
            self.propagate(url, depth)

    def _is_redirect(self, url: str) -> bool:
        """Whether a URL settled as a redirect: its record has to be read for that, a tenth of what a page costs."""
        record = self._pages.get(url)
        return record is not None and record.kind is Kind.REDIRECT

    def propagate(self, url: str, depth: int) -> None:
        """Queue a walk along the edges of a settled URL."""
        key = keys.relax_key(depth, url)
        row = QueueRow(url, "", depth, 0)
        self._store.stage(key, encode_row(row))
        self._head.push(key, row, ROWS_IN_MEMORY)

    @property
    def pending(self) -> bool:
        """Whether any lowered distance is still to propagate."""
        return self._head.peek(self._store, ROWS_IN_MEMORY) is not None

    def next(self) -> Record | None:
        """Take the next record whose edges have to be walked, None if there is none."""
        first = self._head.peek(self._store, ROWS_IN_MEMORY)
        if first is None:
            return None
        self._head.pop()
        self._store.unstage(first[0])
        return self._pages.get(first[1].url)
