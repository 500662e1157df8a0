"""Appending to the archive: what two independent readers find is what was given, at the places that are told."""

import errno
import os
import zlib
from collections.abc import Iterator
from pathlib import Path

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from crawlkit.archive import writer as writing
from crawlkit.errors import StorageError
from crawlkit.exchange import Cut, Role, Settled
from tests.archive.exchanges import CRAWL_ID, Shelf, settled
from tests.archive.readers import agreed, is_clean
from tests.crash.crawls import scratch


def members(path: Path) -> Iterator[tuple[int, int]]:
    """Offset and length of each gzip member, by the trailer rule: each decompresses by itself."""
    data = path.read_bytes()
    start = 0
    while start < len(data):
        one = zlib.decompressobj(31)
        one.decompress(data[start:])
        assert one.eof
        end = len(data) - len(one.unused_data)
        yield start, end - start
        start = end


def test_each_record_is_a_member_and_extents_tell_where(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path)
    shelf.append(settled("http://a.test/1", b"one"), settled("http://a.test/2", b""))
    shelf.append(settled("http://a.test/3", b"three", cut=Cut.TIME))
    seen = agreed(shelf.path())
    assert [s.kind for s in seen] == ["warcinfo", *["response", "request", "metadata"] * 3]
    told = [(e.offset + sum(e.lengths[:n]), e.lengths[n]) for e in shelf.extents for n in range(3)]
    assert list(members(shelf.path()))[1:] == told
    assert shelf.sizes == {1: shelf.path().stat().st_size} == {1: shelf.extents[-1].end}
    assert [s.content for s in seen if s.kind == "response"] == [b"one", b"", b"three"]
    assert [s.uri for s in seen if s.kind == "response"] == [e.url for e in shelf.extents]
    assert f"<urn:uuid:{shelf.extents[0].record_id.hex()}>" == seen[1].head["WARC-Record-ID"].replace("-", "")


def test_the_file_begins_with_what_made_it(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path)
    shelf.append(settled())
    shelf.reopen()
    shelf.append(settled("http://a.test/2", b"two"))
    info, *others = agreed(shelf.path())
    assert info.head["WARC-Filename"] == shelf.path().name == f"crawlkit-{CRAWL_ID}-00001.warc.gz"
    assert b"software: testkit/1.0\r\n" in info.content
    assert {other.head["WARC-Warcinfo-ID"] for other in others} == {info.head["WARC-Record-ID"]}


def test_a_body_that_was_archived_before_is_referred_to(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path)
    shelf.append(settled("http://a.test/1", b"same"), settled("http://a.test/2", b"same"))
    shelf.reopen()
    shelf.append(settled("http://a.test/3", b"same"), settled("http://a.test/4", b"same", cut=Cut.LENGTH))
    first, *others = (s for s in agreed(shelf.path()) if s.kind in ("response", "revisit"))
    assert [s.kind for s in others] == ["revisit", "revisit", "response"]
    for revisit in others[:2]:
        assert revisit.head["WARC-Refers-To"] == first.head["WARC-Record-ID"]
        assert revisit.head["WARC-Refers-To-Target-URI"] == first.uri
        assert revisit.head["WARC-Refers-To-Date"] == first.head["WARC-Date"]
        assert revisit.head["WARC-Payload-Digest"] == first.head["WARC-Payload-Digest"]
        assert revisit.status == "200 OK"
    assert [e.original for e in shelf.extents] == [None, (1, first.offset), (1, first.offset), None]


def test_without_a_body_there_is_nothing_to_refer_to(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path)
    shelf.append(*[settled(f"http://a.test/{n}", b"") for n in range(3)])
    assert [e.original for e in shelf.extents] == [None] * 3


def test_a_full_file_is_followed_by_another(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path, most_bytes=5_000)
    for start in range(0, 20, 5):
        shelf.append(*[settled(f"http://a.test/{n}", os.urandom(900)) for n in range(start, start + 5)])
        shelf.reopen()
    assert len(shelf.sizes) > 3
    for number, size in shelf.sizes.items():
        assert shelf.path(number).stat().st_size == size
        agreed(shelf.path(number))
    full = [size for number, size in shelf.sizes.items() if number < max(shelf.sizes)]
    assert all(5_000 <= size < 5_000 + 3_000 for size in full)
    assert [e.file for e in shelf.extents] == sorted(e.file for e in shelf.extents)


def test_a_file_smaller_than_its_warcinfo_takes_one_exchange(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path, most_bytes=1)
    shelf.append(settled(), settled("http://a.test/2", b"2"))
    assert [e.file for e in shelf.extents] == [1, 2]
    assert all(is_clean(shelf.path(number)) for number in (1, 2))


def test_a_long_body_is_compressed_a_piece_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "_PIECE_BYTES", 1000)
    shelf = Shelf(tmp_path)
    body = os.urandom(2_500) + bytes(5_000)
    shelf.append(settled(body=body))
    assert agreed(shelf.path())[1].content == body


def test_nothing_is_appended_to_a_file_that_something_else_changed(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path)
    shelf.append(settled())
    shelf.path().write_bytes(shelf.path().read_bytes() + b"x")
    with pytest.raises(StorageError, match="another size"):
        shelf.append(settled("http://a.test/2"))


def test_a_disk_that_fails_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(writing, "write_bytes", full)
    with pytest.raises(StorageError, match="No space left on device; free space"):
        Shelf(tmp_path).append(settled())


def test_where_nothing_settled_there_is_no_file(tmp_path: Path) -> None:
    assert not Shelf(tmp_path).append()
    assert not list(tmp_path.iterdir())


fields = st.lists(
    st.tuples(
        st.from_regex(r"[A-Za-z][A-Za-z-]{0,11}", fullmatch=True), st.from_regex(r"[!-~]([ -~]{0,20}[!-~])?", fullmatch=True)
    ),
    max_size=5,
)
names = {"content-encoding", "transfer-encoding", "content-length"}


@st.composite
def exchanges(draw: st.DrawFn) -> Settled:
    lines = [f"{name}: {value}\r\n" for name, value in draw(fields) if name.lower() not in names]
    chunked = ["Transfer-Encoding: chunked\r\n"] if draw(st.booleans()) else []
    head = f"HTTP/1.1 {draw(st.integers(200, 599))} \r\n{''.join([*lines, *chunked])}\r\n".encode()
    url = f"http://a.test/{draw(st.integers(0, 3))}"
    body = draw(st.one_of(st.binary(max_size=40), st.sampled_from([b"same", b"WARC/1.1\r\n\r\n"])))
    links = tuple(f"http://a.test/l{n}" for n in range(draw(st.integers(0, 3))))
    return settled(url, body, head, cut=draw(st.sampled_from([None, *Cut])), role=draw(st.sampled_from(Role)), links=links)


@settings(max_examples=60)
@given(batches=st.lists(st.lists(exchanges(), max_size=4), max_size=4), most_bytes=st.sampled_from([1, 2_000, 1 << 30]))
def test_whatever_is_appended_is_read_back(batches: list[list[Settled]], most_bytes: int) -> None:
    with scratch() as place:
        shelf = Shelf(place, most_bytes=most_bytes)
        for batch in batches:
            shelf.append(*batch)
        see_that_all_is_there(shelf, batches)


def see_that_all_is_there(shelf: Shelf, batches: list[list[Settled]]) -> None:
    given = [each for batch in batches for each in batch]
    answers = [s for number in shelf.sizes for s in agreed(shelf.path(number)) if s.kind in ("response", "revisit")]
    assert [s.uri for s in answers] == [each.url for each in given] == [e.url for e in shelf.extents]
    bodies = {(e.file, e.offset): each.exchange.body for e, each in zip(shelf.extents, given, strict=True)}
    for seen, extent, each in zip(answers, shelf.extents, given, strict=True):
        original = extent.original
        assert (bodies[original] if original else seen.content) == each.exchange.body
        assert seen.head.get("WARC-Truncated") == each.exchange.cut
        assert seen.offset == extent.offset
