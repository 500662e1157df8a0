"""Which host is asked next: the hosts that have work, by when they may be asked.

Politeness by structure: a host is in here at most once, and taking it takes it out, so it cannot be asked twice without its
next time being worked out in between. All of this is a cache of the store: losing it costs a scan.

There is room for a number of hosts, by their names only. When it is used up the later ones are dropped, and so are all from
then on that are due after the horizon this leaves. They are found again by walking the host records in a circle, which begins
when few are left: by then the horizon has come near, or everything that is left is due anyway. No host is passed over for ever,
as the time of one that waits stays what it is, while the others that are asked get a later one.
"""

import heapq
import itertools
import math
from collections.abc import Iterable

import msgspec

from crawlkit.config import Config
from crawlkit.engine.parking import AGAIN_S, Parking
from crawlkit.engine.servers import Servers
from crawlkit.engine.turns import contact_of, earliest_start_s, gap_in_force_s, is_spent, note_contacts
from crawlkit.model import Fetched, FetchFailure, Found, GroupBy, Job
from crawlkit.policy import politeness
from crawlkit.policy.health import after, concurrency_of, signal_of
from crawlkit.policy.urls import host_of
from crawlkit.state import keys
from crawlkit.state.crawl import CrawlState
from crawlkit.state.hosts import Host, HostRecord

MOST_HOSTS = 16_384
HOSTS_A_SCAN = 1_024

SLOW_S = 1.0
"""A host whose last request took longer is slow, and one that has answered nothing yet may be."""

SLOW_SHARE = 16
"""Of so many workers one may be held by the same slow host while others have work."""


class Schedule:
    """Hosts that wait for their time, then due hosts by the priority of their first row.

    `not_before_s` holds back every host: a full gap after it passes first (None for no such time).
    """

    def __init__(self, state: CrawlState, config: Config, not_before_s: float | None, most_hosts: int = MOST_HOSTS) -> None:
        self._state = state
        self._config = config
        self._servers = Servers(config) if config.group_by is GroupBy.ADDRESS else None
        if self._servers is not None and not_before_s is None and len(state.runs) > 1:
            not_before_s = state.runs[-1].started_s  # which addresses were asked last is not known any more
        self._not_before_s = not_before_s
        self._most = most_hosts
        self._slow_most = max(1, config.workers // SLOW_SHARE)
        self._in_flight = 0
        self._waiting: list[tuple[float, int, str]] = []
        self._due: list[tuple[int, int, str]] = []
        self._names: set[str] = set()
        self._turns = itertools.count()  # first come, first served among equals
        self._parking = Parking(most_hosts)
        self._now = 0.0
        self._horizon_s = math.inf
        self._scan_from: bytes | None = keys.HOST if state.counters.queued or state.counters.sitemaps else None
        self._left_out = False

    def __len__(self) -> int:
        return len(self._names)

    # In and out ------------------------------------------------------------------------------------------------------

    def offer(self, host: Host, now: float) -> None:
        """Take in a host if it has a row and a free slot; one that finds no room is looked up again later."""
        name = host.record.name
        if name in self._names or name in self._parking.names or host.robots_pending or host.record.held:
            return
        if host.waiting <= 0 and not self._state.sitemaps.has_waiting(host):
            return
        if not self.has_slot(host) or self.budget_spent(host):
            return
        self._take_in(name, self.next_start(host, now))

    def _take_in(self, name: str, at: float) -> None:
        """Let the host `name` be asked from `at` on, if there is room for it."""
        if at < self._horizon_s:
            self._put(name, at)
        else:
            self._leave_out()

    def _put(self, name: str, at: float) -> None:
        self._names.add(name)
        heapq.heappush(self._waiting, (at, next(self._turns), name))
        if len(self._names) > self._most:
            self._make_room()
        self._state.frontier.share_window(len(self._names))

    def _make_room(self) -> None:
        """Drop the hosts that wait longest: a quarter of all, as this costs a sort."""
        keep = max(0, max(1, self._most * 3 // 4) - len(self._due))
        self._waiting.sort()
        self._horizon_s = self._waiting[keep][0]
        for _, _, name in self._waiting[keep:]:
            self._names.discard(name)
            self._leave_out()
        del self._waiting[keep:]

    def _leave_out(self) -> None:
        self._left_out = True
        self._scan_from = self._scan_from or keys.HOST

    def defer(self, host: Host, at: float) -> None:
        """Let a host that was just taken out be asked from `at` on, for a reason that its record does not tell.

        So it is kept whenever that is: found again by its record it would be taken for due.
        """
        self._put(host.record.name, at)

    def look_at(self, host: Host, now: float) -> None:
        """Work out anew when a host may be asked, which people have changed."""
        if any(name == host.record.name for _, _, name in self._waiting):
            self._waiting = [entry for entry in self._waiting if entry[2] != host.record.name]
            heapq.heapify(self._waiting)
            self._names.discard(host.record.name)
        self.offer(host, now)
        if not host.record.held:
            self.unpark(host.record.name, now)

    def take(self, now: float) -> Host | None:
        """Take out the due host that comes first, None if none is due.

        A host may have been asked for another's robots.txt since it was put in, or have asked to be left alone: so its time
        is worked out once more.
        """
        self._now = now
        hosts = self._state.hosts
        while self._waiting and self._waiting[0][0] <= now:
            _, turn, name = heapq.heappop(self._waiting)
            known = hosts.loaded(name)  # all that are due at once are not loaded at once
            heapq.heappush(self._due, (0 if known is None else known.head.first_priority(), turn, name))
        while self._due:
            host = hosts.get(heapq.heappop(self._due)[2])
            self._names.discard(host.record.name)
            if host.record.held or not self.has_slot(host):
                continue  # it is offered again when it is released, or a slot is free
            at = self.next_start(host, now)
            if at > now:
                self._take_in(host.record.name, at)
            elif (later := max(self._rested_s(host), self._server_turn(host, now))) > now:
                self.defer(host, later)
            else:
                return host
        return None

    def _rested_s(self, host: Host) -> float:
        """Return until when a slow host makes way for others that are due: as long as its last request took.

        So it holds half of a worker at most, of which there may be a few.
        """
        if not self._due or host.took_s is None or host.took_s <= SLOW_S:
            return 0.0
        return host.record.last_end_s + host.took_s

    def next_time(self) -> float | None:
        """Return when the next host is due (0 if one is), None if there are no hosts."""
        if self._due:
            return 0.0
        return self._waiting[0][0] if self._waiting else None

    def unpark(self, other: str, now: float) -> None:
        """Take in again the hosts that waited for a request to the host `other` to end."""
        for name in self._parking.leave(other):
            self.offer(self._state.hosts.get(name), now)

    # When ------------------------------------------------------------------------------------------------------------

    def next_start(self, host: Host, now: float) -> float:
        """Return the earliest time for the next request to `host`; one that is given up is asked nothing, at once."""
        record = host.record
        if record.last_start_s > now or record.last_end_s > now:
            contact = politeness.without_jump(contact_of(record), now)
            record.last_start_s, record.last_end_s, record.hold_until_s = msgspec.structs.astuple(contact)
            self._state.hosts.changed(host)
        return self.next_start_of(record, now)

    def next_start_of(self, record: HostRecord, now: float) -> float:
        """Return the same by a host's record, of which nothing is changed."""
        return earliest_start_s(record, self._config, self._not_before_s, now)

    def hold(self, hosts: Iterable[Host], now: float, hold_s: float) -> None:
        """Leave hosts alone for so many seconds, 0 for none."""
        for host in hosts if hold_s else ():
            host.record.hold_until_s = max(host.record.hold_until_s, now + hold_s)

    def _server_turn(self, host: Host, now: float) -> float:
        if self._servers is None or host.record.is_over:
            return 0.0
        return self._servers.next_turn(host.record.name, gap_in_force_s(host.record, self._config), now)

    def may_ask(self, other: Host, host: Host, now: float) -> bool:
        """Whether `other` may be asked for the robots.txt of `host` now; if not, `host` waits for that."""
        if other.record.held or not self.has_slot(other):
            if not self._parking.park(host.record.name, other.record.name):
                self.defer(host, now + AGAIN_S)
            return False
        at = max(self.next_start(other, now), self._server_turn(other, now))
        if at > now:
            self.defer(host, at)
        return at <= now

    def keep_delay(self, host: Host, crawl_delay_s: float) -> bool:
        """Take over what an origin asks for; whether the host's gap is another now."""
        if host.record.crawl_delay_s == crawl_delay_s:
            return False
        host.record.crawl_delay_s = crawl_delay_s
        self._state.hosts.changed(host)
        return True

    def addressed(self, job: Job, now: float) -> Job:
        """Return a job with the address to ask, where that matters and is known."""
        if self._servers is None:
            return job
        return msgspec.structs.replace(job, address=self._servers.address_of(host_of(job.url), now))

    def note_start(self, hosts: list[Host], job: Job, now: float) -> bool:
        """Take in that a job for `hosts` starts; whether it is a request, not only the finding of an address."""
        asks = self._servers is None or job.address is not None
        for host in hosts:
            host.in_flight += 1
            self._in_flight += 1
            if asks:
                host.record.last_start_s = now
                self._state.hosts.changed(host)
        if self._servers is not None and job.address is not None:
            self._servers.start(job.address, now)
        return asks

    def note_found(self, hosts: list[Host], fetched: Fetched, now: float) -> bool:
        """Take in that a job ended with the address of its host and nothing was asked; False if that is not so."""
        if self._servers is None or not isinstance(fetched.answer, Found):
            return False
        for host in hosts:
            host.in_flight -= 1
            self._in_flight -= 1
        self._servers.learn(host_of(fetched.job.url), fetched.answer.address, now)
        self._note_server_end(fetched)
        return True

    def _note_server_end(self, fetched: Fetched) -> None:
        if self._servers is not None and fetched.job.address is not None:
            self._servers.end(fetched.job.address, fetched)

    def note_end(self, hosts: list[Host], fetched: Fetched, now: float) -> None:
        """Take in that a request for `hosts` ended: when, and what that says of their health."""
        for host in hosts:
            self._note_host_end(host, fetched, now)
        note_contacts(self._state, fetched.contacts)
        self._note_server_end(fetched)

    def _note_host_end(self, host: Host, fetched: Fetched, now: float) -> None:
        record, answer = host.record, fetched.answer
        host.in_flight -= 1
        self._in_flight -= 1
        host.took_s = fetched.ended_s - fetched.started_s
        record.last_start_s = max(record.last_start_s, fetched.started_s)
        record.last_end_s = max(record.last_end_s, fetched.ended_s)
        assert not isinstance(answer, Found)
        status, reason = (None, answer.reason) if isinstance(answer, FetchFailure) else (answer.status, None)
        change = after(record.health, signal_of(status, reason))
        record.health = change.health
        if change.pause_s:
            record.hold_until_s = max(record.hold_until_s, now + change.pause_s)
        self._state.hosts.changed(host)

    def has_slot(self, host: Host) -> bool:
        """Whether one more request to the host may be in flight. A slow one must not end up with all the workers."""
        if host.in_flight >= concurrency_of(host.record.health, self._config.host_concurrency):
            return False
        is_quick = host.took_s is not None and host.took_s <= SLOW_S
        return is_quick or host.in_flight < self._slow_most or not self._has_others(host)

    def _has_others(self, host: Host) -> bool:
        """Whether any other host waits or has a request in flight."""
        return self._in_flight > host.in_flight or len(self._names) > (host.record.name in self._names)

    def budget_spent(self, host: Host) -> bool:
        """Whether the limit on a host's pages is reached, by records and claims together."""
        return is_spent(host.record, self._config, len(host.claims))

    def is_spent(self, record: HostRecord) -> bool:
        """Whether it is, by records alone."""
        return is_spent(record, self._config)

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
        """Whether there may be further hosts in the store that are due before some in here, or room for them.

        A round that has begun goes on until it has filled this with hosts that are all due.
        """
        if self._scan_from is None:
            return False
        return self._is_low() or (self._scan_from != keys.HOST and self._horizon_s > self._now)

    def _is_low(self) -> bool:
        return len(self._names) <= self._most // 4

    def scan(self, now: float) -> None:
        """Offer the next hosts of the circle; it ends when a whole round left none out."""
        if self._scan_from is None:
            return
        self._now = now
        if self._is_low():
            self._horizon_s = math.inf
        if self._scan_from == keys.HOST:
            self._left_out = False
        found = self._state.hosts.scan(self._scan_from, HOSTS_A_SCAN)
        for _, record in found:
            if record.queued <= 0 and record.sitemaps <= 0:
                continue
            if max(record.last_start_s + record.crawl_delay_s, record.hold_until_s) >= self._horizon_s:
                self._left_out = True  # this is all that is done for most of 10^6
            else:
                self._offer_record(record, now)
        if len(found) == HOSTS_A_SCAN:
            self._scan_from = found[-1][0] + b"\0"
        else:
            self._scan_from = keys.HOST if self._left_out else None

    def _offer_record(self, record: HostRecord, now: float) -> None:
        """Offer a host by its record, as loading it costs more; but not if a clock that was set back has to be made up for."""
        hosts = self._state.hosts
        host = hosts.get(record.name) if max(record.last_start_s, record.last_end_s) > now else hosts.loaded(record.name)
        if host is not None:
            self.offer(host, now)
        elif not (record.name in self._names or record.name in self._parking.names or record.held or self.is_spent(record)):
            self._take_in(record.name, self.next_start_of(record, now))
