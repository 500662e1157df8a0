"""The seen entries of active hosts, each host's whole, in memory: a cache of the store, like the other layers of the seen-set.

Most links of a page lead to its own host, and a few hosts give most pages. In a large crawl each such link costs a look-up in
LevelDB (20 to 60 us at 10^7 URLs); a host's entries are one contiguous range, which is read at 1 us a row. So a host that
keeps asking has its range read, and the range answers "no" too.

Where there is no room for all, a host takes the place of another only if it asked more lately than that one, before it asks
now: else many hosts that ask seldom would all be read, each to be let go before it asks again.
"""

from collections import OrderedDict

from crawlkit.state import keys
from crawlkit.state.store import Store

MOST_ENTRIES = 400_000
"""Entries in memory, of all hosts together: 50 MiB."""

MOST_OF_A_HOST = 10_000
"""Entries of a host that is taken in: reading so many takes 10 ms, in which the loop does nothing else."""

HOSTS_REMEMBERED = 16_384
"""Hosts that asked once, or have too many entries."""

_TOO_LARGE = -1

_SHORT_VALUE = 6
"""Values up to this are those of settled URLs, of which there are few different ones."""


class ActiveHosts:
    """Hosts by their ids (`keys.host_id`), those that asked lately; their entries as stored, by `keys.url_id`."""

    def __init__(self, store: Store, most_entries: int = MOST_ENTRIES, most_of_a_host: int = MOST_OF_A_HOST) -> None:
        self._store = store
        self._most_entries = most_entries
        self._most_of_a_host = most_of_a_host
        self._loaded: OrderedDict[bytes, dict[bytes, bytes]] = OrderedDict()
        self._entries = 0
        self._is_full = False  # whether a host had to make room
        self._asks = 0
        self._asked: OrderedDict[bytes, int] = OrderedDict()  # the number of a host's last ask, or that it is too large
        self._short: dict[bytes, bytes] = {}

    def __len__(self) -> int:
        return self._entries

    def entries(self, host: bytes) -> dict[bytes, bytes] | None:
        """Return all entries of a host, None if they are not in memory."""
        return self._loaded.get(host)

    def ask(self, host: bytes) -> None:
        """Note that many look-ups of this host are to come; the second time its entries are taken in, if there is room."""
        self._asks += 1
        before = self._asked.pop(host, None)
        self._asked[host] = _TOO_LARGE if before == _TOO_LARGE else self._asks
        if host in self._loaded:
            self._loaded.move_to_end(host)
        elif before is None:
            if len(self._asked) > HOSTS_REMEMBERED:
                self._asked.popitem(last=False)
        elif before != _TOO_LARGE and (not self._is_full or before > self._longest_ago()):
            self._load(host)

    def _longest_ago(self) -> int:
        """Return the number of the last ask of the host that would make room."""
        return self._asked.get(next(iter(self._loaded), b""), 0)

    def _load(self, host: bytes) -> None:
        prefix = keys.SEEN + host
        rows = self._store.scan(prefix, prefix, self._most_of_a_host + 1)
        if len(rows) > self._most_of_a_host:
            self._asked[host] = _TOO_LARGE
            return
        length, shared = len(prefix), self._short.setdefault
        self._loaded[host] = {
            key[length:]: shared(value, value) if len(value) <= _SHORT_VALUE else value for key, value in rows
        }
        self._entries += len(rows)
        self._make_room()

    def _make_room(self) -> None:
        while self._entries > self._most_entries:
            self._let_go(next(iter(self._loaded)))
            self._is_full = True

    def put(self, host: bytes, url: bytes, value: bytes) -> None:
        """Take note of an entry that was just staged."""
        entries = self._loaded.get(host)
        if entries is None:
            return
        self._entries += url not in entries
        entries[url] = self._short.setdefault(value, value) if len(value) <= _SHORT_VALUE else value
        if len(entries) > self._most_of_a_host:
            self._let_go(host)
            self._asked[host] = _TOO_LARGE
        self._make_room()

    def _let_go(self, host: bytes) -> None:
        self._entries -= len(self._loaded.pop(host))
