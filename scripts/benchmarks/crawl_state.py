"""Crawls that the benches start from: made once a run of the suite, copied for each measurement."""

import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.figures import note
from benchmarks.processes import ROOT, BenchError, python_environment, run_measured


@dataclass(frozen=True, slots=True)
class Shape:
    """What a prepared crawl holds, and how its run ended. `port` is where its hosts resolve to (0: they do not)."""

    urls: int
    hosts: int
    paced: bool = False
    killed: bool = False
    port: int = 0


class Prepared:
    """Prepared crawls below one folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._made: dict[Shape, Path] = {}

    @contextmanager
    def copy(self, shape: Shape) -> Iterator[Path]:
        """Give a copy of the crawl of `shape` that may be changed; it is removed afterwards."""
        made = self._made.get(shape)
        if made is None:
            made = self._made[shape] = self._folder / f"prepared-{len(self._made)}.crawl"
            _make(shape, made)
        with tempfile.TemporaryDirectory(dir=self._folder) as place:
            target = Path(place) / "copy.crawl"
            shutil.copytree(made, target)
            yield target


@contextmanager
def preparing() -> Iterator[Prepared]:
    """Give a folder for prepared crawls, removed afterwards."""
    with tempfile.TemporaryDirectory(prefix="bench-state-") as folder:
        yield Prepared(Path(folder))


def _make(shape: Shape, directory: Path) -> None:
    note(f"preparing a crawl of {shape.urls:,} URLs on {shape.hosts:,} hosts")
    options = {
        "urls": shape.urls,
        "hosts": shape.hosts,
        "end": "kill" if shape.killed else "clean",
        "paced": "yes" if shape.paced else "no",
        "port": shape.port,
        "directory": directory,
    }
    argv = [sys.executable, "-m", "benchmarks.prepare_part"]
    argv += [text for key, value in options.items() for text in (f"--{key}", str(value))]
    usage = run_measured(argv, cwd=ROOT, timeout_s=7200, environment=python_environment())
    if usage.status != (-signal.SIGKILL if shape.killed else 0):
        raise BenchError(f"preparing a crawl ended with status {usage.status}")
