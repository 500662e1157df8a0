"""Values as bytes: what goes in comes out, damage is StateDamaged, and the format is what is documented."""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from crawlkit.errors import StateDamaged
from crawlkit.model import MAX_HOPS, Kind, Reason, Record, Source
from crawlkit.state import codec
from crawlkit.state.codec import Head, QueueRow, RecordCodec, SeenEntry, UrlState
from crawlkit.state.hosts import HostRecord, decode_host

TEXT = st.text(max_size=20)
MAYBE_TEXT = st.none() | TEXT
DEPTHS = st.integers(0, 2**32 - 1)
HOPS = st.integers(0, MAX_HOPS)
SOURCES = st.integers(0, sum(Source))
HEADS = st.builds(Head, DEPTHS, HOPS, SOURCES)
TIMES = st.floats(0, 1e11)
ENTRIES = st.builds(SeenEntry, st.sampled_from(UrlState), DEPTHS, HOPS, st.binary(max_size=16), SOURCES)
ROWS = st.builds(QueueRow, TEXT, TEXT, DEPTHS, HOPS, st.integers(0, 100), TIMES, MAYBE_TEXT, SOURCES)
RECORDS = st.builds(
    Record,
    url=TEXT,
    kind=st.sampled_from(Kind),
    depth=DEPTHS,
    hops=HOPS,
    status=st.none() | st.integers(100, 599),
    content_type=MAYBE_TEXT,
    body_bytes=st.none() | st.integers(0, 2**40),
    truncated=st.none() | st.booleans(),
    links=st.lists(TEXT, max_size=5).map(tuple),
    nofollow=st.lists(st.integers(0, 9), max_size=3).map(tuple),
    redirect_to=MAYBE_TEXT,
    admits_canonical=st.booleans(),
    reason=st.none() | st.sampled_from(Reason),
    fetched_at=st.none() | TIMES,
    attempts=st.integers(0, 9),
    via=MAYBE_TEXT,
    sources=SOURCES,
)
HOSTS = st.builds(
    HostRecord, TEXT, *[st.integers(0, 2**40)] * 3, *[TIMES] * 4, cursor=st.binary(max_size=17), admitted=st.booleans()
)


@given(ENTRIES)
def test_seen_entries_round_trip(entry: SeenEntry) -> None:
    found = codec.decode_seen(codec.encode_seen(entry))
    assert found == entry
    assert isinstance(found.state, UrlState)


@given(ENTRIES, st.integers(0, 400))
def test_that_a_link_is_no_news_is_told_from_the_bytes(entry: SeenEntry, depth: int) -> None:
    known = entry.depth <= depth and entry.hops == 0 and bool(entry.sources & Source.LINK)
    assert codec.is_no_news(codec.encode_seen(entry), depth) == (known and entry.depth < 128)
    assert not codec.is_no_news(codec.encode_seen(entry)[:3], depth)


@given(ROWS)
def test_queue_rows_round_trip(row: QueueRow) -> None:
    assert codec.decode_row(codec.encode_row(row)) == row


@given(RECORDS)
def test_records_round_trip(record: Record) -> None:
    value = RecordCodec().encode(record)
    assert RecordCodec().decode(record.url, value) == record
    assert codec.head_of(value) == (record.depth, record.hops, record.sources)


@given(RECORDS, HEADS)
def test_another_head_leaves_the_rest_of_a_record_as_it_is(record: Record, head: Head) -> None:
    value = codec.with_head(RecordCodec().encode(record), head)
    assert RecordCodec().decode(record.url, value) == msgspec.structs.replace(record, **head._asdict())


@given(HOSTS)
def test_host_records_round_trip(record: HostRecord) -> None:
    assert decode_host(msgspec.msgpack.encode(record)) == record


def test_a_settled_url_takes_four_bytes_in_the_seen_set() -> None:
    assert len(codec.encode_seen(SeenEntry(UrlState.SETTLED, 127, MAX_HOPS, sources=sum(Source)))) == 4


# Damage ----------------------------------------------------------------------------------------------------------------

VALUES: dict[str, tuple[bytes, Callable[[bytes], Any]]] = {
    "seen": (codec.encode_seen(SeenEntry(UrlState.QUEUED, 3, 1, bytes(9))), codec.decode_seen),
    "row": (codec.encode_row(QueueRow("http://a.test/", "a.test", 3, 1, 2, 1.5, "http://b.test/")), codec.decode_row),
    "host": (msgspec.msgpack.encode(HostRecord("a.test", 1, 2, 3, 1.5, cursor=b"c")), decode_host),
    "record": (
        RecordCodec().encode(Record(url="http://a.test/", kind=Kind.PAGE, depth=3, status=200, links=("http://b.test/",))),
        lambda value: RecordCodec().decode("http://a.test/", value),
    ),
}


@pytest.mark.parametrize(("value", "decode"), VALUES.values(), ids=VALUES.keys())
def test_a_flipped_bit_gives_another_value_or_is_damage_but_never_a_crash(value: bytes, decode: Callable[[bytes], Any]) -> None:
    damages = 0
    for bit in range(len(value) * 8):
        flipped = bytearray(value)
        flipped[bit // 8] ^= 1 << bit % 8
        try:
            decode(bytes(flipped))
        except StateDamaged:
            damages += 1
    assert damages > 0


@pytest.mark.parametrize(("value", "decode"), VALUES.values(), ids=VALUES.keys())
def test_a_value_that_was_cut_is_damage(value: bytes, decode: Callable[[bytes], Any]) -> None:
    for length in range(len(value)):
        with pytest.raises(StateDamaged):
            decode(value[:length])


@pytest.mark.parametrize(("sound", "decode"), VALUES.values(), ids=VALUES.keys())
@given(value=st.binary(max_size=40))
def test_any_bytes_are_a_value_or_damage(sound: bytes, decode: Callable[[bytes], Any], value: bytes) -> None:
    try:
        decoded = decode(value)
    except StateDamaged:
        return
    assert type(decoded) is type(decode(sound))


@pytest.mark.parametrize(
    "shape", [[0], [0, 1], [3, 1, 1], [0, "1", 1], [0, 1, None], [0, 1, 1, "tail"], [0, 1, 1, b"", 9], {}, 7]
)
def test_a_seen_entry_of_another_shape_is_damage(shape: object) -> None:
    with pytest.raises(StateDamaged, match="a seen entry cannot be read"):
        codec.decode_seen(msgspec.msgpack.encode(shape))


@pytest.mark.parametrize("packed", [0x80, -1])
def test_sources_that_there_are_not_are_damage(packed: int) -> None:
    with pytest.raises(StateDamaged, match="sources that there are not"):
        codec.decode_seen(msgspec.msgpack.encode([2, 0, packed]))
    with pytest.raises(StateDamaged, match="sources that there are not"):
        codec.head_of(bytes(4) + bytes([packed % 256]))


def test_a_record_whose_length_cannot_be_is_damage() -> None:
    """One flipped bit in a frame's header can ask for 2^60 bytes."""
    frame = bytes.fromhex("28b52ffd e0 ffffffffffffff0f") + bytes(16)
    with pytest.raises(StateDamaged, match=r"the record of http://a\.test/ cannot be read"):
        RecordCodec().decode("http://a.test/", bytes(5) + frame)


# The format on disk ------------------------------------------------------------------------------------------------------


def test_seen_entries_on_disk_are_what_is_documented() -> None:
    queued = SeenEntry(UrlState.QUEUED, 0, 0, bytes.fromhex("00 0000000000000001"), Source.SEED)
    assert codec.encode_seen(queued) == bytes.fromhex("94 00 00 20 c409 000000000000000001")
    assert codec.encode_seen(SeenEntry(UrlState.SETTLED, 3, 1, sources=Source.LINK)) == bytes.fromhex("93 02 03 11")
    assert codec.decode_seen(bytes.fromhex("93 02 03 01")) == SeenEntry(UrlState.SETTLED, 3, 1)
    assert [(state.name, state.value) for state in UrlState] == [("QUEUED", 0), ("TIMED", 1), ("SETTLED", 2)]


def test_queue_rows_on_disk_are_what_is_documented() -> None:
    documented = b"\x9a\xaehttp://a.test/\xa6a.test\x00\x00\x00\xcb" + bytes(8) + b"\xc0\x02\xc0\xc0"
    assert codec.encode_row(QueueRow("http://a.test/", "a.test", 0, 0, sources=Source.SEED)) == documented
    assert msgspec.msgpack.decode(documented) == ["http://a.test/", "a.test", 0, 0, 0, 0.0, None, 2, None, None]


def test_rows_written_before_fields_were_appended_are_still_read() -> None:
    assert codec.decode_row(msgspec.msgpack.encode(["u", "h", 1, 2])) == QueueRow("u", "h", 1, 2)
    assert decode_host(msgspec.msgpack.encode(["h"])) == HostRecord("h")


def test_records_on_disk_are_depth_hops_and_a_zstd_frame_that_does_not_repeat_the_url() -> None:
    record = Record(url="http://a.test/", kind=Kind.PAGE, depth=258, hops=1, sources=5, status=200, links=("http://a.test/b",))
    value = RecordCodec().encode(record)
    assert value[:5] == bytes.fromhex("00000102 51")
    body = msgspec.msgpack.decode(zstandard.ZstdDecompressor().decompress(value[5:]))
    assert body[:5] == ["", "page", 0, 0, 200]
    assert body[10] is None
    assert body[11] == ["http://a.test/b"]
    frame = zstandard.ZstdCompressor().compress(msgspec.msgpack.encode(body))
    assert RecordCodec().decode("http://a.test/", bytes.fromhex("00000102 51") + frame) == record
