"""What the store refuses to open or to read: a full disk, another owner, a database that is missing or damaged."""

from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from crawlkit.errors import ExitStatus, StateDamaged, StateError, StateLocked, StorageError
from crawlkit.state.store import Store
from tests.state.making import FULL_DISK, run_child, write_all

OPENED_ON_A_FULL_DISK = (
    FULL_DISK
    + """
import sys
from pathlib import Path
from crawlkit.errors import CrawlError
from crawlkit.state.store import Store
fill_disk()
try:
    Store(Path(sys.argv[1]), create=sys.argv[2] == "create")
except CrawlError as error:
    print(type(error).__name__, int(error.exit_status), error)
"""
)


def test_a_full_disk_is_a_storage_error_when_a_database_is_made(tmp_path: Path) -> None:
    done = run_child(OPENED_ON_A_FULL_DISK, tmp_path / "db", "create")
    assert done.stdout.startswith(f"StorageError 4 the database in {tmp_path / 'db'} cannot be used: IO error: "), done.stderr
    assert "File too large; free space or mend the disk" in done.stdout


def test_a_full_disk_is_a_storage_error_and_no_damage_when_a_database_is_opened(tmp_path: Path) -> None:
    """LevelDB writes when it opens: it turns the log into a table."""
    with Store(tmp_path / "db", create=True) as store:
        store.stage(b"p1", b"1")
        write_all(store)
    done = run_child(OPENED_ON_A_FULL_DISK, tmp_path / "db", "open")
    assert done.stdout.startswith("StorageError 4 "), done.stdout + done.stderr
    with Store(tmp_path / "db", create=False) as store:
        assert store.get(b"p1") == b"1"


# What is refused -----------------------------------------------------------------------------------------------------------


def test_a_database_that_another_has_open_is_refused_as_locked(tmp_path: Path) -> None:
    path = tmp_path / "LOCKED IN" / "db"
    path.parent.mkdir()
    with Store(path, create=True), pytest.raises(StateLocked, match="in use by another process") as caught:
        Store(path, create=False)
    assert caught.value.exit_status is ExitStatus.STATE
    Store(path, create=False).close()


def test_a_database_that_is_missing_is_refused_and_not_made(tmp_path: Path) -> None:
    path = tmp_path / "LOCK" / "db"
    path.parent.mkdir()
    for _ in range(2):  # the first try must not have made one
        with pytest.raises(StateDamaged, match="verify --repair"):
            Store(path, create=False)


def test_a_database_that_exists_is_not_made_again(tmp_path: Path) -> None:
    Store(tmp_path / "db", create=True).close()
    with pytest.raises(StateError):
        Store(tmp_path / "db", create=True)


def filled(path: Path) -> None:
    """Make a database with a table and a log."""
    with Store(path, create=True) as store:
        for n in range(50):
            store.stage(b"p%02d" % n, Random(n).randbytes(500))  # which no compression shields from a flipped bit
        write_all(store)
    with Store(path, create=False) as store:
        store.stage(b"q", b"1" * 100)
        write_all(store)


def missing_current(path: Path) -> None:
    (path / "CURRENT").unlink()


def missing_manifest(path: Path) -> None:
    [manifest] = path.glob("MANIFEST-*")
    manifest.unlink()


def missing_table(path: Path) -> None:
    [table] = path.glob("*.ldb")
    table.unlink()


def zeroed_log(path: Path) -> None:
    [log] = path.glob("*.log")
    data = bytearray(log.read_bytes())
    data[20:84] = bytes(64)
    log.write_bytes(data)


def garbage_current(path: Path) -> None:
    (path / "CURRENT").write_text("MANIFEST-999999\n")


def zeroed_manifest(path: Path) -> None:
    [manifest] = path.glob("MANIFEST-*")
    data = bytearray(manifest.read_bytes())
    data[10:30] = bytes(20)
    manifest.write_bytes(data)


@pytest.mark.parametrize(
    "damage", [missing_current, missing_manifest, missing_table, zeroed_log, garbage_current, zeroed_manifest]
)
def test_a_damaged_database_is_refused_with_the_way_out_and_not_made_anew(
    tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    path = tmp_path / "db"
    filled(path)
    damage(path)
    before = sorted(file.name for file in path.iterdir() if not file.name.startswith("LOG"))
    with pytest.raises(StateDamaged, match=f"the database in {path} is damaged: .*crawlkit verify --repair") as caught:
        Store(path, create=False)
    assert "b'" not in str(caught.value)
    assert sorted(file.name for file in path.iterdir() if not file.name.startswith("LOG")) == before


def test_a_damaged_block_is_found_by_whoever_reads_it(tmp_path: Path) -> None:
    path = tmp_path / "db"
    filled(path)
    [table] = path.glob("*.ldb")
    data = bytearray(table.read_bytes())
    data[300] ^= 1
    table.write_bytes(data)
    with Store(path, create=False) as store:
        with pytest.raises(StateDamaged, match="verify --repair"):
            store.get(b"p00")
        with pytest.raises(StateDamaged, match="verify --repair"):
            list(store.walk(b"p", b"q"))


def test_storage_errors_say_that_they_are_resumable() -> None:
    assert StorageError("").exit_status is ExitStatus.STORAGE
