"""Admission: what becomes of a URL that is met. The one door into the frontier.

Text is a URL already (`policy.urls`); here it goes through the recently seen, scope, the seen-set and the depth limit, cheapest
first; then, where it is new, through the rules against traps. A URL that is known may have been met on a shorter way: then
its distances are lowered.
"""

from collections.abc import Callable, Mapping

from crawlkit.config import Config
from crawlkit.engine.budget import Budget
from crawlkit.engine.hook import NOBODY, Callers
from crawlkit.model import Refusal, Source
from crawlkit.policy.edges import Edge
from crawlkit.policy.novelty import template_of
from crawlkit.policy.scope import Scope
from crawlkit.policy.traps import Traps
from crawlkit.policy.urls import host_of
from crawlkit.sitemap import SitemapEntry
from crawlkit.state.codec import Head, SeenEntry
from crawlkit.state.crawl import CrawlState
from crawlkit.state.hosts import Host
from crawlkit.state.refusals import RefusalRow

REFUSED_IN_MEMORY = 50_000
UNPAID_IN_MEMORY = 50_000

_LINK, _SEED, _OUTSIDE = int(Source.LINK), int(Source.SEED), Refusal.SCOPE  # looked up once (`model`)


class Admission:
    """Meets URLs on behalf of the coordinator; `on_work` is told of hosts that got something to do.

    `callers` give the place in its queue of a URL that is admitted; what is in scope and belongs to another partition goes
    abroad, where it is met.
    """

    def __init__(
        self,
        state: CrawlState,
        scope: Scope,
        config: Config,
        budget: Budget,
        on_work: Callable[[Host], None],
        callers: Callers = NOBODY,
    ) -> None:
        self._state = state
        self.scope = scope
        self._max_depth = config.max_depth
        self._traps = Traps.of(config)
        self._budget = budget
        self._on_work = on_work
        self._priority = callers.priority
        self._abroad = callers.abroad
        self._refused: dict[str, Refusal] = {}  # by rules and plugins only, which are functions of the URL
        # In scope, new, no trap, and without credit when it was last met: each is met on many pages until it is paid.
        self._unpaid: dict[str, str] = {}  # with their templates

    def meet(self, edge: Edge, via: str | None, source: int = Source.LINK) -> bool:
        """Admit, lower or refuse the URL that an edge leads to, met on the page `via` (None for a seed), by way of `source`.

        False if it is new and there is no budget for it: then nothing is done about it.
        """
        url, depth, hops = edge
        if via is not None and url in self._unpaid:
            return self._admit(edge, via, source)
        seen, name = self._state.seen, ""
        entry = seen.recent(url)
        # A seed that was added may be outside of the scope; links to it are refused, as they are before it is added.
        judged = (entry is None or not entry.sources & _LINK) and not source & _SEED
        if judged and self._refuse_out_of_scope(edge, via):
            return True
        if entry is None:
            name = host_of(url)
            if self._abroad is not None and self._abroad.holds(name):
                meet = self._abroad.meet_too_deep if self._too_deep(depth) else self._abroad.meet
                meet(name, edge, via, source)
                return True
            entry = seen.not_recent(url, self._state.hosts.id_of(name))  # of a known URL the host need not be loaded
        if entry is not None:
            if depth < entry.depth or hops < entry.hops or source & ~entry.sources:
                self._lower(edge, entry, source)
            return True
        if not source & _SEED and (refusal := self._traps.judge(url)) is not None:
            self._state.counters.refuse(refusal)
            return True
        return self._admit(edge, via, source)

    def refuse_stranger(self, url: str) -> bool:
        """Count a link to `url` if its host alone keeps it out, as `meet` does too, which takes four times as long."""
        if url.startswith(self.scope.prefixes) or self._state.seen.recent(url) is not None:
            return False
        self._state.counters.refuse(_OUTSIDE)
        return True

    def unpaid(self, depth: int) -> Mapping[str, str]:
        """Return what found no credit when it was last met, with its template; nothing if `depth` alone keeps links out.

        As long as the template is dry (`Budget.dry`), `meet` would say the same of it again, which takes thirty times as long.
        """
        return {} if self._too_deep(depth) else self._unpaid

    def _admit(self, edge: Edge, via: str | None, source: int) -> bool:
        """Queue a URL that is new and no trap, as far as depth and budget let it in; False if there is no budget for it."""
        url, depth, hops = edge
        if self._too_deep(depth):
            self.refuse(RefusalRow(url, Refusal.DEPTH, depth, via))
        elif via is not None and not self._budget.pay(url):
            if len(self._unpaid) >= UNPAID_IN_MEMORY:
                self._unpaid.clear()
            self._unpaid[url] = template_of(url)
            return False
        else:
            self._unpaid.pop(url, None)
            host = self._state.hosts.get(host_of(url))
            priority = None if self._priority is None else self._priority(url)
            self._state.frontier.add(url, host, depth, hops, via, source, priority=priority)
            self._on_work(host)
        return True

    def _refuse_out_of_scope(self, edge: Edge, via: str | None) -> bool:
        """Count a link that is out of scope; False if it is in scope."""
        refusal = self._out_of_scope(edge.url)
        if refusal is Refusal.HOOK:
            self.refuse(RefusalRow(edge.url, refusal, edge.depth, via))
        elif refusal is not None:
            self._state.counters.refuse(refusal)
        return refusal is not None

    def meet_entry(self, entry: SitemapEntry) -> None:
        """Meet a URL that a sitemap names, and keep what that says of it if it is admitted."""
        name = host_of(entry.url)
        if self._abroad is not None and self._abroad.holds(name) and self.is_in_scope(entry.url):
            self._abroad.meet_entry(name, entry)
            return
        self.meet(Edge(entry.url, 0, 0), None, Source.SITEMAP)
        if self._state.seen.recent(entry.url) is not None:  # it was admitted
            self._state.pages.note(entry)

    def refuse(self, row: RefusalRow) -> None:
        """Count a link that is refused for more than its URL, and keep why."""
        self._state.counters.refuse(row.refusal)
        self._state.refusals.note(self._state.hosts.id_of(host_of(row.url)), row)

    def is_in_scope(self, url: str) -> bool:
        """Whether a link to a URL would be in scope."""
        return self._out_of_scope(url) is None

    def _lower(self, edge: Edge, entry: SeenEntry, source: int) -> None:
        """Give a URL that is known the lesser distances, each by itself, and the source.

        An edge that is too deep to admit counts for nothing: whether its target is known by then depends on order.
        """
        url, depth, hops = edge
        if not self._too_deep(depth):
            to = entry.joined(Head(depth, hops, source))
            self._state.distances.lower(url, self._state.hosts.get(host_of(url)), entry, to)

    def _too_deep(self, depth: int) -> bool:
        return self._max_depth is not None and depth > self._max_depth

    def _out_of_scope(self, url: str) -> Refusal | None:
        refusal = self._refused.get(url)
        if refusal is None:
            refusal = self.scope.refusal(url)
            if refusal is not None and refusal is not _OUTSIDE:  # which is told as quickly as it is looked up
                if len(self._refused) >= REFUSED_IN_MEMORY:
                    self._refused.clear()
                self._refused[url] = refusal
        return refusal
