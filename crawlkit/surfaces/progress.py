"""Progress while a crawl runs: a live line on a terminal, now and then a plain line elsewhere, on standard error only."""

import contextlib
import sys
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

from crawlkit.engine.coordinator import Coordinator
from crawlkit.state.counters import Counters
from crawlkit.surfaces.log import Log, LogFormat, Verbosity

Figures = dict[str, float]
"""Counts, a rate a second, and `elapsed` seconds."""

PLAIN_EVERY_S = 10.0
RATE_OVER_S = 10.0


class Progress:
    """Shows how far a crawl is, at most every `every_s`; `show` is called much oftener and must cost next to nothing."""

    def __init__(self, every_s: float) -> None:
        self._every_s = every_s
        self._began_s = self._shown_s = time.monotonic()
        self._samples: deque[tuple[float, int]] = deque()

    def show(self, coordinator: Coordinator) -> None:
        """Show the state of `coordinator` if it is time to."""
        self.show_counts(coordinator.state.counters, coordinator.in_flight)

    def show_counts(self, counters: Counters, in_flight: int) -> None:
        """Show counters, and how many fetches are in flight, if it is time to."""
        now = time.monotonic()
        if now - self._shown_s >= self._every_s:
            self._shown_s = now
            with contextlib.suppress(OSError):  # a terminal that went away, a log on a full disk: no reason to end a crawl
                self.draw(self._figures(counters, in_flight, now))

    def draw(self, figures: Figures) -> None:
        """Put `figures` before the user."""

    def _figures(self, counters: Counters, in_flight: int, now: float) -> Figures:
        self._samples.append((now, counters.records))
        while now - self._samples[0][0] > RATE_OVER_S:
            self._samples.popleft()
        (then, before), over_s = self._samples[0], now - self._samples[0][0]
        rate = (counters.records - before) / over_s if over_s > 0 else counters.records / max(now - self._began_s, 0.001)
        del then
        return {
            "pages": counters.pages,
            "per second": rate,
            "queued": counters.queued - in_flight,
            "in flight": in_flight,
            "failures": counters.failures,
            "hosts": counters.hosts,
            "elapsed": now - self._began_s,
        }


class PlainProgress(Progress):
    """A line every ten seconds, for logs."""

    def draw(self, figures: Figures) -> None:
        """Print one line."""
        told = ", ".join(f"{name} {value}" for name, value in as_texts(figures).items())
        print(f"crawlkit: {told}", file=sys.stderr, flush=True)  # noqa: T201


class LoggedProgress(Progress):
    """A line of a log every ten seconds."""

    def __init__(self, log: Log) -> None:
        super().__init__(PLAIN_EVERY_S)
        self._log = log

    def draw(self, figures: Figures) -> None:
        """Log one line."""
        self._log.progress(figures)


@contextmanager
def open_progress(wanted: bool | None, log: Log) -> Iterator[Progress]:
    """Give the progress to show: live on a terminal, elsewhere a line now and then; by default nothing when quiet."""
    if not (log.verbosity > Verbosity.QUIET if wanted is None else wanted):
        yield Progress(PLAIN_EVERY_S)
    elif log.format is LogFormat.JSON:
        yield LoggedProgress(log)
    elif sys.stderr.isatty():
        from crawlkit.surfaces.live_progress import open_live  # noqa: PLC0415  (rich takes a tenth of the time to start)

        with open_live() as progress:
            yield progress
    else:
        yield PlainProgress(PLAIN_EVERY_S)


def as_texts(figures: Figures) -> dict[str, str]:
    """Return figures as they are shown."""
    texts = {name: f"{value:,}" if isinstance(value, int) else f"{value:.1f}" for name, value in figures.items()}
    return {**texts, "elapsed": _clock(figures["elapsed"])}


def _clock(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}"
