"""A real browser without a screen: Debian's Chromium, where it is installed."""

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from typing import Any

import pytest

CHROMIUM = shutil.which("chromium")
PATIENCE_S = 30.0

needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed (Debian: apt-get install chromium)")

_QUIET = (
    *("--headless", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync", "--disable-dev-shm-usage"),
)

# The browser reads commands at descriptor 3 and writes answers at 4.
_AT_3_AND_4 = """
import fcntl, os, sys
commands, answers = (fcntl.fcntl(int(number), fcntl.F_DUPFD, 10) for number in sys.argv[1:3])
os.dup2(commands, 3)
os.dup2(answers, 4)
os.execv(sys.argv[3], sys.argv[3:])
"""


def _argv(profile: Path, *more: str) -> list[str]:
    assert CHROMIUM is not None
    as_root = ["--no-sandbox"] if os.geteuid() == 0 else []
    return [CHROMIUM, *_QUIET, *as_root, f"--user-data-dir={profile}", *more]


def rendered(page: Path, profile: Path, fragment: str = "") -> str:
    """Return a page's markup after its scripts have run."""
    argv = _argv(profile, "--virtual-time-budget=10000", "--dump-dom", page.as_uri() + fragment)
    done = subprocess.run(argv, capture_output=True, text=True, check=True, timeout=120)
    return done.stdout


class Tab:
    """An open page, steered by the DevTools protocol over two pipes: JSON texts, each ended by a null."""

    def __init__(self, commands: int, answers: int) -> None:
        self._commands, self._answers = commands, answers
        self._read = b""
        self._number = 0
        self._session = ""
        self.said: list[str] = []
        """What the console showed: errors, and what the page's policy refused."""

    def open(self, url: str) -> None:
        """Open a page in a new tab."""
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self.ask("Runtime.enable")
        self.ask("Log.enable")
        self.ask("Page.enable")
        self.ask("Page.navigate", url=url)
        self.wait_for("location.href !== 'about:blank' && document.readyState === 'complete'")

    def ask(self, method: str, **params: Any) -> Any:
        """Send a command and return its result."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._commands, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                return answer["result"]
            if answer.get("method") in ("Runtime.exceptionThrown", "Log.entryAdded", "Runtime.consoleAPICalled"):
                self.said.append(json.dumps(answer["params"]))

    def _next(self) -> Any:
        while b"\0" not in self._read:
            some = os.read(self._answers, 65536)
            assert some, "the browser has ended"
            self._read += some
        message, _, self._read = self._read.partition(b"\0")
        return json.loads(message)

    def value(self, expression: str) -> Any:
        """Return what an expression comes to in the page."""
        found = self.ask("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def wait_for(self, expression: str) -> Any:
        """Wait until an expression is true in the page, and return what it comes to."""
        never = Event()
        until_s = time.monotonic() + PATIENCE_S
        while not (found := self.value(expression)):
            assert time.monotonic() < until_s, self.value("document.body.innerText")
            never.wait(0.02)
        return found


@contextmanager
def browsing(url: str, profile: Path) -> Iterator[Tab]:
    """Show a page in a browser that ends with the block."""
    to_us, from_browser = os.pipe()
    to_browser, from_us = os.pipe()
    argv = [sys.executable, "-c", _AT_3_AND_4, str(to_browser), str(from_browser), *_argv(profile, "--remote-debugging-pipe")]
    with subprocess.Popen(
        argv,
        pass_fds=(to_browser, from_browser),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        os.close(to_browser)
        os.close(from_browser)
        try:
            tab = Tab(from_us, to_us)
            tab.open(url)
            yield tab
            tab.ask("Browser.getVersion")
        finally:
            process.kill()
            os.close(from_us)
            os.close(to_us)
