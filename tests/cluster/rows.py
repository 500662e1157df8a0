"""The rows of a crawl in partitions, as a whole: what must be the same whoever has them."""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import msgspec
import zstandard

from crawlkit.policy.partition import node_of
from crawlkit.policy.urls import host_of
from crawlkit.state import keys
from crawlkit.state.bloom import MappedBloom, boot_id
from crawlkit.state.codec import decode_row, decode_seen, encode_seen
from crawlkit.state.findings import Rule
from crawlkit.state.hosts import decode_host
from crawlkit.state.layout import BLOOM
from crawlkit.state.opening import Opened, open_database
from crawlkit.state.origins import OriginRecord
from crawlkit.state.partitions import Table, member_directory
from crawlkit.state.reading import read_counters
from crawlkit.state.refusals import decode_refusal
from crawlkit.state.sitemaps import decode_sitemap
from crawlkit.state.store import Store
from crawlkit.state.templates import decode_held
from crawlkit.state.verify import Verification

Rows = Counter[tuple[bytes, bytes]]

_STAY = {keys.META, keys.RECENT, keys.RUN, keys.LETTER, keys.NEXT_LETTER}
ACCOUNTS = {keys.TEMPLATE, keys.MEMORY}
"""Kinds whose rows do not tell whose they are."""


def everything(directory: Path, table: Table) -> Rows:
    """All rows that move, of all partitions; those that wait without their numbers."""
    found: Rows = Counter()
    for number in range(len(table.members)):
        with _opened(directory, number) as opened:
            found.update(_plain(key, value) for key, value in _moving(opened.store))
    return found


def owned(directory: Path, table: Table) -> Rows:
    """Those that lie with the owner of their virtual node, but for accounts, which do not tell whose they are."""
    found: Rows = Counter()
    names: dict[bytes, str] = {}
    for number in range(len(table.members)):
        with _opened(directory, number) as opened:
            hosts = opened.store.walk(keys.HOST, keys.after(keys.HOST))
            names.update((key[1:], decode_host(value).name) for key, value in hosts)
    for number in range(len(table.members)):
        with _opened(directory, number) as opened:
            found.update(
                _plain(key, value)
                for key, value in _moving(opened.store)
                if key[:1] not in ACCOUNTS and table.owners[_node(names, key, value)] == number
            )
    return found


def sums(directory: Path, table: Table) -> dict[str, object]:
    """What all partitions count, together."""
    total: Counter[str] = Counter()
    reasons: set[str] = set()
    for number in range(len(table.members)):
        with _opened(directory, number) as opened:
            counters = read_counters(opened.store)
        total.update({name: value for name, value in msgspec.structs.asdict(counters).items() if isinstance(value, int)})
        total.update({f"refused {code}": count for code, count in counters.refused.items()})
        reasons |= counters.reasons
    del total["sequence"], total["finished"]
    return {**total, "reasons": sorted(reasons)}


def broken(directory: Path, table: Table) -> dict[tuple[int, Rule], object]:
    """What each partition's state says against itself; one without a seed is as it should be."""
    found: dict[tuple[int, Rule], object] = {}
    for number in range(len(table.members)):
        with _opened(directory, number) as opened, ExitStack() as resources:
            member = member_directory(directory, number)
            bloom = MappedBloom.reuse(member / BLOOM, opened.manifest.crawl_id.encode()[:16], boot_id())
            if bloom is not None:
                resources.callback(bloom.close)
            check = Verification(opened.store, opened.summary, host_of)
            check.check_values()
            check.check_keys()
            check.check_rows(bloom, lambda _key, _record: None)
            broken = check.findings.report().broken
        found.update({(number, rule): what for rule, what in broken.items() if what.examples != ("there is no seed",)})
    return found


class _opened(ExitStack):  # noqa: N801
    def __init__(self, directory: Path, number: int) -> None:
        super().__init__()
        self._member = member_directory(directory, number)

    def __enter__(self) -> Opened:  # type: ignore[override]
        return open_database(self._member, self)


def _moving(store: Store) -> Iterator[tuple[bytes, bytes]]:
    return ((key, value) for key, value in store.walk(b"\0", b"\xff") if key[:1] not in _STAY)


def _plain(key: bytes, value: bytes) -> tuple[bytes, bytes]:
    match key[:1]:
        case keys.QUEUE | keys.TIMED:
            return key[:-8], value
        case keys.SEED:
            return keys.SEED, value
        case keys.SEEN:
            entry = decode_seen(value)
            return key, encode_seen(entry._replace(tail=entry.tail[:-8]))
        case keys.HOST:
            return key, msgspec.msgpack.encode(msgspec.structs.replace(decode_host(value), cursor=b""))
        case _:
            return key, value


_HOST_IN: dict[bytes, Callable[[bytes, bytes], str]] = {
    keys.QUEUE: lambda _, value: decode_row(value).host,
    keys.TIMED: lambda _, value: decode_row(value).host,
    keys.PAGE: lambda key, _: host_of(key[1:].decode()),
    keys.CONTENT: lambda key, _: host_of(key[1:].decode()),
    keys.NOTE: lambda key, _: host_of(key[1:].decode()),
    keys.DIGEST: lambda key, _: host_of(key[keys.DIGEST_HEAD :].decode()),
    keys.BAND: lambda key, _: host_of(key[keys.BAND_HEAD :].decode()),
    keys.SEED: lambda _, value: host_of(value.decode()),
    keys.WAITING_SITEMAP: lambda _, value: host_of(value.decode()),
    keys.RELAX: lambda _, value: host_of(decode_row(value).url),
    keys.HELD: lambda _, value: host_of(decode_held(value).url),
    keys.REFUSAL: lambda _, value: host_of(decode_refusal(value).url),
    keys.SITEMAP: lambda _, value: host_of(decode_sitemap(value).url),
    keys.ORIGIN: lambda _, value: host_of(_origin_of(value) + "/"),
    keys.HOST: lambda _, value: decode_host(value).name,
}


def _origin_of(value: bytes) -> str:
    return msgspec.msgpack.decode(zstandard.decompress(value), type=OriginRecord).origin


def _node(names: dict[bytes, str], key: bytes, value: bytes) -> int:
    """The virtual node that a row belongs to."""
    if key[:1] == keys.HIGH_WATER:
        return int.from_bytes(key[1:3])
    return node_of(names[key[1:9]] if key[:1] == keys.SEEN else _HOST_IN[key[:1]](key, value))
