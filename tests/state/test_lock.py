"""One owner of a crawl directory: others are told who it is, a kill sets it free, and a full disk is no damage."""

import fcntl
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from crawlkit.errors import ExitStatus, StateDamaged, StateError, StateExists, StateLocked, StateVersion, StorageError
from crawlkit.state.checkpoint import read_summary, write_summary
from crawlkit.state.crawl import CrawlState
from crawlkit.state.directory import DirectoryLock, holder, is_held, prepare, read_manifest
from crawlkit.state.layout import BLOOM, CHECKPOINT, LOCK
from tests.state.making import FULL_DISK, begin_crawl, crawled, reopen, run_child

# The lock ----------------------------------------------------------------------------------------------------------------

HOLDER = """
import sys, time
from pathlib import Path
from crawlkit.state.directory import DirectoryLock
with DirectoryLock(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


@contextmanager
def another_owner(directory: Path) -> Iterator["subprocess.Popen[str]"]:
    command = [sys.executable, "-c", HOLDER, str(directory)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "held\n"
        yield child
        assert child.stdin is not None
        child.stdin.close()


def test_a_crawl_in_use_is_refused_naming_the_pid(directory: Path) -> None:
    begin_crawl(directory).close()
    with another_owner(directory) as child:
        assert is_held(directory)
        assert holder(directory) == child.pid
        with pytest.raises(StateLocked, match=rf"{directory} is in use by another crawlkit \(pid {child.pid}\)") as caught:
            CrawlState.open(directory)
        assert caught.value.exit_status is ExitStatus.STATE
        assert "wait for it to end, or stop it" in str(caught.value)
        assert holder(directory) == child.pid  # who was refused did not write its own
    assert not is_held(directory)
    reopen(directory).close()


def test_a_directory_in_which_a_crawl_is_being_made_is_neither_cleared_nor_made_again(directory: Path) -> None:
    directory.mkdir()
    with another_owner(directory) as child:
        (directory / BLOOM).write_bytes(b"theirs")
        with pytest.raises(StateLocked, match=f"pid {child.pid}"):
            prepare(directory)
        assert (directory / BLOOM).read_bytes() == b"theirs"


def test_a_lock_dies_with_its_process(directory: Path) -> None:
    begin_crawl(directory).close()
    with another_owner(directory) as child:
        child.send_signal(signal.SIGKILL)
        child.wait()
        assert holder(directory) == child.pid
        assert not is_held(directory)
        with reopen(directory):
            assert holder(directory) == os.getpid()


def test_one_process_cannot_hold_a_directory_twice(directory: Path) -> None:
    with begin_crawl(directory), pytest.raises(StateLocked, match=f"pid {os.getpid()}"):
        CrawlState.open(directory)


def test_an_opening_that_failed_leaves_the_directory_unlocked(directory: Path) -> None:
    crawled(directory)
    (directory / CHECKPOINT).unlink()
    with pytest.raises(StateDamaged):
        CrawlState.open(directory)
    assert not is_held(directory)


def test_who_only_looks_at_the_lock_does_not_stop_a_start(directory: Path) -> None:
    """`status`, run in a loop, shares the lock for some microseconds each time; a start waits for that moment to pass."""
    directory.mkdir()
    looking = (directory / LOCK).open("w")
    fcntl.flock(looking, fcntl.LOCK_SH)

    def stop_looking(_frame: object, event: str, called: object) -> None:
        if event == "c_call" and called is time.sleep:
            looking.close()

    sys.setprofile(stop_looking)
    try:
        lock = DirectoryLock(directory)
    finally:
        sys.setprofile(None)
    assert looking.closed
    assert holder(directory) == os.getpid()
    lock.release()


@pytest.mark.parametrize("text", ["", "\n", "nonsense", "12x"])
def test_a_lock_that_names_nobody_is_still_a_lock(directory: Path, text: str) -> None:
    directory.mkdir()
    with DirectoryLock(directory):
        (directory / LOCK).write_text(text)
        assert holder(directory) is None
        with pytest.raises(StateLocked, match="in use by another crawlkit; wait"):
            DirectoryLock(directory)


def test_without_a_lock_file_nobody_holds_it(directory: Path) -> None:
    directory.mkdir()
    assert not is_held(directory)
    assert holder(directory) is None


def test_a_lock_that_cannot_be_opened_is_refused(directory: Path) -> None:
    (directory / LOCK).mkdir(parents=True)
    with pytest.raises(StateError, match=f"cannot open {directory / LOCK}: Is a directory"):
        DirectoryLock(directory)


# Full disks --------------------------------------------------------------------------------------------------------------

ON_A_FULL_DISK = (
    FULL_DISK
    + """
import sys
from pathlib import Path
from crawlkit.config import Config
from crawlkit.errors import CrawlError
from crawlkit.state.crawl import CrawlState
fill_disk(int(sys.argv[3]))
try:
    CrawlState.open(Path(sys.argv[1])) if sys.argv[2] == "open" else CrawlState.create(Path(sys.argv[1]), Config())
except CrawlError as error:
    print(int(error.exit_status), type(error).__name__, error)
"""
)


@pytest.mark.parametrize("bytes_left", [0, 20, 300, 5000])
def test_a_crawl_that_cannot_be_made_on_a_full_disk_is_a_storage_error_and_can_be_made_later(
    directory: Path, bytes_left: int
) -> None:
    done = run_child(ON_A_FULL_DISK, directory, "create", str(bytes_left))
    assert done.stdout.startswith("4 StorageError "), done.stderr
    assert done.stderr == ""
    begin_crawl(directory).close()


@pytest.mark.parametrize("bytes_left", [0, 20, 300])
def test_a_crawl_that_cannot_be_opened_on_a_full_disk_is_a_storage_error_and_opens_later(
    directory: Path, bytes_left: int
) -> None:
    crawled(directory, 1, 50)
    done = run_child(ON_A_FULL_DISK, directory, "open", str(bytes_left))
    assert done.stdout.startswith("4 StorageError "), done.stderr
    assert done.stderr == ""
    with reopen(directory) as state:
        assert state.counters.pages == 50


def test_summaries_of_a_crawl_in_use_can_be_read(directory: Path) -> None:
    with begin_crawl(directory) as state:
        write_summary(directory, read_summary(directory))
        assert read_summary(directory).batch == state.batch
        assert read_manifest(directory).crawl_id == state.crawl_id


def test_every_refusal_has_the_status_of_the_contract() -> None:
    for kind in (StateError, StateExists, StateLocked, StateDamaged, StateVersion):
        assert kind("").exit_status is ExitStatus.STATE
    assert StorageError("").exit_status is ExitStatus.STORAGE
