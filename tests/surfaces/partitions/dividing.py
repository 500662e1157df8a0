"""A crawl as one, and the same rows dealt out to partitions: what is read of both has to be the same."""

import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import msgspec

from crawlkit.config import Config
from crawlkit.engine.runner import run_async
from crawlkit.engine.session import Hooks, Surroundings, begin
from crawlkit.policy.novelty import template_of
from crawlkit.policy.partition import Owners
from crawlkit.policy.urls import host_of
from crawlkit.state import keys
from crawlkit.state.checkpoint import Summary, write_summary
from crawlkit.state.codec import RecordCodec, decode_row
from crawlkit.state.counters import Counters
from crawlkit.state.directory import read_manifest, seal
from crawlkit.state.hosts import decode_host
from crawlkit.state.layout import CONFIG as CONFIG_FILE
from crawlkit.state.layout import DATABASE
from crawlkit.state.opening import BATCH, open_database
from crawlkit.state.origins import Origins
from crawlkit.state.pages import reported_kind
from crawlkit.state.partitions import Table, member_directory, seal_partitioned, write_seeds, write_table
from crawlkit.state.reading import COUNTERS, read_counters, read_runs, walk_seeds
from crawlkit.state.refusals import decode_refusal
from crawlkit.state.sitemaps import decode_sitemap
from crawlkit.state.store import Store
from crawlkit.testing.fakeweb import FakeWeb
from crawlkit.testing.site import Fault, Reply, Site, page, redirect, robots

A, B, C, E, W = "http://a.test", "http://b.test", "http://c.test", "http://e.test", "http://www.a.test"
SEEDS = [f"{A}/", f"{B}/", f"{C}/in", f"{E}/", f"{W}/"]

LONG = " ".join(f"word{n} and some more of it" for n in range(60))
SITEMAP = f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"><url><loc>{A}/mapped</loc><priority>0.7</priority></url></urlset>'

SITE = Site(
    {
        "a.test/": page("A", ["/1", f"{B}/", f"{E}/far", f"{C}/c", "/out?x=1&x=1&x=1&x=1&x=1", "http://elsewhere.test/"]),
        "a.test/1": page("Same", [f"{E}/deep"], text=LONG),
        "a.test/mapped": page("Mapped", [f"{B}/moved"], text="named by a sitemap"),
        "a.test/robots.txt": robots(f"User-agent: *\nDisallow: /no\nSitemap: {A}/sitemap.xml"),
        "a.test/sitemap.xml": Reply(200, (("content-type", "application/xml"),), SITEMAP.encode()),
        "b.test/": page("B", [f"{A}/no", f"{A}/gone", f"{C}/c", "/moved"], nofollow=[f"{E}/unfollowed"]),
        "b.test/moved": redirect(f"{C}/there"),
        "b.test/robots.txt": redirect(f"{C}/robots.txt"),
        "c.test/robots.txt": robots("User-agent: *\nDisallow: /shut"),
        "c.test/in": page("In", ["/there", f"{E}/far", "/shut"], canonical=f"{A}/1"),
        "c.test/there": page("There", [f"{W}/w"], text=f"{LONG} nearly"),
        "c.test/c": page("Same", [f"{E}/deep"], text=LONG),
        "e.test/": page("E", [f"{C}/dead", f"{B}/2"]),
        "e.test/far": page("Far", [f"{A}/farther"], text=f"{LONG} nearly so"),
        "a.test/farther": page("Farther", [f"{E}/farthest"]),
        "e.test/farthest": page("Farthest", [f"{B}/too-far"]),
        "e.test/deep": redirect(f"{A}/1"),
        "c.test/dead": Reply(fault=Fault.DROP),
        "b.test/2": page("Second", [f"{B}/2?page=2", f"{A}/"]),
        "www.a.test/": page("W", ["/w", f"{A}/gone"]),
        "www.a.test/w": page("W2", [f"{E}/"]),
    }
)

ADDRESSES = ("*.test=127.0.0.1:9", "*.example=127.0.0.1:9")
SETTINGS = {
    **{"delay": 0, "retries": 0, "max_depth": 3, "resolve": ADDRESSES},
    **{"text": True, "anchors": True, "sitemaps": True, "near_duplicates": True},
}


def crawled_whole(directory: Path, **settings: Any) -> Path:
    """Leave the crawl of `SITE` as one."""
    config = Config(**{**SETTINGS, **settings})
    run_async(begin(SEEDS, directory, config, Hooks(), Surroundings(transport=FakeWeb(SITE))))
    return directory


def divided(whole: Path, directory: Path, partitions: int) -> Path:
    """Leave the rows of `whole` in so many partitions of a crawl in `directory`, by owner."""
    owners = Owners.even(partitions)
    members = [uuid.uuid4().hex for _ in range(partitions)]
    with ExitStack() as resources:
        opened = open_database(whole, resources)
        rows = list(opened.store.walk(b"\0", b"\xff"))
        owner_of_row = _Dealing(opened.store, owners.of)
        dealt = [
            {key: value for key, value in rows if owner_of_row(key, value) in (number, None)} for number in range(partitions)
        ]
        counters = read_counters(opened.store)
        seeds = list(walk_seeds(opened.store))
        runs = read_runs(opened.store)
    for number, crawl_id in enumerate(members):
        own = [seed for seed in seeds if owners.of(host_of(seed)) == number]
        dealt[number].update({keys.numbered_key(keys.SEED, place): seed.encode() for place, seed in enumerate(own)})
        own_runs = [
            msgspec.structs.replace(run, pages=run.pages * (number == 0), requests=run.requests * (number == 0)) for run in runs
        ]
        dealt[number].update({keys.numbered_key(keys.RUN, run.number): msgspec.msgpack.encode(run) for run in own_runs})
        counted = _counted(dealt[number], counters, first=number == 0)
        dealt[number].update({COUNTERS: msgspec.msgpack.encode(counted), BATCH: (1).to_bytes(8, "big")})
        dealt[number][keys.recent_key(1)] = (1).to_bytes(8, "big")
        _make_member(member_directory(directory, number), (whole / CONFIG_FILE).read_bytes(), dealt[number])
        write_summary(member_directory(directory, number), Summary(crawl_id, 1, counted, own_runs))
        seal(member_directory(directory, number), crawl_id)
    (directory / CONFIG_FILE).write_bytes((whole / CONFIG_FILE).read_bytes())
    seal_over(directory, members, seeds)
    return directory


def archived_apart(directory: Path, sites: Mapping[str, int]) -> Path:
    """Leave a crawl in partitions, each of which has crawled one host of `SITE` alone, and keeps an archive of it."""
    members = {}
    for base, number in sites.items():
        config = Config(delay=0, retries=0, warc=True)
        web = Surroundings(transport=FakeWeb(SITE))
        member = member_directory(directory, number)
        member.parent.mkdir(parents=True, exist_ok=True)
        run_async(begin([f"{base}/"], member, config, Hooks(), web))
        members[number] = read_manifest(member).crawl_id
    seal_over(directory, [members[number] for number in sorted(members)], [f"{base}/" for base in sites])
    return directory


def seal_over(directory: Path, members: list[str], seeds: list[str]) -> None:
    """Make a crawl in partitions of crawls that lie where its partitions belong."""
    crawl_id = uuid.uuid4().hex
    write_seeds(directory, seeds)
    write_table(directory, Table(crawl_id, members, list(Owners.even(len(members)).table), epoch=1))
    seal_partitioned(directory, crawl_id)


def _make_member(directory: Path, settings: bytes, rows: dict[bytes, bytes]) -> None:
    directory.mkdir(parents=True)
    (directory / CONFIG_FILE).write_bytes(settings)
    with Store(directory / DATABASE, create=True) as store:
        for key, value in rows.items():
            store.stage(key, value)
        store.freeze().write()


class _Dealing:
    """Says whose a row is: the number of a partition, None where every one has it, -1 where none takes it over."""

    def __init__(self, store: Store, owner_of: Callable[[str], int]) -> None:
        self._owner_of = owner_of
        self._origins = Origins(store)
        urls = [url for key, value in store.walk(b"\0", b"\xff") for url in _urls_in(key, value)]
        hosts = {host_of(url) for url in urls}
        self._by_host = {keys.host_id(host): host for host in hosts}
        names = {template_of(url): host_of(url) for url in urls} | {host: host for host in hosts}
        self._by_account = {keys.template_key(name)[1:]: host for name, host in names.items()}

    def __call__(self, key: bytes, value: bytes) -> int | None:
        host = self._host(key, value)
        return host if isinstance(host, int) or host is None else self._owner_of(host)

    def _host(self, key: bytes, value: bytes) -> str | int | None:  # noqa: C901, PLR0911  (one return a kind)
        match key[:1]:
            case keys.META:
                return None
            case keys.SEED | keys.RUN | keys.RECENT:
                return -1
            case keys.HOST:
                return decode_host(value).name
            case keys.SEEN | keys.QUEUE | keys.WAITING_SITEMAP | keys.REFUSAL:
                return self._by_host[key[1:9]]
            case keys.TEMPLATE | keys.MEMORY | keys.HELD:
                return self._by_account[key[1:9]]
            case keys.ORIGIN:
                return host_of(self._origins.decode(value).origin + "/")
            case keys.TIMED | keys.RELAX:
                return decode_row(value).host
            case keys.SITEMAP:
                return decode_sitemap(value).host
            case keys.PAGE | keys.NOTE | keys.CONTENT:
                return host_of(key[1:].decode())
            case keys.DIGEST:
                return host_of(key[keys.DIGEST_HEAD :].decode())
            case keys.BAND:
                return host_of(key[keys.BAND_HEAD :].decode())
            case other:
                raise AssertionError(f"whose are rows of the kind {other!r}?")


def _urls_in(key: bytes, value: bytes) -> Iterator[str]:
    match key[:1]:
        case keys.PAGE:
            record = RecordCodec().decode(key[1:].decode(), value)
            yield from (record.url, *record.links)
        case keys.QUEUE | keys.TIMED:
            yield decode_row(value).url
        case keys.REFUSAL:
            yield decode_refusal(value).url
        case keys.SITEMAP:
            yield decode_sitemap(value).url
        case keys.HOST:
            yield f"http://{decode_host(value).name}/"
        case _:
            pass


def _counted(rows: dict[bytes, bytes], whole: Counters, *, first: bool) -> Counters:
    """Return the counters of a partition; what is not to be counted in rows the first one has alone."""
    kinds = {key[:1] for key in keys.KINDS}
    counts = {kind: sum(key[:1] == kind for key in rows) for kind in kinds}
    counted = msgspec.structs.replace(whole) if first else Counters(elapsed_s=whole.elapsed_s, sequence=whole.sequence)
    counted.finished = whole.finished
    counted.pages = counted.redirects = counted.failures = counted.excluded = counted.body_bytes = 0
    for key, value in rows.items():
        if key[:1] == keys.PAGE:
            record = RecordCodec().decode(key[1:].decode(), value)
            counted.settled(reported_kind(record))
            counted.body_bytes += record.body_bytes or 0
    hosts = [decode_host(value) for key, value in rows.items() if key[:1] == keys.HOST]
    counted.hosts = sum(host.admitted for host in hosts)
    counted.hosts_held = sum(host.held for host in hosts)
    counted.queued = counts[keys.QUEUE] + counts[keys.TIMED]
    counted.seen = counted.queued + counted.records
    counted.held = counts[keys.HELD]
    counted.noted = counts[keys.REFUSAL]
    counted.sitemaps = counts[keys.WAITING_SITEMAP]
    return counted
