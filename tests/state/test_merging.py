"""Partitions read as one: order, what is left out, and which row counts where several have one under the same key."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlkit.model import Refusal
from crawlkit.state import keys
from crawlkit.state.checkpoint import Action, Run, Steered, Summary, merged_runs, merged_summary
from crawlkit.state.counters import Counters, summed
from crawlkit.state.hosts import HostRecord, decode_host
from crawlkit.state.merging import MergedStore
from crawlkit.state.opening import BATCH
from crawlkit.state.pages import decode_note
from crawlkit.state.reading import (
    CONFIG,
    COUNTERS,
    RESCAN,
    Rescan,
    read_counters,
    read_first_seeds,
    read_rescan,
    read_runs,
    walk_seeds,
)
from crawlkit.state.refusals import RefusalRow, decode_refusal
from crawlkit.state.store import Store
from crawlkit.state.templates import AccountRecord, decode_account
from tests.state.making import write_all

Rows = dict[bytes, bytes]
Merge = Callable[..., MergedStore]

encode = msgspec.msgpack.encode


@pytest.fixture
def merge(tmp_path: Path) -> Iterator[Merge]:
    """Make a store of each table of rows, and merge them; hosts ending in a digit belong to that partition."""
    with ExitStack() as stack:

        def made(*tables: Rows, span: tuple[str, ...] = ()) -> MergedStore:
            members = []
            for number, rows in enumerate(tables):
                store = stack.enter_context(Store(tmp_path / str(number), create=True))
                for key, value in rows.items():
                    store.stage(key, value)
                write_all(store)
                members.append(store)
            return MergedStore(members, span, lambda host: int(host[-1]))

        yield made


def page(url: str) -> Rows:
    return {keys.page_key(url): url.encode()}


def test_rows_come_in_the_order_of_keys_whichever_partition_has_them(merge: Merge) -> None:
    store = merge({**page("a"), **page("d")}, {**page("b")}, {**page("c"), **page("e")})
    assert list(store.walk(keys.PAGE, keys.after(keys.PAGE))) == [(b"p" + c, c) for c in (b"a", b"b", b"c", b"d", b"e")]
    assert list(store.walk_keys(b"pb", b"pd")) == [b"pb", b"pc"]
    assert store.scan(keys.PAGE, b"pb", 2) == [(b"pb", b"b"), (b"pc", b"c")]
    assert [store.get(key) for key in (b"pa", b"pb", b"pe", b"px")] == [b"a", b"b", b"e", None]


@given(st.lists(st.sets(st.binary(min_size=1, max_size=3)), min_size=1, max_size=3))
def test_the_first_of_each_group_is_that_of_all_partitions(
    tmp_path_factory: pytest.TempPathFactory, tables: list[set[bytes]]
) -> None:
    place = tmp_path_factory.mktemp("firsts")
    with ExitStack() as stack:
        members = [stack.enter_context(Store(place / str(number), create=True)) for number in range(len(tables))]
        for member, table in zip(members, tables, strict=True):
            for key in table:
                member.stage(keys.BAND + key, b"")
            write_all(member)
        store = MergedStore(members, (), lambda _: 0)
        found = sorted(keys.BAND + key for key in set().union(*tables))
        firsts = [key for at, key in enumerate(found) if at == 0 or found[at - 1][:2] != key[:2]]
        assert list(store.cursor().firsts(keys.BAND, 2)) == firsts
        assert store.cursor().first(keys.BAND) == next(iter(found), None)
        assert store.cursor().first(keys.DIGEST) is None
        assert list(store.walk_keys(keys.BAND, keys.after(keys.BAND))) == found


def test_a_host_is_as_its_owner_knows_it(merge: Merge) -> None:
    key = keys.host_key(keys.host_id("h1"))
    store = merge({key: encode(HostRecord("h1"))}, {key: encode(HostRecord("h1", pages=7))})
    value = store.get(key)
    assert value is not None
    assert decode_host(value).pages == 7
    assert [decode_host(row).pages for _, row in store.walk(keys.HOST, keys.after(keys.HOST))] == [7]


def test_a_host_that_its_owner_never_met_is_as_another_one_knows_it(merge: Merge) -> None:
    key = keys.host_key(keys.host_id("h2"))
    store = merge({key: encode(HostRecord("h2", pages=1))}, {key: encode(HostRecord("h2"))}, {})
    value = store.get(key)
    assert value is not None
    assert decode_host(value).pages == 1


def test_a_refusal_counts_where_it_was_met_nearest_to_a_seed(merge: Merge) -> None:
    key = keys.refusal_key(keys.host_id("h0"), "http://h0/x")
    store = merge(*({key: encode(RefusalRow("http://h0/x", Refusal.DEPTH, depth))} for depth in (5, 4, 6)))
    value = store.get(key)
    assert value is not None
    assert decode_refusal(value).depth == 4


def test_what_sitemaps_say_is_joined(merge: Merge) -> None:
    key = keys.note_key("http://h0/x")
    store = merge({key: encode(("2024-01-01", None))}, {key: encode(("2024-02-01", 0.2))}, {key: encode((None, 0.5))})
    value = store.get(key)
    assert value is not None
    assert decode_note(value) == ("2024-02-01", 0.5)


def test_an_account_counts_where_its_pages_are(merge: Merge) -> None:
    key = keys.template_key("h0/.?")
    store = merge({key: encode(AccountRecord(credit=9))}, {key: encode(AccountRecord(credit=1, pages=3))})
    value = store.get(key)
    assert value is not None
    assert decode_account(value).credit == 1


@pytest.mark.parametrize(
    "prefix", [keys.TIMED, keys.RECENT, keys.ARCHIVE_FILE, keys.EXTENT, keys.ARCHIVED, keys.PAYLOAD, keys.LETTER], ids=repr
)
def test_what_is_numbered_by_each_partition_is_not_taken_for_the_crawl_s(merge: Merge, prefix: bytes) -> None:
    store = merge({prefix + b"1": b"a"}, {prefix + b"1": b"b"})
    assert list(store.walk(prefix, keys.after(prefix))) == []
    assert list(store.walk_keys(prefix, keys.after(prefix))) == []
    assert store.get(prefix + b"1") is None


def test_values_are_joined(merge: Merge) -> None:
    def values(batch: int, counters: Counters, **more: bytes) -> Rows:
        return {BATCH: batch.to_bytes(8, "big"), COUNTERS: encode(counters), **{keys.meta_key(k): v for k, v in more.items()}}

    one = values(3, Counters(pages=1, refused={"scope": 2}, finished=True), config=b"{}", rescan=encode(Rescan(2, 3, b"pm")))
    other = values(4, Counters(pages=2, refused={"scope": 1, "depth": 1}), config=b"{}", rescan=encode(Rescan(3, 5, b"pc")))
    store = merge(one, other)
    assert store.get(BATCH) == (7).to_bytes(8, "big")
    assert store.get(CONFIG) == b"{}"
    assert read_counters(store) == Counters(pages=3, refused={"scope": 3, "depth": 1})
    assert read_rescan(store) == Rescan(2, 5, b"pc")
    assert store.get(keys.INDEXED) is None
    assert store.get(RESCAN) is not None


def test_pages_alike_are_known_only_where_every_partition_notes_them(merge: Merge) -> None:
    assert merge({keys.INDEXED: b""}, {keys.INDEXED: b""}).get(keys.INDEXED) == b""


def test_pages_alike_are_not_known_where_one_partition_does_not_note_them(merge: Merge) -> None:
    assert merge({keys.INDEXED: b""}, {}).get(keys.INDEXED) is None


def test_seeds_are_those_of_the_scope_then_those_that_were_added(merge: Merge) -> None:
    def seeds(*urls: str) -> Rows:
        return {keys.numbered_key(keys.SEED, number): url.encode() for number, url in enumerate(urls)}

    store = merge(seeds("b", "new"), seeds("a", "c", "newer"), span=("a", "b", "c"))
    assert list(walk_seeds(store)) == ["a", "b", "c", "new", "newer"]
    assert read_first_seeds(store) == ["a", "b", "c"]
    assert store.get(keys.numbered_key(keys.SEED, 4)) == b"newer"
    assert store.get(keys.numbered_key(keys.SEED, 5)) is None


def test_nothing_is_written_through_it(merge: Merge) -> None:
    store = merge({}, {})
    with pytest.raises(TypeError, match="only read"):
        store.stage(b"p", b"")
    with pytest.raises(TypeError, match="only read"):
        store.unstage(b"p")


def run(number: int, started_s: float, ended_s: float | None, how: str, **more: Any) -> Run:
    return Run(number, started_s, ended_s, how, **more)


def test_runs_of_one_number_are_one_run(merge: Merge) -> None:
    pause, late = Steered(5.0, Action.PAUSE), Steered(5.5, Action.PAUSE)
    drop, end = Steered(5.2, Action.DROP, "a.test"), Steered(6.0, Action.PAUSE)
    ledgers = [
        [run(1, 2.0, 9.0, "finished", pages=1, requests=2, checkpoints=3, steered=[pause, end], quiet_from_s=1.0)],
        [
            run(1, 1.0, 8.0, "limit.pages", pages=4, requests=5, checkpoints=6, steered=[late], changes={"a": 1}),
            run(2, 10, None, "running"),
        ],
        [run(1, 3.0, 7.0, "finished", steered=[drop], changes={"b": 2})],
    ]
    first, second = merged_runs(ledgers)
    assert first == run(
        1, 1.0, 9.0, "limit.pages", pages=5, requests=7, checkpoints=9, changes={"a": 1, "b": 2},
        quiet_from_s=1.0, steered=[pause, drop, late],
    )  # fmt: skip
    assert (second.number, second.ended_s, second.how) == (2, None, "running")
    store = merge(*({keys.numbered_key(keys.RUN, r.number): encode(r) for r in ledger} for ledger in ledgers))
    assert read_runs(store) == [first, second]


def test_a_run_has_not_ended_where_one_partition_was_killed() -> None:
    [whole] = merged_runs([[run(1, 1.0, 2.0, "finished")], [run(1, 1.0, None, "running")]])
    assert (whole.ended_s, whole.how) == (None, "running")


def test_every_counter_is_summed_but_the_time_and_the_last_number() -> None:
    names = [name for name in Counters.__struct_fields__ if type(getattr(Counters(), name)) is int]
    parts = [Counters(elapsed_s=n, reasons={f"r{n}"}) for n in (1, 2)]
    for n, part in enumerate(parts, 1):
        for at, name in enumerate(names):
            setattr(part, name, 10 * n + at)
    total = summed(parts)
    for name in set(names) - {"sequence"}:
        assert getattr(total, name) == sum(getattr(part, name) for part in parts), name
    assert (total.sequence, total.elapsed_s, total.finished, total.reasons) == (20, 2, False, {"r1", "r2"})
    assert summed([Counters(finished=True), Counters(finished=True)]).finished


def test_checkpoints_say_together_what_there_is() -> None:
    parts = [Summary("a", 1, Counters(pages=1), [], {"1.log": 2}, 3, 4, 5), Summary("b", 6, Counters(pages=2), [], {}, 7, 8, 9)]
    assert merged_summary("x", parts) == Summary("x", 7, Counters(pages=3), [], {}, 10, 12, 14)
