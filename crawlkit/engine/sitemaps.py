"""Sitemaps: which are read, what becomes of an answer, and the URLs that they name, met a bounded number a step.

A sitemap is one that a robots.txt of a host in scope names, wherever it lies; a seed that turns out to be one; and what these
lead to, as an index or by a redirect, if it is in scope or on the same host. Whatever they name goes through admission as a
seed's links would, at depth 0, save that no template's budget pays for it: it is finite, and bounded by `max_sitemap_urls`.

It is fetched as a page is, with the host's manners, its robots.txt and the retries; before another try the host rests. Only a
few are read at once, since all of what one names is in memory until it has been met.
"""

import re
from collections import deque
from collections.abc import Callable, Iterable
from typing import assert_never

import msgspec

from crawlkit.config import Config
from crawlkit.engine.abroad import Abroad
from crawlkit.engine.admission import Admission
from crawlkit.model import Facts, Fetched, FetchFailure, Kind, OrderReason, Reason, Record, Refusal, SitemapJob
from crawlkit.policy.disposition import Again, Done, dispose, is_transient
from crawlkit.policy.scope import Scope
from crawlkit.policy.urls import Joiner, host_of
from crawlkit.sitemap import Sitemap, SitemapForm
from crawlkit.state.crawl import CrawlState
from crawlkit.state.hosts import Host
from crawlkit.state.refusals import MOST_A_HOST, RefusalRow
from crawlkit.state.sitemaps import SitemapRow, SitemapState

MOST_AT_ONCE = 4
"""Sitemaps fetched or read at once: one of the largest takes 50 MiB while it is parsed, then some 10 MiB."""

MAX_LEVEL = 5
"""Indexes and redirects that may lead to a sitemap. The protocol knows one index, and sites have two."""

ENTRIES_A_STEP = 64

MOST_LISTED = 1_000
"""Sitemap lines that are taken from one robots.txt."""

_LOOKS_LIKE_ONE = r"(?i)sitemap|\.(?:xml|rss|atom)(?:\.gz)?(?:\?|$)"


class _Reading(msgspec.Struct):
    """A sitemap whose entries are being met."""

    row: SitemapRow
    sitemap: Sitemap
    met: int = 0


class SitemapReader:
    """Claims and reads sitemaps on behalf of the coordinator; `offer` is told of hosts that may be asked again."""

    def __init__(
        self,
        state: CrawlState,
        config: Config,
        scope: Scope,
        admission: Admission,
        offer: Callable[[Host], None],
        abroad: Abroad | None = None,
    ) -> None:
        self._state = state
        self._sitemaps = state.sitemaps
        self._config = config
        self._scope = scope
        self._admission = admission
        self._offer = offer
        self._abroad = abroad
        self._readings: deque[_Reading] = deque()
        self._active = 0  # claimed, or being read
        self._parked: deque[str] = deque()  # hosts that wait until fewer are
        self._had_turn: set[str] = set()

    # Meeting ---------------------------------------------------------------------------------------------------------

    def meet_listed(self, origin: str, values: Iterable[str]) -> None:
        """Take note of the Sitemap lines of an origin's robots.txt, if the host is in scope."""
        if not self._scope.covers(host_of(f"{origin}/")):
            return
        joiner = Joiner(f"{origin}/robots.txt")
        for _, value in zip(range(MOST_LISTED), values, strict=False):
            url = joiner.join(value)
            if url is not None:
                self.meet(url, 0)

    def take_seed(self, record: Record, sitemap: Sitemap | None) -> None:
        """Take in what a seed says as a sitemap; one that redirects to what is named like one leads to a sitemap there."""
        if record.redirect_to is not None:
            if re.search(_LOOKS_LIKE_ONE, record.redirect_to):
                self._meet_from(record.url, record.redirect_to, 1)
        elif sitemap is not None and sitemap.form is not SitemapForm.NONE:
            host = self.meet(record.url, 0)
            row = self._sitemaps.get(record.url)
            if host is not None and row is not None and not self._is_taken(host) and self._active < MOST_AT_ONCE:
                self._claim(host)
                self._begin(row, sitemap)

    def _is_taken(self, host: Host) -> bool:
        return host.record.name in self._sitemaps.busy

    def meet(self, url: str, level: int) -> Host | None:
        """Let a sitemap wait if it is new, or an index that is met on a shorter way; return its host if it waits here."""
        if len(url) > self._config.max_url_length:
            return None
        if self._abroad is not None and self._abroad.is_foreign(url):
            self._abroad.meet_sitemap(host_of(url), url, level)
            return None
        row = self._sitemaps.get(url)
        if row is None:
            row = SitemapRow(url, host_of(url), level)
        elif level < row.level:
            again = row.state is SitemapState.READ and row.form in (SitemapForm.INDEX, SitemapForm.NONE)
            row = msgspec.structs.replace(row, level=level, state=SitemapState.WAITING if again else row.state, attempts=0)
        elif row.state is not SitemapState.WAITING:
            return None
        self._sitemaps.put(row)
        if row.state is not SitemapState.WAITING:
            return None
        host = self._state.hosts.get(row.host)
        self._offer(host)
        return host

    def _meet_from(self, by: str, url: str, level: int) -> None:
        """Meet a sitemap that the one at `by` leads to."""
        if level > MAX_LEVEL:
            self._admission.refuse(RefusalRow(url, Refusal.TRAP_SITEMAP, 0, by))
        elif host_of(url) == host_of(by) or self._scope.covers(host_of(url)):
            self.meet(url, level)
        else:
            self._state.counters.refuse(Refusal.SCOPE)

    # Claiming --------------------------------------------------------------------------------------------------------

    def turn(self, host: Host) -> SitemapRow | None:
        """Return the sitemap that comes next at a due host; None if none waits, or it is a page's turn."""
        name = host.record.name
        if not self._sitemaps.has_waiting(host):
            return None
        if self._active >= MOST_AT_ONCE:
            self._sitemaps.busy.add(name)
            self._parked.append(name)
            return None
        if name in self._had_turn and host.waiting > 0:
            self._had_turn.discard(name)
            return None
        return self._sitemaps.next(host)

    def claim(self, host: Host, row: SitemapRow) -> SitemapJob:
        """Return the fetch of the sitemap whose turn it is."""
        self._claim(host)
        return SitemapJob(row.url, row.host, row.attempts)

    def _claim(self, host: Host) -> None:
        self._sitemaps.busy.add(host.record.name)
        self._had_turn.add(host.record.name)
        self._active += 1

    def release(self, name: str) -> None:
        """End a claim: the host's next sitemap may be claimed, and one of a host that waited until fewer are read."""
        self._active -= 1
        self._sitemaps.busy.discard(name)
        host = self._state.hosts.get(name)
        if not host.record.sitemaps:
            self._had_turn.discard(name)
        self._offer(host)
        if self._parked:
            waiting = self._parked.popleft()
            self._sitemaps.busy.discard(waiting)
            self._offer(self._state.hosts.get(waiting))

    def refuse(self, row: SitemapRow, done: Done) -> None:
        """End the sitemap whose turn it is without a request."""
        self._fail(row, done.reason)

    # Answers ---------------------------------------------------------------------------------------------------------

    def settle(self, job: SitemapJob, fetched: Fetched, now: float) -> float:
        """Take in what a fetch led to; return for how many seconds the host is to be left alone."""
        answer = fetched.answer
        assert isinstance(answer, Facts | FetchFailure)
        row = self._sitemaps.get(job.url)
        assert row is not None
        disposition = dispose(job.url, job.attempts, answer, self._config.retries, now, self._config.max_retry_after)
        hold_s = disposition.hold_s
        match disposition.outcome:
            case Again(wait_s):
                self._sitemaps.put(msgspec.structs.replace(row, attempts=job.attempts + 1))
                hold_s = max(hold_s, wait_s)
            case Done(kind=Kind.REDIRECT):
                assert isinstance(answer, Facts)
                assert answer.location is not None
                self._meet_from(row.url, answer.location, row.level + 1)
                self._finish(row, Sitemap(SitemapForm.NONE))
            case Done(kind=Kind.PAGE) if fetched.sitemap is not None and fetched.sitemap.form is not SitemapForm.NONE:
                self._begin(row, fetched.sitemap)
                return hold_s
            case Done(reason=reason):
                self._fail(row, reason)
            case unknown:
                assert_never(unknown)
        self.release(row.host)
        return hold_s

    def _fail(self, row: SitemapRow, reason: Reason | None) -> None:
        self._sitemaps.put(msgspec.structs.replace(row, state=SitemapState.FAILED, reason=reason))
        self._state.counters.sitemaps_failed += 1
        if is_transient(reason):
            self._state.counters.depend(OrderReason.TRANSIENT)

    # Reading ---------------------------------------------------------------------------------------------------------

    @property
    def owes(self) -> bool:
        """Whether there are entries to be met."""
        return bool(self._readings)

    def _begin(self, row: SitemapRow, sitemap: Sitemap) -> None:
        """Let the entries of a sitemap be met, as far as its host may name any more."""
        named = self._state.hosts.get(row.host).record.sitemap_urls - row.entries
        entries = sitemap.entries[: max(0, self._config.max_sitemap_urls - named)]
        for count, entry in enumerate(sitemap.entries[len(entries) :]):
            if count < MOST_A_HOST:
                self._admission.refuse(RefusalRow(entry.url, Refusal.TRAP_SITEMAP, 0, row.url))
            else:
                self._state.counters.refuse(Refusal.TRAP_SITEMAP)
        if len(entries) < len(sitemap.entries):
            self._state.counters.depend(OrderReason.TRAP)
            sitemap = Sitemap(sitemap.form, entries, cut=True)
        self._readings.append(_Reading(row, sitemap))

    def work(self) -> None:
        """Meet some more of what the first sitemap names; when that is all, it has been read."""
        if not self._readings:
            return
        reading = self._readings[0]
        row, entries = reading.row, reading.sitemap.entries
        for entry in entries[reading.met : reading.met + ENTRIES_A_STEP]:
            if reading.sitemap.form is SitemapForm.INDEX:
                self._meet_from(row.url, entry.url, row.level + 1)
                continue
            self._admission.meet_entry(entry)
        reading.met += ENTRIES_A_STEP
        if reading.met >= len(entries):
            self._readings.popleft()
            self._finish(row, reading.sitemap)
            self.release(row.host)

    def _finish(self, row: SitemapRow, sitemap: Sitemap) -> None:
        """Note that all of what a sitemap leads to has been met; if it was met on a shorter way meanwhile, once more."""
        latest = self._sitemaps.get(row.url)
        assert latest is not None
        leads_on = sitemap.form in (SitemapForm.INDEX, SitemapForm.NONE)
        state = SitemapState.WAITING if leads_on and latest.level < row.level else SitemapState.READ
        count = len(sitemap.entries)
        self._sitemaps.put(
            msgspec.structs.replace(latest, state=state, attempts=0, form=sitemap.form, entries=count, cut=sitemap.cut)
        )
        host = self._state.hosts.get(row.host)
        host.record.sitemap_urls += count - row.entries
        self._state.hosts.changed(host)
        counters = self._state.counters
        counters.sitemap_urls += count - row.entries
        counters.sitemaps_read += state is SitemapState.READ
        counters.sitemaps_cut += sitemap.cut
