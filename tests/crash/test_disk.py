"""A disk that is full, that fails, or that has little space left: the crawl ends with status 4, and is then finished."""

import errno
import random
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from crawlkit.errors import ExitStatus
from crawlkit.testing.forks import Ended, Faults, Nursery
from crawlkit.testing.powerloss import Recorder, compile_shim
from crawlkit.testing.server import SiteServer
from crawlkit.testing.site import Site, page
from tests.crash.crawls import OPTIONS, SMALL_BLOOM, Crawls, assert_ended_as_storage_failed, need_compiler, scratch, small_graph

PAGES = 300
LINKS_OUT = 90
SMALL_TABLES = {"crawlkit.state.store.WRITE_BUFFER_BYTES": 64 * 1024}


def bulky_site() -> Site:
    """A tree of pages whose records take about 12 KB each on disk: links that lead out of scope and cannot be compressed."""
    rng = random.Random(5)
    routes = {}
    for number in range(1, PAGES + 1):
        children = [f"/p{child}" for child in (2 * number, 2 * number + 1) if child <= PAGES]
        outside = [f"http://outside.test/{rng.randbytes(128).hex()}" for _ in range(LINKS_OUT)]
        routes[f"/p{number}"] = page(f"page {number}", children + outside)
    return Site({**routes, "/": page("front", ["/p1", "/missing"])})


@pytest.fixture(scope="module")
def crawls() -> Iterator[Crawls]:
    with scratch() as place, SiteServer(bulky_site()) as server, Nursery() as nursery:
        crawls = Crawls(nursery, server, place)
        crawls.crawl_undisturbed()
        yield crawls


# A small file system ---------------------------------------------------------------------------------------------------


def may_mount() -> bool:
    command = ["unshare", "-m", "sh", "-c", "mount -t tmpfs none /mnt"]
    return shutil.which("unshare") is not None and subprocess.run(command, check=False, capture_output=True).returncode == 0


@pytest.fixture(scope="module")
def may_mount_here() -> None:
    if not may_mount():
        pytest.skip("not allowed to mount a small file system here (it takes root, or CAP_SYS_ADMIN)")


def run_on_small_disk(crawls: Crawls, size: str, *options: str) -> tuple[Ended, Path, Path]:
    """Run the crawl on a tmpfs of its own; return how it ended, where it was, and a copy of what was left of it."""
    disk, copy = crawls.place / "small-disk", crawls.directory("copied")
    disk.mkdir(exist_ok=True)
    directory = disk / "a.crawl"
    script = 'mount -t tmpfs -o "size=$1" none "$2" || exit 111; shift; disk=$1 copy=$2; shift 2; "$@"; status=$?; '
    script += '[ -d "$disk/a.crawl" ] && cp -a "$disk/a.crawl" "$copy"; exit "$status"'
    command = [
        sys.executable,
        "-m",
        "crawlkit",
        "run",
        f"{crawls.server.url}/",
        f"{crawls.server.url}/p1",
        "-d",
        str(directory),
    ]
    ended = subprocess.run(
        ["unshare", "-m", "sh", "-c", script, "sh", size, str(disk), str(copy), *command, *OPTIONS, *options],
        env={"PATH": "/usr/bin:/bin:/usr/sbin:/sbin"}, capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    return Ended(ended.returncode, ended.stderr), directory, copy


def assert_ended_as_full(ended: Ended, directory: Path, copy: Path) -> None:
    """As `assert_ended_as_storage_failed`, of a directory that is gone and was copied."""
    assert_ended_as_storage_failed(Ended(ended.status, ended.output.replace(str(directory), str(copy))), copy)


@pytest.mark.usefixtures("may_mount_here")
@pytest.mark.parametrize("size", ["100k", "500k", "3m"])
def test_a_crawl_that_outgrows_its_disk_ends_with_status_4_and_goes_on_elsewhere(crawls: Crawls, size: str) -> None:
    ended, directory, copy = run_on_small_disk(crawls, size, "--min-free-disk", "0")
    assert "No space left on device" in ended.output
    assert_ended_as_full(ended, directory, copy)
    assert (copy / "CRAWL").exists() == (size != "100k")
    crawls.finish(copy)


@pytest.mark.usefixtures("may_mount_here")
def test_a_crawl_stops_in_order_while_there_is_still_some_space(crawls: Crawls) -> None:
    before = len(crawls.server.log)
    ended, directory, copy = run_on_small_disk(crawls, "3m", "--min-free-disk", "1MiB")
    assert_ended_as_full(ended, directory, copy)
    assert "less than the 1MiB of --min-free-disk" in ended.output
    assert str(directory) in ended.output
    assert len(crawls.server.log) - before > PAGES // 10
    crawls.finish(copy, "--set", "min_free_disk=0")
    asked = Counter(request.target for request in crawls.server.log[before:])
    assert max(asked.values()) == 1, "a stop in order loses nothing"


def test_a_crawl_is_not_begun_and_not_resumed_below_the_floor(crawls: Crawls) -> None:
    directory = crawls.directory("floor")
    before = len(crawls.server.log)
    ended = crawls.run(directory, "--min-free-disk", "100000GiB")
    assert_ended_as_storage_failed(ended, directory)
    assert "less than the 100000GiB of --min-free-disk" in ended.output
    assert not directory.exists()
    assert crawls.run(directory, "--max-pages", "3").status in (ExitStatus.DONE, ExitStatus.PAGES_FAILED)
    asked = len(crawls.server.log)
    ended = crawls.resume(directory, "--set", "min_free_disk=100000GiB", "--set", "max_pages=none")
    assert_ended_as_storage_failed(ended, directory)
    assert len(crawls.server.log) == asked > before
    crawls.finish(directory, "--set", "max_pages=none")
    assert crawls.resume(directory, "--set", "min_free_disk=100000GiB").status == ExitStatus.PAGES_FAILED


# A limit on the size of files ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kib", [1, 8, 700])
def test_a_file_that_may_not_grow_is_a_disk_that_is_full(crawls: Crawls, kib: int) -> None:
    directory = crawls.directory("limited")
    ended = crawls.run(directory, faults=Faults(file_bytes=kib * 1024, constants=SMALL_BLOOM))
    assert_ended_as_storage_failed(ended, directory)
    assert "File too large" in ended.output
    assert (directory / "CRAWL").exists() == (kib > 1)
    crawls.finish(directory)


# A disk that fails -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def failing(crawls: Crawls) -> Iterator[Crawls]:
    need_compiler()
    with Nursery(preload=compile_shim(crawls.place)) as nursery, SiteServer(small_graph().site(delay_s=0.001)) as server:
        failing = Crawls(nursery, server, crawls.place)
        failing.crawl_undisturbed()
        yield failing


def crawl_failing(crawls: Crawls, rule: str) -> tuple[Ended, Recorder]:
    recorder = Recorder.begin(crawls.place / "recorded")
    faults = Faults(disk=recorder.rule(rule), constants=SMALL_TABLES)
    return crawls.run(recorder.root / "a.crawl", faults=faults), recorder


def is_in_the_background(operation: list[str]) -> bool:
    """Whether it is of the thread that compacts LevelDB's tables, or on a file that has lost its name (closing it)."""
    path = operation[-1]
    return path.startswith(("a.crawl/db/MANIFEST", "a.crawl/db/CURRENT")) or path.endswith((".ldb", ".dbtmp", " (deleted)"))


@pytest.mark.parametrize("for_ever", ["", "+"], ids=["once", "for ever"])
@pytest.mark.parametrize("what", ["sync", "write", "create", "rename"])
def test_after_a_system_call_failed_nothing_more_is_written(failing: Crawls, what: str, for_ever: str, seed: int) -> None:
    rng = random.Random(f"{seed} {what} {for_ever}")
    # The first file that LevelDB renames is its old LOG, and it does not mind.
    for number in (2, 3, *rng.sample(range(4, 12), 3)):
        code = rng.choice([errno.EIO, errno.ENOSPC])
        ended, recorder = crawl_failing(failing, f"{code}{for_ever}:{what}:{number}")
        directory = recorder.root / "a.crawl"
        operations = recorder.operations()
        failed = next(index for index, operation in enumerate(operations) if operation[0] == "fail")
        assert_ended_as_storage_failed(ended, directory)
        if not is_in_the_background(operations[failed]):
            later = [operation for operation in operations[failed + 1 :] if operation[0] not in ("unlink", "fail")]
            assert [operation for operation in later if not is_in_the_background(operation)] == []
        failing.finish(directory)
