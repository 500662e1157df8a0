"""Damage to one file of a crawl directory: the crawl opens whole, or is refused with the way out. Nothing is lost in silence.

The crawls have tables, a log with batches in it and a filter that is in use: each was killed, and resumed once.
"""

import random
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from crawlkit.config import VERSION
from crawlkit.engine.ending import Ending
from crawlkit.engine.repair import repair
from crawlkit.engine.verify import Thoroughness, verify
from crawlkit.errors import StateDamaged, StateError, StateVersion
from crawlkit.model import OrderReason
from crawlkit.state.findings import Rule
from crawlkit.state.reading import open_crawl_for_reading
from tests.crash.fake_crawls import crawl, dump, kill, resume


@dataclass(frozen=True)
class Before:
    """A crawl as it was before it was damaged, the same crawl earlier in its life, and what it must come to."""

    directory: Path
    older: Path
    expected: bytes


def _undisturbed(place: Path) -> bytes:
    crawl(place / "undisturbed")
    return dump(place / "undisturbed")


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Before:
    place = tmp_path_factory.mktemp("finished")
    kill(place / "crawl", 30, crawl)
    shutil.copytree(place / "crawl", place / "older")
    assert resume(place / "crawl").how is Ending.FINISHED
    return Before(place / "crawl", place / "older", _undisturbed(place))


@pytest.fixture(scope="session")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Before:
    place = tmp_path_factory.mktemp("killed")
    kill(place / "crawl", 30, crawl)
    shutil.copytree(place / "crawl", place / "older")
    kill(place / "crawl", 60, resume)
    return Before(place / "crawl", place / "older", _undisturbed(place))


@pytest.fixture(params=["finished", "killed"])
def before(request: pytest.FixtureRequest) -> Before:
    found = request.getfixturevalue(request.param)
    assert isinstance(found, Before)
    return found


KINDS = {
    "CRAWL": "CRAWL",
    "CHECKPOINT": "CHECKPOINT",
    "config.toml": "config.toml",
    "seen.bloom": "seen.bloom",
    "LOCK": "LOCK",
    "CURRENT": "db/CURRENT",
    "MANIFEST": "db/MANIFEST-*",
    "log": "db/*.log",
    "table": "db/*.ldb",
    "LevelDB's LOCK": "db/LOCK",
    "LevelDB's LOG": "db/LOG",
}


def _file(directory: Path, kind: str) -> Path:
    """The file of a kind: the largest one."""
    return max(directory.glob(KINDS[kind]), key=lambda path: path.stat().st_size)


def _delete(path: Path, older: Path, rng: random.Random) -> None:
    path.unlink()


def _truncate(path: Path, older: Path, rng: random.Random) -> None:
    path.write_bytes(b"")


def _halve(path: Path, older: Path, rng: random.Random) -> None:
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])


def _flip(path: Path, older: Path, rng: random.Random) -> None:
    data = bytearray(path.read_bytes())
    if data:
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    path.write_bytes(data)


def _zero(path: Path, older: Path, rng: random.Random) -> None:
    data = bytearray(path.read_bytes())
    at = rng.randrange(max(1, len(data) - 64))
    data[at : at + 64] = bytes(len(data[at : at + 64]))
    path.write_bytes(data)


def _swap(path: Path, older: Path, rng: random.Random) -> None:
    shutil.copyfile(older, path)


DAMAGES: dict[str, Callable[[Path, Path, random.Random], None]] = {
    "deleted": _delete,
    "empty": _truncate,
    "cut in half": _halve,
    "a bit flipped": _flip,
    "64 bytes zeroed": _zero,
    "an older copy": _swap,
}

WAYS_OUT = ("crawlkit verify --repair", "crawlkit run", "use the version that made it")


def _damaged(before: Before, tmp_path: Path) -> Path:
    directory = tmp_path / "crawl"
    shutil.copytree(before.directory, directory)
    return directory


def _refused(error: StateError, *texts: str) -> None:
    assert any(text in str(error) for text in texts), error


def _finish(directory: Path) -> bytes | None:
    """The records of the crawl once it is finished; None if it was refused with a way out."""
    try:
        assert resume(directory).how is Ending.FINISHED
        return dump(directory)
    except StateError as error:
        _refused(error, *WAYS_OUT)
        return None


def _check(directory: Path, before: Before) -> None:
    records = _finish(directory)
    if records is not None:
        assert records == before.expected
        assert verify(directory, Thoroughness.FULL).broken.keys() <= {Rule.FILTER}  # a cache: its loss costs look-ups
        return
    with pytest.raises(StateError):  # nor does `run` take it for a place without a crawl
        crawl(directory)
    _check_repair(directory, before)


def _check_repair(directory: Path, before: Before) -> None:
    """Here every URL can be met again, so that a repaired crawl finds all there is."""
    damaged = {path: path.read_bytes() for path in directory.rglob("*") if path.is_file() and path.name != "LOCK"}
    try:
        repaired = repair(directory, now=1_700_000_000.0)
    except StateDamaged as error:
        _refused(error, "seeds")  # without them nobody knows what the crawl is about
        return
    assert {path: path.read_bytes() for path in damaged} == damaged
    assert verify(repaired.directory, Thoroughness.FULL).whole
    assert resume(repaired.directory).how is Ending.FINISHED
    found = dump(repaired.directory)
    if "part of the list of seeds" in " ".join(repaired.lost):
        assert set(found.splitlines()) <= set(before.expected.splitlines())
    else:
        assert found == before.expected
    assert verify(repaired.directory, Thoroughness.FULL).whole
    with open_crawl_for_reading(repaired.directory) as reader:
        assert OrderReason.DEGRADED in reader.counters.reasons


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("kind", KINDS)
def test_one_damaged_file_never_loses_a_record_in_silence(kind: str, damage: str, before: Before, tmp_path: Path) -> None:
    directory = _damaged(before, tmp_path)
    older = next(before.older.glob(KINDS["log" if kind == "table" else kind]))
    DAMAGES[damage](_file(directory, kind), older, random.Random(f"{kind} {damage}"))
    _check(directory, before)


def test_a_byte_changed_in_any_file_of_a_finished_crawl_never_changes_its_report(
    finished: Before, tmp_path: Path, seed: int
) -> None:
    rng = random.Random(seed)
    files = [path.relative_to(finished.directory) for path in finished.directory.rglob("*") if path.is_file()]
    for name in sorted(files) * 5:
        directory = _damaged(finished, tmp_path)
        data = bytearray((directory / name).read_bytes())
        if data:
            data[rng.randrange(len(data))] ^= rng.randrange(1, 256)
        (directory / name).write_bytes(data)
        try:
            assert dump(directory) == finished.expected
        except StateError as error:
            _refused(error, *WAYS_OUT)
        shutil.rmtree(directory)


def test_a_wrong_format_number_is_damage_and_not_another_version(finished: Before, tmp_path: Path) -> None:
    directory = _damaged(finished, tmp_path)
    manifest = (directory / "CRAWL").read_text()
    (directory / "CRAWL").write_text(manifest.replace('"format":1', '"format":3'))
    with pytest.raises(StateDamaged, match="verify --repair"):
        dump(directory)
    newer = manifest.replace('"format":1', '"format":2').replace(f"crawlkit {VERSION}", "crawlkit 99.0")
    (directory / "CRAWL").write_text(newer)
    with pytest.raises(StateVersion, match=r"crawlkit 99\.0"):
        dump(directory)
    with pytest.raises(StateVersion):
        repair(directory, 0.0)


def test_a_repair_believes_nothing_whose_checksum_is_wrong(killed: Before, tmp_path: Path) -> None:
    for tenth in range(10):
        directory = _damaged(killed, tmp_path / str(tenth))
        log = _file(directory, "log")
        data = bytearray(log.read_bytes())
        data[len(data) * tenth // 10 + 50] ^= 4
        log.write_bytes(data)
        _check_repair(directory, killed)
