"""LevelDB's logs from outside: what was synced is noticed when it is gone, what was not may be cut off."""

import itertools
import shutil
from pathlib import Path

import plyvel
import pytest

from crawlkit.errors import StateDamaged
from crawlkit.state import keys
from crawlkit.state.checkpoint import read_summary
from crawlkit.state.layout import DATABASE, TORN
from crawlkit.state.logs import Logs, lost_bytes, set_tails_aside
from crawlkit.state.reading import open_crawl_for_reading
from crawlkit.state.store import Store
from tests.processes import wait_until
from tests.state.making import NOW, begin_crawl, host_of, reopen


def _batches(directory: Path, count: int) -> dict[str, int]:
    """Write batches of 1 to some 10,000 bytes, so that records and blocks end anywhere; return the sizes of the logs."""
    directory.mkdir()
    with Store(directory / DATABASE, create=True) as store:
        for number in range(count):
            store.stage(b"m%d" % number, bytes(number**3 % 10_007))
            store.freeze().write()
            store.install()
        return Logs(directory).sync()


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path / "crawl"


def _log(directory: Path) -> Path:
    return next(path for path in (directory / DATABASE).glob("*.log"))


def test_sizes_are_those_of_every_log_and_the_manifest(directory: Path) -> None:
    sizes = _batches(directory, 60)
    assert sizes == {path.name: path.stat().st_size for path in (directory / DATABASE).glob("*[0-9]*")}
    assert sizes[_log(directory).name] > 3 * 32 * 1024
    assert lost_bytes(directory, sizes) is None


@pytest.mark.parametrize("batches", range(1, 40, 3))
def test_logs_that_grew_since_are_whole(batches: int, directory: Path) -> None:
    sizes = _batches(directory, batches)
    with _log(directory).open("ab") as log:
        log.write(b"\0" * 100 + b"torn")
    assert lost_bytes(directory, sizes) is None


def test_any_cut_is_noticed(directory: Path) -> None:
    sizes = _batches(directory, 30)
    log = _log(directory)
    data = log.read_bytes()
    for size in range(0, len(data), 997):
        log.write_bytes(data[:size])
        assert str(size) in (lost_bytes(directory, sizes) or "")


def test_a_hole_that_leveldb_takes_for_an_end_is_noticed(directory: Path, tmp_path: Path) -> None:
    sizes = _batches(directory, 30)
    log = _log(directory)
    data = log.read_bytes()
    lost = 0
    for at, hole in itertools.product(range(0, len(data), 1009), (8, 4096)):
        log.write_bytes(data[:at] + bytes(len(data[at : at + hole])) + data[at + hole :])
        noticed = lost_bytes(directory, sizes) is not None
        if _loses_rows(directory, tmp_path):
            assert noticed
            lost += 1
    assert lost > 0  # or this test would say nothing


def _loses_rows(directory: Path, tmp_path: Path) -> bool:
    """Whether LevelDB opens what is there with fewer rows than were written, without an error."""
    copy = tmp_path / "copy"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(directory / DATABASE, copy)
    try:
        with Store(copy, create=False) as store:
            return len(list(store.walk_keys(b"m", b"n"))) < 30
    except StateDamaged:
        return False


def test_tails_are_cut_and_kept(directory: Path) -> None:
    sizes = _batches(directory, 5)
    log = _log(directory)
    data = log.read_bytes()
    log.write_bytes(data + b"torn")
    (directory / DATABASE / "000099.log").write_bytes(b"younger")
    assert set_tails_aside(directory, sizes)
    assert log.read_bytes() == data
    assert (directory / DATABASE / "000099.log").read_bytes() == b""
    kept = {path.name: path.read_bytes() for path in (directory / TORN).iterdir()}
    assert kept == {f"{log.name}.from-{len(data)}": b"torn", "000099.log.from-0": b"younger"}
    assert not set_tails_aside(directory, sizes)


def _torn_crawl(directory: Path, queued: int = 2) -> bytes:
    """A crawl whose log has half of a batch behind its last checkpoint, which LevelDB refuses; return the half."""
    with begin_crawl(directory) as state:
        for number in range(queued):
            url = f"http://a.test/{number}"
            state.frontier.add(url, host_of(state, url), 0, 0, None)
        state.checkpoint()
        sizes = {path.name: path.stat().st_size for path in (directory / DATABASE).glob("*.log")}
        state.frontier.add("http://a.test/c", host_of(state, "http://a.test/c"), 1, 0, None)
        state.freeze()._batch.write()  # and no CHECKPOINT: the power went
        wait_until(lambda: len(list((directory / DATABASE).glob("*.log"))) == 1)  # a full one has become a table
    log = _log(directory)
    data, before = bytearray(log.read_bytes()), sizes.get(log.name, 0)
    data[before + 20] ^= 1
    log.write_bytes(data)
    with pytest.raises(plyvel.CorruptionError):
        plyvel.DB(str(directory / DATABASE), paranoid_checks=True)
    return bytes(data[before:])


def test_a_crawl_with_a_torn_tail_opens_at_its_last_checkpoint(tmp_path: Path) -> None:
    directory = tmp_path / "crawl"
    tail = _torn_crawl(directory)
    with reopen(directory) as state:
        assert state.batch == read_summary(directory).batch
        assert state.counters.queued == 2
    assert [path.read_bytes() for path in (directory / TORN).iterdir()] == [tail]
    with reopen(directory) as state:
        state.end_run(NOW, "finished")
        state.checkpoint()


def test_a_torn_log_is_cut_without_the_manifest_that_names_its_older_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """LevelDB had made a table of the older log and removed it when the power was cut in the newer one."""
    monkeypatch.setattr("crawlkit.state.store.WRITE_BUFFER_BYTES", 64 * 1024)  # the smallest that LevelDB takes
    directory = tmp_path / "crawl"
    tail = _torn_crawl(directory, 1000)
    summary = read_summary(directory)
    assert _log(directory).name not in summary.logs
    assert len(list((directory / DATABASE).glob("*.ldb"))) == 1
    with reopen(directory) as state:
        assert (state.batch, state.counters.queued) == (summary.batch, 1000)
        assert [path.read_bytes() for path in (directory / TORN).iterdir()] == [tail]
        state.checkpoint()
    with open_crawl_for_reading(directory) as reader:
        assert reader.counters.queued == 1000


def test_a_missing_batch_is_noticed_though_later_ones_are_there(tmp_path: Path) -> None:
    directory = tmp_path / "crawl"
    with begin_crawl(directory) as state:
        for _ in range(keys.RECENT_BATCHES + 5):
            state.checkpoint()
    with open_crawl_for_reading(directory):
        pass
    with Store(directory / DATABASE, create=False) as store:
        store.unstage(keys.recent_key(keys.RECENT_BATCHES - 7))
        store.freeze().write()
    with pytest.raises(StateDamaged, match=f"batch {keys.RECENT_BATCHES - 7} is missing"), open_crawl_for_reading(directory):
        pass
