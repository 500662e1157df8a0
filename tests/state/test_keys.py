"""Keys: the order of their bytes is the order wanted, ranges hold what they should, and the format is what is documented."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from crawlkit.state import keys

HOST_NAMES = st.from_regex(r"[a-z]{1,3}\.test", fullmatch=True)
HOST_IDS = st.binary(min_size=8, max_size=8)
DEPTHS = st.integers(0, 2**32 - 1)
SEQUENCES = st.integers(0, 2**64 - 1)
DUE_S = st.floats(0, 1e11)


@given(HOST_IDS, st.lists(st.tuples(DEPTHS, SEQUENCES), min_size=2))
def test_a_back_queue_is_ordered_by_depth_up_to_255_then_by_sequence(host: bytes, places: list[tuple[int, int]]) -> None:
    by_key = sorted(places, key=lambda place: keys.queue_key(host, keys.queued_tail(*place)))
    assert [(min(depth, 255), n) for depth, n in by_key] == sorted((min(depth, 255), n) for depth, n in places)


@given(st.lists(st.tuples(st.integers(0, 10**12), SEQUENCES), min_size=2))
def test_the_timed_range_is_ordered_by_due_time_then_by_sequence(places: list[tuple[int, int]]) -> None:
    """Due times in eighths of a second, which milliseconds hold exactly."""
    by_key = sorted(places, key=lambda place: keys.timed_key(keys.timed_tail(place[0] / 8, place[1])))
    assert by_key == sorted(places)


@given(st.lists(st.tuples(DEPTHS, st.text()), min_size=2))
def test_distances_to_propagate_come_lowest_depth_first(rows: list[tuple[int, str]]) -> None:
    by_key = sorted(rows, key=lambda row: keys.relax_key(*row))
    assert [depth for depth, _ in by_key] == sorted(depth for depth, _ in rows)


@given(st.lists(st.text(), min_size=2))
def test_records_are_ordered_by_the_bytes_of_their_urls(urls: list[str]) -> None:
    assert [key[1:].decode() for key in sorted(map(keys.page_key, urls))] == sorted(urls, key=str.encode)


@pytest.mark.parametrize("prefix", [keys.SEED, keys.RUN])
@given(numbers=st.lists(SEQUENCES, min_size=2))
def test_seeds_and_runs_are_ordered_by_number(prefix: bytes, numbers: list[int]) -> None:
    assert sorted(keys.numbered_key(prefix, n) for n in numbers) == [keys.numbered_key(prefix, n) for n in sorted(numbers)]


@given(HOST_IDS, DEPTHS, SEQUENCES)
def test_a_queued_key_tells_its_priority_and_sequence(host: bytes, depth: int, sequence: int) -> None:
    tail = keys.queued_tail(depth, sequence)
    key = keys.queue_key(host, tail)
    assert keys.priority_of(key) == min(depth, keys.MAX_PRIORITY)
    assert keys.sequence_of(tail) == sequence
    assert key[9:] == tail


@given(DUE_S, SEQUENCES)
@example(due_s=1.0000000000000002, sequence=1)
@example(due_s=1_764_538_000.1230001, sequence=1)
def test_a_timed_key_tells_its_due_time_to_the_millisecond_never_early_and_its_sequence(due_s: float, sequence: int) -> None:
    tail = keys.timed_tail(due_s, sequence)
    assert due_s <= keys.due_of(keys.timed_key(tail)) <= due_s + 0.001 + due_s * 1e-12  # the latter: a float's own grain
    assert keys.sequence_of(tail) == sequence


def test_a_due_time_before_the_epoch_is_due_at_once() -> None:
    assert keys.due_of(keys.timed_key(keys.timed_tail(-5.0, 1))) == 0.0


@given(
    st.binary(min_size=1, max_size=9).filter(lambda prefix: prefix.strip(b"\xff") != b""), st.binary(), st.binary(max_size=10)
)
def test_a_range_ends_just_behind_all_that_start_with_its_prefix(prefix: bytes, more: bytes, other: bytes) -> None:
    stop = keys.after(prefix)
    assert prefix <= prefix + more < stop
    if not other.startswith(prefix):
        assert not prefix <= other < stop


@given(HOST_NAMES, HOST_NAMES, DEPTHS, SEQUENCES, DUE_S)
def test_every_scanned_row_lies_in_its_bucket_and_in_no_other(
    name: str, other: str, depth: int, sequence: int, due_s: float
) -> None:
    host = keys.host_id(name)
    rows = [
        keys.queue_key(host, keys.queued_tail(depth, sequence)),
        keys.timed_key(keys.timed_tail(due_s, sequence)),
        keys.relax_key(depth, f"http://{name}/"),
        keys.host_key(host),
        keys.seen_key(host, f"http://{name}/"),
    ]
    buckets = [keys.bucket_of(key) for key in rows]
    assert buckets == [keys.queue_range(host), keys.TIMED, keys.RELAX, keys.HOST, keys.SEEN + host]
    for key, own in zip(rows, buckets, strict=True):
        for bucket in buckets:
            assert bucket is not None
            assert (bucket <= key < keys.after(bucket)) == (bucket == own)
    if name != other:
        assert not rows[0].startswith(keys.queue_range(keys.host_id(other)))


@pytest.mark.parametrize("key", [keys.page_key("u"), keys.meta_key("batch"), keys.origin_key("o"), b"g", b"l"])
def test_rows_that_are_only_looked_up_are_in_no_bucket(key: bytes) -> None:
    assert keys.bucket_of(key) is None


def test_each_kind_of_row_has_a_prefix_of_its_own() -> None:
    prefixes = [
        keys.META,
        keys.SEED,
        keys.RUN,
        keys.HOST,
        keys.SEEN,
        keys.QUEUE,
        keys.TIMED,
        keys.RELAX,
        keys.ORIGIN,
        keys.PAGE,
    ]
    assert b"".join(prefixes) == b"mglhsqtrop"


def test_a_hosts_seen_urls_are_one_contiguous_range() -> None:
    host = keys.host_id("a.test")
    assert keys.seen_key(host, "http://a.test/").startswith(b"s" + host)


KEYS = {
    "host": (keys.host_key(keys.host_id("a.test")), "68 f9f444b01e06aea5"),
    "seen": (keys.seen_key(keys.host_id("a.test"), "http://a.test/"), "73 f9f444b01e06aea5 1a6c21fddbbcd54e1cfa"),
    "queued": (keys.queue_key(keys.host_id("a.test"), keys.queued_tail(0, 1)), "71 f9f444b01e06aea5 00 0000000000000001"),
    "queued deep": (keys.queue_key(bytes(8), keys.queued_tail(300, 2)), "71 0000000000000000 ff 0000000000000002"),
    "timed": (keys.timed_key(keys.timed_tail(1_700_000_000.25, 7)), "74 0000018bcfe568fa 0000000000000007"),
    "relax": (keys.relax_key(3, "http://a.test/"), "72 00000003 ae81ee5a3774fb93fbd1f320c4a1def2"),
    "origin": (keys.origin_key("http://a.test"), "6f acca3f9195ed01ff730926c7b5a95b6a"),
    "record": (keys.page_key("http://a.test/"), "70 687474703a2f2f612e746573742f"),
    "seed": (keys.numbered_key(keys.SEED, 1), "67 0000000000000001"),
    "run": (keys.numbered_key(keys.RUN, 258), "6c 0000000000000102"),
    "batch 130": (keys.recent_key(130), "62 02"),
    "meta": (keys.meta_key("batch"), "6d 6261746368"),
}


@pytest.mark.parametrize(("key", "documented"), KEYS.values(), ids=KEYS.keys())
def test_keys_on_disk_are_what_is_documented(key: bytes, documented: str) -> None:
    assert key.hex() == documented.replace(" ", "")
