"""The exchange of letters: at least once on the way, once in effect. Synchronous; carries nothing itself.

The way may lose, repeat, delay and reorder. Letters to a virtual node are taken in only in the order of their numbers: what
was taken in before is passed over, what comes too early is refused. A receipt says what is on disk at the receiver; the sender
forgets that and nothing else. What is not receipted in time is sent again.
"""

from collections.abc import Callable

from crawlkit.cluster.messages import Parcel, Receipt, Run
from crawlkit.policy.partition import Owners
from crawlkit.state.letters import Letter, Letters, decode_letter

LETTERS_A_PARCEL = 1_000
GATHERED_FOR_S = 0.2
"""How long fewer letters than make a parcel wait for others."""

MOST_ON_THE_WAY = 8 * LETTERS_A_PARCEL
"""Letters to one partition that are on the way at once: its receipts wait for its checkpoints."""

AGAIN_AFTER_S = 30.0
"""A receipt takes a checkpoint interval; this long only if something was lost."""


class _Way:
    """What is on the way to one partition."""

    def __init__(self) -> None:
        self.sent: dict[int, int] = {}  # by node: the last number
        self.moved_s = 0.0  # when something was sent last, or receipted
        self.gathering_s: float | None = None  # since when letters wait to make a parcel

    def count(self, letters: Letters) -> int:
        return sum(max(0, number - letters.acknowledged(node)) for node, number in self.sent.items())


class Sender:
    """The letters of partition `number`, as parcels for their owners."""

    def __init__(self, letters: Letters, owners: Owners, number: int, epoch: int) -> None:
        self._letters = letters
        self._owners = owners
        self._number = number
        self._epoch = epoch
        self._ways: dict[int, _Way] = {}

    def parcels(self, now: float) -> list[Parcel]:
        """Return what is to be sent now: letters that are on disk, were not sent yet, and have gathered."""
        by_owner: dict[int, list[int]] = {}
        for node in self._letters.waiting_nodes():
            by_owner.setdefault(self._owners.table[node], []).append(node)
        return [parcel for to, nodes in by_owner.items() for parcel in self._parcels_to(to, sorted(nodes), now)]

    def _parcels_to(self, to: int, nodes: list[int], now: float) -> list[Parcel]:
        way = self._ways.setdefault(to, _Way())
        on_the_way = way.count(self._letters)
        if on_the_way and now - way.moved_s >= AGAIN_AFTER_S:
            self.send_again(to)
            on_the_way = 0
        runs = self._runs(way, nodes, MOST_ON_THE_WAY - on_the_way)
        count = sum(len(run.letters) for run in runs)
        if count == 0:
            return []
        if way.gathering_s is None:
            way.gathering_s = now
        if count < LETTERS_A_PARCEL and now - way.gathering_s < GATHERED_FOR_S:
            return []
        way.gathering_s = None
        way.moved_s = now
        for run in runs:
            way.sent[run.node] = run.last
        return [Parcel(self._epoch, self._number, to, some) for some in _packed(runs)]

    def _runs(self, way: _Way, nodes: list[int], room: int) -> list[Run]:
        """Return the letters that come next, up to `room` of them."""
        runs = []
        for node in nodes:
            if room <= 0:
                break
            before = max(way.sent.get(node, 0), self._letters.acknowledged(node))
            letters = self._letters.after(node, before, room)
            if letters:
                runs.append(Run(node, before + 1, letters))
                room -= len(letters)
        return runs

    def acknowledge(self, receipt: Receipt, now: float) -> None:
        """Forget what a partition has on disk; send again from there on if it refused some.

        Receipts of earlier runs of the crawl count too: what is on disk stays there.
        """
        way = self._ways.setdefault(receipt.sender, _Way())
        way.moved_s = now
        for node, number in receipt.marks:
            self._letters.acknowledge(node, number)
            if receipt.gap:
                way.sent[node] = number

    def send_again(self, to: int) -> None:
        """Forget what is on the way to a partition: it may be lost."""
        way = self._ways.setdefault(to, _Way())
        way.sent.clear()
        way.gathering_s = None


def _packed(runs: list[Run]) -> list[list[Run]]:
    """Deal out runs over parcels."""
    parcels: list[list[Run]] = [[]]
    room = LETTERS_A_PARCEL
    for run in runs:
        start = 0
        while start < len(run.letters):
            if room == 0:
                parcels.append([])
                room = LETTERS_A_PARCEL
            some = run.letters[start : start + room]
            parcels[-1].append(Run(run.node, run.first + start, some))
            start += len(some)
            room -= len(some)
    return parcels


class Receiver:
    """Takes in parcels for partition `number`; `receive` is given each letter once, in order."""

    def __init__(self, letters: Letters, owners: Owners, number: int, epoch: int, receive: Callable[[Letter], object]) -> None:
        self._letters = letters
        self._owners = owners
        self._number = number
        self._epoch = epoch
        self._receive = receive

    def take(self, parcel: Parcel) -> Receipt | None:
        """Take in a parcel; return the receipt that is to be sent once a checkpoint holds all of this.

        None, and nothing is taken in, for a parcel of another run of the crawl, or for nodes that are not ours: its sender
        goes by a table that is no longer in force.
        """
        if parcel.epoch != self._epoch or any(self._owners.table[run.node] != self._number for run in parcel.runs):
            return None
        marks = []
        gap = False
        for run in parcel.runs:
            high = self._letters.high_water(run.node, parcel.sender)
            if run.first > high + 1:
                gap = True
            elif run.last > high:
                for value in run.letters[high + 1 - run.first :]:
                    self._receive(decode_letter(value))
                high = run.last
                self._letters.take(run.node, parcel.sender, high)
            marks.append((run.node, high))
        return Receipt(self._epoch, self._number, parcel.sender, marks, gap)
