"""When a crawl in partitions is done: two waves, one after the other, in which all are passive and nothing has changed.

A partition is passive if nothing is in flight, owed or due, and no letter waits to be acknowledged; letters are acknowledged
once they are on disk where they belong. So letters on the way show in their sender's outbox. One wave is not enough: a
partition that was asked early may have been woken by one that was asked late. This is Mattern's four-counter method
(Algorithms for distributed termination detection, 1987), with sums of what was posted and taken that outlive a crash.
"""

from collections.abc import Collection
from dataclasses import dataclass

from crawlkit.cluster.messages import Standing


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a wave says: whether all is done, and how each partition stands."""

    done: bool
    standings: list[Standing]


class Waves:
    """Asks all partitions for how they stand, again and again. A change of members begins anew.

    `letters_apart` were posted by others that are not asked any more.
    """

    def __init__(self, letters_apart: int = 0) -> None:
        self._letters_apart = letters_apart
        self.number = 0
        self._answers: dict[int, Standing] = {}
        self._before: dict[int, Standing] | None = None

    def restart(self) -> int:
        """Begin a wave of which none before counts; return its number."""
        self._before = None
        return self._next()

    def _next(self) -> int:
        self.number += 1
        self._answers = {}
        return self.number

    def answer(self, standing: Standing, members: Collection[int]) -> Verdict | None:
        """Take in an answer; return what the wave says once all members have answered, None before.

        The next wave has begun then.
        """
        if standing.wave != self.number:
            return None
        self._answers[standing.number] = standing
        if self._answers.keys() != set(members):
            return None
        answers, before = self._answers, self._before
        passive = all(each.passive for each in answers.values())
        settled = sum(each.posted - each.taken for each in answers.values()) + self._letters_apart == 0
        self._before = answers if passive and settled else None
        self._next()
        same = before is not None and _counted(before) == _counted(answers)
        return Verdict(passive and settled and same, list(answers.values()))


def _counted(answers: dict[int, Standing]) -> dict[int, tuple[int, ...]]:
    return {n: (s.posted, s.taken, s.requests, s.records, s.held, s.allowed) for n, s in answers.items()}
