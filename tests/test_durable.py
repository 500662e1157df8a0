"""Replacing a file: the old content or the new, whole, and no litter."""

import fcntl
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from crawlkit.durable import TEMPORARY_SUFFIX, open_replacement, replace_file, sync_directory
from crawlkit.errors import ExitStatus, StorageError


def test_a_file_is_made_and_replaced_and_nothing_else_stays(tmp_path: Path) -> None:
    path = tmp_path / "CHECKPOINT"
    replace_file(path, b"one, the longer")
    replace_file(path, b"two")
    assert path.read_bytes() == b"two"
    assert list(tmp_path.iterdir()) == [path]


def test_readers_see_the_old_content_until_the_block_ends(tmp_path: Path) -> None:
    path = tmp_path / "report"
    path.write_bytes(b"old")
    with open_replacement(path) as file:
        file.write(b"new" * 100_000)
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new" * 100_000


def replace_and_raise(path: Path, error: BaseException) -> None:
    with open_replacement(path) as file:
        file.write(b"half")
        raise error


@pytest.mark.parametrize("error", [ValueError("bug"), KeyboardInterrupt()])
def test_an_error_in_the_block_leaves_the_old_file_and_passes_through(tmp_path: Path, error: BaseException) -> None:
    path = tmp_path / "report"
    path.write_bytes(b"old")
    with pytest.raises(type(error)) as caught:
        replace_and_raise(path, error)
    assert caught.value is error
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_write_that_fails_is_a_storage_error_with_path_reason_and_cause(tmp_path: Path) -> None:
    path = tmp_path / "report"
    path.write_bytes(b"old")
    cause = OSError(28, "No space left on device")
    with pytest.raises(StorageError) as caught:
        replace_and_raise(path, cause)
    assert str(caught.value) == f"cannot write {path}: No space left on device"
    assert caught.value.__cause__ is cause
    assert caught.value.exit_status is ExitStatus.STORAGE
    assert path.read_bytes() == b"old"


def test_a_full_disk_leaves_the_old_file(tmp_path: Path) -> None:
    """A limit on file size stands for the full disk: the write itself fails, in a process of its own."""
    path = tmp_path / "report"
    path.write_bytes(b"old")
    program = (
        "import resource, signal, sys; from pathlib import Path; from crawlkit.durable import replace_file\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN); resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
        "replace_file(Path(sys.argv[1]), bytes(100_000))"
    )
    done = subprocess.run([sys.executable, "-c", program, str(path)], capture_output=True, text=True, check=False)
    assert done.stderr.strip().splitlines()[-1] == f"crawlkit.errors.StorageError: cannot write {path}: File too large"
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_kill_leaves_the_old_file_and_the_next_replacement_clears_up(tmp_path: Path) -> None:
    path = tmp_path / "CHECKPOINT"
    path.write_bytes(b"old")
    program = (
        "import os, signal, sys; from pathlib import Path; from crawlkit.durable import open_replacement\n"
        "with open_replacement(Path(sys.argv[1])) as file:\n"
        "    file.write(b'x' * 100_000); file.flush(); os.kill(os.getpid(), signal.SIGKILL)"
    )
    done = subprocess.run([sys.executable, "-c", program, str(path)], check=False)
    assert done.returncode == -signal.SIGKILL
    assert path.read_bytes() == b"old"
    assert (tmp_path / f"CHECKPOINT{TEMPORARY_SUFFIX}").stat().st_size == 100_000
    replace_file(path, b"new")
    assert path.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [path]


def test_two_writers_of_one_file_do_not_mix(tmp_path: Path) -> None:
    path = tmp_path / "report"
    with open_replacement(path) as file:
        file.write(b"first")
        with pytest.raises(StorageError, match="another process is writing it"):
            replace_file(path, b"second")
    assert path.read_bytes() == b"first"
    assert list(tmp_path.iterdir()) == [path]


def test_a_writer_that_opened_what_another_one_then_published_gives_up(tmp_path: Path) -> None:
    path = tmp_path / "report"
    temporary = tmp_path / f"report{TEMPORARY_SUFFIX}"

    def publish_first(_frame: object, event: str, called: object) -> None:
        if event == "c_call" and called is fcntl.flock:
            temporary.rename(path)

    temporary.write_bytes(b"theirs")
    sys.setprofile(publish_first)
    try:
        with pytest.raises(StorageError):
            replace_file(path, b"ours")
    finally:
        sys.setprofile(None)
    assert path.read_bytes() == b"theirs"


def test_a_temporary_file_that_another_writer_holds_is_left_to_it(tmp_path: Path) -> None:
    temporary = tmp_path / f"report{TEMPORARY_SUFFIX}"
    with temporary.open("wb") as held:
        held.write(b"theirs")
        held.flush()
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(StorageError):
            replace_file(tmp_path / "report", b"ours")
        assert temporary.read_bytes() == b"theirs"


def test_a_symbolic_link_stays_one(tmp_path: Path) -> None:
    real, link = tmp_path / "elsewhere" / "real", tmp_path / "link"
    real.parent.mkdir()
    link.symlink_to(real)
    replace_file(link, b"new")
    assert link.is_symlink()
    assert real.read_bytes() == b"new"
    assert list(real.parent.iterdir()) == [real]


def test_what_is_no_regular_file_is_not_replaced(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for path in (pipe, tmp_path):
        with pytest.raises(StorageError, match=f"cannot replace {path}: it is not a regular file"):
            replace_file(path, b"new")
    assert pipe.is_fifo()


def test_a_missing_directory_is_a_storage_error(tmp_path: Path) -> None:
    path = tmp_path / "none" / "file"
    with pytest.raises(StorageError, match=f"cannot write {path}: No such file or directory"):
        replace_file(path, b"")
    with pytest.raises(StorageError, match=f"cannot write {path.parent}: No such file or directory"):
        sync_directory(path.parent)


def test_a_replacement_is_synced_renamed_and_its_directory_synced_in_this_order(tmp_path: Path) -> None:
    """An audit hook cannot see fsync, so a child runs under a tracing function for C calls."""
    program = (
        "import os, sys; from pathlib import Path; from crawlkit.durable import replace_file\n"
        "seen = []\n"
        "def trace(frame, event, arg):\n"
        "    if event == 'c_call' and arg in (os.fsync, os.replace): seen.append(arg.__name__)\n"
        "sys.setprofile(trace); replace_file(Path(sys.argv[1]), b'new'); sys.setprofile(None)\n"
        "print(*seen)"
    )
    arguments = [sys.executable, "-c", program, str(tmp_path / "file")]
    done = subprocess.run(arguments, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["fsync", "replace", "fsync"]
