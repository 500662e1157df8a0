"""`CHECKPOINT` is never ahead of the database, is whole or damage, and says what the batch says."""

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from crawlkit.errors import ExitStatus, StateDamaged, StorageError
from crawlkit.state.checkpoint import Run, Summary, read_summary, write_summary
from crawlkit.state.counters import Counters
from crawlkit.state.crawl import CrawlState
from crawlkit.state.layout import CHECKPOINT, CRAWL, DATABASE
from tests.state.making import FULL_DISK, NOW, begin_crawl, meet, reopen, run_child


def a_crawl(directory: Path, checkpoints: int = 3) -> Path:
    with begin_crawl(directory) as state:
        for n in range(checkpoints):
            meet(state, f"http://a.test/{n}", n)
            state.checkpoint()
    return directory


def refused(directory: Path) -> str:
    """Return what an opening is refused with; the refusal leaves the directory unlocked and as it was."""
    before = {path.name: path.read_bytes() for path in directory.iterdir() if path.is_file() and path.name != "LOCK"}
    with pytest.raises(StateDamaged) as caught:
        CrawlState.open(directory)
    assert caught.value.exit_status is ExitStatus.STATE
    assert f"crawlkit verify --repair {directory}" in str(caught.value)
    after = {path.name: path.read_bytes() for path in directory.iterdir() if path.is_file() and path.name != "LOCK"}
    assert after == before
    return str(caught.value)


def test_a_summary_says_what_the_batch_says(directory: Path) -> None:
    with begin_crawl(directory) as state:
        meet(state, "http://a.test/", 0)
        state.checkpoint()
        crawl_id = state.crawl_id
        summary = read_summary(directory)
        assert summary.counters == state.counters
        assert (summary.crawl_id, summary.batch, [run.number for run in summary.runs]) == (crawl_id, 2, [1])
        state.counters.pages = 7  # what comes later is not in it
        assert read_summary(directory).counters.pages == 0
    with reopen(directory) as state:
        assert (state.batch, state.counters, state.crawl_id) == (2, summary.counters, crawl_id)
        assert state.runs[:1] == summary.runs


def test_a_frozen_checkpoint_does_not_see_what_is_staged_after_it(directory: Path) -> None:
    with begin_crawl(directory) as state:
        meet(state, "http://a.test/1", 0)
        checkpoint = state.freeze()
        meet(state, "http://a.test/2", 0)
        state.counters.refused["x"] = 1
        state.end_run(NOW + 5, "finished")
        checkpoint.write()
        state.installed()
        summary = read_summary(directory)
    assert (summary.counters.seen, summary.counters.refused, summary.runs[0].ended_s) == (1, {}, None)
    with reopen(directory) as state:
        assert (state.counters.seen, state.counters.refused, state.runs[0].ended_s) == (1, {}, None)


def test_a_database_ahead_of_its_checkpoint_is_opened(directory: Path, tmp_path: Path) -> None:
    """A kill between the batch and `CHECKPOINT`."""
    with begin_crawl(directory) as state:
        meet(state, "http://a.test/1", 0)
        state.checkpoint()
        shutil.copy(directory / CHECKPOINT, tmp_path)
        meet(state, "http://a.test/2", 0)
        state.checkpoint()
    shutil.copy(tmp_path / CHECKPOINT, directory)
    assert read_summary(directory).counters.seen == 1
    with reopen(directory) as state:
        assert state.counters.seen == 2
        state.checkpoint()
    assert read_summary(directory).counters.seen == 2


def test_a_database_behind_its_checkpoint_is_damaged(directory: Path, tmp_path: Path) -> None:
    """The database of an older copy: synced writes are missing."""
    a_crawl(directory, 2)
    shutil.copytree(directory / DATABASE, tmp_path / "older")
    with reopen(directory) as state:
        meet(state, "http://a.test/x", 0)
        state.checkpoint()
    shutil.rmtree(directory / DATABASE)
    shutil.copytree(tmp_path / "older", directory / DATABASE)
    assert "lost synced writes: it is at batch 3, but CHECKPOINT knows of 4" in refused(directory)


def test_a_database_that_lost_its_log_is_damaged_and_not_a_new_crawl(directory: Path) -> None:
    """LevelDB itself opens what is left, which is nothing, without a word."""
    a_crawl(directory)
    for log in (directory / DATABASE).glob("*.log"):
        log.unlink()
    assert "lost synced writes" in refused(directory)


def test_a_checkpoint_of_another_crawl_is_damage(directory: Path, tmp_path: Path) -> None:
    a_crawl(directory)
    other = a_crawl(tmp_path / "other.crawl")
    shutil.copy(other / CHECKPOINT, directory)
    assert f"{CRAWL} and {CHECKPOINT} in {directory} are of different crawls" in refused(directory)


def test_a_missing_checkpoint_is_damage(directory: Path) -> None:
    (a_crawl(directory) / CHECKPOINT).unlink()
    assert f"{directory / CHECKPOINT} cannot be read: No such file or directory" in refused(directory)


def emptied(data: bytes) -> bytes:
    return b""


def cut(data: bytes) -> bytes:
    return data[: len(data) // 2]


def without_checksum(data: bytes) -> bytes:
    return data.partition(b"\n")[0] + b"\n"


def one_digit_changed(data: bytes) -> bytes:
    return data.replace(b'"batch":4', b'"batch":1')


def one_bit_flipped_in_the_checksum(data: bytes) -> bytes:
    return data[:-2] + bytes([data[-2] ^ 1]) + b"\n"


def of_zeros(data: bytes) -> bytes:
    return bytes(len(data))


@pytest.mark.parametrize(
    "damage", [emptied, cut, without_checksum, one_digit_changed, one_bit_flipped_in_the_checksum, of_zeros]
)
def test_a_checkpoint_that_does_not_match_its_checksum_is_damage(directory: Path, damage: Callable[[bytes], bytes]) -> None:
    path = a_crawl(directory) / CHECKPOINT
    path.write_bytes(damage(path.read_bytes()))
    assert f"{path} does not match its checksum" in refused(directory)


@pytest.mark.parametrize("line", [b"{}", b"[]", b'"text"', b"\xff", b'{"crawl_id":1}', b""])
def test_a_checkpoint_with_a_right_checksum_and_wrong_content_is_damage(directory: Path, line: bytes) -> None:
    path = a_crawl(directory) / CHECKPOINT
    path.write_bytes(line + b"\n" + hashlib.sha256(line).hexdigest().encode() + b"\n")
    assert f"{path} is damaged: " in refused(directory)


def test_a_checkpoint_on_disk_is_a_line_of_json_and_its_sha256(tmp_path: Path) -> None:
    write_summary(tmp_path, Summary("id", 7, Counters(pages=2, seen=3), [Run(1, NOW)], {"000003.log": 5}))
    line, checksum, rest = (tmp_path / CHECKPOINT).read_bytes().split(b"\n")
    assert rest == b""
    assert checksum == hashlib.sha256(line).hexdigest().encode()
    found = json.loads(line)
    assert (found["crawl_id"], found["batch"], found["logs"]) == ("id", 7, {"000003.log": 5})
    assert (found["counters"]["pages"], found["counters"]["seen"]) == (2, 3)
    assert found["runs"][0]["number"] == 1
    assert [path.name for path in tmp_path.iterdir()] == [CHECKPOINT]


FULL_AT_A_CHECKPOINT = (
    FULL_DISK
    + """
import sys
from pathlib import Path
from crawlkit.errors import StorageError
from tests.state.making import meet, reopen
with reopen(Path(sys.argv[1])) as state:
    meet(state, "http://a.test/1", 0)
    state.checkpoint()
    fill_disk(2000)
    for n in range(200):
        meet(state, f"http://a.test/long/{n}", 0)
    for _ in range(2):
        try:
            state.freeze().write()
        except StorageError as error:
            print(int(error.exit_status), error)
        state.installed()
        free_disk()
"""
)


def test_after_a_checkpoint_that_failed_none_is_written_and_a_resume_goes_on_from_the_last(directory: Path) -> None:
    begin_crawl(directory).close()
    done = run_child(FULL_AT_A_CHECKPOINT, directory)
    first, second = done.stdout.splitlines()
    assert first == second, done.stderr
    assert first.startswith(f"4 writing to {directory / DATABASE} failed: ")
    assert done.stderr == ""
    summary = read_summary(directory)
    assert (summary.batch, summary.counters.seen) == (2, 1)
    with reopen(directory) as state:
        assert (state.batch, state.counters.seen) == (2, 1)
        state.checkpoint()


def test_a_checkpoint_file_that_cannot_be_replaced_is_a_storage_error(directory: Path) -> None:
    with begin_crawl(directory) as state:
        (directory / CHECKPOINT).unlink()
        (directory / CHECKPOINT).mkdir()
        meet(state, "http://a.test/1", 0)
        with pytest.raises(StorageError, match=CHECKPOINT):
            state.freeze().write()
