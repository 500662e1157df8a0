"""What the loop does next, as a pure function: first match wins, every branch is one sentence."""

from enum import Enum, auto

import msgspec


class Step(Enum):
    """One turn of the loop."""

    SETTLE = auto()  # take in results
    CHECKPOINT = auto()  # hand what settled to the writer
    DISPATCH = auto()  # claim and start fetches
    WORK = auto()  # a bounded piece of what is owed besides
    WAIT = auto()  # for a result, the writer, a due host or a stop
    END = auto()


class Situation(msgspec.Struct, frozen=True):
    """What the choice depends on."""

    results_waiting: bool
    checkpoint_due: bool
    writing: bool
    may_dispatch: bool
    owes_work: bool
    idle_work: bool
    in_flight: int
    stopping: bool
    exhausted: bool


def next_step(s: Situation) -> Step:  # noqa: PLR0911  (a ladder: one reason, one return)
    """Choose the next step."""
    if s.results_waiting:  # first: everything else is better decided with them
        return Step.SETTLE
    if s.checkpoint_due and not s.writing:  # before new work, or a busy crawl would never reach it
        return Step.CHECKPOINT
    if s.may_dispatch and not s.stopping:
        return Step.DISPATCH
    if s.owes_work and not s.stopping:  # what a stop leaves is on disk, for the resume
        return Step.WORK
    if s.in_flight == 0 and (s.stopping or s.exhausted):
        return Step.END
    if s.idle_work and not s.stopping:  # instead of waiting: a filter to rebuild
        return Step.WORK
    return Step.WAIT
