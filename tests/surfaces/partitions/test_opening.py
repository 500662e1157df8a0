"""A crawl in partitions that is not whole is refused in one line; one that runs is read as of its partitions' checkpoints."""

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from crawlkit.errors import StateError
from crawlkit.state.directory import PARTITIONED_FORMAT, Manifest, read_manifest
from crawlkit.state.layout import CRAWL, PARTITIONS, SEEDS
from crawlkit.state.partitions import member_directory
from crawlkit.testing.server import SiteServer
from tests.processes import crawlkit
from tests.state.making import begin_crawl
from tests.surfaces.conftest import Cli
from tests.surfaces.control.crawls import SITE as LIVE_SITE
from tests.surfaces.control.crawls import running
from tests.surfaces.partitions.dividing import seal_over


def lose_member(directory: Path) -> None:
    shutil.rmtree(member_directory(directory, 1))


def lose_member_s_manifest(directory: Path) -> None:
    (member_directory(directory, 1) / CRAWL).unlink()


def exchange_member(directory: Path) -> None:
    shutil.rmtree(member_directory(directory, 1))
    shutil.copytree(member_directory(directory, 0), member_directory(directory, 1))


def damage_table(directory: Path) -> None:
    path = directory / PARTITIONS
    path.write_bytes(path.read_bytes().replace(b'"version":1', b'"version":2'))


def lose_table(directory: Path) -> None:
    (directory / PARTITIONS).unlink()


def exchange_table(directory: Path) -> None:
    (directory / CRAWL).write_bytes(msgspec.json.encode(Manifest(PARTITIONED_FORMAT, "of another")))


def lose_seeds(directory: Path) -> None:
    (directory / SEEDS).unlink()


def make_newer(directory: Path) -> None:
    (directory / CRAWL).write_bytes(msgspec.json.encode(Manifest(909, "x", "crawlkit 9.0")))


BROKEN = [
    (lose_member, "partition 1 of own.crawl is missing: own.crawl/partitions/001 holds no crawl; restore it from a copy"),
    (lose_member_s_manifest, "partition 1 of own.crawl is missing"),
    (exchange_member, "own.crawl/partitions/001 is of another crawl than own.crawl"),
    (damage_table, "own.crawl/PARTITIONS does not match its checksum: restore it from a copy"),
    (lose_table, "own.crawl/PARTITIONS cannot be read"),
    (exchange_table, "CRAWL and PARTITIONS in own.crawl are of different crawls"),
    (make_newer, "own.crawl has format 909, made by crawlkit 9.0"),
]
COMMANDS = [("report",), ("export", "--to", "csv", "-o", "x"), ("search", "word"), ("diff", "y.jsonl")]


@pytest.mark.parametrize(("breaks", "says"), [*BROKEN, (lose_seeds, "own.crawl/SEEDS cannot be read")])
@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
@pytest.mark.usefixtures("parts")
def test_what_is_not_whole_is_refused_in_one_line(
    cli: Cli, tmp_path: Path, breaks: Callable[[Path], None], says: str, command: tuple[str, ...]
) -> None:
    breaks(tmp_path / "own.crawl")
    (tmp_path / "y.jsonl").touch()
    said = cli(command[0], "own.crawl", *command[1:])
    assert said.status == StateError.exit_status
    assert said.err.count("\n") == 1
    assert says in said.err


def test_a_damaged_partition_is_named(cli: Cli, parts: Path) -> None:
    for table in (member_directory(parts, 2) / "db").glob("*.log"):
        table.write_bytes(b"x" * 200)
    said = cli("report", "own.crawl")
    assert said.status == StateError.exit_status
    assert "own.crawl/partitions/002" in said.err


@pytest.fixture
def server() -> Iterator[SiteServer]:
    with SiteServer(LIVE_SITE) as running_server:
        yield running_server


def test_a_partition_that_runs_is_read_as_of_its_last_checkpoint(tmp_path: Path, server: SiteServer) -> None:
    """One partition is a process, the other is at rest."""
    directory = tmp_path / "x.crawl"
    with begin_crawl(member_directory(directory, 1)):
        pass
    with running(tmp_path, server, name="x.crawl/partitions/000"):
        seal_over(directory, [read_manifest(member_directory(directory, n)).crawl_id for n in (0, 1)], ["http://a.test/"])
        ended = crawlkit("report", "x.crawl", "--format", "jsonl", "-o", "r.jsonl", cwd=tmp_path)
        assert ended.status == 0, ended.err
        assert json.loads((tmp_path / "r.jsonl.meta.json").read_text())["running"] is True
        [line] = (tmp_path / "r.jsonl").read_text().splitlines()
        assert json.loads(line)["url"] == "http://a.test/"
    ended = crawlkit("report", "x.crawl", "--format", "jsonl", cwd=tmp_path)
    assert [json.loads(line)["url"] for line in ended.out.splitlines()] == ["http://a.test/"]
