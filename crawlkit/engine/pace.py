"""The pace of a run of late, from samples of how much has settled."""

from collections import deque

import msgspec

from crawlkit.engine.coordinator import Coordinator

PACE_OVER_S = 60.0


class Pace(msgspec.Struct, frozen=True):
    """How many URLs settled over the last `over_s` seconds of this run, at most a minute; none where it has just begun."""

    settled: int
    over_s: float


class Pacer:
    """Takes samples of how many URLs have settled."""

    def __init__(self) -> None:
        self._samples: deque[tuple[float, int]] = deque()

    def sample(self, coordinator: Coordinator, now: float) -> None:
        """Take one; about once a second is enough."""
        self._samples.append((now, coordinator.state.counters.records))
        while len(self._samples) > 2 and now - self._samples[1][0] >= PACE_OVER_S:
            self._samples.popleft()

    def pace(self, coordinator: Coordinator, now: float) -> Pace:
        """Return the pace up to `now`."""
        if not self._samples:
            return Pace(0, 0.0)
        then, settled = self._samples[0]
        return Pace(coordinator.state.counters.records - settled, round(now - then, 3))
