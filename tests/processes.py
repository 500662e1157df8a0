"""The command line as processes of their own: run to their end, started, signalled, killed."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Event

from crawlkit.state.directory import holder, is_held

ROOT = Path(__file__).resolve().parent.parent
PATIENCE_S = 60.0
POLL_S = 0.001

NEVER_SAID = ("Traceback", "Warning", "Exception ignored", "was destroyed", "never retrieved", "this is a bug")
"""What no run may put on standard error, whatever happens to it; with `-W error` a leaked file or socket is among it."""


@dataclass(frozen=True, slots=True)
class Ended:
    """How a process ended: its exit status (negative for a signal) and what it wrote."""

    status: int
    out: bytes
    err: str


def command(*arguments: str | Path) -> list[str]:
    """Return the argument vector of a crawlkit process in which every warning is an error."""
    return [sys.executable, "-W", "error", "-m", "crawlkit", *map(str, arguments)]


def environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return our environment without settings of crawlkit, and without asyncio's debug mode, which writes of slow turns."""
    ours = {name: value for name, value in os.environ.items() if not name.startswith(("CRAWLKIT_", "PYTHONASYNCIO"))}
    return {**ours, "PYTHONPATH": str(ROOT), **(extra or {})}


@contextmanager
def started(arguments: list[str], cwd: Path, env: Mapping[str, str] | None = None) -> Iterator["subprocess.Popen[bytes]"]:
    """Start a process without standard input; it does not outlive the block."""
    pipe = subprocess.PIPE
    with subprocess.Popen(
        arguments, cwd=cwd, env=environment(env), stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def ended(process: "subprocess.Popen[bytes]", timeout_s: float = PATIENCE_S) -> Ended:
    """Wait for the end of a process; what it wrote must be clean."""
    out, err = process.communicate(timeout=timeout_s)
    return checked(process.returncode, out, err)


def crawlkit(
    *arguments: str | Path, cwd: Path, stdin: bytes = b"", env: Mapping[str, str] | None = None, timeout_s: float = PATIENCE_S
) -> Ended:
    """Run one command to its end; what it wrote must be clean."""
    return run(command(*arguments), cwd=cwd, stdin=stdin, env=env, timeout_s=timeout_s)


def run(
    arguments: list[str],
    *,
    cwd: Path,
    stdin: bytes = b"",
    env: Mapping[str, str] | None = None,
    timeout_s: float = PATIENCE_S,
) -> Ended:
    """Run any process to its end; what it wrote must be clean."""
    done = subprocess.run(
        arguments, cwd=cwd, env=environment(env), input=stdin, capture_output=True, timeout=timeout_s, check=False
    )
    return checked(done.returncode, done.stdout, done.stderr)


def checked(status: int, out: bytes, err: bytes) -> Ended:
    """Return how a process ended, unless it said what none may say."""
    said = err.decode(errors="backslashreplace")
    assert not [words for words in NEVER_SAID if words in said], said
    return Ended(status, out, said)


def wait_until(condition: Callable[[], bool], timeout_s: float = PATIENCE_S) -> None:
    """Wait until `condition` holds of something that cannot tell us, like a file of another process."""
    never = Event()
    until_s = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < until_s, "waited in vain"
        never.wait(POLL_S)


def wait_while_running(process: "subprocess.Popen[bytes]", condition: Callable[[], bool]) -> None:
    """Wait until `condition` holds of what a process does; fail with what it wrote, and at once if it ends without that."""

    def has_come() -> bool:
        is_over = process.poll() is not None  # looked at first: what it did last counts
        if condition():
            return True
        assert not is_over, "ended in vain"
        return False

    try:
        wait_until(has_come)
    except AssertionError as error:
        error.add_note(_last_words(process))
        raise


def _last_words(process: "subprocess.Popen[bytes]", timeout_s: float = 10.0) -> str:
    """Kill a process and return how it ended and what it wrote to standard error, unless others hold that open."""
    process.kill()
    err: bytes | None
    try:
        _, err = process.communicate(timeout=timeout_s)
    except subprocess.TimeoutExpired as late:
        err = late.stderr
    return f"status {process.poll()}\n{(err or b'').decode(errors='backslashreplace')}"


def runner(directory: Path, driver: int | None = None) -> int | None:
    """Return the process that runs the crawl in a directory, None if none does.

    The text of `LOCK` only informs: it stays when its process is gone. That of a partition names the `driver`, which made the
    directory, until the partition's own process has opened it; killed in its stead the driver would take the crawl with it.
    """
    pid = holder(directory) if is_held(directory) else None
    return None if pid == driver else pid
