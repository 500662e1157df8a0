"""A crawl in partitions whose hosts have rows of every kind, made by hand: what a whole crawl has only some of."""

import math
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from crawlkit.config import Config
from crawlkit.model import Content, Health, Kind, Reason, Record, Refusal, Source
from crawlkit.policy.novelty import MEMORY_BYTES, template_of
from crawlkit.policy.partition import Owners
from crawlkit.sitemap import SitemapEntry
from crawlkit.state.crawl import CrawlState
from crawlkit.state.hosts import Host
from crawlkit.state.letters import Letter, LetterKind
from crawlkit.state.opening import open_database
from crawlkit.state.origins import OriginRecord, RobotsState
from crawlkit.state.partitions import Table, member_directory, seal_partitioned, write_table
from crawlkit.state.refusals import RefusalRow
from crawlkit.state.sitemaps import SitemapRow, SitemapState
from crawlkit.state.store import Store
from crawlkit.state.templates import HeldRow

NOW = 1_700_000_000.0
HOSTS = tuple(f"www.site{number}.test" for number in range(24))


def furnish(directory: Path, partitions: int) -> Owners:
    """Make a crawl in `directory`, each host's rows with its owner; return the owners."""
    owners = Owners.even(partitions)
    members = []
    for number in range(partitions):
        with CrawlState.create(member_directory(directory, number), Config()) as state:
            state.begin_run(NOW)
            _furnish_member(state, [name for name in HOSTS if owners.of(name) == number])
            state.end_run(NOW + 60, "sigint")
            state.checkpoint()
            state.seal()
            members.append(state.crawl_id)
    write_table(directory, Table("all", members, list(owners.table)))
    seal_partitioned(directory, "all")
    return owners


def empty(directory: Path, partitions: int, config: Config | None = None) -> None:
    """Make a crawl that holds nothing."""
    members = []
    for number in range(partitions):
        with CrawlState.create(member_directory(directory, number), config or Config()) as state:
            state.begin_run(NOW)
            state.end_run(NOW + 1, "sigint")
            state.checkpoint()
            state.seal()
            members.append(state.crawl_id)
    write_table(directory, Table("all", members, list(Owners.even(partitions).table)))
    seal_partitioned(directory, "all")


@contextmanager
def changed(directory: Path, number: int) -> Iterator[CrawlState]:
    """Give a partition to be changed, as part of its last run."""
    with CrawlState.open(member_directory(directory, number)) as state:
        yield state
        state.checkpoint()


@contextmanager
def stored(directory: Path, number: int) -> Iterator[Store]:
    """Give a partition's rows."""
    with ExitStack() as resources:
        yield open_database(member_directory(directory, number), resources).store


def _furnish_member(state: CrawlState, names: Iterable[str]) -> None:
    for place, name in enumerate(names):
        base = f"http://{name}"
        host = state.hosts.get(name)
        state.add_seed(place, f"{base}/")
        state.frontier.add(f"{base}/", host, 0, 0, None, Source.SEED)
        for number in range(6):
            state.frontier.add(f"{base}/folder/p{number}", host, 1 + number % 3, 0, f"{base}/")
        _settle(state, host, f"{base}/", place)
        _settle(state, host, f"{base}/folder/p0", place)
        _postpone(state, host, f"{base}/folder/p3", place)
        _add_twins(state, host, base)
        _add_sitemaps(state, base, name)
        _add_budget(state, base, name)
        _set_manners(state, host, place)
        state.distances.propagate(f"{base}/folder/p0", 1)
        state.origins.put(OriginRecord(base, RobotsState.RULES, b"User-agent: *\n", NOW + place, place % 3))
        state.origins.put(OriginRecord(f"{base}:8080", RobotsState.UNREACHABLE, b"", NOW + 9))
        state.letters.take(Owners.even(1_024).of(name), 7, 3 + place)
        for number in range(3):
            state.refusals.note(host.id, RefusalRow(f"{base}/deep/{number}", Refusal.DEPTH, 9, f"{base}/"))


def _settle(state: CrawlState, host: Host, url: str, place: int) -> None:
    row = state.frontier.peek(host, state.distances.lower)
    assert row is not None
    assert row.url == url
    state.frontier.take(host, row)
    entry = state.frontier.finish(url, host)
    record = Record(
        url=url,
        kind=Kind.PAGE,
        **entry.head._asdict(),
        status=200,
        links=(f"http://{host.record.name}/unmet/y", "http://elsewhere.test/"),
        body_bytes=100 + place,
        truncated=False,
        digest=f"sha256:{place:064x}",
        simhash=place << 20 | len(url),
        held=True,
    )
    state.pages.put(record, Content(text=f"what {url} says"))
    state.counters.settled(Kind.PAGE)
    state.counters.body_bytes += 100 + place
    host.record.pages += 1


def _postpone(state: CrawlState, host: Host, url: str, place: int) -> None:
    """Let a URL be due for another try: at the same time as others, with the same number in its partition."""
    row = state.frontier.peek(host, state.distances.lower)
    assert row is not None
    state.frontier.take(host, row)
    state.frontier.postpone(url, host, 2, NOW + 30, 10.0 + place, Reason.TIMEOUT)


def _add_twins(state: CrawlState, host: Host, base: str) -> None:
    """Add URLs once more, as a filter's wrong "no" does: one that waits, and one that has settled."""
    state.frontier.add(f"{base}/folder/p4", host, 5, 0, None)
    state.frontier.add(f"{base}/folder/p0", host, 4, 0, None)


def _add_sitemaps(state: CrawlState, base: str, name: str) -> None:
    state.sitemaps.put(SitemapRow(f"{base}/waits.xml", name, 0, attempts=1))
    state.sitemaps.put(SitemapRow(f"{base}/read.xml", name, 1, SitemapState.READ, entries=4))
    state.pages.note(SitemapEntry(f"{base}/folder/p1", "2020-01-01T00:00:00Z", 0.5))


def _add_budget(state: CrawlState, base: str, name: str) -> None:
    template = state.templates.get(template_of(f"{base}/folder/p1"))
    template.credit, template.memory, template.unsaved_pages = 5, bytearray(MEMORY_BYTES), 1
    granted = state.templates.get(template_of(f"{base}/unmet/y"))
    granted.credit = 77
    host = state.templates.get(name, 100)
    of_records = state.templates.get(template_of(f"{base}/"))
    of_records.credit = 3
    for account in (template, granted, of_records, host):
        state.templates.changed(account)
    state.counters.held += state.templates.hold(host, 0, HeldRow(f"{base}/", 1))
    state.counters.held += state.templates.hold_letter(host, Letter(LetterKind.LINK, f"{base}/unpaid?id=1", 2))


def _set_manners(state: CrawlState, host: Host, place: int) -> None:
    record = host.record
    record.last_start_s, record.last_end_s = NOW + place, NOW + place + 0.5
    record.hold_until_s = NOW + 100 + place
    record.crawl_delay_s = float(place % 4)
    record.health = Health(place % 3, 0.25, 1, 2.0, given_up=place % 5 == 0)
    if place % 4 == 1:
        record.held_until_s = math.inf
        state.counters.hosts_held += 1
    record.dropped = place % 7 == 3
    state.hosts.changed(host)


def waiting_in_order(directory: Path, table: Table) -> dict[str, list[str]]:
    """The URLs of each host's back queue in the order in which they are taken."""
    found: dict[str, list[str]] = {}
    for number in range(len(table.members)):
        with CrawlState.open(member_directory(directory, number)) as state:
            for name in HOSTS:
                host = state.hosts.get(name)
                while (row := state.frontier.peek(host, state.distances.lower)) is not None:
                    state.frontier.take(host, row)
                    found.setdefault(name, []).append(row.url)
    return found


def know_from_afar(directory: Path, number: int, name: str, *, last_start_s: float) -> None:
    """Let a partition know a host of another one: it asked it for a robots.txt, and was told of it by a sitemap."""
    with CrawlState.open(member_directory(directory, number)) as state:
        host = state.hosts.get(name)
        host.record.last_start_s = last_start_s
        state.hosts.changed(host)
        for place in range(100):
            state.refusals.note(host.id, RefusalRow(f"http://{name}/afar/{place}", Refusal.TRAP_SITEMAP, 0))
        state.checkpoint()
