"""The command line's door, for `crawlkit` and `python -m crawlkit`: quiet from the first moment, then the command line.

Importing this is being the command line: from here on an interrupt ends the process at once and in silence, as long as the
program is being loaded. Hence no import before that but two, which are quick.
"""

import os
import signal

_INTERRUPTED = 128 + signal.SIGINT
_IS_OURS = signal.getsignal(signal.SIGINT) is signal.default_int_handler  # else the caller has it ignored, or handles it
if _IS_OURS:
    signal.signal(signal.SIGINT, lambda _number, _frame: os._exit(_INTERRUPTED))


def main() -> None:
    """Run the command line and leave with its status."""
    from crawlkit.surfaces import cli  # noqa: PLC0415  (takes long: an interrupt must be quiet by then)

    try:
        if _IS_OURS:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        cli.main()
    except KeyboardInterrupt:  # before the command line takes care of it, or as it leaves
        os._exit(_INTERRUPTED)


if __name__ == "__main__":
    main()
