"""What SIGINT does while nothing has begun."""

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

INTERRUPTED = 128 + signal.SIGINT


@contextmanager
def nothing_begun() -> Iterator[None]:
    """Let SIGINT end the process at once and in silence while the block runs: there is nothing to be put in order.

    For the imports of a start: half a second in which an interrupt would print a traceback from wherever it hit. Where the
    caller has us ignore SIGINT, or handles it, that is left alone; so it is off the main thread, where Python takes no signals.
    """
    is_ours = threading.current_thread() is threading.main_thread()
    if not is_ours or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    signal.signal(signal.SIGINT, lambda _number, _frame: os._exit(INTERRUPTED))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
