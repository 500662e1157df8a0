"""Crawls of one small site that are disturbed, finished and compared with the undisturbed one."""

import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from crawlkit.errors import ExitStatus
from crawlkit.state.reading import open_crawl_for_reading
from crawlkit.testing.aftermath import copy_crawl
from crawlkit.testing.forks import Ended, Faults, Nursery
from crawlkit.testing.graph import Features, Graph, make_graph
from crawlkit.testing.server import SiteServer
from tests.archive.readers import agreed

FEATURES = Features(redirects=4, chain=2, canonicals=3, missing=2, outside=2, nofollow=2)
OPTIONS = ("--delay", "0", "--host-concurrency", "4", "--checkpoint-interval", "5ms", "--retries", "0", "--quiet")
ARCHIVE = ("--warc", "--warc-size", "10KiB")
# The filter grows at the 9th and at the 41st URL, not at the 262,145th.
SMALL_BLOOM = {"crawlkit.state.bloom.FIRST_CAPACITY": 8}


@contextmanager
def scratch() -> Iterator[Path]:
    """Give a directory in memory where there is one: hundreds of crawls sync thousands of times, and none needs a real disk."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else None) as place:
        yield Path(place)


def need_compiler() -> None:
    """Skip the test where there is no gcc, except in CI, which installs it."""
    if shutil.which("gcc") is None:
        assert not os.environ.get("CI"), "CI has to have gcc"
        pytest.skip("no gcc here to compile the shim that records system calls and makes them fail")


def small_graph(pages: int = 40) -> Graph:
    return make_graph(pages, seed=3, links_per_page=6, features=FEATURES)


@dataclass(slots=True)
class Crawls:
    """Commands on crawls of the site that `server` serves, into directories of `place`."""

    nursery: Nursery
    server: SiteServer
    place: Path
    undisturbed: bytes = b""
    options: tuple[str, ...] = ()

    def directory(self, name: str) -> Path:
        directory = self.place / f"{name}.crawl"
        shutil.rmtree(directory, ignore_errors=True)
        return directory

    def run(self, directory: Path, *options: str, faults: Faults | None = None, kill_after_s: float | None = None) -> Ended:
        seeds = [f"{self.server.url}/", f"{self.server.url}/p1"]
        return self.nursery.run(
            "run", *seeds, "-d", str(directory), *OPTIONS, *self.options, *options, faults=faults, kill_after_s=kill_after_s
        )

    def resume(self, directory: Path, *options: str, faults: Faults | None = None, kill_after_s: float | None = None) -> Ended:
        return self.nursery.run("resume", str(directory), "-q", *options, faults=faults, kill_after_s=kill_after_s)

    def report(self, directory: Path) -> bytes:
        output = self.place / "report"
        ended = self.nursery.run("report", str(directory), "--format", "jsonl", "-o", str(output))
        assert ended == Ended(ExitStatus.DONE), ended
        return output.read_bytes()

    def finish(self, directory: Path, *options: str, faults: Faults | None = None) -> None:
        """Resume, or run again where nothing was begun, and see that nothing tells this crawl from an undisturbed one."""
        begun = (directory / "CRAWL").exists()
        settled = settled_targets(directory) if begun else frozenset[str]()
        before = len(self.server.log)
        ended = self.resume(directory, *options, faults=faults) if begun else self.run(directory, *options, faults=faults)
        assert ended == Ended(ExitStatus.PAGES_FAILED), ended
        again = settled & {request.target for request in self.server.log[before:]}
        assert not again, f"fetched again though their records were durable: {sorted(again)}"
        assert self.report(directory) == self.undisturbed
        assert not list(directory.rglob("*.tmp"))
        if self.options == ARCHIVE:
            self.see_archive(directory)

    def see_archive(self, directory: Path) -> None:
        """See that every record has its answer in the archive and that nothing else is there, by three readers."""
        verified = self.nursery.run("verify", "--deep", str(directory))
        assert verified.status == ExitStatus.DONE, verified
        seen = [each for path in (directory / "warc").iterdir() for each in agreed(path)]
        answers = Counter(each.uri for each in seen if each.kind in ("response", "revisit"))
        del answers[f"{self.server.url}/robots.txt"]
        assert set(answers.values()) == {1}
        assert len(answers) == self.undisturbed.count(b"\n")

    def crawl_undisturbed(self, *options: str, faults: Faults | None = None) -> None:
        """Crawl the site once, and keep its report to compare with."""
        directory = self.directory("undisturbed")
        before = len(self.server.log)
        assert self.run(directory, *options, faults=faults) == Ended(ExitStatus.PAGES_FAILED)
        self.undisturbed = self.report(directory)
        asked = Counter(request.target for request in self.server.log[before:])
        assert max(asked.values()) == 1
        assert self.undisturbed.count(b"\n") == len(asked) - 1  # all but robots.txt


def settled_targets(directory: Path) -> frozenset[str]:
    """Return the targets (paths) of all URLs that have a record, as a copy of the directory tells."""
    copy = directory.with_suffix(".copy")
    copy_crawl(directory, copy)
    with open_crawl_for_reading(copy) as crawl:
        return frozenset(f"/{record.url.split('/', 3)[3]}" for record in crawl.pages.walk())


def assert_ended_as_storage_failed(ended: Ended, directory: Path) -> None:
    """See status 4 with one line that says what and, where there is a crawl, one that says how to go on; no more."""
    first, *others = ended.output.splitlines()
    assert ended.status == ExitStatus.STORAGE, ended
    assert first.startswith("crawlkit: "), ended
    begun = (directory / "CRAWL").exists()
    assert others == ([f"resume with: crawlkit resume {directory}"] if begun else []), ended
