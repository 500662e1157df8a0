"""Content-Encoding undone: right, bounded, and forgiving where servers are known to be wrong."""

import gzip
import random
import tracemalloc
import zlib
from collections.abc import Callable, Sequence

import brotli  # type: ignore[import-untyped]
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from crawlkit.net.decode import ACCEPT_ENCODING, BodyDecoder

MIB = 1 << 20
PAGE = b"<!doctype html><title>A page</title>" + b"".join(b'<a href="/%d">link</a>' % i for i in range(2000))


def raw_deflate(data: bytes) -> bytes:
    stream = zlib.compressobj(wbits=-15)
    return stream.compress(data) + stream.flush()


def zstd_stream(data: bytes) -> bytes:
    stream = zstandard.ZstdCompressor().compressobj()  # says no size in its frame, as servers that stream do not
    return bytes(stream.compress(data) + stream.flush())


ENCODERS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "x-gzip": gzip.compress,
    "deflate": zlib.compress,
    "br": brotli.compress,
    "zstd": zstd_stream,
}
CASES = [*ENCODERS.items(), ("deflate", raw_deflate), ("zstd", zstandard.compress)]


def decoded(body: bytes, *encodings: str, max_bytes: int = 10 * MIB, chunk_bytes: int | None = None) -> tuple[bytes, bool]:
    decoder = BodyDecoder([e.encode() for e in encodings], max_bytes)
    size = chunk_bytes or len(body) or 1
    for start in range(0, len(body), size):
        if not decoder.feed(body[start : start + size]):
            break
    return decoder.finish()


@pytest.mark.parametrize(("name", "encode"), CASES)
@pytest.mark.parametrize("chunk_bytes", [None, 1, 7, 1000])
def test_each_coding_is_undone_however_it_arrives(name: str, encode: Callable[[bytes], bytes], chunk_bytes: int | None) -> None:
    assert decoded(encode(PAGE), name, chunk_bytes=chunk_bytes) == (PAGE, False)


@pytest.mark.parametrize(("name", "encode"), CASES)
def test_a_body_larger_than_a_piece_is_undone_whole(name: str, encode: Callable[[bytes], bytes]) -> None:
    body = random.Random(1).randbytes(MIB) + bytes(2 * MIB)
    assert decoded(encode(body), name, chunk_bytes=65536) == (body, False)


@pytest.mark.parametrize(("name", "encode"), CASES)
def test_a_stream_that_ends_early_keeps_what_it_gave_and_is_truncated(name: str, encode: Callable[[bytes], bytes]) -> None:
    body = random.Random(2).randbytes(300_000)
    whole = encode(body)
    got, truncated = decoded(whole[: len(whole) // 2], name, chunk_bytes=4096)
    assert truncated
    assert got
    assert body.startswith(got)


@pytest.mark.parametrize(("name", "encode"), CASES)
def test_a_body_of_no_bytes_is_whole_whatever_its_coding(name: str, encode: Callable[[bytes], bytes]) -> None:
    assert decoded(b"", name) == (b"", False)
    assert decoded(encode(b""), name) == (b"", False)


@pytest.mark.parametrize(("name", "encode"), CASES)
def test_the_cap_counts_decoded_bytes(name: str, encode: Callable[[bytes], bytes]) -> None:
    assert decoded(encode(PAGE), name, max_bytes=len(PAGE)) == (PAGE, False)
    assert decoded(encode(PAGE), name, max_bytes=len(PAGE) - 1) == (PAGE[:-1], True)
    assert decoded(encode(PAGE), name, max_bytes=1) == (PAGE[:1], True)


@pytest.mark.parametrize(("name", "encode"), CASES)
def test_a_bomb_of_64_mib_costs_little_memory(name: str, encode: Callable[[bytes], bytes]) -> None:
    bomb = encode(bytes(64 * MIB))
    tracemalloc.start()
    try:
        body, truncated = decoded(bomb, name, max_bytes=MIB, chunk_bytes=65536)
        peak_bytes = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert truncated
    assert len(body) == MIB or body == bomb  # a zstd frame that asks for a window of 64 MiB is refused at its head
    assert peak_bytes < 6 * MIB


def test_a_bomb_inside_of_a_bomb_is_bounded_too() -> None:
    body = bytes(100 * MIB)
    for _ in range(3):
        body = gzip.compress(body)
    tracemalloc.start()
    try:
        got, truncated = decoded(body, "gzip, gzip, gzip", max_bytes=MIB)
        peak_bytes = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert (len(got), truncated) == (MIB, True)
    assert peak_bytes < 6 * MIB


def test_what_a_coding_in_between_may_give_is_capped_as_well() -> None:
    empty_members = gzip.compress(gzip.compress(b"") * 500_000 + gzip.compress(b"end"))
    assert decoded(empty_members, "gzip, gzip", max_bytes=MIB) == (b"", True)


def test_input_that_gives_no_output_ends_as_well() -> None:
    decoder = BodyDecoder([b"gzip"], 1000)
    chunk = gzip.compress(b"") * 1000
    fed = next(count for count in range(1, 100) if not decoder.feed(chunk))
    assert fed * len(chunk) < 200_000
    assert decoder.finish() == (b"", True)


@pytest.mark.parametrize(
    "encodings", [("gzip, br",), ("gzip", "br"), ("br ,deflate,  GZIP",), ("gzip, identity",), ("gzip, gzip, br, zstd",)]
)
def test_codings_after_each_other_are_undone_from_the_last_to_the_first(encodings: Sequence[str]) -> None:
    body = PAGE
    for name in ",".join(encodings).split(","):
        body = ENCODERS.get(name.strip().lower(), bytes)(body)
    assert decoded(body, *encodings, chunk_bytes=100) == (PAGE, False)


def test_more_codings_than_anyone_needs_are_not_undone() -> None:
    body = PAGE
    for _ in range(5):
        body = gzip.compress(body)
    assert decoded(body, "gzip, gzip, gzip, gzip, gzip") == (body, True)


@pytest.mark.parametrize("name", ["utf-8", "none", "identity", "", "binary", "aws-chunked", "compress"])
def test_an_unknown_coding_leaves_the_body_as_it_is(name: str) -> None:
    assert decoded(PAGE, name) == (PAGE, False)


def test_a_known_coding_beside_an_unknown_one_is_undone() -> None:
    assert decoded(gzip.compress(PAGE), "utf-8, gzip") == (PAGE, False)


@pytest.mark.parametrize("name", ["gzip", "x-gzip", "zstd", "gzip, gzip"])
@pytest.mark.parametrize("chunk_bytes", [None, 1])
def test_a_plain_body_called_encoded_is_kept_whole(name: str, chunk_bytes: int | None) -> None:
    assert decoded(PAGE, name, chunk_bytes=chunk_bytes) == (PAGE, False)


def test_a_body_encoded_once_and_named_twice_is_undone() -> None:
    assert decoded(gzip.compress(PAGE), "gzip, gzip") == (PAGE, False)


@pytest.mark.parametrize("name", ["br", "deflate"])
@pytest.mark.parametrize("chunk_bytes", [None, 1])
def test_a_plain_body_under_a_coding_without_a_mark_is_kept_and_called_truncated(name: str, chunk_bytes: int | None) -> None:
    assert decoded(PAGE, name, chunk_bytes=chunk_bytes) == (PAGE, True)


def test_the_cap_holds_for_a_body_kept_as_it_is() -> None:
    assert decoded(PAGE, "br", max_bytes=100) == (PAGE[:100], True)
    assert decoded(PAGE, "gzip", max_bytes=100) == (PAGE[:100], True)
    assert decoded(PAGE, max_bytes=100) == (PAGE[:100], True)


def test_gzip_members_and_zstd_frames_after_each_other_are_one_body() -> None:
    assert decoded(gzip.compress(b"one ") + gzip.compress(b"two"), "gzip", chunk_bytes=3) == (b"one two", False)
    assert decoded(gzip.compress(b"one ") + bytes(5) + gzip.compress(b"two"), "gzip") == (b"one two", False)
    frames = zstandard.compress(b"one ") + b"\x53\x2a\x4d\x18\x02\0\0\0xx" + zstd_stream(b"two")
    assert decoded(frames, "zstd", chunk_bytes=3) == (b"one two", False)


@pytest.mark.parametrize(("name", "tail"), [("gzip", b"\0\0\0\0"), ("gzip", b"junk"), ("zstd", b"junk"), ("deflate", b"x")])
def test_bytes_after_the_end_are_ignored(name: str, tail: bytes) -> None:
    assert decoded(ENCODERS[name](PAGE) + tail, name) == (PAGE, False)
    assert decoded(ENCODERS[name](PAGE) + tail, name, chunk_bytes=1) == (PAGE, False)


@pytest.mark.parametrize("pieces", [1, 2, 4])
def test_a_member_of_whole_pieces_is_followed_by_the_next(pieces: int) -> None:
    member = bytes(pieces * 256 * 1024)
    assert decoded(gzip.compress(member) * 3 + b"junk", "gzip") == (member * 3, False)
    assert decoded(zlib.compress(member) + b"junk" * 100, "deflate") == (member, False)
    assert decoded(raw_deflate(member) + b"junk" * 100, "deflate") == (member, False)


def test_a_wrong_checksum_keeps_what_decoded_and_is_truncated() -> None:
    whole = gzip.compress(PAGE)
    broken = whole[:-8] + bytes(4) + whole[-4:]
    assert decoded(broken, "gzip", chunk_bytes=500)[1]
    assert decoded(broken[:-8], "gzip") == (PAGE, True)


def test_a_plain_body_in_one_chunk_is_handed_on_without_a_copy() -> None:
    decoder = BodyDecoder([], MIB)
    assert decoder.feed(PAGE)
    assert decoder.finish()[0] is PAGE


def test_what_is_asked_for_is_what_can_be_undone() -> None:
    assert {name.strip() for name in ACCEPT_ENCODING.decode().split(",")} == set(ENCODERS) - {"x-gzip"}


@given(st.binary(max_size=2000), st.sampled_from(sorted(ENCODERS)), st.integers(1, 300), st.integers(1, 3000))
def test_no_bytes_whatever_raise_and_the_cap_always_holds(body: bytes, name: str, chunk_bytes: int, max_bytes: int) -> None:
    got, _ = decoded(body, name, max_bytes=max_bytes, chunk_bytes=chunk_bytes)
    assert len(got) <= max_bytes


@given(st.sampled_from(CASES), st.integers(0, 10_000), st.integers(0, 255), st.integers(1, 3000))
def test_a_damaged_stream_never_raises(
    case: tuple[str, Callable[[bytes], bytes]], position: int, value: int, chunk_bytes: int
) -> None:
    name, encode = case
    body = bytearray(encode(PAGE))
    body[position % len(body)] = value
    got, truncated = decoded(bytes(body), name, chunk_bytes=chunk_bytes)
    assert truncated or name != "gzip" or got == PAGE or position % len(body) < 10


@given(st.binary(max_size=5000), st.lists(st.sampled_from(sorted(ENCODERS)), max_size=4), st.integers(1, 500))
def test_any_chain_of_codings_comes_back(body: bytes, names: list[str], chunk_bytes: int) -> None:
    wire = body
    for name in names:
        wire = ENCODERS[name](wire)
    assert decoded(wire, *names, chunk_bytes=chunk_bytes) == (body, False)
