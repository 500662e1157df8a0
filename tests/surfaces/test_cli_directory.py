"""The crawl directory as commands meet it: missing, foreign, held by another process, of another version, damaged."""

import json
import os
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from crawlkit.state.directory import prepare
from crawlkit.testing.server import SiteServer
from crawlkit.testing.site import Site, page
from tests.processes import Ended, command, ended, started, wait_while_running
from tests.surfaces.conftest import Cli, Said

FAST = ("--delay", "0", "--retries", "0")
READERS = [("resume", "x.crawl"), ("report", "x.crawl"), ("status", "x.crawl")]


@pytest.fixture
def server() -> Iterator[SiteServer]:
    with SiteServer(Site({"/": page("home", ["/a"]), "/a": page("a")})) as running:
        yield running


def refused(result: Said, *words: str) -> None:
    assert (result.status, result.out) == (3, "")
    assert len(result.err.splitlines()) == 1
    assert not [word for word in words if word not in result.err], result.err


@pytest.mark.parametrize("arguments", READERS)
def test_a_missing_directory_is_refused_and_not_made(cli: Cli, tmp_path: Path, arguments: tuple[str, ...]) -> None:
    refused(cli(*arguments), "there is no crawl directory x.crawl", "crawlkit run SEED --dir x.crawl")
    assert list(tmp_path.iterdir()) == []


def test_a_directory_of_something_else_is_left_alone(cli: Cli, server: SiteServer, tmp_path: Path) -> None:
    foreign = tmp_path / "x.crawl"
    foreign.mkdir()
    (foreign / "thesis.txt").write_text("the only copy")
    refused(cli("run", f"{server.url}/", "-d", "x.crawl", *FAST), "thesis.txt", "--dir")
    for arguments in READERS:
        refused(cli(*arguments), "no crawl")
    assert [path.name for path in foreign.iterdir()] == ["thesis.txt"]
    assert (foreign / "thesis.txt").read_text() == "the only copy"
    assert len(server.log) == 0


def test_a_file_in_the_place_of_the_directory_is_left_alone(cli: Cli, server: SiteServer, tmp_path: Path) -> None:
    (tmp_path / "x.crawl").write_text("a file")
    refused(cli("run", f"{server.url}/", "-d", "x.crawl", *FAST), "x.crawl", "not a directory")
    for arguments in READERS:
        refused(cli(*arguments))
    assert (tmp_path / "x.crawl").read_text() == "a file"


def test_an_empty_directory_and_missing_parents_are_fine(cli: Cli, server: SiteServer, tmp_path: Path) -> None:
    (tmp_path / "x.crawl").mkdir()
    assert cli("run", f"{server.url}/", "-d", "x.crawl", *FAST).status == 0
    assert cli("run", f"{server.url}/", "-d", "a/b/c", *FAST).status == 0


def test_a_directory_whose_making_was_interrupted_is_begun_again(cli: Cli, server: SiteServer, tmp_path: Path) -> None:
    directory = tmp_path / "x.crawl"
    directory.mkdir()
    (directory / "LOCK").write_text("4242\n")
    (directory / "config.toml.tmp").write_text("half")
    for name in ("resume", "report"):
        refused(cli(name, "x.crawl"), "no CRAWL file", "crawlkit run SEED --dir x.crawl")
    assert cli("run", f"{server.url}/", "-d", "x.crawl", *FAST).status == 0


def test_a_crawl_is_not_run_twice(cli: Cli, server: SiteServer) -> None:
    assert cli("run", f"{server.url}/", "-d", "x.crawl", *FAST).status == 0
    made, before = len(server.log), cli("report", "x.crawl").out
    refused(cli("run", f"{server.url}/", "-d", "x.crawl", *FAST), "already holds a crawl", "crawlkit resume x.crawl")
    assert (len(server.log), cli("report", "x.crawl").out) == (made, before)


def test_a_running_crawl_is_refused_by_the_pid_that_holds_it(cli: Cli, server: SiteServer, tmp_path: Path) -> None:
    arguments = command("run", f"{server.url}/", "-d", "x.crawl", "--delay", "1h", "--no-robots")
    with started(arguments, tmp_path) as process:
        assert server.log.wait_for(lambda log: len(log) == 1)
        refused(cli("resume", "x.crawl"), "in use by another crawlkit", f"(pid {process.pid})")
        refused(cli("run", f"{server.url}/", "-d", "x.crawl"))
        assert json.loads(cli("status", "x.crawl", "--json").out)["state"] == "running"
        process.kill()
        ended(process)
    assert json.loads(cli("status", "x.crawl", "--json").out)["state"] == "stopped"
    assert cli("resume", "x.crawl", "--set", "delay=0").status == 0
    assert len(server.log) <= 3
    assert json.loads(cli("status", "x.crawl", "--json").out)["state"] == "finished"


def test_a_crawl_still_being_made_is_refused_by_its_pid(cli: Cli, server: SiteServer, tmp_path: Path) -> None:
    with prepare(tmp_path / "x.crawl"):
        refused(cli("run", f"{server.url}/", "-d", "x.crawl"), "in use by another crawlkit", f"(pid {os.getpid()})")


def test_there_is_no_moment_between_its_making_and_its_run_at_which_a_second_crawl_may_begin(
    cli: Cli, server: SiteServer, tmp_path: Path
) -> None:
    with started(command("run", f"{server.url}/", "-d", "x.crawl", "--delay", "1h"), tmp_path) as process:
        lock = tmp_path / "x.crawl" / "LOCK"
        wait_while_running(process, lambda: lock.exists() and lock.read_text() == f"{process.pid}\n")
        while True:
            begun = len(server.log) > 0
            refused(cli("run", f"{server.url}/", "-d", "x.crawl"))
            if begun:
                break


@pytest.mark.parametrize("arguments", READERS)
def test_a_newer_version_is_refused_by_name(cli: Cli, server: SiteServer, tmp_path: Path, arguments: tuple[str, ...]) -> None:
    cli("run", f"{server.url}/", "-d", "x.crawl", *FAST)
    manifest = tmp_path / "x.crawl" / "CRAWL"
    written = json.loads(manifest.read_text())
    manifest.write_text(json.dumps({**written, "format": 99, "made_by": "crawlkit 9.9"}))
    refused(cli(*arguments), "format 99", "crawlkit 9.9")
    refused(cli("run", f"{server.url}/", "-d", "x.crawl", *FAST), "already holds a crawl")


@pytest.mark.parametrize("name", ["CRAWL", "CHECKPOINT"])
@pytest.mark.parametrize("data", [b"", b"\0" * 40, b"{}", b'{"format":1'])
def test_damage_is_never_read_as_a_new_crawl(cli: Cli, server: SiteServer, tmp_path: Path, name: str, data: bytes) -> None:
    cli("run", f"{server.url}/", "-d", "x.crawl", *FAST)
    made = len(server.log)
    (tmp_path / "x.crawl" / name).write_bytes(data)
    for arguments in READERS:
        refused(cli(*arguments), name)
    refused(cli("run", f"{server.url}/", "-d", "x.crawl", *FAST))
    assert len(server.log) == made


def test_a_crawl_that_lost_its_manifest_is_not_wiped(cli: Cli, server: SiteServer, tmp_path: Path) -> None:
    cli("run", f"{server.url}/", "-d", "x.crawl", *FAST)
    manifest = tmp_path / "x.crawl" / "CRAWL"
    written, before = manifest.read_bytes(), cli("report", "x.crawl").out
    manifest.unlink()
    refused(cli("run", f"{server.url}/", "-d", "x.crawl", *FAST))
    manifest.write_bytes(written)
    assert cli("report", "x.crawl").out == before


def test_a_lost_database_is_damage(cli: Cli, server: SiteServer, tmp_path: Path) -> None:
    cli("run", f"{server.url}/", "-d", "x.crawl", *FAST)
    (tmp_path / "x.crawl" / "db").rename(tmp_path / "elsewhere")
    for name in ("resume", "report"):
        refused(cli(name, "x.crawl"), "x.crawl")
    assert not (tmp_path / "x.crawl" / "db" / "CURRENT").exists()


def test_a_lost_filter_costs_nothing(cli: Cli, server: SiteServer, tmp_path: Path) -> None:
    cli("run", f"{server.url}/", "-d", "x.crawl", *FAST, "--max-pages", "1")
    (tmp_path / "x.crawl" / "seen.bloom").unlink()
    assert "2 pages" in cli("resume", "x.crawl", "--set", "max_pages=none").err


def test_a_directory_may_have_any_name_the_system_takes(cli: Cli, server: SiteServer) -> None:
    for name in ("with space.crawl", "ümlaut.crawl", "-dash.crawl", "$(touch oops).crawl"):
        result = cli("run", f"{server.url}/", "--dir", name, *FAST, "--max-pages", "1")
        assert result.status == 0
        said = [shlex.split(line.partition("crawlkit ")[2]) for line in result.err.splitlines() if " crawlkit " in line]
        assert [words[0] for words in said] == ["report", "resume"]
        assert cli(*said[1], "--set", "max_pages=none").status == 0
        assert cli(*said[0]).out.count("URL:") == 2


@pytest.mark.parametrize("place", ["n" * 300, "file/x", "loop"])
@pytest.mark.parametrize(
    "command",
    [
        "run http://nobody.test/ --dir PLACE",
        "resume PLACE",
        "report PLACE",
        "status PLACE",
        "verify PLACE",
        "verify PLACE --repair",
        "explain PLACE http://nobody.test/",
        "hosts PLACE",
        "hosts PLACE hold nobody.test",
        "add PLACE http://nobody.test/",
        "pause PLACE",
        "search PLACE word",
        "export PLACE --to csv -o out.csv",
        "reparse PLACE",
        "ui PLACE",
        "diff PLACE PLACE",
        "run http://nobody.test/ --dir new.crawl --since PLACE",
    ],
)
def test_a_place_that_cannot_be_looked_at_is_refused_in_one_line(cli: Cli, tmp_path: Path, command: str, place: str) -> None:
    (tmp_path / "file").write_text("not ours\n")
    (tmp_path / "loop").symlink_to("loop")
    refused(cli(*command.replace("PLACE", place).split()), place)
    assert not (tmp_path / "new.crawl").exists()


def test_a_file_that_is_taken_for_a_crawl_is_told_from_one_that_is_missing(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "hosts.txt").write_text("http://nobody.test/\n")
    refused(cli("resume", "hosts.txt"), "hosts.txt is no crawl directory")


def test_without_permission_the_refusal_says_what_opening_needs(cli: Cli, server: SiteServer, tmp_path: Path) -> None:
    cli("run", f"{server.url}/", "--dir", "closed/x.crawl", *FAST)
    crawl, lock = tmp_path / "closed" / "x.crawl", tmp_path / "closed" / "x.crawl" / "LOCK"
    lock.chmod(0o400)
    said = as_ordinary_user(tmp_path, "resume", crawl)
    assert (said.status, said.out) == (3, b"")
    assert said.err.endswith("LOCK: Permission denied; a crawl is opened where it can be written: copy it to such a place\n")
    (tmp_path / "closed").chmod(0)
    for arguments in (("resume", crawl), ("status", crawl), ("run", "http://nobody.test/", "--dir", crawl)):
        said = as_ordinary_user(tmp_path, *arguments)
        assert (said.status, said.out, len(said.err.splitlines())) == (3, b"", 1), said.err
        assert "Permission denied" in said.err
    (tmp_path / "closed").chmod(0o700)


def as_ordinary_user(cwd: Path, *arguments: str | Path) -> Ended:
    """Run a command to its end as one whom file permissions bind, as they do not bind root."""
    bound = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"] if os.geteuid() == 0 else []
    with started([*bound, *command(*arguments)], cwd) as process:
        return ended(process)
