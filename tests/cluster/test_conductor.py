"""The driver's decisions: when waves tell the end, who is started again, what a stop means to whom."""

import msgspec
import pytest

from crawlkit.cluster.conductor import Conductor, Orders, Phase
from crawlkit.cluster.messages import Allow, Back, Ended, Finish, Look, Standing, Stop, WalkHeld
from crawlkit.cluster.shares import Shares
from crawlkit.engine.ending import Ending

QUIET = Standing(
    number=0, wave=0, passive=True, posted=0, taken=0, requests=5, records=5, held=0, used=5, most=None, allowed=0, wants=False
)
BUSY = msgspec.structs.replace(QUIET, passive=False)


def begun(members: int = 2, limit: int | None = None) -> Conductor:
    """A conductor whose partitions are all ready."""
    conductor = Conductor(range(members), Shares(limit, dict.fromkeys(range(members), 0)))
    for number in range(members):
        conductor.ready(number)
    return conductor


def wave(conductor: Conductor, *standings: Standing) -> Orders:
    """Let all partitions answer a look; return what follows."""
    looks = {number: message for number, message in conductor.look() if isinstance(message, Look)}
    orders: Orders = []
    for number, standing in enumerate(standings):
        orders += conductor.stands(msgspec.structs.replace(standing, number=number, wave=looks[number].wave))
    return orders


def finishing(members: int = 2) -> Conductor:
    """A conductor that has just told all partitions that all is done."""
    conductor = begun(members)
    wave(conductor, *[QUIET] * members)
    assert wave(conductor, *[QUIET] * members) == [(number, Finish()) for number in range(members)]
    assert conductor.phase is Phase.FINISHING
    return conductor


def finished(number: int, how: Ending = Ending.FINISHED) -> Ended:
    return Ended(number, how)


def ends(conductor: Conductor, number: int, how: Ending = Ending.FINISHED) -> list[int]:
    """Let a partition end and be gone; return who is to be started again."""
    assert conductor.has_ended(finished(number, how)) == []
    return conductor.gone(number)


# The end --------------------------------------------------------------------------------------------------------------


def test_nobody_is_asked_before_all_are_ready() -> None:
    conductor = Conductor(range(2), Shares(None, {}))
    assert conductor.ready(0) == []
    assert conductor.look() == []
    assert conductor.ready(1) == [(0, Back(1)), (0, Look(1)), (1, Look(1))]


def test_two_waves_alike_end_the_crawl() -> None:
    conductor = finishing()
    assert ends(conductor, 0) == []
    assert ends(conductor, 1) == []
    assert conductor.over
    assert conductor.how() is Ending.FINISHED


@pytest.mark.parametrize(
    "second",
    [
        pytest.param(BUSY, id="a late timer of a retry"),
        pytest.param(msgspec.structs.replace(QUIET, posted=1), id="a letter that nobody has acknowledged"),
        pytest.param(msgspec.structs.replace(QUIET, requests=6), id="a request in between"),
    ],
)
def test_whatever_goes_on_is_waited_for(second: Standing) -> None:
    conductor = begun()
    wave(conductor, QUIET, QUIET)
    assert wave(conductor, QUIET, second) == []
    assert conductor.phase is Phase.RUNNING
    assert wave(conductor, QUIET, QUIET) == []
    assert wave(conductor, QUIET, QUIET) == [(0, Finish()), (1, Finish())]


def test_one_wave_is_not_enough_after_a_partition_came_back() -> None:
    conductor = begun()
    wave(conductor, QUIET, QUIET)
    assert conductor.gone(1) == [1]
    assert conductor.look() == []
    conductor.ready(1)
    assert wave(conductor, QUIET, QUIET) == []
    assert wave(conductor, QUIET, QUIET) == [(0, Finish()), (1, Finish())]


def test_an_answer_from_before_a_death_does_not_count() -> None:
    conductor = begun()
    look = dict(conductor.look())[0]
    assert isinstance(look, Look)
    conductor.gone(1)
    conductor.ready(1)
    late = msgspec.structs.replace(QUIET, wave=look.wave)
    assert [conductor.stands(msgspec.structs.replace(late, number=number)) for number in (0, 1)] == [[], []]
    assert wave(conductor, QUIET, QUIET) == []  # was it the second one, this would be the end
    assert conductor.phase is Phase.RUNNING


def test_what_is_held_is_walked_before_the_end_by_those_that_hold_it_and_may_have_more_pages() -> None:
    conductor = begun(3)
    holder, spent = msgspec.structs.replace(QUIET, held=2), msgspec.structs.replace(QUIET, held=2, wants=True)
    wave(conductor, QUIET, holder, spent)
    assert wave(conductor, QUIET, holder, spent) == [(1, WalkHeld())]
    assert wave(conductor, QUIET, QUIET, spent) == []
    assert wave(conductor, QUIET, QUIET, spent) == [(number, Finish()) for number in range(3)]


def test_a_limit_that_one_partition_reached_is_how_all_ended() -> None:
    conductor = finishing()
    ends(conductor, 0, Ending.LIMIT_PAGES)
    ends(conductor, 1)
    assert conductor.how() is Ending.LIMIT_PAGES


# Deaths ---------------------------------------------------------------------------------------------------------------


def test_a_partition_that_died_is_started_again_and_the_others_are_told_that_it_is_back() -> None:
    conductor = begun(3)
    assert conductor.gone(1) == [1]
    assert conductor.ready(1)[:2] == [(0, Back(1)), (2, Back(1))]


def test_a_death_while_all_are_finishing_begins_again_what_has_ended() -> None:
    conductor = finishing(3)
    assert ends(conductor, 0) == []
    assert conductor.gone(1) == [0, 1]
    assert ends(conductor, 2) == [2]  # it was told to end before that death
    assert not conductor.over
    for number in range(3):
        assert conductor.look() == []
        conductor.ready(number)
    assert wave(conductor, QUIET, QUIET, QUIET) == []
    assert len(wave(conductor, QUIET, QUIET, QUIET)) == 3


def test_an_end_that_was_due_before_a_death_is_no_stop_for_the_others() -> None:
    conductor = finishing()
    conductor.gone(1)
    conductor.ready(1)  # before partition 0 has come to its end
    assert conductor.phase is Phase.RUNNING
    assert conductor.has_ended(finished(0)) == []
    assert conductor.phase is Phase.RUNNING
    assert conductor.gone(0) == [0]
    assert conductor.look() == []
    conductor.ready(0)
    assert conductor.look() != []


def test_an_order_on_pages_that_died_with_its_partition_holds_up_nothing() -> None:
    conductor = begun(limit=10)
    wants = msgspec.structs.replace(QUIET, used=0, most=0, wants=True)
    orders = wave(conductor, wants, msgspec.structs.replace(QUIET, used=0, most=0))
    assert [type(message) for _, message in orders] == [Allow]
    conductor.gone(0)
    conductor.ready(0)
    assert not conductor.shares.dealing
    assert conductor.shares.of(0) == 5


# Stops ----------------------------------------------------------------------------------------------------------------


def test_a_stop_during_the_start_reaches_who_is_ready_later() -> None:
    conductor = Conductor(range(2), Shares(None, {}))
    conductor.ready(0)
    assert conductor.stop(Ending.SIGINT) == [(0, Stop(Ending.SIGINT))]
    assert conductor.ready(1) == [(1, Stop(Ending.SIGINT))]
    ends(conductor, 0, Ending.SIGINT)
    ends(conductor, 1, Ending.SIGINT)
    assert conductor.over
    assert conductor.how() is Ending.SIGINT


def test_who_dies_of_a_stop_is_not_started_again() -> None:
    conductor = begun()
    conductor.stop(Ending.SIGTERM)
    assert conductor.gone(0) == []
    assert ends(conductor, 1, Ending.SIGTERM) == []
    assert conductor.over
    assert conductor.how() is Ending.SIGTERM


def test_an_end_that_was_not_due_stops_the_others_for_the_same_reason() -> None:
    conductor = begun()
    assert conductor.has_ended(Ended(0, Ending.LIMIT_TIME)) == [(1, Stop(Ending.LIMIT_TIME))]
    assert conductor.gone(0) == []
    assert not conductor.over
    ends(conductor, 1, Ending.LIMIT_TIME)
    assert conductor.how() is Ending.LIMIT_TIME


@pytest.mark.parametrize("ended", [Ended(0, None, "disk full"), Ended(0, Ending.LIMIT_TIME)])
def test_who_was_told_that_all_is_done_may_still_fail_after_a_death(ended: Ended) -> None:
    conductor = finishing()
    conductor.gone(1)
    assert conductor.has_ended(ended) == []  # nobody else is there to be told
    assert conductor.phase is Phase.STOPPING
    assert conductor.gone(0) == []
    assert conductor.ready(1) == [(1, Stop(ended.how or Ending.CANCELLED))]
