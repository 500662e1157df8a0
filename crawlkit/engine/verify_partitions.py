"""`verify` of a crawl in partitions: each by itself, then what holds between them.

That is: what is of a host lies with its owner, every seed was seen there, a link to another partition's URL was seen there or
waits as a letter, and of each row of letters a partition has taken in as far as its sender was told, and no further than sent.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from typing import NamedTuple

from crawlkit.engine.partitions import Partitions
from crawlkit.engine.verify import Thoroughness, Whole, check_opened
from crawlkit.errors import StateDamaged
from crawlkit.model import Refusal, Source
from crawlkit.policy.partition import node_of
from crawlkit.policy.urls import host_of
from crawlkit.state import keys
from crawlkit.state.codec import Head, decode_row
from crawlkit.state.directory import DirectoryLock
from crawlkit.state.findings import Findings, Report, Rule
from crawlkit.state.hosts import decode_host
from crawlkit.state.letter_keys import high_water_key, inbox_of, letter_of, next_letter_key
from crawlkit.state.letters import Letters, decode_letter
from crawlkit.state.opening import Opened, open_database
from crawlkit.state.partitions import read_span
from crawlkit.state.reading import read_counters
from crawlkit.state.sitemaps import decode_sitemap
from crawlkit.state.store import Store
from crawlkit.state.verify import least_in


class Checked(NamedTuple):
    """What was found in all, and in each partition by itself."""

    report: Report
    each: list[Report]


def verify_partitions(partitions: Partitions, thoroughness: Thoroughness) -> Checked:
    """Check a crawl in partitions, none of which runs. StateError and its kinds if one cannot be opened, or rows are moving."""
    partitions.check_settled()
    with ExitStack() as resources:
        resources.enter_context(DirectoryLock(partitions.directory))
        opened = [open_database(member, resources) for member in partitions.members]
        findings = Findings()
        span = read_span(partitions.directory)
        stores = [each.store for each in opened]
        reports = []
        for number, (member, own) in enumerate(zip(partitions.members, opened, strict=True)):
            others = _Others(number, partitions, opened, span)
            reports.append(check_opened(member, own, thoroughness, others))
            findings.take(reports[-1], f"partition {number}")
            with suppress(StateDamaged):  # what cannot be read was noted
                _check_letters(number, partitions, stores, findings)
                if thoroughness is not Thoroughness.QUICK:
                    _check_places(number, partitions, own.store, findings)
        if thoroughness is not Thoroughness.QUICK:
            with suppress(StateDamaged):
                _check_span(partitions, stores, span, findings)
        return Checked(findings.report(), reports)


class _Others(Whole):
    """What the partitions beside one know of URLs that are theirs."""

    least_seeds = 0

    def __init__(self, number: int, partitions: Partitions, opened: Sequence[Opened], span: list[str]) -> None:
        self._number = number
        self._partitions = partitions
        self._stores = [each.store for each in opened]
        self._span = span
        self._on_the_way: set[str] | None = None
        self._lenient = {at for at, each in enumerate(opened) if _may_refuse(each)}

    def span(self, store: Store) -> list[str]:
        return self._span

    def is_elsewhere(self, url: str) -> bool:
        return self._partitions.owner_of(host_of(url)) != self._number

    def least(self, url: str) -> Head | None:
        return _least(self._partitions, self._stores, url)

    def is_excused(self, url: str) -> bool:
        """Whether a letter about a URL waits, or its owner may have refused it for more than the URL.

        Once rows have moved the letter may wait with any partition, and be about a URL that lies here by now.
        """
        moved = self._partitions.table.version > 1
        if not moved and not self.is_elsewhere(url):
            return False
        if self._on_the_way is None:
            senders = self._stores if moved else [self._stores[self._number]]
            self._on_the_way = {url for sender in senders for url in _urls_of_letters(sender)}
        return url in self._on_the_way or self._partitions.owner_of(host_of(url)) in self._lenient


def _urls_of_letters(store: Store) -> Iterator[str]:
    return (decode_letter(value).url for _, value in store.walk(keys.LETTER, keys.after(keys.LETTER)))


def _least(partitions: Partitions, stores: Sequence[Store], url: str) -> Head | None:
    """Return the least distances that its owner notes of a URL, and its sources."""
    host = host_of(url)
    return least_in(stores[partitions.owner_of(host)], keys.host_id(host), url)


def _may_refuse(opened: Opened) -> bool:
    """Whether a partition holds, or has refused, what others led to: by the template budget, or by plugins."""
    counters = opened.summary.counters
    return counters.short_of_credit or counters.refused.get(Refusal.HOOK, 0) > 0


def _check_places(number: int, partitions: Partitions, store: Store, findings: Findings) -> None:
    """Check that a partition has nothing that is another one's. A URL that was seen has a row or a record, so these will do."""
    for what, host in _hosts_in(store):
        owner = partitions.owner_of(host)
        if number != owner:
            findings.broke(Rule.PARTITIONS_PLACED, f"{what} lies in partition {number}, and is partition {owner}'s")


def _hosts_in(store: Store) -> Iterator[tuple[str, str]]:
    """Yield what a store has of hosts, as told, with the host: hosts themselves, URLs that wait, records, sitemaps."""
    for _, value in _rows(store, keys.HOST):
        host = decode_host(value)
        if host.admitted:
            yield f"the host {host.name}", host.name
    for prefix in (keys.QUEUE, keys.TIMED):
        for _, value in _rows(store, prefix):
            row = decode_row(value)
            yield row.url, row.host
    for key in store.walk_keys(keys.PAGE, keys.after(keys.PAGE)):
        url = key[1:].decode(errors="replace")
        with suppress(IndexError):  # this is no URL: the check of records says so
            yield url, host_of(url)
    for _, value in _rows(store, keys.SITEMAP):
        sitemap = decode_sitemap(value)
        yield sitemap.url, sitemap.host


def _check_span(partitions: Partitions, stores: Sequence[Store], span: Sequence[str], findings: Findings) -> None:
    """Check that each seed was admitted as one by the owner of its host."""
    for url in span:
        found = _least(partitions, stores, url)
        if found is None or not found.may_be(Source.SEED):
            owner = partitions.owner_of(host_of(url))
            findings.broke(Rule.SEEDS, f"{url} was not seen as a seed by partition {owner}")


def _check_letters(number: int, partitions: Partitions, stores: Sequence[Store], findings: Findings) -> None:
    """Check the letters of a partition, and how far others have taken them in."""
    store, owners = stores[number], partitions.table.owners
    letters = Letters(store)
    if letters.waiting and read_counters(store).finished:
        findings.broke(Rule.FINISHED, f"partition {number}: {letters.waiting} letters wait")
    for key, value in _rows(store, keys.LETTER):
        node, sent = letter_of(key)
        if node_of(host_of(decode_letter(value).url)) != node:
            findings.broke(
                Rule.PARTITIONS_LETTERS, f"letter {sent} of partition {number} to node {node} is about another node's"
            )
        if owners[node] == number and partitions.table.version == 1:  # later it may have been another one's before
            findings.broke(Rule.PARTITIONS_LETTERS, f"partition {number} has a letter to node {node}, which is its own")
    for key, value in _rows(store, keys.NEXT_LETTER):
        node = int.from_bytes(key[1:3])
        taken = _number(stores[owners[node]].get(high_water_key(node, number)))
        _check_way((number, node), taken, (letters.acknowledged(node), _number(value)), findings)
    for key, value in _rows(store, keys.HIGH_WATER):
        node, sender = inbox_of(key)
        if sender >= len(stores):
            findings.broke(Rule.PARTITIONS_LETTERS, f"partition {number} took in letters of {sender}, which there is not")
        elif owners[node] == number and stores[sender].get(next_letter_key(node)) is None:
            _check_way((sender, node), _number(value), (0, 0), findings)


def _check_way(way: tuple[int, int], taken: int, known: tuple[int, int], findings: Findings) -> None:
    """Check how many letters were taken in on a way, of those that its sender knows to be, and has sent."""
    sender, node = way
    acknowledged, sent = known
    if not acknowledged <= taken <= sent:
        findings.broke(
            Rule.PARTITIONS_LETTERS,
            f"{taken} letters of partition {sender} to node {node} were taken in; it sent {sent}, and forgot {acknowledged}",
        )


def _rows(store: Store, prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
    return store.walk(prefix, keys.after(prefix))


def _number(value: bytes | None) -> int:
    return int.from_bytes(value or b"")
