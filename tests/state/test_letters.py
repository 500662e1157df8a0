"""Letters against a model: numbers without gaps, each once, whatever is posted, acknowledged and taken in between crashes."""

import copy
import shutil
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from crawlkit.errors import StateDamaged
from crawlkit.state.letters import Letter, LetterKind, Letters, decode_letter
from crawlkit.state.store import Batch, Store
from tests.state.making import scratch_directory

NODES = st.integers(0, 2) | st.just(1_023)
SENDERS = st.integers(0, 1) | st.just(300)


@dataclass
class Model:
    """What there is: by node the letters ever posted and how many of them are forgotten, by inbox the last one taken in."""

    posted: dict[int, list[str]] = field(default_factory=dict)
    forgotten: dict[int, int] = field(default_factory=dict)
    taken: dict[tuple[int, int], int] = field(default_factory=dict)

    def waiting(self) -> int:
        return sum(len(urls) - self.forgotten.get(node, 0) for node, urls in self.posted.items())


class LettersMachine(RuleBasedStateMachine):
    """`now` is what is in memory, `frozen` what a batch in the making holds, `saved` what is on disk."""

    letters: Letters

    @initialize()
    def make(self) -> None:
        self.directory = scratch_directory()
        self.store = Store(self.directory / "db", create=True)
        self.letters = Letters(self.store)
        self.now, self.saved = Model(), Model()
        self.frozen: tuple[Batch, Model] | None = None

    @rule(node=NODES, count=st.integers(1, 3))
    def post(self, node: int, count: int) -> None:
        urls = self.now.posted.setdefault(node, [])
        for _ in range(count):
            urls.append(f"http://a.test/{node}/{len(urls)}")
            self.letters.post(node, Letter(LetterKind.LINK, urls[-1], 1, 2, 3, "http://via.test/", "2024", 0.5))

    @precondition(lambda self: self.saved.posted)
    @rule(data=st.data())
    def acknowledge(self, data: st.DataObject) -> None:
        """Acknowledge what may have been sent, which is on disk; some of it not for the first time."""
        node = data.draw(st.sampled_from(sorted(self.saved.posted)))
        number = data.draw(st.integers(0, len(self.saved.posted[node])))
        self.letters.acknowledge(node, number)
        self.now.forgotten[node] = max(number, self.now.forgotten.get(node, 0))

    @rule(node=NODES, sender=SENDERS, count=st.integers(1, 5))
    def take(self, node: int, sender: int, count: int) -> None:
        number = self.now.taken.get((node, sender), 0) + count
        self.letters.take(node, sender, number)
        self.now.taken[node, sender] = number

    @precondition(lambda self: self.frozen is None)
    @rule()
    def freeze(self) -> None:
        self.letters.stage_changed()
        self.frozen = self.store.freeze(), copy.deepcopy(self.now)

    @precondition(lambda self: self.frozen is not None)
    @rule()
    def write(self) -> None:
        assert self.frozen is not None
        batch, self.saved = self.frozen
        batch.write()
        self.store.install()
        self.frozen = None

    @rule(is_written=st.booleans())
    def crash(self, is_written: bool) -> None:
        if is_written and self.frozen is not None:
            batch, self.saved = self.frozen
            batch.write()
        self.frozen = None
        self.now = copy.deepcopy(self.saved)
        self.store.close()
        self.store = Store(self.directory / "db", create=False)
        self.letters = Letters(self.store)

    @invariant()
    def sums_are_right(self) -> None:
        assert self.letters.waiting == self.now.waiting()
        assert self.letters.posted == sum(map(len, self.now.posted.values()))
        assert self.letters.taken == sum(self.now.taken.values())

    @invariant()
    def numbers_are_right(self) -> None:
        assert self.letters.numbers() == {node: len(urls) for node, urls in self.now.posted.items()}
        assert all(self.letters.high_water(*inbox) == number for inbox, number in self.now.taken.items())
        assert self.letters.high_water(5, 5) == 0
        waits = {node for node, urls in self.now.posted.items() if len(urls) > self.now.forgotten.get(node, 0)}
        assert set(self.letters.waiting_nodes()) == waits
        for node in self.now.posted:
            assert self.letters.acknowledged(node) >= self.now.forgotten.get(node, 0)

    @invariant()
    def what_may_be_sent_is_what_is_on_disk(self) -> None:
        for node, urls in self.now.posted.items():
            known = self.letters.acknowledged(node)
            found = [decode_letter(value).url for value in self.letters.after(node, known, 100)]
            assert found == self.saved.posted.get(node, [])[known:]
            assert found == urls[known : known + len(found)]
            assert self.letters.after(node, known, 1) == self.letters.after(node, known, 100)[:1]

    def teardown(self) -> None:
        if hasattr(self, "directory"):
            self.store.close()
            shutil.rmtree(self.directory)


TestLetters = LettersMachine.TestCase
TestLetters.settings = settings(max_examples=30, stateful_step_count=40, deadline=None)


def test_what_is_acknowledged_twice_or_before_it_was_posted_is_forgotten_once(tmp_path: Path) -> None:
    with Store(tmp_path / "db", create=True) as store:
        letters = Letters(store)
        letters.post(3, Letter(LetterKind.FRESH, "http://a.test/"))
        letters.acknowledge(3, 9)
        letters.acknowledge(3, 1)
        letters.acknowledge(4, 1)
        assert (letters.waiting, letters.posted, letters.acknowledged(3), letters.acknowledged(4)) == (0, 1, 1, 0)
        letters.post(3, Letter(LetterKind.FRESH, "http://a.test/"))
        assert (letters.waiting, letters.numbers()) == (1, {3: 2})


def test_what_is_no_letter_is_damage() -> None:
    with pytest.raises(StateDamaged):
        decode_letter(b"\xc1")
