"""Which host is asked next: the hosts in memory that have work, by when they may be asked.

Politeness by structure: a host is in here at most once, and taking it takes it out, so it cannot be asked twice without its
next time being worked out in between. All of this is a cache of the store: losing it costs a scan. Hosts beyond its size, and
at first all of them, are found by walking the host records in a circle.
"""

import heapq
import itertools

from crawlkit.config import Config
from crawlkit.model import Fetched, FetchFailure
from crawlkit.policy import politeness
from crawlkit.policy.health import after, concurrency_of, signal_of, slowed_gap_s
from crawlkit.state import keys
from crawlkit.state.crawl import CrawlState
from crawlkit.state.hosts import Host

MOST_HOSTS = 8_192
HOSTS_A_SCAN = 256


class Schedule:
    """Hosts that wait for their time, then due hosts by the priority of their first row.

    `not_before_s` holds back every host: a full gap after it passes first (None for no such time).
    """

    def __init__(self, state: CrawlState, config: Config, not_before_s: float | None, most_hosts: int = MOST_HOSTS) -> None:
        self._state = state
        self._config = config
        self._not_before_s = not_before_s
        self._most = most_hosts
        self._waiting: list[tuple[float, int, Host]] = []
        self._due: list[tuple[int, int, Host]] = []
        self._turns = itertools.count()  # first come, first served among equals
        self._parked: dict[str, list[str]] = {}
        self._scan_from: bytes | None = keys.HOST if state.counters.queued else None
        self._left_out = False

    def __len__(self) -> int:
        return len(self._waiting) + len(self._due)

    # In and out ------------------------------------------------------------------------------------------------------

    def offer(self, host: Host, now: float) -> None:
        """Take in a host if it has a row and a free slot; one that finds no room is looked up again later."""
        if host.scheduled or host.robots_pending or host.waiting <= 0:
            return
        if not self.has_slot(host) or self.budget_spent(host):
            return
        if len(self) >= self._most:
            self._left_out = True
            self._scan_from = self._scan_from or keys.HOST
            return
        self.put(host, self.next_start(host, now))
        self._state.frontier.share_window(len(self))

    def put(self, host: Host, at: float) -> None:
        """Let `host` be asked from `at` on."""
        host.scheduled = True
        heapq.heappush(self._waiting, (at, next(self._turns), host))

    def take(self, now: float) -> Host | None:
        """Take out the due host that comes first, None if none is due.

        A host may have been asked for another's robots.txt since it was put in, or have asked to be left alone: so its time
        is worked out once more.
        """
        while self._waiting and self._waiting[0][0] <= now:
            _, turn, host = heapq.heappop(self._waiting)
            heapq.heappush(self._due, (host.head.first_priority(), turn, host))
        while self._due:
            host = heapq.heappop(self._due)[2]
            host.scheduled = False
            if not self.has_slot(host):
                continue  # it is offered again when one is free
            at = self.next_start(host, now)
            if at <= now:
                return host
            self.put(host, at)
        return None

    def next_time(self) -> float | None:
        """Return when the next host is due (0 if one is), None if there are no hosts."""
        if self._due:
            return 0.0
        return self._waiting[0][0] if self._waiting else None

    def park(self, host: Host, other: str) -> None:
        """Leave `host` out until a request to the host `other` has ended: its robots.txt has to be asked for there."""
        host.robots_pending = True
        self._parked.setdefault(other, []).append(host.record.name)

    def unpark(self, other: str, now: float) -> None:
        """Take in again the hosts that waited for a request to the host `other` to end."""
        for name in self._parked.pop(other, ()):
            host = self._state.hosts.get(name)
            host.robots_pending = False
            self.offer(host, now)

    # When ------------------------------------------------------------------------------------------------------------

    def next_start(self, host: Host, now: float) -> float:
        """Return the earliest time for the next request to `host`; one that is given up is asked nothing, at once."""
        record = host.record
        if record.health.given_up:
            return now
        contact = politeness.Contact(record.last_start_s, record.last_end_s, record.hold_until_s)
        if contact.last_start_s > now or contact.last_end_s > now:
            contact = politeness.without_jump(contact, now)
            record.last_start_s, record.last_end_s = contact.last_start_s, contact.last_end_s
            record.hold_until_s = contact.hold_until_s
        gap = slowed_gap_s(politeness.gap_s(self._config.delay, record.crawl_delay_s), record.health)
        floor = 0.0 if self._not_before_s is None else self._not_before_s + gap
        return politeness.next_start_s(contact, gap, self._config.host_concurrency, floor)

    def note_end(self, host: Host, fetched: Fetched, now: float) -> None:
        """Take in that a request to `host` ended: when, and what that says of its health."""
        record, answer = host.record, fetched.answer
        host.in_flight -= 1
        record.last_start_s = max(record.last_start_s, fetched.started_s)
        record.last_end_s = max(record.last_end_s, fetched.ended_s)
        status, reason = (None, answer.reason) if isinstance(answer, FetchFailure) else (answer.status, None)
        change = after(record.health, signal_of(status, reason))
        record.health = change.health
        if change.pause_s:
            record.hold_until_s = max(record.hold_until_s, now + change.pause_s)
        self._state.hosts.changed(host)

    def has_slot(self, host: Host) -> bool:
        """Whether one more request to the host may be in flight."""
        return host.in_flight < concurrency_of(host.record.health, self._config.host_concurrency)

    def budget_spent(self, host: Host) -> bool:
        """Whether the limit on a host's pages is reached, by records and claims together."""
        limit = self._config.max_pages_per_host
        return limit is not None and host.record.pages + len(host.claims) >= limit

    # Hosts in the store ----------------------------------------------------------------------------------------------

    def look_again(self) -> None:
        """Walk the host records once more: some got work behind our back."""
        self._scan_from = keys.HOST

    @property
    def complete(self) -> bool:
        """Whether every host with work is in here (or in flight, or held by its budget)."""
        return self._scan_from is None

    @property
    def can_scan(self) -> bool:
        """Whether there may be further hosts in the store, and room for them."""
        return self._scan_from is not None and len(self) < self._most

    def scan(self, now: float) -> None:
        """Offer the next hosts of the circle; it ends when a whole round left none out."""
        if self._scan_from is None:
            return
        if self._scan_from == keys.HOST:
            self._left_out = False
        found = self._state.hosts.scan(self._scan_from, HOSTS_A_SCAN)
        for _, record in found:
            if record.queued > 0:
                self.offer(self._state.hosts.get(record.name), now)
        if len(found) == HOSTS_A_SCAN:
            self._scan_from = found[-1][0] + b"\0"
        else:
            self._scan_from = keys.HOST if self._left_out else None
