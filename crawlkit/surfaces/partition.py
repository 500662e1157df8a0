"""One partition of a crawl, as a process: `python -m crawlkit.surfaces.partition DESCRIPTOR`, started by the driver alone."""

import os
import signal
import sys
from functools import partial
from pathlib import Path

from crawlkit.clock import SystemClock
from crawlkit.cluster.member import LineEnded, serve
from crawlkit.cluster.messages import Begin
from crawlkit.cluster.processes import open_line
from crawlkit.engine.runner import run_async
from crawlkit.engine.session import Hooks, Surroundings
from crawlkit.surfaces.control.server import serving
from crawlkit.surfaces.garbage import begin_collecting
from crawlkit.surfaces.log import Log, LogFormat, Verbosity


def hooks_of(begin: Begin) -> Hooks:
    """Return what a partition serves and tells: its control socket, and events on standard error."""
    options = begin.options
    verbosity = Verbosity(options.get("verbosity", Verbosity.QUIET))
    log = Log(Path(begin.directory), LogFormat(options.get("log_format", "text")), verbosity, SystemClock())
    return Hooks(
        on_event=None if verbosity is Verbosity.QUIET else log.on_event,
        beside=partial(serving, warn=log.warn),
    )


async def _serve(descriptor: int) -> None:
    await serve(await open_line(descriptor), hooks_of, Surroundings())


def main() -> None:
    """Be a partition until its run ends, or the driver is gone."""
    begin_collecting()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the driver stops its partitions in order
    try:
        run_async(_serve(int(sys.argv[1])))
    except LineEnded:
        os._exit(1)


if __name__ == "__main__":
    main()
