"""Gaps per server, for `group_by = "address"`: host names that lead to one address are asked as one.

To which address a name leads is found before a request is made to it, and anew each minute (`TTL_S`). All of this is in memory
only; a run that goes on with a crawl therefore begins with a full gap for every host (`engine.schedule`).
"""

from collections import OrderedDict

import msgspec

from crawlkit.config import Config
from crawlkit.model import Fetched
from crawlkit.policy import politeness
from crawlkit.policy.health import MOST_SLOWED_GAP_S

TTL_S = 60.0
NAMES_IN_MEMORY = 16_384
SERVERS_IN_MEMORY = 4_096

_LEAST_STEP_S = 0.01


class _Server(msgspec.Struct):
    """One address: its last request, those in flight, and how many hosts were sent to wait since the last one began."""

    last_start_s: float = 0.0
    last_end_s: float = 0.0
    took_s: float = 0.0
    in_flight: int = 0
    sent_away: int = 0


class Servers:
    """Where names lead, and when each address was asked last.

    What is known of addresses is bounded by what was asked within the longest gap: older ones bind nobody.
    """

    def __init__(self, config: Config) -> None:
        self._concurrency = config.host_concurrency
        self._longest_gap_s = max(config.delay, config.max_crawl_delay, MOST_SLOWED_GAP_S)
        self._names: OrderedDict[str, tuple[str, float]] = OrderedDict()
        self._servers: dict[str, _Server] = {}
        self._most = SERVERS_IN_MEMORY

    def address_of(self, name: str, now: float) -> str | None:
        """Return the address that a host's name leads to, None if it has to be found (again)."""
        known = self._names.get(name)
        return None if known is None or not now <= known[1] <= now + TTL_S else known[0]

    def learn(self, name: str, address: str, now: float) -> None:
        """Take in where a name leads."""
        self._names[name] = (address, now + TTL_S)
        self._names.move_to_end(name)
        if len(self._names) > NAMES_IN_MEMORY:
            self._names.popitem(last=False)

    def next_turn(self, name: str, gap_s: float, now: float) -> float:
        """Return when a host that is due may ask its server; who is told a later time stands behind those told one before.

        A thousand hosts of one server would else all be looked at whenever one of them has been asked.
        """
        address = self.address_of(name, now)
        server = None if address is None else self._servers.get(address)
        if server is None:
            return 0.0
        contact = politeness.Contact(min(server.last_start_s, now), min(server.last_end_s, now), 0.0)
        free_s = politeness.next_start_s(contact, gap_s, self._concurrency, 0.0)
        is_busy = server.in_flight >= self._concurrency
        if not is_busy and free_s <= now:
            return free_s
        step_s = max(gap_s, server.took_s, _LEAST_STEP_S)
        server.sent_away += 1
        if is_busy:
            return max(free_s, now) + step_s * server.sent_away
        return free_s + step_s * (server.sent_away - 1)

    def start(self, address: str, now: float) -> None:
        """Take in that a request to `address` starts."""
        if len(self._servers) >= self._most:
            self._forget(now - self._longest_gap_s)
        server = self._servers.setdefault(address, _Server())
        server.in_flight += 1
        server.sent_away = 0
        server.last_start_s = now

    def end(self, address: str, fetched: Fetched) -> None:
        """Take in that a request to `address` ended."""
        server = self._servers[address]
        server.in_flight -= 1
        server.last_start_s = max(server.last_start_s, fetched.started_s)
        server.last_end_s = max(server.last_end_s, fetched.ended_s)
        server.took_s = fetched.ended_s - fetched.started_s

    def _forget(self, before_s: float) -> None:
        for address, server in list(self._servers.items()):
            if not server.in_flight and max(server.last_start_s, server.last_end_s) < before_s:
                del self._servers[address]
        self._most = max(SERVERS_IN_MEMORY, 2 * len(self._servers))  # or each request would look at all of them
