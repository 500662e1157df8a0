"""Checking sitemaps: those that wait are queued at their host, no others are, and what they said of URLs can be read."""

from crawlkit.errors import StateDamaged
from crawlkit.state import keys
from crawlkit.state.findings import Findings, Rule
from crawlkit.state.pages import decode_note
from crawlkit.state.reading import read_counters
from crawlkit.state.sitemaps import SitemapRow, SitemapState
from crawlkit.state.store import Store


class SitemapCheck:
    """Is shown each sitemap once, then finishes."""

    def __init__(self, store: Store, findings: Findings) -> None:
        self._store = store
        self._findings = findings
        self._waiting = 0

    def look(self, key: bytes, row: SitemapRow, host: bytes) -> bool:
        """Check a sitemap under `key` whose URL is of the host with that id; whether it waits."""
        waits = row.state is SitemapState.WAITING
        is_queued = self._store.get(keys.waiting_sitemap_key(host, row.url)) is not None
        if key != keys.sitemap_key(row.url) or keys.host_id(row.host) != host:
            self._findings.broke(Rule.SITEMAPS, f"{row.url} lies elsewhere")
        elif is_queued is not waits:
            self._findings.broke(Rule.SITEMAPS, f"{row.url} is {row.state.name} and {'queued' if is_queued else 'not queued'}")
        self._waiting += waits
        return waits

    def finish(self) -> None:
        """Check their number, and the notes."""
        self._findings.compare(Rule.SITEMAPS, "those that wait", read_counters(self._store).sitemaps, self._waiting)
        for key, value in self._store.walk(keys.NOTE, keys.after(keys.NOTE)):
            try:
                decode_note(value)
            except StateDamaged as error:
                self._findings.broke(Rule.DECODES, f"{key.hex()}: {error}")
