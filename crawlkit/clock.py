"""Time, as a value that is passed in.

Policy, state and the coordinator never ask what time it is: they take `now`, in seconds since the epoch. Within a run
`now` advances with the monotonic clock only, so a jump of the wall clock neither shortens a gap nor stretches it; the wall
clock is read once, when the run starts.
"""

import time
from typing import Protocol


class Clock(Protocol):
    """A source of `now`."""

    def now(self) -> float:
        """Return seconds since the epoch, never going backwards within a run."""
        ...


class SystemClock:
    """Wall time at the start of the run plus monotonic time since."""

    def __init__(self) -> None:
        self._offset_s = time.time() - time.monotonic()

    def now(self) -> float:
        """Return seconds since the epoch, as the wall clock stood when this clock was made."""
        return self._offset_s + time.monotonic()
