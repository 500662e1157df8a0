"""The limit on pages is dealt out to partitions: never exceeded, and none of it is out of reach of who needs it."""

import random

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from crawlkit.cluster.messages import Allow, Standing
from crawlkit.cluster.shares import Shares


class Partition:
    """A partition that has some pages to get, as far as the limit goes."""

    def __init__(self, number: int, pages: int, most: int) -> None:
        self.number, self.left, self.used, self.most, self.allowed = number, pages, 0, most, 0

    def work(self, rng: random.Random) -> None:
        got = min(self.left, self.most - self.used, rng.randint(0, 40))
        self.left -= got
        self.used += got

    def obey(self, order: Allow) -> None:
        self.most = max(order.most, self.used)
        self.allowed = order.number

    def standing(self) -> Standing:
        wants = self.used >= self.most and self.left > 0
        return Standing(
            number=self.number, wave=0, passive=True, posted=0, taken=0, requests=0, records=0, held=0,
            used=self.used, most=self.most, allowed=self.allowed, wants=wants,
        )  # fmt: skip


@given(st.lists(st.integers(0, 3_000), min_size=1, max_size=5), st.integers(0, 6_000), st.randoms(use_true_random=False))
def test_what_is_had_is_the_limit_or_all_there_is(pages: list[int], limit: int, rng: random.Random) -> None:
    shares = Shares(limit, dict.fromkeys(range(len(pages)), 0))
    partitions = [Partition(number, count, shares.of(number) or 0) for number, count in enumerate(pages)]
    for _ in range(2_000):
        for partition in partitions:
            partition.work(rng)
        assert sum(partition.most for partition in partitions) <= limit
        orders = shares.deal([partition.standing() for partition in partitions])
        for number, order in orders.items():
            partitions[number].obey(order)
        if not orders and not shares.dealing and all(p.left == 0 or p.used >= p.most for p in partitions):
            break
    assert sum(partition.used for partition in partitions) == min(limit, sum(pages))


def test_without_a_limit_nothing_is_dealt() -> None:
    shares = Shares(None, {0: 7})
    assert shares.of(0) is None
    assert shares.deal([Partition(0, 5, 0).standing()]) == {}


def test_a_partition_that_is_started_again_has_what_it_was_allowed() -> None:
    shares = Shares(100, {0: 10, 1: 0})
    eager = Partition(0, 500, 10)
    eager.used = 10
    orders = shares.deal([eager.standing(), Partition(1, 5, 0).standing()])
    shares.restarted(0)
    assert shares.of(0) == orders[0].most
    assert not any(order.most > 100 for order in orders.values())


def test_what_one_does_not_need_goes_to_who_does() -> None:
    shares = Shares(100, {0: 60, 1: 40})
    idle, busy = Partition(0, 0, 60), Partition(1, 50, 40)
    idle.used, busy.used = 10, 40
    taken_back = shares.deal([idle.standing(), busy.standing()])
    assert taken_back == {0: Allow(1, 10)}
    assert shares.deal([idle.standing(), busy.standing()]) == {}  # it has not said so yet
    idle.obey(taken_back[0])
    assert shares.deal([idle.standing(), busy.standing()])[1].most > 40


def test_the_last_pages_do_not_go_to_and_fro_between_partitions_that_both_have_urls() -> None:
    shares = Shares(10, {0: 4, 1: 5})
    slow, spent = Partition(0, 3, 4), Partition(1, 3, 5)
    slow.used, spent.used = 4, 5
    (order,) = shares.deal([slow.standing(), spent.standing()]).values()
    slow.obey(order)
    waits = msgspec.structs.replace(slow.standing(), passive=False, queued=3)
    for _ in range(3):
        assert shares.deal([waits, spent.standing()]) == {}
    nothing_left = msgspec.structs.replace(waits, queued=0)
    assert shares.deal([nothing_left, spent.standing()]) == {0: Allow(2, 4)}


def test_what_was_had_beyond_what_was_known_is_taken_from_the_limit() -> None:
    shares = Shares(10, {0: 4, 1: 4})
    ahead, other = Partition(0, 0, 6), Partition(1, 9, 4)
    ahead.used, other.used = 6, 4
    shares.deal([ahead.standing(), other.standing()])
    assert shares.of(0) == 6
    assert sum(shares.of(number) or 0 for number in (0, 1)) <= 10
