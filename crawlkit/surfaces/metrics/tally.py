"""What happened since a run began, counted as it happens: some additions an event, and no lock, as all is the loop's."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import accumulate

from crawlkit.engine.watcher import JobName, job_name, received
from crawlkit.model import Fetched, Kind, Reason, Record

FETCH_BOUNDS_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
CHECKPOINT_BOUNDS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
STALL_BOUNDS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)


class Histogram:
    """How many observations there were, in seconds, up to each of some bounds, and their sum."""

    def __init__(self, bounds_s: Sequence[float]) -> None:
        self._bounds_s = bounds_s
        self._counts = [0] * (len(bounds_s) + 1)
        self.sum_s = 0.0

    @property
    def count(self) -> int:
        """How many observations there were."""
        return sum(self._counts)

    def observe(self, seconds: float) -> None:
        """Take in one observation."""
        self._counts[bisect_left(self._bounds_s, seconds)] += 1
        self.sum_s += seconds

    def buckets(self) -> Iterator[tuple[str, int]]:
        """Yield each upper bound as Prometheus writes it, with how many there were up to it."""
        yield from zip([*map(str, self._bounds_s), "+Inf"], accumulate(self._counts), strict=True)


class Tally:
    """Counts of one run, from its beginning on: a watcher."""

    def __init__(self) -> None:
        self.answers: Counter[str] = Counter()
        """Answers by the class of their status."""
        self.unanswered: Counter[Reason] = Counter()
        """Requests without an answer, by reason."""
        self.records: Counter[Kind] = Counter()
        self.failures: Counter[Reason] = Counter()
        self.exclusions: Counter[Reason] = Counter()
        self.retries = 0
        self.body_bytes = 0
        self.checkpoints = Histogram(CHECKPOINT_BOUNDS_S)
        self.checkpoint_at_s = 0.0
        self.fetches = {job: Histogram(FETCH_BOUNDS_S) for job in JobName}
        self.stalls = Histogram(STALL_BOUNDS_S)

    def fetched(self, fetched: Fetched) -> None:
        """Count a request that has ended."""
        came = received(fetched)
        if came is None:
            return
        if came.failure is not None:
            self.unanswered[came.failure] += 1
        if came.status is not None:
            self.answers[_class_of(came.status)] += 1
        self.body_bytes += came.body_bytes
        self.retries += fetched.job.attempts > 0
        self.fetches[job_name(fetched.job)].observe(fetched.ended_s - fetched.started_s)

    def settled(self, record: Record) -> None:
        """Count a record."""
        self.records[record.kind] += 1
        if record.reason is not None:
            (self.exclusions if record.kind is Kind.EXCLUDED else self.failures)[record.reason] += 1

    def written(self, at_s: float, took_s: float) -> None:
        """Count a checkpoint."""
        self.checkpoint_at_s = at_s
        self.checkpoints.observe(took_s)


CLASSES = ("1xx", "2xx", "3xx", "4xx", "5xx", "other")


def _class_of(status: int) -> str:
    return f"{status // 100}xx" if 100 <= status < 600 else "other"
