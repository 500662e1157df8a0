"""What a crawl's state should be, as plain dicts, and whether the rows on disk say the same."""

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from crawlkit.model import MAX_HOPS, Record
from crawlkit.state import keys
from crawlkit.state.codec import QueueRow, UrlState, decode_row, decode_seen
from crawlkit.state.hosts import HostRecord, decode_host
from crawlkit.state.layout import DATABASE
from crawlkit.state.pages import Pages
from crawlkit.state.reading import read_counters
from crawlkit.state.store import Store
from tests.state.making import host_name


@dataclass
class Known:
    """A URL that was admitted; `depth` and `hops` are the least that the state was told, by a link or by `propagate`."""

    sequence: int
    depth: int
    hops: int
    state: UrlState = UrlState.QUEUED
    attempts: int = 0
    due_s: float = 0.0


@dataclass
class Model:
    """All that is admitted; `told` are the distances given from outside, `doubled` the URLs that were added twice."""

    urls: dict[str, Known] = field(default_factory=dict)
    told: dict[str, tuple[int, int]] = field(default_factory=dict)
    links: dict[str, tuple[str, ...]] = field(default_factory=dict)
    redirects: dict[str, str] = field(default_factory=dict)
    doubled: set[str] = field(default_factory=set)
    sequence: int = 0

    def tell(self, url: str, depth: int, hops: int) -> None:
        before = self.told.get(url, (depth, hops))
        self.told[url] = (min(depth, before[0]), min(hops, before[1]))

    def meet(self, url: str, depth: int, hops: int) -> None:
        known = self.urls.get(url)
        if known is None:
            self.sequence += 1
            self.urls[url] = Known(self.sequence, depth, hops)
        else:
            known.depth = min(known.depth, depth)
            known.hops = min(known.hops, hops)

    def double(self, url: str) -> None:
        """Note that a URL that was admitted is added again: one that waited for its time may be claimed at once."""
        self.doubled.add(url)
        if self.urls[url].state is UrlState.TIMED:
            self.urls[url].state = UrlState.QUEUED

    def settle(self, record: Record) -> None:
        self.urls[record.url].state = UrlState.SETTLED
        self.links[record.url] = record.links
        if record.redirect_to is not None:
            self.redirects[record.url] = record.redirect_to

    def promote(self, now: float) -> None:
        for known in self.urls.values():
            if known.state is UrlState.TIMED and known.due_s <= now:
                known.state = UrlState.QUEUED

    def claimable(self, host: str, claims: dict[str, str]) -> list[str]:
        """Return the URLs of a host that wait, in the order in which they should be claimed."""
        waiting = [
            url
            for url, known in self.urls.items()
            if host_name(url) == host and known.state is UrlState.QUEUED and url not in claims
        ]
        return sorted(waiting, key=lambda url: (min(self.urls[url].depth, keys.MAX_PRIORITY), self.urls[url].sequence))

    def distances(self) -> dict[str, tuple[int, int]]:
        """Return graph distances: the least fixed point of what was told and what settled URLs lead to."""
        least = dict(self.told)
        changed = True
        while changed:
            changed = False
            for url in list(least):
                depth, hops = least[url]
                ways = [(link, depth + 1, 0) for link in self.links.get(url, ())]
                if url in self.redirects and hops < MAX_HOPS:
                    ways.append((self.redirects[url], depth, hops + 1))
                for target, way_depth, way_hops in ways:
                    before = least.get(target, (10**9, 10**9))
                    after = (min(before[0], way_depth), min(before[1], way_hops))
                    if after != before:
                        least[target] = after
                        changed = True
        return least


def check_rows_on_disk(directory: Path, model: Model) -> None:
    """Compare the rows of a closed crawl with the model of its last checkpoint, and the counters with the rows."""
    with Store(directory / DATABASE, create=False) as store:
        counters = read_counters(store)
        rows = {key: decode_row(value) for prefix in (b"q", b"t") for key, value in store.walk(prefix, keys.after(prefix))}
        entries = {key: decode_seen(value) for key, value in store.walk(b"s", b"t")}
        hosts = [decode_host(value) for _, value in store.walk(b"h", b"i")]
        records = {record.url for record in Pages(store).walk()}

    settled = {url for url, known in model.urls.items() if known.state is UrlState.SETTLED}
    assert records == settled
    assert set(entries) == {keys.seen_key(keys.host_id(host_name(url)), url) for url in model.urls}
    twins = len(rows) - (len(model.urls) - len(settled))
    assert twins >= 0
    assert twins == 0 or model.doubled
    assert counters.queued == len(rows)
    assert counters.seen == len(model.urls) + twins
    assert counters.records == len(settled)
    assert counters.hosts == len({host_name(url) for url in model.urls})
    _check_hosts(hosts, rows)
    for url, known in model.urls.items():
        host = keys.host_id(host_name(url))
        entry = entries[keys.seen_key(host, url)]
        if entry.state is not UrlState.SETTLED:
            key = keys.queue_key(host, entry.tail) if entry.state is UrlState.QUEUED else keys.timed_key(entry.tail)
            assert rows[key].url == url
            assert (rows[key].depth, rows[key].hops) == (entry.depth, entry.hops)
        if url not in model.doubled:
            assert (entry.state, entry.depth, entry.hops) == (known.state, known.depth, known.hops)
            assert [row.attempts for row in rows.values() if row.url == url] == [known.attempts] * (url not in settled)


def _check_hosts(hosts: list[HostRecord], rows: dict[bytes, QueueRow]) -> None:
    waiting = Counter((row.host, key[:1]) for key, row in rows.items())
    for record in hosts:
        assert record.queued == waiting.pop((record.name, b"q"), 0)
        assert record.timed == waiting.pop((record.name, b"t"), 0)
        mine = sorted(key[9:] for key, row in rows.items() if key[:1] == b"q" and row.host == record.name)
        assert not mine or record.cursor <= mine[0]
    assert not waiting
