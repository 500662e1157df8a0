"""The crawl's limit on pages, dealt out to its partitions: what they may have together never exceeds it.

Each gets a small part at a time, so that none sits on what another needs; what one does not need is taken back. Nothing is
lost with the driver: what was had is in the partitions' counters.
"""

from crawlkit.cluster.messages import Allow, Standing

MOST_AT_A_TIME = 1_000


class Shares:
    """Deals out `limit` pages to partitions, which are known once they have `joined`."""

    def __init__(self, limit: int | None, used: dict[int, int]) -> None:
        """Begin with what each partition has had so far."""
        self._limit = limit
        self._may: dict[int, int] = dict(used)  # the most that may be in force at a partition
        self._orders = 0
        self._open: dict[int, Allow] = {}

    def of(self, number: int) -> int | None:
        """Return how many pages a partition may have when it is started, None without a limit."""
        return None if self._limit is None else self._may.setdefault(number, 0)

    @property
    def left(self) -> int:
        """How many pages nobody may have yet."""
        return 0 if self._limit is None else max(0, self._limit - sum(self._may.values()))

    def restarted(self, number: int) -> None:
        """Forget what a partition was told that has to be started again: it begins with `of` it."""
        self._open.pop(number, None)

    def deal(self, standings: list[Standing]) -> dict[int, Allow]:
        """Return what partitions are to be told, given how they stand."""
        if self._limit is None:
            return {}
        for standing in standings:
            self._note(standing)
        orders: dict[int, Allow] = {}
        wanting = [s.number for s in standings if s.wants and s.number not in self._open]
        for count, number in enumerate(wanting):
            part = min(MOST_AT_A_TIME, -(-self.left // (2 * (len(wanting) - count))))
            if part:
                orders[number] = self._allow(number, self._may[number] + part)
        if wanting and not orders:
            orders = self._take_back(standings)
        return orders

    def _take_back(self, standings: list[Standing]) -> dict[int, Allow]:
        """Take back what partitions have to spare: of one that is getting on, not what it has URLs for.

        Else the last pages would go to and fro between partitions whose hosts make them wait.
        """
        orders: dict[int, Allow] = {}
        for standing in standings:
            keeps = standing.used if standing.passive else standing.used + standing.queued
            if not standing.wants and standing.number not in self._open and self._may[standing.number] > keeps:
                orders[standing.number] = self._allow(standing.number, keeps)
        return orders

    def _allow(self, number: int, most: int) -> Allow:
        self._orders += 1
        order = self._open[number] = Allow(self._orders, most)
        self._may[number] = max(self._may[number], most)  # less only once the partition says so
        return order

    def _note(self, standing: Standing) -> None:
        """Take in what a partition may have; it may have had more than its last `CHECKPOINT` said, which a kill left behind."""
        self._may[standing.number] = max(self._may[standing.number], standing.used)
        order = self._open.get(standing.number)
        if order is not None and standing.allowed >= order.number and standing.most is not None:
            del self._open[standing.number]
            self._may[standing.number] = standing.most

    @property
    def dealing(self) -> bool:
        """Whether a partition has not answered yet to what it was told."""
        return bool(self._open)
