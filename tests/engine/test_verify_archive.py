"""What `verify` finds of an archive: each rule, broken by hand; a sound one is whole, byte by byte."""

import gzip
import random
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from crawlkit.engine.repair import repair
from crawlkit.engine.verify import Thoroughness, verify
from crawlkit.state import keys
from crawlkit.state.findings import Rule
from crawlkit.state.layout import DATABASE
from crawlkit.state.store import Store
from tests.engine.test_archiving import files, resume, start


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("sound") / "c"
    start(directory, warc_size=2_500)
    return directory


@pytest.fixture
def directory(sound: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(sound, tmp_path / "c"))


def broken(directory: Path, thoroughness: Thoroughness = Thoroughness.DEEP) -> set[Rule]:
    return set(verify(directory, thoroughness).broken)


@contextmanager
def opened(directory: Path) -> Iterator[Store]:
    with Store(directory / DATABASE, create=False) as store:
        yield store
        store.freeze().write()


@pytest.mark.parametrize("thoroughness", Thoroughness)
def test_a_sound_archive_is_whole(directory: Path, thoroughness: Thoroughness) -> None:
    assert verify(directory, thoroughness).whole


def test_all_of_it_is_read_when_asked(directory: Path) -> None:
    assert verify(directory, Thoroughness.DEEP).checked["exchanges read"] == 9


def test_a_tail_that_was_never_acknowledged_is_no_damage(directory: Path) -> None:
    with files(directory)[-1].open("ab") as file:
        file.write(b"torn")
    assert verify(directory, Thoroughness.DEEP).whole


def shorten(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


@pytest.mark.parametrize("damage", [shorten, Path.unlink])
@pytest.mark.parametrize("thoroughness", [Thoroughness.QUICK, Thoroughness.FULL])
def test_a_file_that_is_shorter_or_gone(directory: Path, damage: Callable[[Path], None], thoroughness: Thoroughness) -> None:
    damage(files(directory)[1])
    assert broken(directory, thoroughness) == {Rule.ARCHIVE_FILES}
    assert broken(directory) == {Rule.ARCHIVE_FILES, Rule.ARCHIVE_BYTES}


@pytest.mark.parametrize(
    ("prefix", "rules"),
    [
        (keys.EXTENT, {Rule.ARCHIVE_EXTENTS, Rule.ARCHIVE_RECORDS}),
        (keys.ARCHIVED, {Rule.ARCHIVE_EXTENTS, Rule.ARCHIVE_RECORDS}),
        (keys.PAYLOAD, {Rule.ARCHIVE_EXTENTS}),
        (keys.ARCHIVE_FILE, {Rule.ARCHIVE_EXTENTS}),
    ],
)
def test_a_row_that_is_gone(directory: Path, prefix: bytes, rules: set[Rule]) -> None:
    for number in range(3):
        copy = Path(shutil.copytree(directory, directory.with_name(f"{number}")))
        with opened(copy) as store:
            rows = list(store.walk_keys(prefix, keys.after(prefix)))
            store.unstage(rows[number * len(rows) // 3])
        found = broken(copy, Thoroughness.FULL)
        assert Rule.ARCHIVE_EXTENTS in found
        assert found <= rules


def test_a_row_that_cannot_be_read(directory: Path) -> None:
    with opened(directory) as store:
        key = next(store.walk_keys(keys.EXTENT, keys.after(keys.EXTENT)))
        store.stage(key, b"\xc1")
    assert Rule.DECODES in broken(directory)


def test_an_answer_without_a_record(directory: Path) -> None:
    with opened(directory) as store:
        store.unstage(keys.page_key("http://a.test/deep"))
    assert Rule.ARCHIVE_RECORDS in broken(directory)


def test_a_changed_byte_is_found_unless_it_means_nothing(directory: Path, seed: int) -> None:
    path = files(directory)[0]
    data = path.read_bytes()
    for at in random.Random(seed).sample(range(len(data)), 40):
        path.write_bytes(data[:at] + bytes([data[at] ^ 0x10]) + data[at + 1 :])
        found = broken(directory)
        if found != {Rule.ARCHIVE_BYTES}:
            assert not found
            assert gzip.decompress(path.read_bytes()) == gzip.decompress(data)  # a time stamp in a member's head


def test_bytes_of_another_exchange_are_found(directory: Path) -> None:
    first, second = files(directory)[:2]
    size = min(first.stat().st_size, second.stat().st_size)
    first.write_bytes(second.read_bytes()[:size] + first.read_bytes()[size:])
    assert broken(directory) == {Rule.ARCHIVE_BYTES}


def test_a_repaired_crawl_leaves_the_archive_where_it_is_and_says_so(directory: Path) -> None:
    before = [path.read_bytes() for path in files(directory)]
    with opened(directory) as store:
        store.unstage(next(store.walk_keys(keys.EXTENT, keys.after(keys.EXTENT))))
    repaired = repair(directory, 0.0)
    assert any("the archive's index" in lost for lost in repaired.lost)
    assert verify(repaired.directory, Thoroughness.DEEP).whole
    assert [path.read_bytes() for path in files(directory)] == before
    resume(repaired.directory)
    assert verify(repaired.directory, Thoroughness.DEEP).whole
