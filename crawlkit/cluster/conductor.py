"""The driver's decisions, without a process or a wait: what partitions are told, and when the crawl is over.

It is shown what happens (a partition is ready, tells something, has ended or died) and returns what is to be sent to whom.
"""

from collections.abc import Iterable
from enum import Enum, auto

from crawlkit.cluster.messages import Back, Ended, Finish, Look, Standing, Stop, ToMember, WalkHeld
from crawlkit.cluster.shares import Shares
from crawlkit.cluster.waves import Verdict, Waves
from crawlkit.engine.ending import Ending

Orders = list[tuple[int, ToMember]]

_AT_THE_END = (Ending.FINISHED, Ending.LIMIT_PAGES, Ending.LIMIT_HOST, Ending.HELD)
"""How a partition ends that was told that all is done."""


class Phase(Enum):
    """Where the run of the whole crawl stands."""

    RUNNING = auto()
    FINISHING = auto()  # all was found to be done: partitions end by themselves
    STOPPING = auto()


class Conductor:
    """Conducts partitions `members`. `shares` deal out the limit on pages.

    Partitions that own nothing any more are none of them: what they once posted is `letters_apart`.
    """

    def __init__(self, members: Iterable[int], shares: Shares, letters_apart: int = 0) -> None:
        self.members = sorted(members)
        self.shares = shares
        self.phase = Phase.RUNNING
        self.latest: dict[int, Standing] = {}
        """How each partition stood last."""
        self.ended: dict[int, Ended] = {}
        self._ready: set[int] = set()
        self._told: set[int] = set()  # that all is done, since they were started
        self._gone: set[int] = set()  # those that have ended and whose process is gone
        self._waves = Waves(letters_apart)
        self._stop: Ending | None = None
        self._hurried = False

    # What happens ----------------------------------------------------------------------------------------------------

    def ready(self, number: int) -> Orders:
        """Take note that a partition runs, perhaps once more: what was sent to it before may be lost."""
        self._ready.add(number)
        orders: Orders = [(other, Back(number)) for other in sorted(self._ready - {number})]
        if self._stop is not None:
            return [(number, Stop(self._stop))]
        if self._ready == set(self.members):
            self.phase = Phase.RUNNING
            return [*orders, *self._look(self._waves.restart())]
        return orders

    def gone(self, number: int) -> list[int]:
        """Take note that a partition's process is gone; return the partitions that are to be started (again).

        If it died there may be more to do after all, for those too that were told that all is done: each is started again once
        it has ended.
        """
        died = number not in self.ended
        if died:
            self._forget(number)
        if self.phase is Phase.STOPPING:  # it was to end, and what it had on disk stays
            self.ended.setdefault(number, Ended(number, self._stop))
            return []
        self._gone.add(number)
        if died:
            self.phase = Phase.RUNNING
        if self.phase is not Phase.RUNNING:
            return []
        again = sorted(self._gone)
        self._gone.clear()
        self._told.difference_update(again)
        for each in again:
            self.ended.pop(each, None)
        return again

    def _forget(self, number: int) -> None:
        """Take note that a partition does not answer any more: waves begin anew."""
        self._ready.discard(number)
        self.shares.restarted(number)
        self._waves.restart()

    def look(self) -> Orders:
        """Ask all how they stand, if all can answer."""
        return self._look(self._waves.number) if self.phase is Phase.RUNNING and self._ready == set(self.members) else []

    def _look(self, wave: int) -> Orders:
        return [(number, Look(wave)) for number in self.members]

    def stands(self, standing: Standing) -> Orders:
        """Take in how a partition stands; return what follows from the wave if that was the last answer to it."""
        self.latest[standing.number] = standing
        verdict = self._waves.answer(standing, self.members)
        return [] if verdict is None or self.phase is not Phase.RUNNING else self._conclude(verdict)

    def _conclude(self, verdict: Verdict) -> Orders:
        shared = self.shares.deal(verdict.standings)
        orders: Orders = list(shared.items())
        self._hurried = bool(shared) or self.shares.dealing
        if self._hurried or not verdict.done:
            return orders
        holders = [standing.number for standing in verdict.standings if standing.held and not standing.wants]
        self._waves.restart()
        if holders:
            return [(number, WalkHeld()) for number in holders]
        self.phase = Phase.FINISHING
        self._told.update(self.members)
        return [(number, Finish()) for number in self.members]

    @property
    def hurried(self) -> bool:
        """Whether the next wave should follow at once: partitions wait for what it brings."""
        return self._hurried

    def has_ended(self, ended: Ended) -> Orders:
        """Take note that a partition's run has ended; if that was not due, all others are stopped for the same reason."""
        self.ended[ended.number] = ended
        self._forget(ended.number)
        is_due = ended.number in self._told and ended.how in _AT_THE_END
        if self.phase is Phase.RUNNING and not is_due:
            return self.stop(Ending.CANCELLED if ended.how is None else ended.how)
        return []

    def stop(self, how: Ending) -> Orders:
        """Stop all partitions that run."""
        if self._stop is None:
            self._stop = how
        self.phase = Phase.STOPPING
        return [(number, Stop(self._stop)) for number in sorted(self._ready)]

    # The end ---------------------------------------------------------------------------------------------------------

    @property
    def over(self) -> bool:
        """Whether every partition has ended."""
        return self.phase is not Phase.RUNNING and self.ended.keys() == set(self.members)

    def how(self) -> Ending:
        """Return how the run of the whole crawl ended."""
        if self._stop is not None:
            return self._stop
        hows = {ended.how for ended in self.ended.values()}
        for how in (Ending.LIMIT_PAGES, Ending.LIMIT_TIME, Ending.LIMIT_HOST, Ending.HELD):
            if how in hows:
                return how
        return Ending.FINISHED
