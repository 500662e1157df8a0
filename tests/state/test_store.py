"""The store: look-ups see the overlay over the disk, a batch is whole or not at all, and failure ends all writing."""

import itertools
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from crawlkit.state import keys
from crawlkit.state.store import Store
from tests.state.making import FULL_DISK, run_child, scratch_directory, write_all

# Few keys, so that they meet; two back queues that are neighbours, one range that is scanned whole, one that is not scanned.
BUCKETS = [keys.queue_range(bytes(8)), keys.queue_range(bytes(7) + b"\1"), keys.TIMED, keys.PAGE]
KEYS = [bucket + bytes([n]) for bucket in BUCKETS for n in range(6)]
VALUES = st.binary(max_size=3)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(tmp_path / "db", create=True) as made:
        yield made


# The overlay ---------------------------------------------------------------------------------------------------------------


class OverlayMachine(RuleBasedStateMachine):
    """The store against three dicts: what is staged, being written and on disk."""

    def __init__(self) -> None:
        super().__init__()
        self.path: Path | None = None

    @initialize(first=st.dictionaries(st.sampled_from(KEYS), VALUES))
    def make(self, first: dict[bytes, bytes]) -> None:
        self.path = scratch_directory()
        self.store = Store(self.path / "db", create=True)
        self.now: dict[bytes, bytes] = {}
        self.frozen: dict[bytes, bytes] | None = None
        for key, value in first.items():
            self.stage(key, value)
        write_all(self.store)
        self.on_disk = dict(self.now)

    @rule(key=st.sampled_from(KEYS), value=VALUES)
    def stage(self, key: bytes, value: bytes) -> None:
        self.store.stage(key, value)
        self.now[key] = value

    @rule(key=st.sampled_from(KEYS))
    def unstage(self, key: bytes) -> None:
        self.store.unstage(key)
        self.now.pop(key, None)

    @precondition(lambda self: self.frozen is None)
    @rule()
    def freeze(self) -> None:
        self.batch = self.store.freeze()
        self.frozen = dict(self.now)
        assert self.store.staged_rows == 0

    @precondition(lambda self: self.frozen is not None)
    @rule()
    def write(self) -> None:
        self.batch.write()
        assert self.frozen is not None
        self.on_disk = dict(self.frozen)

    @precondition(lambda self: self.frozen is not None and self.frozen == self.on_disk)
    @rule()
    def install(self) -> None:
        self.batch.write()  # what was frozen may happen to equal what was there before
        self.store.install()
        self.frozen = None

    @rule()
    def crash(self) -> None:
        assert self.path is not None
        self.store.close()
        self.store = Store(self.path / "db", create=False)
        self.now = dict(self.on_disk)
        self.frozen = None

    @rule(bucket=st.sampled_from(BUCKETS[:3]), start=st.integers(0, 6), limit=st.integers(1, 7))
    def scan(self, bucket: bytes, start: int, limit: int) -> None:
        first = bucket + bytes([start]) if start else bucket
        expected = sorted((key, value) for key, value in self.now.items() if key.startswith(bucket) and key >= first)
        assert self.store.scan(bucket, first, limit) == expected[:limit]

    @rule(start=st.sampled_from(KEYS), stop=st.sampled_from(KEYS))
    def walk(self, start: bytes, stop: bytes) -> None:
        expected = sorted((key, value) for key, value in self.on_disk.items() if start <= key < stop)
        assert list(self.store.walk(start, stop)) == expected

    @invariant()
    def look_ups_see_what_is_staged_then_written_then_on_disk(self) -> None:
        if self.path is not None:
            assert {key: self.store.get(key) for key in KEYS} == {key: self.now.get(key) for key in KEYS}

    def teardown(self) -> None:
        if self.path is not None:
            self.store.close()
            shutil.rmtree(self.path)


TestOverlay = OverlayMachine.TestCase
TestOverlay.settings = settings(max_examples=40, stateful_step_count=30)


CHANGES = st.dictionaries(st.integers(0, 7), st.none() | VALUES)
FRESH_QUEUES = (keys.queue_range(n.to_bytes(8, "big")) for n in itertools.count(2, 2))


def stage_all(store: Store, queue: bytes, changes: dict[int, bytes | None]) -> None:
    for n, value in changes.items():
        if value is None:
            store.unstage(queue + bytes([n]))
        else:
            store.stage(queue + bytes([n]), value)


@pytest.fixture(scope="module")
def shared_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with Store(tmp_path_factory.mktemp("shared") / "db", create=True) as made:
        yield made


@given(CHANGES, CHANGES, CHANGES, st.integers(0, 8), st.integers(1, 9))
def test_a_scan_merges_three_layers(
    shared_store: Store,
    on_disk: dict[int, bytes | None],
    being_written: dict[int, bytes | None],
    staged: dict[int, bytes | None],
    start: int,
    limit: int,
) -> None:
    queue = next(FRESH_QUEUES)
    stage_all(shared_store, queue, on_disk)
    write_all(shared_store)
    stage_all(shared_store, queue, being_written)
    shared_store.freeze()
    stage_all(shared_store, queue, staged)
    merged = {**on_disk, **being_written, **staged}
    expected = [(queue + bytes([n]), value) for n, value in sorted(merged.items()) if value is not None and n >= start]
    assert shared_store.scan(queue, queue + bytes([start]), limit) == expected[:limit]
    shared_store.install()


def test_a_scan_goes_on_behind_the_last_row_and_never_reads_the_next_queue(store: Store) -> None:
    mine, next_one = BUCKETS[0], BUCKETS[1]
    for n in range(100):
        store.stage(mine + bytes([n]), b"%d" % n)
        store.stage(next_one + bytes([n]), b"other")
        if n % 3 == 0:
            write_all(store)
    found: list[tuple[bytes, bytes]] = []
    start = mine
    while rows := store.scan(mine, start, 7):
        found += rows
        start = rows[-1][0] + b"\0"
    assert found == [(mine + bytes([n]), b"%d" % n) for n in range(100)]


def test_a_walk_is_of_its_moment(store: Store) -> None:
    store.stage(b"p1", b"old")
    write_all(store)
    rows = store.walk(b"p", b"q")
    first = next(rows)
    store.stage(b"p2", b"new")
    write_all(store)
    assert [first, *rows] == [(b"p1", b"old")]


def test_one_batch_is_in_the_making_at_a_time(store: Store) -> None:
    store.freeze()
    with pytest.raises(RuntimeError, match="a batch is still being written"):
        store.freeze()


def test_what_is_staged_and_not_written_is_gone_after_a_close(tmp_path: Path) -> None:
    with Store(tmp_path / "db", create=True) as store:
        store.stage(b"p1", b"1")
        write_all(store)
        store.stage(b"p2", b"2")
        store.freeze()
        store.stage(b"p3", b"3")
    with Store(tmp_path / "db", create=False) as store:
        assert list(store.walk(b"p", b"q")) == [(b"p1", b"1")]


# Whole or not at all -----------------------------------------------------------------------------------------------------

KILLED_WHILE_WRITING = """
import os, signal, sys, threading
from pathlib import Path
from crawlkit.state.store import Store
store = Store(Path(sys.argv[1]), create=False)
def write(number):
    for n in range(200):
        store.stage(b"p%03d" % n, b"%d " % number * 100)
    store.freeze().write()
    store.install()
write(1)
log = max(Path(sys.argv[1]).glob("*.log"), key=lambda path: path.name)
size = log.stat().st_size
def watch():
    while log.stat().st_size <= size:
        pass
    os.kill(os.getpid(), signal.SIGKILL)
threading.Thread(target=watch, daemon=True).start()
for number in range(2, 1000):
    write(number)
"""


def test_a_kill_leaves_whole_batches_only(tmp_path: Path) -> None:
    Store(tmp_path / "db", create=True).close()
    done = run_child(KILLED_WHILE_WRITING, tmp_path / "db")
    assert done.returncode == -9, done.stderr
    with Store(tmp_path / "db", create=False) as store:
        rows = list(store.walk(b"p", b"q"))
    assert len(rows) == 200
    assert len({value for _, value in rows}) == 1


def test_a_bug_in_the_middle_of_a_batch_writes_none_of_it(store: Store) -> None:
    store.stage(b"p1", b"1")
    store.stage(b"p2", cast("bytes", 2))
    store.stage(b"p3", b"3")
    with pytest.raises(TypeError):
        store.freeze().write()
    assert list(store.walk(b"p", b"q")) == []


def test_a_log_that_was_cut_ends_with_its_last_whole_batch(tmp_path: Path) -> None:
    """What a power cut can leave of a batch whose sync had not returned: any part of its bytes."""
    with Store(tmp_path / "db", create=True) as store:
        for number in (1, 2):
            for n in range(20):
                store.stage(b"p%02d" % n, b"%d" % number * 50)
            write_all(store)
    [log] = (tmp_path / "db").glob("*.log")
    size = log.stat().st_size
    for cut in range(size // 2 - 40, size, 97):
        copy = tmp_path / f"cut{cut}"
        shutil.copytree(tmp_path / "db", copy)
        with (copy / log.name).open("r+b") as file:
            file.truncate(cut)
        with Store(copy, create=False) as store:
            rows = [value for _, value in store.walk(b"p", b"q")]
        assert rows in ([], [b"1" * 50] * 20)


FULL_WHILE_WRITING = (
    FULL_DISK
    + """
import sys
from pathlib import Path
from crawlkit.errors import StorageError
from crawlkit.state.store import Store
store = Store(Path(sys.argv[1]), create=True)
def write(key, size):
    store.stage(key, bytes(size))
    try:
        store.freeze().write()
    except StorageError as error:
        print(error)
    store.install()
write(b"p1", 10)
fill_disk(2000)
write(b"p2", 5000)
free_disk()
write(b"p3", 1)
write(b"p4", 1)
print("end")
"""
)


def test_after_a_write_that_failed_nothing_more_is_written(tmp_path: Path) -> None:
    """LevelDB itself would go on: it writes behind the torn record, and reads none of it again."""
    done = run_child(FULL_WHILE_WRITING, tmp_path / "db")
    *errors, end = done.stdout.splitlines()
    assert end == "end", done.stderr
    assert len(errors) == 3
    assert len(set(errors)) == 1
    assert errors[0].startswith(f"writing to {tmp_path / 'db'} failed: IO error: ")
    assert errors[0].endswith("File too large; free space or mend the disk, then resume")
    with Store(tmp_path / "db", create=False) as store:
        assert list(store.walk(b"p", b"q")) == [(b"p1", bytes(10))]
