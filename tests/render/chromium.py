"""The browser that renders, where it is installed, and its processes."""

import importlib.util
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from crawlkit.render.finding import find_browser

PROGRAM = find_browser(os.environ) or ""

needs_renderer = pytest.mark.skipif(
    not PROGRAM or importlib.util.find_spec("playwright") is None,
    reason="there is no Chromium (Debian: apt-get install chromium), or no playwright (pip install 'crawlkit[render]')",
)


def descendants(pid: int) -> Iterator[tuple[int, str]]:
    """Yield the processes below a process, each with its command line."""
    for child in _children(pid):
        yield child, _command_line(child)
        yield from descendants(child)


def browsers(pid: int) -> list[int]:
    """Return the processes below a process that are a browser, or a part of one."""
    return [child for child, line in descendants(pid) if "--remote-debugging-pipe" in line or "--type=" in line]


def kill(pids: list[int]) -> None:
    """Kill processes, of which some may have ended with the others."""
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue


def is_running(pid: int) -> bool:
    """Whether a process is there and not just waiting for its parent to notice its end."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def _children(pid: int) -> list[int]:
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = stat.read_text().rpartition(")")[2].split()[1]
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(parent) == pid:
            found.append(int(stat.parent.name))
    return found


def _command_line(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return ""
