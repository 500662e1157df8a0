"""The time that a page may take to render. While it waits for its turn at a host it takes none."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

LONGEST = 12
"""How many times the time that it may take itself a page may take with all its waiting."""


class Patience:
    """Tells that the time is over: `run_out` is set then, after `timeout_s` less what was spent aside.

    Made in a running loop; `close` it.
    """

    def __init__(self, timeout_s: float) -> None:
        self._loop = asyncio.get_running_loop()
        self.timeout_s = timeout_s
        self._left_s = timeout_s
        self._ends_s = self._loop.time() + timeout_s * LONGEST
        self._aside = 0
        self._since_s = self._loop.time()
        self.run_out = asyncio.Event()
        self._timer = self._loop.call_later(timeout_s, self.run_out.set)

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Do not count the time that the block takes, several of them at once only once."""
        self._aside += 1
        if self._aside == 1:
            self._left_s -= self._loop.time() - self._since_s
            self._set_timer(self._ends_s)
        try:
            yield
        finally:
            self._aside -= 1
            if self._aside == 0:
                self._since_s = self._loop.time()
                self._set_timer(min(self._ends_s, self._since_s + self._left_s))

    def close(self) -> None:
        """Let go of the timer."""
        self._timer.cancel()

    def _set_timer(self, at_s: float) -> None:
        self._timer.cancel()
        if not self.run_out.is_set():
            self._timer = self._loop.call_at(at_s, self.run_out.set)
