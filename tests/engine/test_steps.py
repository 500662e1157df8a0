"""The ladder: what the loop does next, first match first."""

import itertools

import msgspec
import pytest

from crawlkit.engine.steps import Situation, Step, next_step

NOTHING = Situation(
    results_waiting=False,
    checkpoint_due=False,
    writing=False,
    may_dispatch=False,
    owes_work=False,
    idle_work=False,
    in_flight=0,
    stopping=False,
    exhausted=False,
)
EVERYTHING = Situation(
    results_waiting=True,
    checkpoint_due=True,
    writing=False,
    may_dispatch=True,
    owes_work=True,
    idle_work=True,
    in_flight=3,
    stopping=False,
    exhausted=False,
)


def test_results_come_before_all_else() -> None:
    assert next_step(EVERYTHING) is Step.SETTLE


def test_a_checkpoint_comes_before_new_work() -> None:
    assert next_step(msgspec.structs.replace(EVERYTHING, results_waiting=False)) is Step.CHECKPOINT


def test_one_checkpoint_is_written_at_a_time() -> None:
    assert next_step(msgspec.structs.replace(EVERYTHING, results_waiting=False, writing=True)) is Step.DISPATCH


def test_fetches_come_before_what_is_owed_besides() -> None:
    assert next_step(msgspec.structs.replace(NOTHING, may_dispatch=True, owes_work=True)) is Step.DISPATCH
    assert next_step(msgspec.structs.replace(NOTHING, owes_work=True, in_flight=2)) is Step.WORK


def test_a_stop_starts_nothing_and_lets_what_is_in_flight_finish() -> None:
    stopping = msgspec.structs.replace(EVERYTHING, results_waiting=False, checkpoint_due=False, stopping=True)

    assert next_step(stopping) is Step.WAIT
    assert next_step(msgspec.structs.replace(stopping, in_flight=0)) is Step.END


def test_the_end_is_when_nothing_is_in_flight_owed_or_left() -> None:
    assert next_step(msgspec.structs.replace(NOTHING, exhausted=True)) is Step.END
    assert next_step(msgspec.structs.replace(NOTHING, exhausted=True, idle_work=True)) is Step.END
    assert next_step(msgspec.structs.replace(NOTHING, exhausted=True, in_flight=1)) is Step.WAIT
    assert next_step(msgspec.structs.replace(NOTHING, exhausted=True, owes_work=True)) is Step.WORK
    assert next_step(NOTHING) is Step.WAIT


def test_what_may_wait_is_done_instead_of_waiting() -> None:
    assert next_step(msgspec.structs.replace(NOTHING, idle_work=True, in_flight=4)) is Step.WORK


SWITCHES = [field.name for field in msgspec.structs.fields(Situation) if field.name != "in_flight"]


@pytest.mark.parametrize("in_flight", [0, 1])
def test_in_no_situation_a_stop_starts_fetches_or_an_end_leaves_something_unsettled(in_flight: int) -> None:
    for values in itertools.product((False, True), repeat=len(SWITCHES)):
        situation = Situation(in_flight=in_flight, **dict(zip(SWITCHES, values, strict=True)))
        step = next_step(situation)
        assert not (step in (Step.DISPATCH, Step.WORK) and situation.stopping)
        if step is Step.END:
            assert in_flight == 0
            assert not situation.results_waiting
        if step is Step.CHECKPOINT:
            assert not situation.writing
