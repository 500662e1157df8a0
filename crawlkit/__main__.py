"""The command line's door, for `crawlkit` and `python -m crawlkit`: quiet from the first moment, then the command line.

Importing this is being the command line: from here on an interrupt ends the process at once and in silence, as long as the
program is being loaded. Hence no import before that but three, which are quick.
"""

import gc
import os
import signal

_INTERRUPTED = 128 + signal.SIGINT
_IS_OURS = signal.getsignal(signal.SIGINT) is signal.default_int_handler  # else the caller has it ignored, or handles it
if _IS_OURS:
    signal.signal(signal.SIGINT, lambda _number, _frame: os._exit(_INTERRUPTED))


_OBJECTS_A_COLLECTION = 10_000
"""So many more objects and the garbage is collected: a crawl makes little that goes in circles. 700, as Python has it, costs
1 % of a crawl, and 7 % of a start."""


def main() -> None:
    """Run the command line and leave with its status."""
    gc.set_threshold(_OBJECTS_A_COLLECTION)
    from crawlkit.surfaces import cli  # noqa: PLC0415  (takes long: an interrupt must be quiet by then)

    try:
        if _IS_OURS:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        cli.main()
    except KeyboardInterrupt:  # before the command line takes care of it, or as it leaves
        os._exit(_INTERRUPTED)


if __name__ == "__main__":
    main()
