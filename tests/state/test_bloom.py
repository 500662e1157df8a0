"""The Bloom filter never says "no" of a key it was given, stays below its error rate, and is reused only where it may be."""

import mmap
import random
import struct
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlkit.errors import ExitStatus, StorageError
from crawlkit.state import keys
from crawlkit.state.bloom import ERROR_RATE, FIRST_CAPACITY, MappedBloom, boot_id
from tests.state.making import FULL_DISK, run_child

HEADER_BYTES = mmap.ALLOCATIONGRANULARITY
CRAWL = b"c" * 16
BOOT = b"01234567-89ab-cdef-0123-456789abcdef"


def numbered(n: int) -> bytes:
    return keys.seen_key(b"8 bytes.", str(n))


def full_file(path: Path) -> Path:
    """Make a complete filter of a few keys."""
    bloom = MappedBloom.create(path, CRAWL, BOOT)
    for n in range(100):
        bloom.add(numbered(n))
    bloom.mark_complete()
    bloom.close()
    return path


@pytest.fixture
def bloom(tmp_path: Path) -> Iterator[MappedBloom]:
    made = MappedBloom.create(tmp_path / "seen.bloom", CRAWL, BOOT)
    yield made
    made.close()


@pytest.fixture(scope="module")
def grown(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[MappedBloom, int, Path]]:
    """A filter of two layers, the first of them full."""
    path = tmp_path_factory.mktemp("grown") / "seen.bloom"
    made = MappedBloom.create(path, CRAWL, BOOT)
    before = path.stat().st_size
    count = FIRST_CAPACITY + FIRST_CAPACITY // 8
    for n in range(count):
        made.add(numbered(n))
    assert path.stat().st_size > 3 * before
    yield made, count, path
    made.close()


def test_no_key_that_was_added_is_ever_denied_over_a_growth(grown: tuple[MappedBloom, int, Path]) -> None:
    made, count, _ = grown
    assert all(numbered(n) in made for n in range(0, count, 3))
    edge = range(FIRST_CAPACITY - 500, FIRST_CAPACITY + 500)
    assert all(numbered(n) in made for n in edge)


def test_the_error_rate_stays_below_its_bound_over_a_growth(grown: tuple[MappedBloom, int, Path], seed: int) -> None:
    made, count, _ = grown
    others = random.Random(seed).sample(range(count, 10**15), 20_000)
    wrong = sum(numbered(n) in made for n in others)
    assert 0 < wrong < ERROR_RATE * len(others)


def test_a_grown_filter_is_reused_with_all_its_layers(grown: tuple[MappedBloom, int, Path]) -> None:
    made, count, path = grown
    made.save_counts()
    made.mark_complete()
    again = MappedBloom.reuse(path, CRAWL, BOOT)
    assert again is not None
    assert all(numbered(n) in again for n in range(0, count, 1001))
    size = path.stat().st_size
    again.add(b"one more")
    assert path.stat().st_size == size  # the counts were read: it goes on filling the last layer
    again.close()


@given(st.sets(st.binary(min_size=1, max_size=20), min_size=1))
def test_added_keys_are_maybe_in(bloom_dir: Path, added: set[bytes]) -> None:
    made = MappedBloom.create(bloom_dir / "seen.bloom", CRAWL, BOOT)
    for key in added:
        made.add(key)
    assert all(key in made for key in added)
    made.close()


@pytest.fixture(scope="module")
def bloom_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("any")


def test_an_empty_filter_denies_and_is_not_complete(bloom: MappedBloom) -> None:
    assert not bloom.complete
    assert numbered(1) not in bloom
    bloom.mark_complete()
    assert bloom.complete


# Reuse -------------------------------------------------------------------------------------------------------------------


def test_a_complete_filter_of_this_crawl_and_boot_is_reused(tmp_path: Path) -> None:
    again = MappedBloom.reuse(full_file(tmp_path / "seen.bloom"), CRAWL, BOOT)
    assert again is not None
    assert again.complete
    assert all(numbered(n) in again for n in range(100))
    assert sum(numbered(n) in again for n in range(1000, 2000)) < 10
    again.close()


def test_a_missing_filter_is_not_reused(tmp_path: Path) -> None:
    assert MappedBloom.reuse(tmp_path / "seen.bloom", CRAWL, BOOT) is None


@pytest.mark.parametrize(
    ("crawl", "boot"),
    [(b"d" * 16, BOOT), (CRAWL, BOOT[:-1] + b"0"), (CRAWL, BOOT[:-1]), (CRAWL, b"")],
    ids=["another crawl", "another boot", "a boot named by a part", "a system that does not tell its boot"],
)
def test_a_filter_of_another_crawl_or_boot_is_not_reused(tmp_path: Path, crawl: bytes, boot: bytes) -> None:
    assert MappedBloom.reuse(full_file(tmp_path / "seen.bloom"), crawl, boot) is None


def test_a_filter_made_where_the_boot_is_unknown_is_not_reused(tmp_path: Path) -> None:
    made = MappedBloom.create(tmp_path / "seen.bloom", CRAWL, b"")
    made.mark_complete()
    made.close()
    assert MappedBloom.reuse(tmp_path / "seen.bloom", CRAWL, b"") is None


def test_an_incomplete_filter_is_not_reused(tmp_path: Path) -> None:
    made = MappedBloom.create(tmp_path / "seen.bloom", CRAWL, BOOT)
    made.add(numbered(1))
    made.close()
    assert MappedBloom.reuse(tmp_path / "seen.bloom", CRAWL, BOOT) is None


def too_long(data: bytearray) -> None:
    data += b"\0"


def too_short(data: bytearray) -> None:
    del data[-1]


def header_only(data: bytearray) -> None:
    del data[HEADER_BYTES:]


def cut_header(data: bytearray) -> None:
    del data[50:]


def empty(data: bytearray) -> None:
    data.clear()


def garbage(data: bytearray) -> None:
    data[:256] = b"\xa5" * 256


def no_layers(data: bytearray) -> None:
    data[60] = 0
    del data[HEADER_BYTES:]


def many_layers(data: bytearray) -> None:
    data[60] = 255


def one_layer_more(data: bytearray) -> None:
    data[60] = 2


def old_magic(data: bytearray) -> None:
    data[:8] = b"crkblm00"


@pytest.mark.parametrize(
    "damage",
    [too_long, too_short, header_only, cut_header, empty, garbage, no_layers, many_layers, one_layer_more, old_magic],
)
def test_a_filter_of_the_wrong_size_or_shape_is_not_reused(tmp_path: Path, damage: Callable[[bytearray], None]) -> None:
    path = full_file(tmp_path / "seen.bloom")
    data = bytearray(path.read_bytes())
    damage(data)
    path.write_bytes(data)
    assert MappedBloom.reuse(path, CRAWL, BOOT) is None
    made = MappedBloom.create(path, CRAWL, BOOT)  # and what is there does not stand in the way of a new one
    assert numbered(1) not in made
    made.close()


def test_a_directory_in_its_place_is_not_reused(tmp_path: Path) -> None:
    (tmp_path / "seen.bloom").mkdir()
    assert MappedBloom.reuse(tmp_path / "seen.bloom", CRAWL, BOOT) is None
    with pytest.raises(StorageError, match=r"cannot write .*seen\.bloom") as caught:
        MappedBloom.create(tmp_path / "seen.bloom", CRAWL, BOOT)
    assert caught.value.exit_status is ExitStatus.STORAGE


def test_the_header_on_disk_is_magic_crawl_boot_layers_complete_and_counts(tmp_path: Path) -> None:
    data = full_file(tmp_path / "seen.bloom").read_bytes()
    assert data[:62] == b"crkblm02" + CRAWL + BOOT + b"\1\1"
    assert struct.unpack_from("<16Q", data, 128) == (100, *[0] * 15)


def test_this_system_tells_its_boot() -> None:
    assert len(boot_id()) in (0, 36)


# Kills and full disks ----------------------------------------------------------------------------------------------------

KILLED = """
import os, signal, sys
from pathlib import Path
from crawlkit.state.bloom import MappedBloom, boot_id
from crawlkit.state.keys import seen_key
made = MappedBloom.create(Path(sys.argv[1]), b"c" * 16, boot_id())
made.mark_complete()
for n in range(5000):
    made.add(seen_key(b"8 bytes.", str(n)))
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.skipif(not boot_id(), reason="this system does not tell its boot, so no filter is reused")
def test_bits_survive_a_kill(tmp_path: Path) -> None:
    path = tmp_path / "seen.bloom"
    done = run_child(KILLED, path)
    assert done.returncode == -9, done.stderr
    again = MappedBloom.reuse(path, CRAWL, boot_id())
    assert again is not None
    assert all(numbered(n) in again for n in range(5000))
    again.close()


FULL = (
    FULL_DISK
    + """
import sys
from pathlib import Path
from crawlkit.errors import StorageError
from crawlkit.state import bloom
fill_disk(int(sys.argv[2]))
try:
    made = bloom.MappedBloom.create(Path(sys.argv[1]), b"c" * 16, b"b" * 36)
    for n in range(bloom.FIRST_CAPACITY + 1):
        made.add(b"s%018d" % n)
except StorageError as error:
    print(error)
    if "made" in globals():
        assert b"s%018d" % 1 in made
        made.close()
"""
)


@pytest.mark.parametrize("bytes_left", [0, HEADER_BYTES, 700_000], ids=["no header", "no first layer", "no second layer"])
def test_a_full_disk_is_a_storage_error_and_no_sigbus(tmp_path: Path, bytes_left: int) -> None:
    done = run_child(FULL, tmp_path / "seen.bloom", str(bytes_left))
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert "seen.bloom: File too large" in done.stdout
    assert MappedBloom.reuse(tmp_path / "seen.bloom", CRAWL, b"b" * 36) is None
