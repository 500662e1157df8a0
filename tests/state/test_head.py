"""A window on a range always shows the first row, however little of the range it holds."""

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule, run_state_machine_as_test

from crawlkit.state import keys
from crawlkit.state.codec import QueueRow, encode_row
from crawlkit.state.head import RangeHead
from crawlkit.state.store import Store

HOST = keys.host_id("a.test")
BUCKET = keys.queue_range(HOST)
DEPTHS = st.integers(0, 4)
MOST = st.integers(1, 5)


def key_of(depth: int, sequence: int) -> bytes:
    return keys.queue_key(HOST, keys.queued_tail(depth, sequence))


def row_of(depth: int, sequence: int, hops: int = 0) -> QueueRow:
    return QueueRow(f"http://a.test/{sequence}", "a.test", depth, hops)


class HeadMachine(RuleBasedStateMachine):
    """A window against a dict of all live rows."""

    store: Store
    numbers = itertools.count()

    @initialize(first=st.lists(DEPTHS, max_size=12), known_empty=st.booleans())
    def begin(self, first: list[int], known_empty: bool) -> None:
        self.bucket = keys.queue_range(keys.host_id(f"{next(self.numbers)}.test"))  # a queue of its own for each example
        self.sequence = 0
        self.live: dict[bytes, QueueRow] = {}
        if not known_empty:
            for depth in first:
                self.stage(depth)
        self.head = RangeHead(self.bucket, None if known_empty else self.bucket)

    def stage(self, depth: int) -> bytes:
        self.sequence += 1
        key = self.bucket + keys.queued_tail(depth, self.sequence)
        self.live[key] = row_of(depth, self.sequence)
        self.store.stage(key, encode_row(self.live[key]))
        return key

    @rule(depth=DEPTHS, most=MOST)
    def push(self, depth: int, most: int) -> None:
        key = self.stage(depth)
        self.head.push(key, self.live[key], most)

    @rule(data=st.data(), most=MOST)
    def push_again_with_another_value(self, data: st.DataObject, most: int) -> None:
        if self.live:
            key = data.draw(st.sampled_from(sorted(self.live)))
            self.live[key] = row_of(keys.priority_of(key), keys.sequence_of(key), hops=data.draw(st.integers(1, 3)))
            self.store.stage(key, encode_row(self.live[key]))
            self.head.push(key, self.live[key], most)

    @precondition(lambda self: self.live)
    @rule(refill=MOST)
    def pop(self, refill: int) -> None:
        first = self.head.peek(self.store, refill)
        assert first is not None
        assert first[0] == min(self.live)
        self.head.pop()
        del self.live[first[0]]
        self.store.unstage(first[0])

    @rule(refill=MOST)
    def peek(self, refill: int) -> None:
        expected = min(self.live.items()) if self.live else None
        assert self.head.peek(self.store, refill) == expected

    @rule()
    def write(self) -> None:
        self.store.freeze().write()
        self.store.install()

    @precondition(lambda self: self.live)
    @rule()
    def begin_again_at_the_cursor(self) -> None:
        first = self.head.first_key()
        assert first is not None
        self.head = RangeHead(self.bucket, first)

    @invariant()
    def no_row_lies_below_the_first_key(self) -> None:
        if hasattr(self, "head") and self.live:
            first = self.head.first_key()
            assert first is not None
            assert first <= min(self.live)


@pytest.fixture(scope="module")
def machine_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with Store(tmp_path_factory.mktemp("head") / "db", create=True) as made:
        yield made


def test_a_window_always_shows_the_first_row(machine_store: Store) -> None:
    HeadMachine.store = machine_store
    run_state_machine_as_test(HeadMachine, settings=settings(max_examples=80, stateful_step_count=40))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(tmp_path / "db", create=True) as made:
        yield made


@given(st.permutations(range(30)), st.integers(2, 9))
def test_rows_beyond_the_window_come_back_in_order(machine_store: Store, order: list[int], most: int) -> None:
    head = RangeHead(BUCKET, None)
    for n in order:
        key = key_of(n, n)
        machine_store.stage(key, encode_row(row_of(n, n)))
        head.push(key, row_of(n, n), most)
    found = []
    while (first := head.peek(machine_store, most)) is not None:
        found.append(first[1].depth)
        head.pop()
    assert found == list(range(30))


def test_a_row_staged_again_in_the_window_shows_its_new_value(store: Store) -> None:
    head = RangeHead(BUCKET, None)
    for hops in (3, 1):
        store.stage(key_of(0, 1), encode_row(row_of(0, 1, hops)))
        head.push(key_of(0, 1), row_of(0, 1, hops), 10)
    assert head.peek(store, 10) == (key_of(0, 1), row_of(0, 1, hops=1))
    head.pop()
    assert head.peek(store, 10) is None


def test_the_first_priority_is_that_of_the_first_row_in_memory(store: Store) -> None:
    head = RangeHead(BUCKET, None)
    assert head.first_key() is None
    assert head.first_priority() == 0
    head.push(key_of(7, 1), row_of(7, 1), 10)
    head.push(key_of(300, 2), row_of(300, 2), 10)
    assert head.first_priority() == 7
    head.pop()
    assert head.first_priority() == keys.MAX_PRIORITY


def test_what_other_queues_hold_is_never_shown(store: Store) -> None:
    neighbour = keys.after(BUCKET)
    store.stage(neighbour + keys.queued_tail(0, 1), encode_row(row_of(0, 1)))
    assert RangeHead(BUCKET, BUCKET).peek(store, 10) is None
