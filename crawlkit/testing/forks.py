"""Commands of crawlkit in children that are forked, in milliseconds, from a process that has imported everything.

    with Nursery() as nursery:
        ended = nursery.run("run", "http://127.0.0.1:8080/", "-d", "a.crawl", faults=Faults(failpoint="claim:2=kill"))

The nursery is a process of its own with one thread, so that a fork is a whole process. It carries out one command at a time,
kills it when asked to, and hands back how it ended and what it said. Faults are set in the child alone.
"""

import contextlib
import ctypes
import gc
import os
import resource
import select
import signal
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any, NoReturn, Self

import msgspec

from crawlkit.testing import failpoints

PATIENCE_S = 60.0


class Faults(msgspec.Struct, frozen=True, kw_only=True):
    """What goes wrong in one command.

    `failpoint` is an order of `testing.failpoints`; `disk` are the arguments of the shim's `fault_arm` (`testing.powerloss`,
    whose library the nursery preloads); `file_bytes` is the most that a file may grow to. `constants` replace values of modules
    (`crawlkit.state.bloom.FIRST_CAPACITY`), so that a small crawl meets what otherwise only a large one does.
    """

    failpoint: str = ""
    disk: tuple[str, ...] = ()
    file_bytes: int = 0
    constants: Mapping[str, int] = {}


class Ended(msgspec.Struct, frozen=True):
    """How a command ended: its status, minus the signal's number if one killed it; standard output and error, as they came."""

    status: int
    output: str = ""


class _Order(msgspec.Struct, frozen=True):
    arguments: tuple[str, ...]
    faults: Faults
    kill_after_s: float | None


class Nursery:
    """Runs commands one at a time while the context is open; `preload` is a shared library to put before the system's."""

    def __init__(self, preload: Path | None = None) -> None:
        self._preload = preload

    def __enter__(self) -> Self:
        # asyncio's debug mode would write what took long to standard error, which the contract's lines are checked on.
        environment = {key: value for key, value in os.environ.items() if key != "PYTHONASYNCIODEBUG"}
        if self._preload is not None:
            environment["LD_PRELOAD"] = str(self._preload)
        self._output: IO[bytes] = tempfile.TemporaryFile()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "crawlkit.testing.forks", str(self._output.fileno())],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, pass_fds=[self._output.fileno()], env=environment,
        )  # fmt: skip
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()
        self._output.close()

    def run(self, *arguments: str, faults: Faults | None = None, kill_after_s: float | None = None) -> Ended:
        """Carry out one command, with SIGKILL after `kill_after_s` unless it ended before.

        Raises TimeoutError with what it said, if it goes on for `PATIENCE_S`.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._output.truncate(0)
        self._output.seek(0)
        order = _Order(arguments, faults or Faults(), kill_after_s)
        self._process.stdin.write(msgspec.json.encode(order) + b"\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            raise RuntimeError(f"the nursery ended with {self._process.wait()}; standard error tells why")
        status: int | None = msgspec.json.decode(answer, type=int | None)
        self._output.seek(0)
        output = self._output.read().decode(errors="replace")
        if status is None:
            raise TimeoutError(f"crawlkit {' '.join(arguments)} did not end within {PATIENCE_S:g} s; it said: {output}")
        return Ended(status, output)


def _serve(output: int) -> None:
    """Carry out orders from standard input until it closes."""
    _warm_up()
    gc.freeze()  # or the first collection in each child would copy every page of the modules
    for line in sys.stdin.buffer:
        order = msgspec.json.decode(line, type=_Order)
        pid = os.fork()
        if pid == 0:
            _become(order, output)
        sys.stdout.buffer.write(msgspec.json.encode(_wait_for(pid, order.kill_after_s)) + b"\n")
        sys.stdout.buffer.flush()


def _warm_up() -> None:
    with contextlib.suppress(ImportError):
        import uvloop  # noqa: F401, PLC0415  (imported late by the product)
    with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere), contextlib.suppress(SystemExit):  # noqa: PTH123
        failpoints.command_line(["--version"])


def _become(order: _Order, output: int) -> NoReturn:
    """Be the command. The interpreter is not taken apart at its end, which takes longer than a small crawl."""
    status = 1
    try:
        _prepare(order.faults, output)
        failpoints.command_line(list(order.arguments))
    except SystemExit as exit_:
        status = exit_.code if isinstance(exit_.code, int) else int(exit_.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def _prepare(faults: Faults, output: int) -> None:
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(output, 1)
    os.dup2(output, 2)
    for name, value in faults.constants.items():
        module, _, constant = name.rpartition(".")
        getattr(sys.modules[module], constant)
        setattr(sys.modules[module], constant, value)
    if faults.failpoint:
        failpoints.install(failpoints.Order.parse(faults.failpoint))
    if faults.file_bytes:
        resource.setrlimit(resource.RLIMIT_FSIZE, (faults.file_bytes, faults.file_bytes))
    if faults.disk:
        arm: Any = ctypes.CDLL(None).fault_arm
        arm(*(argument.encode() for argument in faults.disk))


def _wait_for(pid: int, kill_after_s: float | None) -> int | None:
    """Return how the child ended, None if it had to be killed for want of patience."""
    with open(os.pidfd_open(pid), "rb") as ended:  # noqa: PTH123  (a descriptor)
        poll = select.poll()
        poll.register(ended, select.POLLIN)
        in_time = bool(poll.poll((PATIENCE_S if kill_after_s is None else kill_after_s) * 1000))
    if not in_time:
        os.kill(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(status) if in_time or kill_after_s is not None else None


if __name__ == "__main__":
    _serve(int(sys.argv[1]))
