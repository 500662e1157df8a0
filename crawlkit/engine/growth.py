"""What a settled page leads to is admitted, as far as the template budget goes; the rest is held, and refused in the end.

Links that find no credit are not lost: their page is held, and walked again, the shallowest first, whenever enough fresh
pages of the host have earned some, or its queue has run dry. Only when nothing else is left to do, and no held page leads to
anything that can be paid, what they lead to is refused. That depends on the order of pages, so such a crawl says so.

Unless the space turns out to be finite. Pages of a site, however alike, lead to the same URLs over and over; those of a trap
to ever new ones. So where each URL that waits is met on many of the held pages, they are all of it, and get their credit.
"""

import itertools
from collections.abc import Mapping, Sequence

from crawlkit.engine.admission import Admission
from crawlkit.engine.budget import Budget
from crawlkit.model import Facts, Fetched, OrderReason, Record, Refusal, Source
from crawlkit.policy.edges import Edge, admitting_edges, followed, redirected
from crawlkit.policy.urls import host_of, origin_of
from crawlkit.state.codec import UrlState
from crawlkit.state.crawl import CrawlState
from crawlkit.state.damage import damaged
from crawlkit.state.hosts import Host
from crawlkit.state.letters import Letter
from crawlkit.state.refusals import RefusalRow
from crawlkit.state.templates import Account, HeldRow

FRESH_PAGES_A_ROUND = 16
"""Fresh pages of a host after which held pages of it are walked again: as many in a row as can be paid."""

LINKS_A_FRESH_PAGE = 64
MOST_FRESH_PAGES = 250
"""A long page is walked again after as many fresh ones as it has times so many links, up to a bound."""

PAGES_A_ROUND = 250
"""Held pages that are walked in a round at most."""

VAIN_PAGES_A_ROUND = 2
"""Of these, how many that lead to nothing end the round, but where the host's queue has run dry."""

KEPT_FOR_HELD = 64
"""Credit of each template that is left to links that wait, while there are any: more than a round's fresh pages earn. They are
nearer to the seeds than those of pages that settle now, most of which are found nearer too once those are paid. Without this
one page in three of a site of 5,000 was told a shorter distance later, which is a walk along its links as well."""

PATIENCE = 256
"""Links in a row without credit that end a held page's turn, lest a listing of 100,000 be walked to its end each time."""

PAGES_A_STEP = 8

MANY_LINKS = 8
"""Links of a page that were not met lately, from which on its host's part of the seen-set is worth having in memory."""

MET_ON_PAGES = 8
"""On how many held pages a waiting URL is met, on average, in a finite site. Measured at the end of the budget: session ids
1, calendars 1 to 2, facets about as many as are set at once (2 to 4); 5,000 like pages with 60 links each 12."""

MOST_SURVEYED = 50_000
MOST_GRANTS = 3
"""Grants a host may have: what looks finite more often than that is not."""


class Survey:
    """What the held pages of a host lead to without credit: how often, and the URLs, up to a bound."""

    def __init__(self) -> None:
        self.met = 0
        self.urls: set[str] = set()

    def note(self, url: str) -> None:
        """Count a URL that is met once more."""
        self.met += 1
        if len(self.urls) <= MOST_SURVEYED:
            self.urls.add(url)

    @property
    def finite(self) -> bool:
        """Whether these URLs are met so often that there are hardly any others."""
        return 0 < len(self.urls) <= MOST_SURVEYED and self.met >= MET_ON_PAGES * len(self.urls)


class Growth:
    """Judges pages and follows their links, on behalf of the coordinator."""

    def __init__(self, state: CrawlState, admission: Admission, budget: Budget) -> None:
        self._state = state
        self._templates = state.templates
        self._admission = admission
        self._budget = budget
        self._rounds: dict[bytes, tuple[int, int]] = {}  # by the key of a host's account: pages to walk, and in vain
        self._prices: dict[bytes, int] = {}  # by the same: fresh pages from one round to the next, if it is not the usual
        self._turn = (b"", 0)  # whose held pages are walked if there is nothing else to do, and how many more of them
        self._in_vain = 0  # pages walked since one led to anything, with nothing else to do
        self._surveys: dict[bytes, Survey] = {}  # what those led to, by the key of a host's account
        self._is_member = False  # of a crawl in partitions
        self._others_busy = False

    def is_curious(self, url: str, via: str | None) -> bool:
        """Whether it matters what the page at `url` says, to whether more like it are admitted."""
        return self._budget.is_curious(url, via)

    def settle(self, record: Record, fetched: Fetched | None, host: Host) -> None:
        """Take in what a record that settles, of `host`, says, then follow its links."""
        self._templates.trim()
        self._in_vain = 0
        facts = None if fetched is None or not isinstance(fetched.answer, Facts) else fetched.answer
        fresh = self._budget.earn(record, None if facts is None else facts.sketch)
        account = self._budget.account(host.record.name)
        self._leave_credit(account)
        self._follow(record, 0, 0)
        if account.held:
            account.drawn += fresh
            if not host.record.queued:
                self._begin_round(account, PAGES_A_ROUND)
            elif account.drawn >= self._prices.get(account.key, FRESH_PAGES_A_ROUND):
                self._begin_round(account, VAIN_PAGES_A_ROUND)
            self._templates.changed(account)

    def _begin_round(self, host: Account, patience: int) -> None:
        host.drawn = 0
        self._rounds[host.key] = min(host.held, PAGES_A_ROUND), patience

    def follow(self, record: Record) -> None:
        """Meet what a settled record leads to; hold it if some of that cannot be paid."""
        self._leave_credit(self._budget.host(record.url))
        self._follow(record, 0, 0)

    def _leave_credit(self, host: Account) -> None:
        """Leave some to what waits of a host, before what others lead to is met."""
        self._budget.keep_back(KEPT_FOR_HELD if host.held else 0)

    def _follow(self, record: Record, position: int, patience: int) -> bool:
        """Meet what a record leads to from the `position`-th edge on; hold it if some of that cannot be paid.

        Whether it is held. The walk ends early after `patience` such edges in a row (0 for never).
        """
        unpaid = self._meet_all(record, position, patience)
        if not unpaid:
            return False
        if not record.held:  # as it is now: a link to itself may have made its sources more
            self._state.pages.put_held(record)
        host = self._budget.host(record.url)
        survey = self._surveys.get(host.key)
        if survey is not None:
            edges = list(admitting_edges(record))
            for place in unpaid:
                survey.note(edges[place].url)
        self._state.counters.held += self._templates.hold(host, record.depth, HeldRow(record.url, unpaid[0]))
        return True

    def _meet_all(self, record: Record, position: int, patience: int) -> list[int]:
        """Meet the edges of a record; return the places of those that cannot be paid."""
        urls, below, via = followed(record), record.depth + 1, record.url
        admission = self._admission
        waiting, dry = admission.unpaid(below), self._budget.dry
        places = self._doubtful(record, urls, below, waiting)
        unpaid: list[int] = []
        in_a_row, next_place = 0, position
        for place in places:
            if place < position:
                continue
            url = urls[place]
            in_a_row = in_a_row if place == next_place else 0  # those between are known
            next_place = place + 1
            if waiting.get(url) not in dry and (admission.refuse_stranger(url) or admission.meet(Edge(url, below, 0), via)):
                in_a_row = 0
                continue
            unpaid.append(place)
            in_a_row += 1
            if in_a_row == patience:
                return unpaid
        edge = redirected(record)
        if edge is not None and not admission.meet(edge, via):
            unpaid.append(len(urls))
        return unpaid

    def _doubtful(self, record: Record, urls: Sequence[str], depth: int, waiting: Mapping[str, str]) -> Sequence[int]:
        """Return the places of the links of a record but for most of those to what is known and no farther.

        Those that are `waiting` for credit are known to be new.
        """
        seen = self._state.seen
        places = seen.doubtful(urls, depth)
        if len(places) < MANY_LINKS:
            return places
        host = self._state.hosts.id_of(host_of(record.url))
        seen.expect(host)
        unsure = [place for place in places if urls[place] not in waiting] if waiting else places
        if len(unsure) < MANY_LINKS:
            return places
        doubtful = seen.doubtful_of(host, f"{origin_of(record.url)}/", urls, unsure, depth)
        told = set(unsure).difference(doubtful)
        return [place for place in places if place not in told] if told else places

    def join(self) -> None:
        """Be one of several partitions: what is held waits until nobody has anything else to do."""
        self._is_member = self._others_busy = True

    def end_waiting(self) -> None:
        """Take it that no partition has anything else to do, until what is held leads to something."""
        self._others_busy = False

    def receive(self, letter: Letter) -> None:
        """Meet a URL that another partition was led to; hold the letter if it cannot be paid."""
        self._others_busy = self._is_member
        self._leave_credit(self._budget.host(letter.url))
        self._meet_letter(letter)

    def _meet_letter(self, letter: Letter) -> bool:
        """Meet a URL; False if it cannot be paid: then its letter is held."""
        if self._admission.meet(Edge(letter.url, letter.depth, letter.hops), letter.via, letter.source):
            return True
        host = self._budget.host(letter.url)
        survey = self._surveys.get(host.key)
        if survey is not None:
            survey.note(letter.url)
        self._state.counters.held += self._templates.hold_letter(host, letter)
        return False

    # Held pages ------------------------------------------------------------------------------------------------------

    def owes(self, in_flight: int) -> bool:
        """Whether held pages are to be followed now, with so many jobs in flight."""
        return bool(self._rounds) or self._nothing_else(in_flight)

    def _nothing_else(self, in_flight: int) -> bool:
        counters = self._state.counters
        return in_flight == 0 and counters.queued == 0 and counters.held > 0 and not self._others_busy

    def work(self, in_flight: int) -> None:
        """Follow some held pages: those whose turn it is, or any if there is nothing else to do."""
        for _ in range(PAGES_A_STEP):
            if self._rounds:
                self._walk_one_of(next(iter(self._rounds)))
            elif self._nothing_else(in_flight):
                self._walk_any()
                self._others_busy = self._is_member and (self._state.counters.queued or self._state.letters.waiting) > 0
            else:
                return

    def _walk_one_of(self, key: bytes) -> None:
        host = self._templates.at(key)
        left, patience = self._rounds.pop(key)
        if host.held == 0:
            self._prices.pop(key, None)
            return
        before = self._state.counters.queued
        links = self._walk(host, PATIENCE)
        if links and self._state.counters.queued == before:
            patience -= 1
        elif links and self._templates.turn_back(host):  # the credit did not suffice
            self._prices[key] = max(FRESH_PAGES_A_ROUND, min(links // LINKS_A_FRESH_PAGE, MOST_FRESH_PAGES))
            return
        if left > 1 and patience > 0:
            self._rounds[key] = left - 1, patience

    def _walk_any(self) -> None:
        counters = self._state.counters
        host = self._next_holder()
        if self._in_vain >= counters.held:
            if not self._grant(host):
                self._refuse(self._release(host))
            return
        if self._in_vain == 0:
            self._surveys.clear()
        self._surveys.setdefault(host.key, Survey())
        self._walk(host, 0)
        self._in_vain = 0 if counters.queued else self._in_vain + 1

    def _next_holder(self) -> Account:
        """Return a host with held pages, each as often in a row as it has such pages."""
        key, left = self._turn
        host = self._templates.at(key) if left else None
        if host is None or not host.held:
            host = self._templates.holder()
            left = host.held
        self._turn = (host.key, left - 1)
        return host

    def _grant(self, host: Account) -> bool:
        """Give credit for all that the held pages of a host lead to, if that is finite; whether it was given."""
        survey = self._surveys.pop(host.key, None)
        if survey is None or not survey.finite or host.grants >= MOST_GRANTS:
            return False
        host.grants += 1
        self._templates.changed(host)
        self._budget.grant(survey.urls)
        self._in_vain = 0
        return True

    def _walk(self, host: Account, patience: int) -> int:
        """Follow what the next held row of a host leads to; return how many links it has if some of them wait on."""
        self._budget.keep_back(0)
        row = self._release(host)
        if row.letter is not None:
            return 0 if self._meet_letter(row.letter) else 1
        record = self._record_of(row)
        return len(record.links) if record is not None and self._follow(record, row.position, patience) else 0

    def _refuse(self, row: HeldRow) -> None:
        """Meet what a held row leads to for the last time."""
        if row.letter is not None:
            edge = Edge(row.url, row.letter.depth, row.letter.hops)
            self._meet_or_refuse(edge, row.letter.via, row.letter.source)
        elif (record := self._record_of(row)) is not None:
            for edge in itertools.islice(admitting_edges(record), row.position, None):
                self._meet_or_refuse(edge, record.url, Source.LINK)

    def _meet_or_refuse(self, edge: Edge, via: str | None, source: int) -> None:
        if not self._admission.meet(edge, via, source):
            self._admission.refuse(RefusalRow(edge.url, Refusal.TRAP_TEMPLATE, edge.depth, via))
            self._state.counters.depend(OrderReason.TRAP)

    def _release(self, host: Account) -> HeldRow:
        row = self._templates.release(host)
        self._state.counters.held -= 1
        return row

    def _record_of(self, row: HeldRow) -> Record | None:
        """Return a held page's record; None if it was taken back into the queue: its links are met when it settles again."""
        record = self._state.pages.get(row.url)
        if record is None:
            entry = self._state.seen.find(row.url, self._state.hosts.get(host_of(row.url)).id)
            if entry is not None and entry.state is not UrlState.SETTLED:
                return None
            raise damaged(f"the links of {row.url} wait, but it has no record", self._state.directory)
        return record
