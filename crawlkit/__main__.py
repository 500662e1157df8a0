"""The command line's door, for `crawlkit` and `python -m crawlkit`: quiet from the first moment, then the command line.

Importing this is being the command line: from here on an interrupt ends the process at once and in silence, as long as the
program is being loaded. Hence no import before that but a few, which are quick.
"""

import atexit
import contextlib
import gc
import os
import signal
import sys

_INTERRUPTED = 128 + signal.SIGINT
_IS_OURS = signal.getsignal(signal.SIGINT) is signal.default_int_handler  # else the caller has it ignored, or handles it
if _IS_OURS:
    signal.signal(signal.SIGINT, lambda _number, _frame: os._exit(_INTERRUPTED))


def main() -> None:
    """Run the command line and leave with its status."""
    gc.disable()  # until the command is imported (`commands`): to look through what is loaded takes 30 ms, and it stays
    decided: list[int] = []
    atexit.register(_leave, decided)  # first, so that it is called last
    from crawlkit.surfaces import cli  # noqa: PLC0415  (takes long: an interrupt must be quiet by then)

    try:
        if _IS_OURS:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        decided.append(cli.main())
        sys.exit(decided[0])
    except KeyboardInterrupt:  # before the command line takes care of it, or as it leaves
        os._exit(_INTERRUPTED)


def _leave(decided: list[int]) -> None:
    """Leave at once where the status is decided: the interpreter takes 30 ms to take itself apart.

    Whoever asked for warnings has it do so, since it says only then what was left open.
    """
    if not decided or sys.warnoptions:
        return
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):  # what others wrote as the process ended, tracing for one
            stream.flush()
    os._exit(decided[0])


if __name__ == "__main__":
    main()
