"""A clock that moves when told to."""


class ManualClock:
    """`now` is what was set; tests move it by `advance`."""

    def __init__(self, now: float = 1_000_000.0) -> None:
        self._now = now

    def now(self) -> float:
        """Return the current reading, seconds."""
        return self._now

    def advance(self, seconds: float) -> float:
        """Move forward by `seconds`; return the new reading."""
        self._now += seconds
        return self._now
