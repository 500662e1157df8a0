"""The crawl directory: what is no crawl, another's, in use, newer or damaged is refused, with the way out, and left alone."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from crawlkit.config import VERSION, Config
from crawlkit.errors import ExitStatus, StateDamaged, StateError, StateExists, StateVersion
from crawlkit.model import Kind, Record
from crawlkit.state.checkpoint import read_summary
from crawlkit.state.crawl import CrawlState
from crawlkit.state.directory import is_begun, is_held, prepare, read_manifest, seal
from crawlkit.state.layout import BLOOM, CHECKPOINT, CONFIG, CRAWL, DATABASE, LOCK, OURS
from tests.state.making import NOW, begin_crawl, crawled, meet, reopen


def content(directory: Path) -> dict[str, bytes]:
    """Return all that a directory holds, the lock and LevelDB's own diary apart."""
    files = (path for path in sorted(directory.rglob("*")) if path.is_file() and not path.name.startswith(("LOCK", "LOG")))
    return {str(path.relative_to(directory)): path.read_bytes() for path in files}


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def half_made(directory: Path) -> None:
    """Leave what a kill just before the seal leaves."""
    with CrawlState.create(directory, Config()) as state:
        state.begin_run(NOW)
        meet(state, "http://a.test/", 0)
        state.checkpoint()


# Making ------------------------------------------------------------------------------------------------------------------


def test_a_new_directory_is_made_with_its_parents_and_locked(tmp_path: Path) -> None:
    directory = tmp_path / "deep" / "down" / "x.crawl"
    with prepare(directory):
        assert is_held(directory)
        assert not is_begun(directory)
    assert names(directory) == [LOCK]


def test_an_empty_directory_is_taken(tmp_path: Path) -> None:
    with prepare(tmp_path):
        assert is_held(tmp_path)


def test_what_an_interrupted_making_left_is_cleared(directory: Path) -> None:
    half_made(directory)
    for name in OURS - {CRAWL, CHECKPOINT, DATABASE, "db.torn"}:
        (directory / f"{name}.tmp").write_bytes(b"half")
    (directory / f"{CRAWL}.tmp").write_bytes(b"half")
    with prepare(directory):
        assert names(directory) == [LOCK]
    half_made(directory)
    with begin_crawl(directory) as state:
        assert state.counters.seen == 0


@pytest.mark.parametrize(
    "leave",
    [
        lambda database: database.mkdir(),
        lambda database: (database.mkdir(), (database / "LOG").write_text("a diary"), (database / "LOCK").touch()),
        lambda database: (database.mkdir(), (database / "MANIFEST-000001").write_bytes(b"half")),
        lambda database: (database.mkdir(), (database / "000003.log").touch()),
    ],
    ids=["empty", "locked once", "half a manifest", "an empty log"],
)
def test_a_database_that_was_cut_off_in_its_making_is_cleared(directory: Path, leave: Callable[[Path], object]) -> None:
    directory.mkdir()
    leave(directory / DATABASE)
    with prepare(directory):
        assert names(directory) == [LOCK]


def test_a_crawl_is_not_made_where_one_is(directory: Path) -> None:
    begin_crawl(directory).close()
    before = content(directory)
    with pytest.raises(StateExists, match=f"{directory} already holds a crawl; go on with it: crawlkit resume {directory}"):
        prepare(directory)
    assert content(directory) == before


@pytest.mark.parametrize("name", ["notes.txt", ".git", "db2", "CRAWL.bak", "seen.bloom.tmp.old"])
def test_a_directory_with_something_else_in_it_is_left_alone(directory: Path, name: str) -> None:
    half_made(directory)
    (directory / name).write_text("mine")
    before = content(directory)
    with pytest.raises(StateError, match=r"not empty and not a crawl \(it holds .*\); choose another with --dir") as caught:
        prepare(directory)
    assert name in str(caught.value)
    assert content(directory) == before


def test_no_lock_is_left_in_a_directory_that_is_not_ours(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(StateError):
        prepare(tmp_path)
    for call in (read_manifest, CrawlState.open):
        with pytest.raises(StateError):
            call(tmp_path)
    assert names(tmp_path) == ["notes.txt"]


def test_a_file_in_its_place_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.crawl"
    path.write_text("mine")
    with pytest.raises(StateError, match=f"{path} exists and is not a directory; choose another with --dir"):
        prepare(path)
    with pytest.raises(StateError, match=f"{path} is no crawl directory"):
        read_manifest(path)
    with pytest.raises(StateError, match="cannot make the crawl directory"):
        prepare(path / "below")
    assert path.read_text() == "mine"


# A crawl that lost its CRAWL ---------------------------------------------------------------------------------------------


@contextmanager
def refused_as_damaged(directory: Path) -> Iterator[None]:
    """Both `run` and `resume` refuse `directory`, name what is missing and how to get it back, and change nothing."""
    before = content(directory)
    for call in (prepare, read_manifest, CrawlState.open):
        with pytest.raises(StateDamaged, match=r"its CRAWL file is missing: restore it from a copy") as caught:
            call(directory)
        assert f"crawlkit verify --repair {directory}" in str(caught.value)
        assert content(directory) == before
        assert not is_held(directory)
    yield


@pytest.mark.parametrize(("requests", "records"), [(1, 0), (0, 1), (5, 3)])
def test_a_crawl_that_made_requests_and_lost_its_manifest_is_never_cleared(
    directory: Path, requests: int, records: int
) -> None:
    crawled(directory, requests, records)
    manifest = (directory / CRAWL).read_bytes()
    (directory / CRAWL).unlink()
    with refused_as_damaged(directory):
        (directory / CRAWL).write_bytes(manifest)
    with reopen(directory) as state:
        assert state.counters.records == records


def test_records_are_kept_even_if_the_checkpoint_is_lost_too(directory: Path) -> None:
    crawled(directory, 2, 2)
    (directory / CRAWL).unlink()
    (directory / CHECKPOINT).unlink()
    before = content(directory)
    with pytest.raises(StateDamaged, match="its CRAWL file is missing"):
        prepare(directory)
    assert content(directory).keys() >= before.keys() - {f"{DATABASE}/000003.log", f"{DATABASE}/MANIFEST-000002"}
    with pytest.raises(StateDamaged, match="its CRAWL file is missing"):
        prepare(directory)


def test_records_are_kept_even_if_the_checkpoint_is_one_batch_behind(directory: Path) -> None:
    half_made(directory)
    behind = (directory / CHECKPOINT).read_bytes()
    seal(directory, read_summary(directory).crawl_id)
    with reopen(directory) as state:
        state.pages.put(Record(url="http://a.test/", kind=Kind.PAGE, depth=0))
        state.checkpoint()
    (directory / CHECKPOINT).write_bytes(behind)
    (directory / CRAWL).unlink()
    with pytest.raises(StateDamaged, match="its CRAWL file is missing"):
        prepare(directory)


def test_tables_without_the_file_that_names_them_are_kept(directory: Path) -> None:
    crawled(directory, 1, 1)
    for name in (CRAWL, CHECKPOINT, f"{DATABASE}/CURRENT"):
        (directory / name).unlink()
    before = content(directory)
    with pytest.raises(StateDamaged, match="has data, but its CURRENT is missing"):
        prepare(directory)
    assert content(directory) == before


def test_a_damaged_checkpoint_is_not_read_as_no_requests(directory: Path) -> None:
    crawled(directory, 1, 0)
    (directory / CRAWL).unlink()
    (directory / CHECKPOINT).write_bytes(b"{}\n")
    before = content(directory)
    for call in (prepare, read_manifest):
        with pytest.raises(StateDamaged, match="does not match its checksum"):
            call(directory)
    assert content(directory) == before


def test_a_crawl_without_requests_that_lost_its_manifest_is_begun_again(directory: Path) -> None:
    begin_crawl(directory).close()
    (directory / CRAWL).unlink()
    assert not is_begun(directory)
    with pytest.raises(StateError, match=f"start it: crawlkit run SEED --dir {directory}") as caught:
        read_manifest(directory)
    assert type(caught.value) is StateError
    with prepare(directory):
        assert names(directory) == [LOCK]


# Opening -----------------------------------------------------------------------------------------------------------------


def test_a_missing_directory_is_refused_naming_run(tmp_path: Path) -> None:
    for call in (read_manifest, CrawlState.open):
        with pytest.raises(StateError, match=r"there is no crawl directory .*; start one: crawlkit run SEED --dir") as caught:
            call(tmp_path / "none")
        assert caught.value.exit_status is ExitStatus.STATE
    assert not (tmp_path / "none").exists()


def test_a_half_made_crawl_is_refused_naming_run(directory: Path) -> None:
    half_made(directory)
    before = content(directory)
    for call in (read_manifest, CrawlState.open):
        with pytest.raises(StateError, match=rf"no CRAWL file\); start it: crawlkit run SEED --dir {directory}"):
            call(directory)
    assert content(directory) == before


def test_a_newer_format_is_refused_naming_the_version_that_made_it(directory: Path) -> None:
    begin_crawl(directory).close()
    (directory / CRAWL).write_text('{"format":99,"crawl_id":"x","made_by":"crawlkit 9.9","more":1}')
    for call in (read_manifest, CrawlState.open):
        with pytest.raises(
            StateVersion, match=r"has format 99, made by crawlkit 9\.9; .*use the version that made it"
        ) as caught:
            call(directory)
        assert f"crawlkit {VERSION}, which reads format 1" in str(caught.value)
    with pytest.raises(StateExists):
        prepare(directory)


@pytest.mark.parametrize(
    "data", [b"", b"{}", b"[1]", b"\0" * 60, b'{"format":1}', b'{"format":"1","crawl_id":"x"}', b"\xff\xfe"]
)
def test_a_manifest_that_is_none_is_damage(directory: Path, data: bytes) -> None:
    begin_crawl(directory).close()
    (directory / CRAWL).write_bytes(data)
    for call in (read_manifest, CrawlState.open):
        with pytest.raises(StateDamaged, match=f"{directory / CRAWL} is damaged: .*crawlkit verify --repair {directory}"):
            call(directory)
    with pytest.raises(StateExists):
        prepare(directory)


def test_a_manifest_that_cannot_be_read_is_refused(directory: Path) -> None:
    begin_crawl(directory).close()
    (directory / CRAWL).unlink()
    (directory / CRAWL).mkdir()
    with pytest.raises(StateError, match=f"cannot read {directory / CRAWL}: Is a directory"):
        read_manifest(directory)


def test_the_manifest_on_disk_is_format_crawl_and_maker(directory: Path) -> None:
    directory.mkdir()
    seal(directory, "0123")
    assert (directory / CRAWL).read_text() == f'{{"format":1,"crawl_id":"0123","made_by":"crawlkit {VERSION}"}}\n'
    assert read_manifest(directory).crawl_id == "0123"
    assert is_begun(directory)


@pytest.mark.parametrize("name", [BLOOM, CONFIG])
def test_files_that_are_only_copies_may_be_missing(directory: Path, name: str) -> None:
    crawled(directory, 1, 1)
    (directory / name).unlink()
    with reopen(directory) as state:
        assert state.counters.pages == 1
        assert state.config() == Config()


def test_a_crawl_is_found_again_after_its_directory_was_moved(directory: Path) -> None:
    crawled(directory, 1, 1)
    moved = directory.rename(directory.with_name("y.crawl"))
    with reopen(moved) as state:
        assert state.counters.pages == 1
