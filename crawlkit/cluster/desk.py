"""One partition's part in a crawl of several: what it takes in, sends, may have, and how it stands. Synchronous."""

import msgspec

from crawlkit.cluster.exchange import Receiver, Sender
from crawlkit.cluster.messages import Allow, Parcel, Receipt, Standing
from crawlkit.engine.coordinator import Coordinator
from crawlkit.policy.partition import Owners
from crawlkit.state.letters import Letter


class Desk:
    """Partition `number` with the coordinator of its crawl directory."""

    def __init__(self, coordinator: Coordinator, owners: Owners, number: int, epoch: int, most: int | None) -> None:
        self._coordinator = coordinator
        self._letters = coordinator.state.letters
        self._number = number
        self._now = 0.0
        self._sender = Sender(self._letters, owners, number, epoch)
        self._receiver = Receiver(self._letters, owners, number, epoch, self._receive)
        self._allowed = 0
        limit = coordinator.page_limit
        limit.most = None if most is None else max(most, limit.used)
        coordinator.growth.join()
        coordinator.state.counters.finished = False  # whatever its last run said: others may have something for it

    # Letters ---------------------------------------------------------------------------------------------------------

    def parcels(self, now: float) -> list[Parcel]:
        """Return what is to be sent now."""
        return self._sender.parcels(now)

    def take(self, parcel: Parcel, now: float) -> Receipt | None:
        """Take in a parcel; return its receipt, to be sent once all of this is on disk. None if it is to be passed over."""
        self._now = now
        return self._receiver.take(parcel)

    def _receive(self, letter: Letter) -> None:
        self._coordinator.receive(letter, self._now)

    def acknowledge(self, receipt: Receipt, now: float) -> None:
        """Forget letters that another partition has on disk."""
        self._sender.acknowledge(receipt, now)

    def send_again(self, to: int) -> None:
        """Send anew what a partition has not acknowledged: it was started again."""
        self._sender.send_again(to)

    # Orders ----------------------------------------------------------------------------------------------------------

    def allow(self, order: Allow) -> None:
        """Have another limit on pages from now on, but not below what is taken."""
        limit = self._coordinator.page_limit
        limit.most = max(order.most, limit.used)
        self._allowed = order.number

    def walk_held(self) -> None:
        """See to what waits for credit, until that leads to anything else."""
        self._coordinator.growth.end_waiting()

    # Standing --------------------------------------------------------------------------------------------------------

    def standing(self, wave: int, *, with_counters: bool = True) -> Standing:
        """Return how the partition stands now."""
        coordinator, counters = self._coordinator, self._coordinator.state.counters
        limit = coordinator.page_limit
        waits = counters.queued > limit.claimed or counters.sitemaps > 0
        return Standing(
            number=self._number,
            wave=wave,
            passive=coordinator.exhausted and self._letters.waiting == 0,
            posted=self._letters.posted,
            taken=self._letters.taken,
            requests=counters.requests,
            records=counters.records,
            held=counters.held,
            used=limit.used,
            most=limit.most,
            allowed=self._allowed,
            wants=limit.spent and waits,
            counters=msgspec.msgpack.encode(counters) if with_counters else b"",
            in_flight=coordinator.in_flight,
            queued=counters.queued - limit.claimed,
        )
