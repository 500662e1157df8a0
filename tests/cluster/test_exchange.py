"""The exchange of letters alone, over a way that loses, repeats and reorders, while either side is killed: each letter once.

A rule-based machine: two partitions post to one another, checkpoint, send, take in, acknowledge and crash in any order. What a
partition was given is durable with what it knows of that, as in the product; so after each crash it is what the disk says.
"""

import copy
import shutil
from collections.abc import Callable
from pathlib import Path

import msgspec
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from crawlkit.cluster import exchange
from crawlkit.cluster.exchange import AGAIN_AFTER_S, GATHERED_FOR_S, LETTERS_A_PARCEL, Receiver, Sender
from crawlkit.cluster.messages import Parcel, Receipt, Run
from crawlkit.policy.partition import Owners
from crawlkit.state.letters import Letter, LetterKind, Letters
from crawlkit.state.store import Store
from tests.state.making import scratch_directory

OWNERS = Owners.even(2)
EPOCH = 7
SIDES = st.sampled_from([0, 1])
Ledger = dict[int, list[str]]
"""By virtual node: URLs in order."""


class Side:
    """A partition that does nothing but exchange letters."""

    def __init__(self, number: int, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.number = number
        self._path = path
        self.store = Store(path, create=True)
        self.posted: Ledger = {}
        self.taken: Ledger = {}
        self.durable: tuple[Ledger, Ledger] = ({}, {})
        self.promised: list[Receipt] = []
        self._begin(EPOCH)

    def _begin(self, epoch: int) -> None:
        self.letters = Letters(self.store)
        self._given: list[str] = []
        self.sender = Sender(self.letters, OWNERS, self.number, epoch)
        self.receiver = Receiver(self.letters, OWNERS, self.number, epoch, lambda letter: self._given.append(letter.url))

    def post(self, node: int) -> None:
        urls = self.posted.setdefault(node, [])
        urls.append(f"http://{self.number}.test/{node}/{len(urls)}")
        self.letters.post(node, Letter(LetterKind.LINK, urls[-1]))

    def take(self, parcel: Parcel) -> None:
        self._given.clear()
        receipt = self.receiver.take(parcel)
        for url in self._given:
            self.taken.setdefault(int(url.split("/")[3]), []).append(url)
        if receipt is not None:
            self.promised.append(receipt)

    def checkpoint(self) -> list[Receipt]:
        self.letters.stage_changed()
        self.store.freeze().write()
        self.store.install()
        self.durable = copy.deepcopy((self.posted, self.taken))
        told, self.promised = self.promised, []
        return told

    def crash(self) -> None:
        self.store.close()
        self.store = Store(self._path, create=False)
        self.posted, self.taken = copy.deepcopy(self.durable)
        self.promised = []
        self._begin(EPOCH)


class ExchangeMachine(RuleBasedStateMachine):
    """`way` holds what was sent and not delivered; what is delivered may stay on it."""

    sides: list[Side]

    @initialize()
    def make(self) -> None:
        self.directory = scratch_directory()
        self.sides = [Side(number, self.directory / f"{number}") for number in (0, 1)]
        self.way: list[Parcel | Receipt] = []
        self.now = 1000.0

    @rule(side=SIDES, nodes=st.lists(st.integers(0, 2), min_size=1, max_size=4))
    def post(self, side: int, nodes: list[int]) -> None:
        for node in nodes:
            self.sides[side].post(2 * node + 1 - side)

    @rule(side=SIDES)
    def checkpoint(self, side: int) -> None:
        self.way += self.sides[side].checkpoint()

    @rule(side=SIDES, after_s=st.sampled_from([0.0, GATHERED_FOR_S, AGAIN_AFTER_S]))
    def send(self, side: int, after_s: float) -> None:
        self.now += after_s
        sent = self.sides[side].sender.parcels(self.now)
        for run in (run for parcel in sent for run in parcel.runs):
            assert run.last <= len(self.sides[side].durable[0][run.node])  # or its number might be given once more
        self.way += sent

    @precondition(lambda self: self.way)
    @rule(data=st.data(), stays=st.booleans())
    def deliver(self, data: st.DataObject, stays: bool) -> None:
        place = data.draw(st.integers(0, len(self.way) - 1))
        message = self.way[place] if stays else self.way.pop(place)
        if isinstance(message, Parcel):
            self.sides[message.to].take(message)
        else:
            self.sides[message.to].sender.acknowledge(message, self.now)

    @precondition(lambda self: self.way)
    @rule(data=st.data())
    def lose(self, data: st.DataObject) -> None:
        self.way.pop(data.draw(st.integers(0, len(self.way) - 1)))

    @rule(side=SIDES, is_told=st.booleans())
    def crash(self, side: int, is_told: bool) -> None:
        self.sides[side].crash()
        if is_told:
            self.sides[1 - side].sender.send_again(side)

    @invariant()
    def letters_are_taken_in_once_and_in_order(self) -> None:
        for side, other in ((self.sides[0], self.sides[1]), (self.sides[1], self.sides[0])):
            for node, taken in side.taken.items():
                posted = other.durable[0].get(node, [])
                assert taken == posted[: len(taken)]
                assert side.letters.high_water(node, other.number) == len(taken)

    @invariant()
    def only_what_is_on_disk_where_it_belongs_is_forgotten(self) -> None:
        for side, other in ((self.sides[0], self.sides[1]), (self.sides[1], self.sides[0])):
            for node, number in side.letters.numbers().items():
                assert side.letters.acknowledged(node) <= len(other.durable[1].get(node, [])) <= number

    def teardown(self) -> None:
        """See that all arrives once nothing is lost any more."""
        if not hasattr(self, "sides"):
            return
        self.way.clear()
        for _ in range(8):
            for side in self.sides:
                self.way += side.checkpoint()
                self.send(side.number, AGAIN_AFTER_S)
                self.send(side.number, GATHERED_FOR_S)
            for message in self.way:
                if isinstance(message, Parcel):
                    self.sides[message.to].take(message)
                else:
                    self.sides[message.to].sender.acknowledge(message, self.now)
            self.way.clear()
        for side, other in ((self.sides[0], self.sides[1]), (self.sides[1], self.sides[0])):
            assert side.taken == other.posted
            assert side.letters.waiting == 0
            assert side.letters.taken == other.letters.posted
        for side in self.sides:
            side.store.close()
        shutil.rmtree(self.directory)


TestExchange = ExchangeMachine.TestCase
TestExchange.settings = settings(max_examples=30, stateful_step_count=40, deadline=None)


# One by one -----------------------------------------------------------------------------------------------------------


def side(tmp_path: Path, number: int = 0) -> Side:
    return Side(number, tmp_path / f"{number}")


def posted(one: Side, count: int, nodes: int = 1) -> None:
    for number in range(count):
        one.post(2 * (number % nodes) + 1)
    one.checkpoint()


def test_letters_gather_until_they_make_a_parcel_or_have_waited(tmp_path: Path) -> None:
    one = side(tmp_path)
    posted(one, 3)
    assert one.sender.parcels(0.0) == []
    assert one.sender.parcels(GATHERED_FOR_S / 2) == []
    (parcel,) = one.sender.parcels(GATHERED_FOR_S)
    assert [(run.node, run.first, run.last) for run in parcel.runs] == [(1, 1, 3)]
    assert one.sender.parcels(AGAIN_AFTER_S) == []
    posted(one, LETTERS_A_PARCEL)
    assert [sum(len(run.letters) for run in parcel.runs) for parcel in one.sender.parcels(1.0)] == [LETTERS_A_PARCEL]


def test_no_more_than_a_bound_is_on_the_way_and_no_parcel_is_larger_than_one(tmp_path: Path) -> None:
    one = side(tmp_path)
    posted(one, exchange.MOST_ON_THE_WAY + 500, nodes=3)
    parcels = one.sender.parcels(0.0)
    assert {sum(len(run.letters) for run in parcel.runs) for parcel in parcels} == {LETTERS_A_PARCEL}
    assert len(parcels) == exchange.MOST_ON_THE_WAY // LETTERS_A_PARCEL
    assert one.sender.parcels(5.0) == []
    for run in parcels[0].runs:
        one.sender.acknowledge(Receipt(EPOCH, 1, 0, [(run.node, run.last)]), 5.0)
    assert sum(len(run.letters) for parcel in one.sender.parcels(6.0) for run in parcel.runs) == 0  # they gather anew
    assert sum(len(run.letters) for parcel in one.sender.parcels(7.0) for run in parcel.runs) == 500


def letters_from(first: int, count: int) -> Run:
    urls = [f"http://0.test/1/{number}" for number in range(first - 1, first - 1 + count)]
    return Run(1, first, [msgspec.msgpack.encode(Letter(LetterKind.LINK, url)) for url in urls])


def refused(change: Callable[[Parcel], Parcel], tmp_path: Path) -> bool:
    other = side(tmp_path, 1)
    other.take(change(Parcel(EPOCH, 0, 1, [letters_from(1, 2)])))
    return other.taken == {} and other.promised == []


def test_parcels_of_other_runs_and_for_other_partitions_are_passed_over(tmp_path: Path) -> None:
    assert refused(lambda parcel: msgspec.structs.replace(parcel, epoch=EPOCH - 1), tmp_path / "late")
    stray = Run(2, 1, letters_from(1, 1).letters)
    assert refused(lambda parcel: msgspec.structs.replace(parcel, runs=[*parcel.runs, stray]), tmp_path / "stray")
    assert not refused(lambda parcel: parcel, tmp_path / "own")


def test_a_gap_is_refused_and_said_and_an_overlap_is_taken_in_from_where_it_is_new(tmp_path: Path) -> None:
    other = side(tmp_path, 1)
    other.take(Parcel(EPOCH, 0, 1, [letters_from(2, 2)]))
    assert other.promised == [Receipt(EPOCH, 1, 0, [(1, 0)], gap=True)]
    other.take(Parcel(EPOCH, 0, 1, [letters_from(1, 2)]))
    other.take(Parcel(EPOCH, 0, 1, [letters_from(2, 3)]))
    assert [url[-1] for url in other.taken[1]] == ["0", "1", "2", "3"]
    assert other.promised[-1] == Receipt(EPOCH, 1, 0, [(1, 4)])


def test_a_receipt_of_an_earlier_run_counts_as_what_is_on_disk_stays_there(tmp_path: Path) -> None:
    one = side(tmp_path)
    posted(one, 2)
    one.sender.acknowledge(Receipt(EPOCH - 1, 1, 0, [(1, 2)]), 0.0)
    assert one.letters.waiting == 0
