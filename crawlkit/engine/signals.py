"""Signals: the first SIGINT or SIGTERM stops the crawl in order, the second at once."""

import asyncio
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from crawlkit.engine.ending import Ending
from crawlkit.engine.loop import Loop

_ENDINGS = {signal.SIGINT: Ending.SIGINT, signal.SIGTERM: Ending.SIGTERM}


@contextmanager
def stopping_on_signals(loop: Loop, before_exit: Callable[[], object]) -> Iterator[None]:
    """Stop `loop` on a first signal while the block runs; on a second call `before_exit` and leave the process at once.

    Leaving at once is as safe as a kill: what is not checkpointed is fetched again. Off the main thread, where Python
    takes no signals, nothing is done.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    stopped = False

    def on_signal(number: signal.Signals) -> None:
        nonlocal stopped
        if stopped:
            before_exit()
            os._exit(128 + number)
        stopped = True
        loop.stop(_ENDINGS[number])

    running = asyncio.get_running_loop()
    for number in _ENDINGS:
        running.add_signal_handler(number, on_signal, number)
    try:
        yield
    finally:
        for number in _ENDINGS:
            running.remove_signal_handler(number)
