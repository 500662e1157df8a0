"""`crawlkit verify`: statuses, what is printed, and repairs."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from crawlkit.engine.ending import Ending
from crawlkit.errors import StateDamaged, StateExists, StateLocked
from crawlkit.model import OrderReason
from crawlkit.state import keys
from crawlkit.state.directory import DirectoryLock
from crawlkit.state.layout import BLOOM, CHECKPOINT, DATABASE
from crawlkit.state.reading import open_crawl_for_reading
from crawlkit.state.store import Store
from crawlkit.surfaces.verify import verify_command
from tests.crash.fake_crawls import crawl, dump, resume


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("made") / "whole.crawl"
    assert crawl(directory).how is Ending.FINISHED
    return directory


@pytest.fixture
def directory(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "a.crawl"))


def _verify(*arguments: str | Path) -> tuple[int, str, str]:
    """Status, standard output and standard error; a CrawlError is raised as the main command line gets it."""
    result = CliRunner().invoke(verify_command, [str(argument) for argument in arguments], standalone_mode=False)
    if result.exception is not None:
        raise result.exception
    return int(result.return_value), result.stdout, result.stderr


def _json(*arguments: str | Path) -> tuple[int, dict[str, Any]]:
    status, out, _ = _verify("--json", *arguments)
    return status, json.loads(out)


def _lose_records(directory: Path, count: int) -> None:
    with Store(directory / DATABASE, create=False) as store:
        for key, _ in list(store.walk(keys.PAGE, keys.after(keys.PAGE)))[:count]:
            store.unstage(key)
        store.freeze().write()


@pytest.mark.parametrize("how", [(), ("--full",), ("--quick",)])
def test_a_sound_crawl_ends_with_0_and_says_what_was_looked_at(how: tuple[str, ...], directory: Path) -> None:
    status, out, err = _verify(directory, *how)
    assert (status, err) == (0, "")
    assert "every rule holds" in out
    assert "88 records" in out


def test_broken_rules_end_with_1_a_count_and_first_examples(directory: Path) -> None:
    _lose_records(directory, 7)
    status, out, _ = _verify(directory)
    assert status == 1
    assert "BROKEN counters.count" in out
    assert "BROKEN seen.settled: 1\n  settled URLs and their records: 88 noted, 81 found" in out
    assert f"crawlkit verify --repair {directory}" in out
    status, verdict = _json(directory, "--quick")
    assert (status, verdict["whole"], verdict["repaired"]) == (1, False, None)
    assert verdict["broken"]["counters.count"] == {"count": 1, "examples": ["settled: 88 noted, 81 found"]}
    assert verdict["checked"]["records"] == 81


def test_what_cannot_be_opened_names_the_repair(directory: Path) -> None:
    (directory / CHECKPOINT).unlink()
    with pytest.raises(StateDamaged, match="crawlkit verify --repair"):
        _verify(directory)


def test_a_crawl_that_runs_is_left_alone(directory: Path) -> None:
    with DirectoryLock(directory):
        for arguments in ((directory,), (directory, "--repair")):
            with pytest.raises(StateLocked):
                _verify(*arguments)


def test_a_sound_crawl_is_not_repaired(directory: Path) -> None:
    status, verdict = _json(directory, "--repair")
    assert (status, verdict["whole"], verdict["repaired"]) == (0, True, None)
    assert [path.name for path in directory.parent.iterdir()] == [directory.name]


def test_a_repair_says_what_is_lost_and_the_copy_finds_it_again(directory: Path, made: Path) -> None:
    _lose_records(directory, 7)
    status, verdict = _json(directory, "--repair")
    copy = directory.with_name("a.crawl.repaired")
    assert (status, verdict["whole"]) == (0, True)
    assert verdict["repaired"]["directory"] == str(copy)
    assert (verdict["repaired"]["records"], verdict["repaired"]["queued"]) == (81, 7)
    assert "7 of 88 records" in verdict["repaired"]["lost"][0]
    assert resume(copy).how is Ending.FINISHED
    assert dump(copy) == dump(made)
    with open_crawl_for_reading(copy) as reader:
        assert OrderReason.DEGRADED in reader.counters.reasons
        assert [run.how for run in reader.runs] == ["finished", "repaired", "finished"]
    assert sorted(path.name for path in directory.parent.iterdir()) == ["a.crawl", "a.crawl.repaired"]


def test_a_repair_for_people_names_the_next_command(directory: Path) -> None:
    (directory / CHECKPOINT).unlink()
    status, out, err = _verify(directory, "--repair")
    assert status == 0
    assert "CHECKPOINT" in err
    assert f"made {directory}.repaired: 88 records, 0 URLs queued" in out
    assert "LOST CHECKPOINT, so that it cannot be told how many records are missing" in out
    assert f"crawlkit resume {directory}.repaired" in out


def test_a_repair_does_not_replace_an_earlier_one(directory: Path) -> None:
    _lose_records(directory, 1)
    _verify(directory, "--repair")
    with pytest.raises(StateExists, match="move it away"):
        _verify(directory, "--repair")


def test_a_repair_that_was_killed_leaves_nothing_in_the_way(directory: Path) -> None:
    _lose_records(directory, 1)
    (directory.with_name("a.crawl.repairing") / "crawl").mkdir(parents=True)
    assert _verify(directory, "--repair")[0] == 0
    assert not directory.with_name("a.crawl.repairing").exists()


def test_a_filter_that_lacks_keys_is_removed_and_the_crawl_stays(directory: Path) -> None:
    path = directory / BLOOM
    data = path.read_bytes()
    path.write_bytes(data[:4096] + bytes(len(data) - 4096))
    if _verify(directory)[0] == 0:
        pytest.skip("no filter is reused where the system does not tell its boots apart")
    status, verdict = _json(directory, "--repair")
    assert (status, verdict["whole"], verdict["repaired"]) == (0, True, None)
    assert not path.exists()
