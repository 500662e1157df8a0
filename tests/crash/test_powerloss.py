"""Whatever was not synced when the power was cut: the crawl opens at its last checkpoint or the next, and ends the same."""

import random
import signal
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from crawlkit.errors import ExitStatus
from crawlkit.state.checkpoint import read_summary
from crawlkit.state.opening import BATCH, open_database
from crawlkit.testing.aftermath import copy_crawl
from crawlkit.testing.forks import Ended, Faults, Nursery
from crawlkit.testing.powerloss import FileSystem, Recorder, compile_shim, lose_power
from crawlkit.testing.server import SiteServer
from tests.crash.crawls import ARCHIVE, Crawls, need_compiler, scratch, small_graph

PAGES = 250
CUTS = 8
IMAGES_A_CUT = 2
# The smallest that LevelDB takes: logs become tables a few times in a crawl of this size.
SMALL_TABLES = {"crawlkit.state.store.WRITE_BUFFER_BYTES": 64 * 1024}


@pytest.fixture(scope="module")
def crawls() -> Iterator[Crawls]:
    need_compiler()
    graph = small_graph(PAGES)
    with scratch() as place, SiteServer(graph.site()) as server, Nursery(preload=compile_shim(place)) as nursery:
        crawls = Crawls(nursery, server, place, options=ARCHIVE)
        crawls.crawl_undisturbed()
        yield crawls


def crawl(crawls: Crawls, rule: str) -> tuple[Ended, Recorder]:
    recorder = Recorder.begin(crawls.place / "recorded")
    faults = Faults(disk=recorder.rule(rule), constants=SMALL_TABLES)
    return crawls.run(recorder.root / "a.crawl", faults=faults), recorder


@pytest.fixture(scope="module")
def operations(crawls: Crawls) -> list[list[str]]:
    """What an undisturbed crawl does to its files."""
    ended, recorder = crawl(crawls, "kill:any:1000000")
    assert ended == Ended(ExitStatus.PAGES_FAILED)
    return recorder.operations()


def test_the_crawl_meets_what_a_large_one_does(operations: list[list[str]]) -> None:
    words = [operation[0] for operation in operations]
    assert len(words) > 200
    created = [operation[2] for operation in operations if operation[0] == "create"]
    assert sum(path.endswith(".log") for path in created) > 2
    assert sum(path.endswith(".ldb") for path in created) > 1
    assert {"sync", "dirsync", "rename", "unlink", "write"} <= set(words)


@pytest.mark.parametrize("file_system", [FileSystem.POSIX, pytest.param(FileSystem.JOURNALED, marks=pytest.mark.long)])
def test_a_crawl_whose_making_lost_its_power_is_run_or_resumed(
    crawls: Crawls, operations: list[list[str]], file_system: FileSystem, seed: int
) -> None:
    rng = random.Random(f"{seed} {file_system}")
    sealed = next(index for index, operation in enumerate(operations) if operation[-1] == "a.crawl/CRAWL")
    begun = 0
    # Some operations are counted and not recorded, because they find nothing to do: CRAWL is named at a later number.
    for number in range(1, sealed + 9):
        ended, recorder = crawl(crawls, f"kill:any:{number}")
        assert ended.status == -signal.SIGKILL
        lose_power(recorder, crawls.place / "image", file_system, rng)
        directory = crawls.place / "image" / "a.crawl"
        if (directory / "CRAWL").exists():
            begun += 1
            crawls.finish(directory)
        else:
            ended = crawls.run(directory, "--max-pages", "1")
            assert ended == Ended(ExitStatus.DONE, f"resume with: crawlkit resume {directory}\n")
    assert begun > 1


def batch_of(directory: Path) -> int:
    copy = directory.with_suffix(".copy")
    copy_crawl(directory, copy)
    with ExitStack() as resources:
        return int.from_bytes(open_database(copy, resources).store.get(BATCH) or b"")


@pytest.mark.parametrize("cut", range(CUTS))
@pytest.mark.parametrize("file_system", FileSystem)
def test_a_crawl_goes_on_after_a_power_cut(
    crawls: Crawls, operations: list[list[str]], file_system: FileSystem, cut: int, seed: int
) -> None:
    rng = random.Random(f"{seed} {file_system} {cut}")
    before = len(crawls.server.log)
    ended, recorder = crawl(crawls, f"kill:any:{rng.randint(1, len(operations))}")
    assert ended.status in (-signal.SIGKILL, ExitStatus.PAGES_FAILED)  # or the power was cut just after the end
    asked = len(crawls.server.log) > before
    for _ in range(IMAGES_A_CUT):
        lose_power(recorder, crawls.place / "image", file_system, rng)
        directory = crawls.place / "image" / "a.crawl"
        if (directory / "CRAWL").exists():
            assert batch_of(directory) >= read_summary(recorder.root / "a.crawl").batch
        else:
            assert not asked
        crawls.finish(directory)
