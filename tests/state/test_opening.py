"""Opening a crawl: what LevelDB would take for a smaller but sound database is refused, before anything more is lost."""

from contextlib import ExitStack
from pathlib import Path

import pytest

from crawlkit.errors import StateDamaged
from crawlkit.state import keys
from crawlkit.state.layout import CHECKPOINT, CRAWL, DATABASE
from crawlkit.state.opening import open_database
from tests.state.making import begin_crawl, host_of, reopen


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A crawl with URLs in a table, and so many batches in the log that nothing else is read on opening."""
    directory = tmp_path / "crawl"
    with begin_crawl(directory) as state:
        for number in range(50):
            url = f"http://a.test/{number}"
            state.frontier.add(url, host_of(state, url), 0, 0, None)
        state.checkpoint()
    with reopen(directory) as state:
        for _ in range(keys.RECENT_BATCHES + 1):
            state.checkpoint()
    return directory


def _only(directory: Path, pattern: str) -> Path:
    (found,) = (directory / DATABASE).glob(pattern)
    return found


def _refusal(directory: Path) -> str:
    with ExitStack() as resources, pytest.raises(StateDamaged) as refused:
        open_database(directory, resources)
    assert f"crawlkit verify --repair {directory}" in str(refused.value)
    return str(refused.value)


def test_a_crawl_as_it_was_left_opens(directory: Path) -> None:
    with ExitStack() as resources:
        opened = open_database(directory, resources)
        assert len(list(opened.store.walk(keys.SEEN, keys.after(keys.SEEN)))) == 50


def test_a_cut_manifest_is_refused_and_no_table_is_removed(directory: Path) -> None:
    manifest = _only(directory, "MANIFEST-*")
    table, log = _only(directory, "*.ldb"), _only(directory, "*.log")
    data = manifest.read_bytes()
    for size in range(len(data)):
        manifest.write_bytes(data[:size])
        assert f"{size} bytes left of {len(data)}" in _refusal(directory)
        assert table.exists()
        assert log.exists()


def test_a_cut_log_is_refused(directory: Path) -> None:
    log = _only(directory, "*.log")
    data = log.read_bytes()
    log.write_bytes(data[:-1])
    assert "bytes left of" in _refusal(directory)


def test_a_hole_in_the_log_is_refused(directory: Path) -> None:
    log = _only(directory, "*.log")
    data = log.read_bytes()
    log.write_bytes(bytes(7) + data[7:])
    assert "hole" in _refusal(directory)


def test_a_cut_table_is_refused_though_nothing_of_it_was_read(directory: Path) -> None:
    table = _only(directory, "*.ldb")
    data = table.read_bytes()
    table.write_bytes(data[: len(data) // 2])
    assert f"{len(data) // 2} bytes left of {len(data)}" in _refusal(directory)


def test_a_checkpoint_of_another_crawl_is_refused(directory: Path, tmp_path: Path) -> None:
    with begin_crawl(tmp_path / "other"):
        pass
    (directory / CHECKPOINT).write_bytes((tmp_path / "other" / CHECKPOINT).read_bytes())
    assert f"{CRAWL} and {CHECKPOINT}" in _refusal(directory)


def test_an_earlier_log_is_refused(directory: Path) -> None:
    log = _only(directory, "*.log")
    earlier = log.read_bytes()
    with reopen(directory) as state:
        state.checkpoint()
        state.checkpoint()
    _only(directory, "*.log").write_bytes(earlier)
    assert "lost synced writes: it is at batch " in _refusal(directory)
