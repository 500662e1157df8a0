"""`crawlkit search`: the index is made when it has to be, and only then."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from crawlkit.model import Kind, Record
from crawlkit.state.directory import DirectoryLock
from crawlkit.testing.forks import Faults, Nursery
from tests.state.making import reopen
from tests.surfaces.conftest import Cli
from tests.surfaces.made_crawls import Make, page

A = "http://a.test"
PAGES = [
    page(f"{A}/1", title="All about foxes"),
    page(f"{A}/2", title="Dogs", description="Foxes are \x1b[31mno dogs"),
    Record(url=f"{A}/3", kind=Kind.FAILURE, depth=1, status=404, title="foxes not found"),
]


@pytest.fixture
def crawl(make: Make) -> Path:
    return make(PAGES)


def test_text_is_title_url_and_snippet_with_what_was_found(cli: Cli, crawl: Path) -> None:
    result = cli("search", "x.crawl", "foxes")
    assert result.status == 0
    assert result.out.splitlines() == [
        "All about foxes",
        f"  {A}/1",
        "  All about *foxes*",
        "Dogs",
        f"  {A}/2",
        "  *Foxes* are \ufffd[31mno dogs",
    ]


def test_json_is_an_object_a_line(cli: Cli, crawl: Path) -> None:
    found = [json.loads(line) for line in cli("search", "x.crawl", "foxes", "--json", "--limit", "1").out.splitlines()]
    assert [list(page) for page in found] == [["url", "title", "snippet", "matches", "score"]]
    assert found[0]["matches"] == [[10, 15]]


def test_the_main_text_is_searched_where_the_crawl_keeps_it(cli: Cli, make: Make) -> None:
    make()
    assert cli("search", "x.crawl", "main text").out.splitlines() == ["=1+1", f"  {A}/", "  The *main text*"]


def test_nothing_found_is_said_and_status_0(cli: Cli, crawl: Path) -> None:
    cli("search", "x.crawl", "foxes")
    result = cli("search", "x.crawl", "cats")
    assert (result.status, result.out, result.err) == (0, "", "crawlkit: no page has all of these words\n")


def test_the_index_is_made_once_and_again_when_the_crawl_has_gone_on(cli: Cli, crawl: Path) -> None:
    making = "crawlkit: making x.crawl/search.sqlite for this search and later ones\n"
    assert cli("search", "x.crawl", "dogs").err == making
    before = (crawl / "search.sqlite").stat().st_ino
    assert cli("search", "x.crawl", "dogs").err == ""
    assert (crawl / "search.sqlite").stat().st_ino == before
    with reopen(crawl) as state:
        state.pages.put(page(f"{A}/4", title="More dogs"))
        state.counters.settled(Kind.PAGE)
        state.checkpoint()
    result = cli("search", "x.crawl", "dogs")
    assert result.err == making
    assert f"{A}/4" in result.out


def test_an_index_of_another_crawl_or_one_that_cannot_be_read_is_made_anew(cli: Cli, crawl: Path, make: Make) -> None:
    cli("search", make([page(f"{A}/x", title="Foxes elsewhere")], "y.crawl"), "foxes")
    for content in ((crawl.parent / "y.crawl/search.sqlite").read_bytes(), b"not a database" * 999, b""):
        (crawl / "search.sqlite").write_bytes(content)
        assert f"{A}/1" in cli("search", "x.crawl", "foxes").out


def test_an_index_that_is_up_to_date_needs_no_lock_and_another_one_does(cli: Cli, crawl: Path) -> None:
    with DirectoryLock(crawl):
        result = cli("search", "x.crawl", "foxes")
        assert (result.status, len(result.err.splitlines())) == (3, 1)
        assert "is in use by another crawlkit" in result.err
    expected = cli("search", "x.crawl", "foxes").out
    with DirectoryLock(crawl):
        assert cli("search", "x.crawl", "foxes").out == expected


def test_a_missing_crawl_is_status_3_and_missing_words_are_status_2(cli: Cli, crawl: Path) -> None:
    for arguments, status in ((("none.crawl", "x"), 3), (("x.crawl",), 2), (("x.crawl", "x", "--limit", "0"), 2)):
        result = cli("search", *arguments)
        assert (result.status, result.out, len(result.err.splitlines())) == (status, "", 1)


def test_an_index_in_its_directory_is_nothing_to_a_crawl(cli: Cli, crawl: Path) -> None:
    asked = [("report", "x.crawl"), ("verify", "x.crawl"), ("run", f"{A}/", "-d", "x.crawl")]
    before = [cli(*arguments) for arguments in asked]
    cli("search", "x.crawl", "foxes")
    assert [cli(*arguments) for arguments in asked] == before


def test_an_index_damaged_inside_is_status_4_and_says_what_to_do(cli: Cli, make: Make) -> None:
    index = make(page(f"{A}/{n}", title=f"foxes {n}") for n in range(2000)) / "search.sqlite"
    cli("search", "x.crawl", "foxes")
    content = index.read_bytes()
    index.write_bytes(content[:8192] + bytes(len(content) - 8192))
    result = cli("search", "x.crawl", "foxes")
    assert (result.status, result.out, len(result.err.splitlines())) == (4, "", 1)
    assert "x.crawl/search.sqlite cannot be read" in result.err
    assert "delete it, and the next search makes it anew" in result.err


def test_a_full_disk_is_status_4_and_leaves_no_half_index(make: Make, tmp_path: Path) -> None:
    """A limit on file sizes stands for the full disk."""
    directory = make(page(f"{A}/{n}", title=f"foxes {n * 7919 % 10007} {n * 104729 % 99991}") for n in range(3000))
    with Nursery() as nursery:
        nursery.run("report", str(directory))  # after this one LevelDB has nothing of its own to write on opening
        ended = nursery.run("search", str(directory), "foxes", faults=Faults(file_bytes=50_000))
    assert ended.status == 4, ended
    assert f"cannot write {directory / 'search.sqlite'}" in ended.output
    assert not list(directory.glob("search*"))


def test_the_index_is_an_sqlite_file_for_others_too(cli: Cli, crawl: Path) -> None:
    cli("search", "x.crawl", "foxes")
    with closing(sqlite3.connect(crawl / "search.sqlite")) as database:
        assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert database.execute("SELECT url FROM records ORDER BY id").fetchall() == [(f"{A}/1",), (f"{A}/2",)]
