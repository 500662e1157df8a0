"""The peers of the fetch bench, and the environment of their own that they are installed into."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from benchmarks.figures import note
from benchmarks.processes import Usage, python_environment

PACKAGES = ("scrapy", "uvloop", "httptools", "selectolax")
HERE = Path(__file__).resolve().parent


@dataclass(frozen=True, slots=True)
class Peer:
    """A crawler: the command that crawls `url` with its working directory as its own, and how many pages that got."""

    name: str
    version: str
    command: Callable[[str, int], list[str]]
    pages: Callable[[Usage, Path], int]


def default_cache() -> Path:
    """Return where the peers' environment is kept between runs: below the user's cache."""
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "crawlkit-bench"


def peers_python(cache: Path, *, install: bool) -> Path | None:
    """Return the interpreter of the peers' environment, made first where `install` allows it; None if there is none."""
    environment = cache / "peers"
    python = environment / "bin" / "python"
    if _has_packages(python):
        return python
    if not install:
        return None
    note(f"installing {', '.join(PACKAGES)} into {environment}")
    environment.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run([sys.executable, "-m", "venv", "--clear", environment], check=True)
    subprocess.run([python, "-m", "pip", "--disable-pip-version-check", "install", "-q", *PACKAGES], check=True, stdout=2)
    return python


def _has_packages(python: Path) -> bool:
    check = f"import {', '.join(PACKAGES)}"
    return python.exists() and subprocess.run([python, "-c", check], capture_output=True, check=False).returncode == 0


def _version(argv: list[str]) -> str:
    text = subprocess.run(argv, capture_output=True, text=True, check=False, env={**os.environ, **python_environment()}).stdout
    return text.split("\n")[0].strip()


def _printed(usage: Usage, _: Path) -> int:
    return int(usage.output.split()[-1])


def floor(python: Path) -> Peer:
    """Return the loop of `floor.py`."""
    version = _version([str(python), "-c", "import sys; print('Python', sys.version.split()[0])"])
    program = str(HERE / "floor.py")
    return Peer("floor", version, lambda url, connections: [str(python), program, url, str(connections)], _printed)


def scrapy(python: Path) -> Peer:
    """Return Scrapy with JOBDIR: what it keeps on disk so that a clean stop can be resumed."""

    def command(url: str, connections: int) -> list[str]:
        settings = {
            "JOBDIR": "job",
            "CONCURRENT_REQUESTS": connections,
            "CONCURRENT_REQUESTS_PER_DOMAIN": connections,
            "DOWNLOAD_DELAY": 0,
            "ROBOTSTXT_OBEY": True,
            "TELNETCONSOLE_ENABLED": False,
            "LOG_LEVEL": "ERROR",
        }
        options = [text for key, value in settings.items() for text in ("-s", f"{key}={value}")]
        return [str(python), "-m", "scrapy", "runspider", str(HERE / "scrapy_spider.py"), "-a", f"seed={url}", *options]

    return Peer("scrapy-jobdir", _version([str(python), "-m", "scrapy", "version"]), command, _printed)


def wget2() -> Peer | None:
    """Return wget2, which writes the pages into files; None if it is not installed."""
    path = shutil.which("wget2")
    if path is None:
        return None

    def command(url: str, connections: int) -> list[str]:
        return [path, "-q", "--recursive", "--level=0", f"--max-threads={connections}", "--directory-prefix=site", url]

    def pages(_: Usage, work: Path) -> int:
        return sum(1 for _ in (work / "site").rglob("*.html"))

    return Peer("wget2", _version([path, "--version"]), command, pages)


def crawlkit(name: str = "crawlkit", *more: str) -> Peer:
    """Return crawlkit through its command line, with every default but the delay, the number of connections and `more`."""

    def command(url: str, connections: int) -> list[str]:
        count = str(connections)
        manners = ["--delay", "0s", "--workers", count, "--host-concurrency", count, *more]
        return [sys.executable, "-m", "crawlkit", "run", url, "-d", "crawl", "--quiet", "--exit-zero", *manners]

    def pages(_: Usage, work: Path) -> int:
        argv = [sys.executable, "-m", "crawlkit", "status", "--json", str(work / "crawl")]
        told = subprocess.run(argv, capture_output=True, check=True, env={**os.environ, **python_environment()}).stdout
        return int(json.loads(told)["pages"])

    return Peer(name, _version([sys.executable, "-m", "crawlkit", "--version"]), command, pages)
