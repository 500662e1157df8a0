"""Checking what is on disk against itself, as a stream: `findings.Rule` names what is checked.

Memory does not grow with the crawl. That two kinds of rows match one to one is checked by looking one up for each of the
other and by comparing how many there are; rows are looked for one by one only where these differ.

Allowed, and only counted, is what a filter's wrong "no" leaves until its URL is claimed: a second row of a URL ("twins"), and
a settled URL that is queued again ("requeued"). What state must not know (the host of a URL) is passed in.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from typing import TypeVar

from crawlkit.errors import StateDamaged
from crawlkit.model import Kind, Record, Source
from crawlkit.state import codec, keys
from crawlkit.state.bloom import MappedBloom
from crawlkit.state.checkpoint import Summary
from crawlkit.state.codec import Head, QueueRow, SeenEntry, UrlState
from crawlkit.state.content import Contents
from crawlkit.state.findings import Findings, Rule
from crawlkit.state.hosts import decode_host
from crawlkit.state.opening import BATCH
from crawlkit.state.origins import Origins
from crawlkit.state.pages import reported_kind
from crawlkit.state.reading import read_config, read_counters, read_rescan, read_runs, walk_seeds
from crawlkit.state.sitemaps import SitemapState, decode_sitemap
from crawlkit.state.store import Store
from crawlkit.state.tally import HOSTS_A_SLICE, Counted, HostTally, check_hosts, slices
from crawlkit.state.verify_alike import AlikeCheck
from crawlkit.state.verify_refusals import check_refusals
from crawlkit.state.verify_sitemaps import SitemapCheck

Decoded = TypeVar("Decoded")

MOST_TWINS = 10_000


class Verification:
    """One check of one open database; what it finds is in `findings`."""

    def __init__(
        self,
        store: Store,
        summary: Summary,
        host_of: Callable[[str], str],
        hosts_a_slice: int = HOSTS_A_SLICE,
        least_seeds: int = 1,
    ) -> None:
        self.findings = Findings()
        self._twins: set[str] = set()
        self._store = store
        self._summary = summary
        self._host_of = host_of
        self._hosts_a_slice = hosts_a_slice
        self._least_seeds = least_seeds
        self._entries: Counter[UrlState] = Counter()
        self._pointed_to: Counter[UrlState] = Counter()
        self._kinds: Counter[Kind] = Counter()
        self._body_bytes = 0
        self._codec = codec.RecordCodec()
        self._alike = AlikeCheck(store, self.findings)

    # Parts of a check ------------------------------------------------------------------------------------------------

    def check_values(self) -> None:
        """Check settings, counters, ledger and what `CHECKPOINT` says of them."""
        self.reading(lambda: read_config(self._store), Rule.SETTINGS)
        self.reading(lambda: read_rescan(self._store), Rule.DECODES)
        self.reading(self._check_counters, Rule.COUNTERS)
        self.reading(self._check_ledger, Rule.LEDGER)

    def check_keys(self) -> None:
        """Check the shape of every key, and the numbers of rows as far as keys tell."""
        self.reading(self._check_keys, Rule.READABLE)

    def check_rows(self, bloom: MappedBloom | None, look: Callable[[bytes, Record], object]) -> None:
        """Check every row; `look` is shown each record with its key. `bloom` is the filter in use, if there is one."""
        self.reading(lambda: self._check_rows(bloom, look), Rule.READABLE)

    def _check_rows(self, bloom: MappedBloom | None, look: Callable[[bytes, Record], object]) -> None:
        tallies = slices(self._store, self._hosts_a_slice)
        tally = next(tallies)
        self.reading(lambda: self._check_seen(bloom), Rule.READABLE)
        self.reading(lambda: self._check_waiting(keys.QUEUE, tally), Rule.READABLE)
        self.reading(lambda: self._check_waiting(keys.TIMED, tally), Rule.READABLE)
        self.reading(self._check_seeds, Rule.SEEDS)
        self.reading(lambda: self._check_records(tally, look), Rule.READABLE)
        self.reading(self._check_relax, Rule.READABLE)
        self.reading(self._check_origins, Rule.READABLE)
        self.reading(lambda: self._check_sitemaps(tally), Rule.READABLE)
        self.reading(lambda: check_refusals(self._store, self.findings, self._host_id), Rule.READABLE)
        if self.findings.has(Rule.READABLE) or self.findings.has(Rule.DECODES):
            return  # what could not be read cannot be counted
        self._check_hosts(tally)
        for further in tallies:
            self._count_again(further)
            self._check_hosts(further)
        self._compare_counts()

    def reading(self, check: Callable[[], object], rule: Rule) -> None:
        """Do a part of the check; what cannot be read is noted under `rule`, not raised."""
        try:
            check()
        except StateDamaged as error:
            self.findings.broke(rule, str(error))

    def _walk(self, prefix: bytes, decode: Callable[[bytes, bytes], Decoded]) -> Iterator[tuple[bytes, Decoded]]:
        """Yield the rows of a kind, decoded; those that cannot be are noted and left out."""
        for key, value in self._store.walk(prefix, keys.after(prefix)):
            try:
                decoded = decode(key, value)
            except (StateDamaged, UnicodeDecodeError) as error:
                self.findings.broke(Rule.DECODES, f"{key.hex()}: {error}")
            else:
                yield key, decoded

    # Single values ---------------------------------------------------------------------------------------------------

    def _check_counters(self) -> None:
        counters = read_counters(self._store)
        compare = self.findings.compare
        compare(Rule.COUNTERS, "seen = settled + queued", counters.seen, counters.records + counters.queued)
        if self._is_current():
            compare(Rule.CHECKPOINT, "counters", self._summary.counters, counters)
        if counters.finished:
            compare(Rule.FINISHED, "queued", 0, counters.queued)
            compare(Rule.FINISHED, "held", 0, counters.held)
            compare(Rule.FINISHED, "sitemaps that wait", 0, counters.sitemaps)
            compare(Rule.FINISHED, "raised depth limit still to be told", None, read_rescan(self._store))

    def _check_ledger(self) -> None:
        runs = read_runs(self._store)
        self.findings.compare(Rule.LEDGER, "numbers of the runs", list(range(1, len(runs) + 1)), [run.number for run in runs])
        for run in runs:
            if run.ended_s is not None and run.ended_s < run.started_s:
                self.findings.broke(Rule.LEDGER, f"run {run.number} ended before it started")
        if self._is_current():
            self.findings.compare(Rule.CHECKPOINT, "runs", self._summary.runs, runs)

    def _is_current(self) -> bool:
        return int.from_bytes(self._store.get(BATCH) or b"") == self._summary.batch

    def _check_seeds(self) -> None:
        number = -1
        for number, url in enumerate(walk_seeds(self._store)):
            found = self.least(url)
            if self._store.get(keys.numbered_key(keys.SEED, number)) is None:
                self.findings.broke(Rule.SEEDS, f"there is no seed number {number}")
            elif found is None:
                self.findings.broke(Rule.SEEDS, f"{url} was not seen")
            elif (found[:2] != (0, 0) or not found.may_be(Source.SEED)) and not self.has_twin(url):
                self.findings.broke(Rule.SEEDS, f"{url} has depth {found.depth}, hops {found.hops}, sources {found.sources}")
        if number + 1 < self._least_seeds:
            self.findings.broke(Rule.SEEDS, "there is no seed")

    def _check_keys(self) -> None:
        checked = self.findings.checked
        for key in self._store.walk_keys(b"\0", b"\xff"):
            length, name = keys.KINDS.get(key[:1], (-1, ""))
            if length is not None and len(key) != length:
                self.findings.broke(Rule.KNOWN, key.hex())
            else:
                checked[name] += 1
        counters = read_counters(self._store)
        self.findings.compare(Rule.COUNTERS, "queued", counters.queued, checked["queued"] + checked["timed"])
        self.findings.compare(Rule.COUNTERS, "settled", counters.records, checked["records"])
        self.findings.compare(Rule.COUNTERS, "held", counters.held, checked["held"])
        self.findings.compare(Rule.COUNTERS, "sitemaps that wait", counters.sitemaps, checked["waiting sitemaps"])
        self.findings.compare(Rule.COUNTERS, "refused", counters.noted, checked["refused"])

    # Seen and waiting ------------------------------------------------------------------------------------------------

    def entry(self, url: str) -> SeenEntry | None:
        """Return the seen entry of a URL, None if it has none; StateDamaged if it cannot be read."""
        return _entry_in(self._store, self._host_id(url), url)

    def least(self, url: str) -> Head | None:
        """Return the least depth and hops noted of a URL, and all sources; None if it was not seen."""
        return least_in(self._store, self._host_id(url), url)

    def has_twin(self, url: str) -> bool:
        """Whether a second row may tell a lesser distance of a URL than its entry does."""
        return url in self._twins or len(self._twins) >= MOST_TWINS

    def _host_id(self, url: str) -> bytes:
        try:
            return keys.host_id(self._host_of(url))
        except IndexError:  # this is no URL: no row that belongs to it will be found
            return b""

    def _check_seen(self, bloom: MappedBloom | None) -> None:
        for key, entry in self._walk(keys.SEEN, lambda _, value: codec.decode_seen(value)):
            self._entries[entry.state] += 1
            if bloom is not None:
                self.findings.checked["filter"] += 1
                if key not in bloom:
                    self.findings.broke(Rule.FILTER, key.hex())

    def _check_waiting(self, prefix: bytes, tally: HostTally) -> None:
        """Check the rows of the back queues, or of the timed range."""
        state = UrlState.QUEUED if prefix == keys.QUEUE else UrlState.TIMED
        what = Counted.QUEUED if prefix == keys.QUEUE else Counted.TIMED
        last = read_counters(self._store).sequence
        for key, row in self._walk(prefix, lambda _, value: codec.decode_row(value)):
            host = keys.host_id(row.host)
            self._count(tally, what, host, row.url)
            if host != self._host_id(row.url) or (prefix == keys.QUEUE and key[1:9] != host):
                self.findings.broke(Rule.QUEUED_PLACED, f"{row.url} waits at another host")
            elif keys.sequence_of(key) > last:
                self.findings.broke(Rule.QUEUED_PLACED, f"{row.url} is row {keys.sequence_of(key)}, the last one is {last}")
            else:
                self._check_row(key, row, state)
        if self._pointed_to[state] != self._entries[state]:
            self._find_rowless(state)

    def _check_row(self, key: bytes, row: QueueRow, state: UrlState) -> None:
        entry = self.entry(row.url)
        if entry is None:
            self.findings.broke(Rule.QUEUED_SEEN, row.url)
        elif entry.state is not state or entry.tail != _tail(key):
            self.findings.checked["twins"] += 1
            if len(self._twins) < MOST_TWINS:
                self._twins.add(row.url)
        else:
            self._pointed_to[state] += 1
            priority = min(row.rank, keys.MAX_PRIORITY)
            misplaced = state is UrlState.QUEUED and keys.priority_of(key) != priority
            if misplaced or (row.depth, row.hops, row.sources) != entry.head:
                self.findings.broke(Rule.QUEUED_PLACED, f"{row.url} is not where its distances put it")

    def _find_rowless(self, state: UrlState) -> None:
        """Name the seen entries that point to no row, or to another URL's."""
        for key, entry in self._walk(keys.SEEN, lambda _, value: codec.decode_seen(value)):
            if entry.state is not state:
                continue
            row = keys.queue_key(key[1:9], entry.tail) if state is UrlState.QUEUED else keys.timed_key(entry.tail)
            value = self._store.get(row)
            if value is None or keys.url_id(codec.decode_row(value).url) != key[9:]:
                self.findings.broke(Rule.SEEN_QUEUED, f"entry {key.hex()} has no row")

    # Records ---------------------------------------------------------------------------------------------------------

    def _check_records(self, tally: HostTally, look: Callable[[bytes, Record], object]) -> None:
        for key, record in self._walk(keys.PAGE, self._record):
            self._kinds[reported_kind(record)] += 1
            self._body_bytes += record.body_bytes or 0
            if record.kind is Kind.PAGE:
                self._count(tally, Counted.PAGES, self._host_id(record.url), record.url)
            entry = self.entry(record.url)
            self._alike.look(record)
            if entry is None:
                self.findings.broke(Rule.RECORDS_SEEN, record.url)
                continue
            if entry.state is not UrlState.SETTLED:
                self.findings.checked["requeued"] += 1
            elif entry.head != (record.depth, record.hops, record.sources):
                self.findings.broke(
                    Rule.RECORDS_DISTANCES,
                    f"{record.url}: {record.depth}, {record.hops}, {record.sources}; its entry: {tuple(entry.head)}",
                )
            look(key, record)
        self._alike.finish()
        contents = Contents(self._store)
        for key, _ in self._walk(keys.CONTENT, lambda key, value: contents.decode(key[1:].decode(), value)):
            if self._store.get(keys.PAGE + key[1:]) is None:
                self.findings.broke(Rule.CONTENTS, key.hex())

    def _record(self, key: bytes, value: bytes) -> Record:
        return self._codec.decode(key[1:].decode(), value)

    # Hosts -----------------------------------------------------------------------------------------------------------

    def _count(self, tally: HostTally, what: Counted, host: bytes, url: str) -> None:
        if not tally.count(host, what):
            self.findings.broke(Rule.HOSTS_KNOWN, f"the host of {url} has no record")

    def _count_again(self, tally: HostTally) -> None:
        """Count rows and pages for hosts that did not fit into the first slice."""
        for prefix, what in ((keys.QUEUE, Counted.QUEUED), (keys.TIMED, Counted.TIMED)):
            for _, row in self._walk(prefix, lambda _, value: codec.decode_row(value)):
                self._count(tally, what, keys.host_id(row.host), row.url)
        for _, record in self._walk(keys.PAGE, self._record):
            if record.kind is Kind.PAGE:
                self._count(tally, Counted.PAGES, self._host_id(record.url), record.url)
        for _, sitemap in self._walk(keys.SITEMAP, lambda _, value: decode_sitemap(value)):
            if sitemap.state is SitemapState.WAITING:
                self._count(tally, Counted.SITEMAPS, keys.host_id(sitemap.host), sitemap.url)

    def _check_hosts(self, tally: HostTally) -> None:
        hosts = self._walk(keys.HOST, lambda _, value: decode_host(value))
        check_hosts(self._store, self.findings, tally, hosts)

    # The rest --------------------------------------------------------------------------------------------------------

    def _check_relax(self) -> None:
        finished = read_counters(self._store).finished
        for key, row in self._walk(keys.RELAX, lambda _, value: codec.decode_row(value)):
            if key != keys.relax_key(row.depth, row.url) or self._store.get(keys.page_key(row.url)) is None:
                self.findings.broke(Rule.RELAX, row.url)
            if finished:
                self.findings.broke(Rule.FINISHED, f"the distance of {row.url} is still to be told")

    def _check_origins(self) -> None:
        origins = Origins(self._store)
        for key, record in self._walk(keys.ORIGIN, lambda _, value: origins.decode(value)):
            if key != keys.origin_key(record.origin):
                self.findings.broke(Rule.ORIGINS, record.origin)

    def _check_sitemaps(self, tally: HostTally) -> None:
        check = SitemapCheck(self._store, self.findings)
        for key, row in self._walk(keys.SITEMAP, lambda _, value: decode_sitemap(value)):
            if check.look(key, row, self._host_id(row.url)):
                self._count(tally, Counted.SITEMAPS, keys.host_id(row.host), row.url)
        check.finish()

    def _compare_counts(self) -> None:
        counters, checked = read_counters(self._store), self.findings.checked
        compare = self.findings.compare
        compare(Rule.COUNTERS, "seen", counters.seen, sum(self._entries.values()) + checked["twins"] + checked["requeued"])
        compare(Rule.COUNTERS, "hosts", counters.hosts, checked["admitted"])
        compare(Rule.COUNTERS, "pages", counters.pages, self._kinds[Kind.PAGE])
        compare(Rule.COUNTERS, "redirects", counters.redirects, self._kinds[Kind.REDIRECT])
        compare(Rule.COUNTERS, "failures", counters.failures, self._kinds[Kind.FAILURE])
        compare(Rule.COUNTERS, "excluded", counters.excluded, self._kinds[Kind.EXCLUDED])
        compare(Rule.COUNTERS, "body_bytes", counters.body_bytes, self._body_bytes)
        records = sum(self._kinds.values()) - checked["requeued"]
        if not self.findings.has(Rule.RECORDS_SEEN):
            compare(Rule.SEEN_SETTLED, "settled URLs and their records", self._entries[UrlState.SETTLED], records)


def least_in(store: Store, host: bytes, url: str) -> Head | None:
    """Return the least depth and hops that a store notes of a URL of a host, and all sources; None if it was not seen."""
    entry = _entry_in(store, host, url)
    if entry is None:
        return None
    value = None if entry.state is UrlState.SETTLED else store.get(keys.page_key(url))
    return entry.head if value is None else entry.joined(codec.head_of(value))  # it had settled before it was queued again


def _entry_in(store: Store, host: bytes, url: str) -> SeenEntry | None:
    value = store.get(keys.seen_key(host, url))
    return None if value is None else codec.decode_seen(value)


def _tail(key: bytes) -> bytes:
    return key[9:] if key[:1] == keys.QUEUE else key[1:]
