"""A look at a crawl while it runs: sums of this moment, its hosts.

Nothing here waits or takes long: a look at all hosts goes in steps, between which whoever asks lets the loop go on.
"""

from crawlkit.engine.coordinator import Coordinator
from crawlkit.engine.figures import HostFigures, first_hosts, host_figures
from crawlkit.state import keys
from crawlkit.state.checkpoint import Summary
from crawlkit.state.hosts import Host, HostRecord

HOSTS_A_STEP = 512
"""Host records that are looked at in one step: about 3 ms."""


def summary_of(coordinator: Coordinator, now: float) -> Summary:
    """Return what a checkpoint made now would say of the crawl, but for the sizes of LevelDB's logs."""
    coordinator.note_time(now)
    state = coordinator.state
    sizes = state.extents.sizes
    summary = Summary(state.crawl_id, state.batch, state.counters, state.runs, in_flight=coordinator.in_flight)
    summary.archive_files, summary.archive_bytes = len(sizes), sum(sizes.values())
    return summary


class HostWalk:
    """A look at the records of all hosts, some at a time."""

    def __init__(self, coordinator: Coordinator) -> None:
        self._coordinator = coordinator
        self._from: bytes | None = keys.HOST

    @property
    def over(self) -> bool:
        """Whether all have been looked at."""
        return self._from is None

    def step(self, now: float) -> list[HostFigures]:
        """Return the figures of some more."""
        if self._from is None:
            return []
        found = self._coordinator.state.hosts.scan(self._from, HOSTS_A_STEP)
        loaded = self._coordinator.state.hosts.loaded
        self._from = found[-1][0] + b"\0" if len(found) == HOSTS_A_STEP else None
        return [self._figures(record, loaded(record.name), now) for _, record in found]

    def _figures(self, record: HostRecord, host: Host | None, now: float) -> HostFigures:
        schedule = self._coordinator.schedule
        next_s = schedule.next_start_of(record, now) - now
        return host_figures(
            record,
            in_flight=0 if host is None else host.in_flight,
            next_s=next_s,
            now=now,
            is_spent=schedule.is_spent(record),
        )


class HostsSeen:
    """A look at all hosts that have work or are steered: `step` until it says that there are no more."""

    def __init__(self, coordinator: Coordinator, most: int) -> None:
        self._walk = HostWalk(coordinator)
        self._most = most
        self._found: list[HostFigures] = []

    def step(self, now: float) -> bool:
        """Look at some more; False if there are none."""
        if self._walk.over or self._most <= 0:
            return False
        self._found = first_hosts([*self._found, *self._walk.step(now)], self._most)
        return not self._walk.over

    def result(self) -> list[HostFigures]:
        """Return the hosts with most URLs, of those seen."""
        return self._found
