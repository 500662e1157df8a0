"""What was not acknowledged is cut off, whatever it is; the rest stays to the byte."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from crawlkit.archive.files import FOLDER, cut_back, found_sizes
from crawlkit.errors import StorageError
from tests.archive.exchanges import CRAWL_ID, Shelf, settled
from tests.archive.readers import is_clean
from tests.crash.crawls import scratch


@pytest.fixture
def shelf() -> Iterator[Shelf]:
    with scratch() as place:
        shelf = Shelf(place)
        shelf.append(settled("http://a.test/1", b"one"))
        yield shelf


def test_whatever_is_left_of_a_torn_record_is_cut_off(shelf: Shelf) -> None:
    whole = shelf.path().read_bytes()
    acknowledged = dict(shelf.sizes)
    shelf.append(settled("http://a.test/2", b"two"))
    longer = shelf.path().read_bytes()
    for size in range(len(whole), len(longer) + 1):
        shelf.path().write_bytes(longer[:size])
        cut_back(shelf.directory, CRAWL_ID, acknowledged)
        assert shelf.path().read_bytes() == whole
    assert is_clean(shelf.path())


@pytest.mark.parametrize("tail", [b"\0" * 5_000, b"\x1f\x8b\x08", b"WARC/1.1\r\n"])
def test_rubbish_is_cut_off(shelf: Shelf, tail: bytes) -> None:
    whole = shelf.path().read_bytes()
    shelf.path().write_bytes(whole + tail)
    cut_back(shelf.directory, CRAWL_ID, shelf.sizes)
    assert shelf.path().read_bytes() == whole


def test_a_file_that_was_never_acknowledged_is_removed_and_others_are_left_alone(shelf: Shelf) -> None:
    others = [shelf.directory / FOLDER / name for name in (f"crawlkit-{'f' * 32}-00002.warc.gz", "mine.warc.gz", "notes.txt")]
    for path in others:
        path.write_bytes(b"x")
    shelf.path(2).write_bytes(b"x")
    cut_back(shelf.directory, CRAWL_ID, shelf.sizes)
    assert not shelf.path(2).exists()
    assert [path.read_bytes() for path in others] == [b"x"] * 3


def test_a_file_that_is_shorter_stays_as_it_is(shelf: Shelf) -> None:
    shelf.path().write_bytes(b"short")
    cut_back(shelf.directory, CRAWL_ID, shelf.sizes)
    assert shelf.path().read_bytes() == b"short"
    assert found_sizes(shelf.directory, {1: 0, 2: 0}, CRAWL_ID) == {1: 5, 2: 0}


def test_a_folder_that_cannot_be_changed_is_said(shelf: Shelf) -> None:
    shelf.path(2).mkdir()
    with pytest.raises(StorageError, match="cannot cut the archive"):
        cut_back(shelf.directory, CRAWL_ID, shelf.sizes)


def test_without_an_archive_there_is_nothing_to_cut(tmp_path: Path) -> None:
    cut_back(tmp_path, CRAWL_ID, {})
    assert not list(tmp_path.iterdir())
