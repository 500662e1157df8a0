"""What signals do outside of a crawl: while nothing has begun, and while a file is being written."""

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


@contextmanager
def files_removed_when_ended() -> Iterator[None]:
    """Let SIGTERM end the block by an exception, as SIGINT does, so that what is half written is removed.

    Where the caller has us ignore SIGTERM, or handles it, that is left alone; so it is off the main thread.
    """
    is_ours = threading.current_thread() is threading.main_thread()
    if not is_ours or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return
    signal.signal(signal.SIGTERM, _leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _leave(number: int, _frame: object) -> None:
    raise SystemExit(128 + number)
