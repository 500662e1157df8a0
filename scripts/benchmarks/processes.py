"""What is measured runs in a process of its own: its CPU time, its peak memory, what it printed.

The process that starts others stays small and imports nothing of crawlkit: a child's peak memory is never below what its
parent had in memory when it was started.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

SCRIPTS = Path(__file__).resolve().parent.parent
ROOT = SCRIPTS.parent


class BenchError(Exception):
    """A benchmark could not be carried out."""


@dataclass(frozen=True, slots=True)
class Usage:
    """What a process took: user and system CPU of it and of the children it waited for, wall time, peak resident memory."""

    cpu_s: float
    wall_s: float
    peak_mib: float
    status: int
    output: str


def run_measured(argv: Sequence[str], *, cwd: Path, timeout_s: float, environment: Mapping[str, str] | None = None) -> Usage:
    """Run `argv` to its end; BenchError if it takes longer than `timeout_s`. Its standard error goes to ours if it fails."""
    with tempfile.TemporaryFile("w+") as output, tempfile.TemporaryFile("w+") as errors:
        began_s = time.monotonic()
        process = subprocess.Popen(
            argv, cwd=cwd, stdin=subprocess.DEVNULL, stdout=output, stderr=errors, env={**os.environ, **(environment or {})}
        )
        status, usage = _wait(process, began_s + timeout_s)
        wall_s = time.monotonic() - began_s
        output.seek(0)
        if status not in (0, 1):
            errors.seek(0)
            sys.stderr.write(errors.read()[-4000:])
        cpu_s = usage[0] + usage[1]
        return Usage(cpu_s, wall_s, usage[2] / 1024, status, output.read())


def _wait(process: "subprocess.Popen[bytes]", until_s: float) -> tuple[int, tuple[float, float, int]]:
    while time.monotonic() < until_s:
        pid, status, usage = os.wait4(process.pid, os.WNOHANG)
        if pid:
            process.returncode = os.waitstatus_to_exitcode(status)
            return process.returncode, (usage.ru_utime, usage.ru_stime, usage.ru_maxrss)
        time.sleep(0.002)
    process.kill()
    process.wait()
    raise BenchError(f"{process.args!r} did not end in time")


def python_environment() -> dict[str, str]:
    """Return the environment in which a child finds crawlkit and these modules."""
    paths = [str(ROOT), str(SCRIPTS), *filter(None, [os.environ.get("PYTHONPATH")])]
    # Bytecode is kept, as an installed program's is: else each run would compile ours anew, and not the peers'.
    plain = dict.fromkeys(("PYTHONASYNCIODEBUG", "PYTHONDEVMODE", "PYTHONDONTWRITEBYTECODE"), "")
    return {"PYTHONPATH": os.pathsep.join(paths), **plain}


def run_part(module: str, arguments: Mapping[str, object], *, timeout_s: float = 3600) -> dict[str, float]:
    """Run `benchmarks.MODULE --KEY VALUE...` and return the JSON object that it prints last."""
    options = [text for key, value in arguments.items() for text in (f"--{key.replace('_', '-')}", str(value))]
    argv = [sys.executable, "-m", f"benchmarks.{module}", *options]
    usage = run_measured(argv, cwd=ROOT, timeout_s=timeout_s, environment=python_environment())
    if usage.status != 0:
        raise BenchError(f"{' '.join(argv)} ended with {usage.status}")
    figures: dict[str, float] = json.loads(usage.output.splitlines()[-1])
    return figures


def repeat_part(module: str, arguments: Mapping[str, object], repeat: int) -> list[dict[str, float]]:
    """Run a part `repeat` times."""
    return [run_part(module, arguments) for _ in range(repeat)]
