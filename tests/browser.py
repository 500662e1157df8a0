"""A real browser without a screen: Debian's Chromium, where it is installed."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

CHROMIUM = shutil.which("chromium")

needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed (Debian: apt-get install chromium)")

_QUIET = (
    *("--headless", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync", "--disable-dev-shm-usage", "--virtual-time-budget=10000"),
)


def rendered(page: Path, profile: Path, fragment: str = "") -> str:
    """Return a page's markup after its scripts have run."""
    assert CHROMIUM is not None
    as_root = ["--no-sandbox"] if os.geteuid() == 0 else []
    argv = [CHROMIUM, *_QUIET, *as_root, f"--user-data-dir={profile}", "--dump-dom", page.as_uri() + fragment]
    done = subprocess.run(argv, capture_output=True, text=True, check=True, timeout=120)
    return done.stdout
