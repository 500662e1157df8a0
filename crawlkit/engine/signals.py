"""Signals: the first SIGINT or SIGTERM stops the crawl in order, the second at once."""

import asyncio
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

from crawlkit.engine.ending import Ending

_ENDINGS = {signal.SIGINT: Ending.SIGINT, signal.SIGTERM: Ending.SIGTERM}


class Stoppable(Protocol):
    """A run that can be stopped, from a signal's handler too."""

    def stop(self, how: Ending) -> None:
        """Start no new fetches, let those in flight finish, end."""


class Stopper:
    """Turns signals into the end of a run; one that comes before its loop does ends it as soon as it runs."""

    def __init__(self, before_exit: Callable[[], object]) -> None:
        self._before_exit = before_exit
        self._how: Ending | None = None
        self._stop: Callable[[Ending], object] | None = None

    @contextmanager
    def around(self, loop: Stoppable) -> Iterator[None]:
        """Let signals stop `loop` while the block runs."""
        running = asyncio.get_running_loop()

        def stop(how: Ending) -> None:
            loop.stop(how)  # now: what the loop is about to do must not start another fetch
            running.call_soon_threadsafe(loop.stop, how)  # and once more from within, in case it was just going to sleep

        self._stop = stop
        if self._how is not None:
            loop.stop(self._how)
        try:
            yield
        finally:
            self._stop = None

    def on_signal(self, number: int, _frame: object) -> None:
        """Be a handler of `signal.signal`: Python runs it at once, also while the loop is busy with other things."""
        if self._how is not None:
            self._before_exit()
            os._exit(128 + number)
        self._how = _ENDINGS[signal.Signals(number)]
        if self._stop is not None:
            self._stop(self._how)


@contextmanager
def stopping_on_signals(before_exit: Callable[[], object]) -> Iterator[Stopper]:
    """Give what stops a run on a first signal while the block runs; a second calls `before_exit` and leaves at once.

    The block holds the whole run, its making or opening too. Leaving at once is as safe as a kill: what is not
    checkpointed is fetched again. Off the main thread, where Python takes no signals, nothing is done.
    """
    stopper = Stopper(before_exit)
    if threading.current_thread() is not threading.main_thread():
        yield stopper
        return
    before = {number: signal.signal(number, stopper.on_signal) for number in _ENDINGS}
    try:
        yield stopper
    finally:
        for number, handler in before.items():
            signal.signal(number, handler or signal.SIG_DFL)
