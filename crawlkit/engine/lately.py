"""What a run met lately, for who watches it: answers over time, by status, and the latest failures. Memory is bounded."""

import math
from collections import Counter, deque
from collections.abc import Sequence

import msgspec

from crawlkit.config import Config
from crawlkit.model import Facts, Fetched, FetchFailure, PageJob, Reason, Record
from crawlkit.policy.disposition import REDIRECTS, Again, dispose

MOST_POINTS = 240
MOST_FAILURES = 50
MOST_MESSAGE = 300
LEAST_FAILING = 400
_COUNTED_AT_ONCE = 64
_STEPS_AN_OCTAVE = 4
"""Latencies are counted in classes, each a fifth longer than the one before: a percentile is off by a tenth at the most."""


class Point(msgspec.Struct, frozen=True, array_like=True):
    """Answers within a stretch of time that begins at `at_s` (since the epoch): how many, their latencies (null for none)."""

    at_s: float
    answers: int
    median_ms: float | None
    p95_ms: float | None


class Timeline(msgspec.Struct, frozen=True):
    """Points at equal distances of `width_s`, oldest first; where nothing was answered there may be none."""

    width_s: float
    points: list[Point]


class Failing(msgspec.Struct, frozen=True, kw_only=True):
    """A fetch that failed, in the words of the library or by its status; `again` says that it is tried once more."""

    at_s: float
    url: str
    reason: Reason
    message: str | None
    attempt: int
    again: bool


class Lately(msgspec.Struct, frozen=True):
    """What was met: fetches of pages in this run by status, or by reason where no answer came; failures latest first."""

    timeline: Timeline
    statuses: dict[str, int]
    failures: list[Failing]


def merged_lately(parts: Sequence[Lately]) -> Lately:
    """Return what the partitions of a crawl met together.

    Of a stretch of time the median is the mean of theirs, each by its answers, and the 95th percentile the greatest.
    """
    statuses: Counter[str] = Counter()
    for part in parts:
        statuses.update(part.statuses)
    failures = sorted((failing for part in parts for failing in part.failures), key=lambda failing: -failing.at_s)
    timeline = _merged_timeline([part.timeline for part in parts])
    return Lately(timeline, dict(sorted(statuses.items())), failures[:MOST_FAILURES])


def _merged_timeline(parts: Sequence[Timeline]) -> Timeline:
    width_s = max((part.width_s for part in parts), default=1)  # each is a power of two
    stretches: dict[float, list[Point]] = {}
    for point in (point for part in parts for point in part.points):
        stretches.setdefault(point.at_s // width_s * width_s, []).append(point)
    return Timeline(width_s, [_merged_point(at_s, points) for at_s, points in sorted(stretches.items())])


def _merged_point(at_s: float, points: Sequence[Point]) -> Point:
    answers = sum(point.answers for point in points)
    weighed = [(point.answers, point.median_ms) for point in points if point.median_ms is not None]
    median_ms = round(sum(count * ms for count, ms in weighed) / sum(count for count, _ in weighed), 1) if weighed else None
    return Point(at_s, answers, median_ms, max((point.p95_ms for point in points if point.p95_ms is not None), default=None))


class Answers:
    """Counts answers over time: by the second at first, and by twice as long whenever there are too many stretches."""

    def __init__(self) -> None:
        self._width_s = 1
        self._stretches: dict[int, Counter[int]] = {}
        self._uncounted: list[tuple[float, float]] = []

    def add(self, at_s: float, elapsed_ms: float) -> None:
        """Count one, together with others: one by one, between other work, each takes some times as long."""
        self._uncounted.append((at_s, elapsed_ms))
        if len(self._uncounted) >= _COUNTED_AT_ONCE:
            self._count_all()

    def _count_all(self) -> None:
        for at_s, elapsed_ms in self._uncounted:
            self._count(at_s, elapsed_ms)
        self._uncounted.clear()

    def _count(self, at_s: float, elapsed_ms: float) -> None:
        number = int(at_s) // self._width_s
        stretch = self._stretches.get(number)
        if stretch is None:
            stretch = self._stretches[number] = Counter()
            while max(self._stretches) - min(self._stretches) >= MOST_POINTS:
                self._widen()
            stretch = self._stretches[int(at_s) // self._width_s]
        stretch[_class_of(elapsed_ms)] += 1

    def _widen(self) -> None:
        self._width_s *= 2
        wider: dict[int, Counter[int]] = {}
        for number, stretch in self._stretches.items():
            wider.setdefault(number // 2, Counter()).update(stretch)
        self._stretches = wider

    def timeline(self) -> Timeline:
        """Return what was counted."""
        self._count_all()
        points = [
            Point(number * self._width_s, stretch.total(), _percentile(stretch, 0.5), _percentile(stretch, 0.95))
            for number, stretch in sorted(self._stretches.items())
        ]
        return Timeline(self._width_s, points)


class Witness:
    """A watcher that takes note of each fetch: 1 us."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._answers = Answers()
        self._statuses: Counter[int | Reason] = Counter()
        self._failures: deque[Failing] = deque(maxlen=MOST_FAILURES)

    def fetched(self, fetched: Fetched) -> None:
        """Note what came of one."""
        answer = fetched.answer
        is_page = isinstance(fetched.job, PageJob)
        if isinstance(answer, Facts) and is_page:
            status = answer.status
            self._statuses[status] += 1
            self._answers.add(fetched.ended_s, (fetched.ended_s - fetched.started_s) * 1000)
            if status >= LEAST_FAILING or (status in REDIRECTS and answer.location is None):
                self._note_failure(fetched, answer)
        elif isinstance(answer, FetchFailure):
            self._note_failure(fetched, answer)
            if is_page:
                self._statuses[answer.reason] += 1

    def settled(self, record: Record) -> None:
        """Nothing: what was fetched says more."""

    def written(self, at_s: float, took_s: float) -> None:
        """Nothing."""

    def _note_failure(self, fetched: Fetched, answer: Facts | FetchFailure) -> None:
        job, config = fetched.job, self._config
        found = dispose(job.url, job.attempts, answer, config.retries, fetched.ended_s, config.max_retry_after).outcome
        message = answer.message[:MOST_MESSAGE] if isinstance(answer, FetchFailure) else f"HTTP {answer.status}"
        if found.reason is not None:
            self._failures.append(
                Failing(
                    at_s=fetched.ended_s,
                    url=job.url,
                    reason=found.reason,
                    message=message,
                    attempt=job.attempts + 1,
                    again=isinstance(found, Again),
                )
            )

    def lately(self) -> Lately:
        """Return what was noted."""
        statuses = {str(status): count for status, count in self._statuses.items()}
        return Lately(self._answers.timeline(), dict(sorted(statuses.items())), list(reversed(self._failures)))


def _class_of(elapsed_ms: float) -> int:
    return int(math.log2(1.0 + max(0.0, elapsed_ms)) * _STEPS_AN_OCTAVE)


def _percentile(classes: Counter[int], share: float) -> float | None:
    """Return the middle of the class in which a percentile lies, in milliseconds."""
    left = classes.total() * share
    for number in sorted(classes):
        left -= classes[number]
        if left <= 0:
            return round(math.exp2((number + 0.5) / _STEPS_AN_OCTAVE) - 1.0, 1)
    return None
