"""The SQLite export: the report in tables, ready to be asked."""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.surfaces.conftest import Cli
from tests.surfaces.made_crawls import Make


@pytest.fixture
def database(cli: Cli, make: Make, tmp_path: Path) -> Iterator[sqlite3.Connection]:
    assert cli("export", make(), "--to", "sqlite", "-o", "out.db").status == 0
    with closing(sqlite3.connect(tmp_path / "out.db")) as connection:
        connection.row_factory = sqlite3.Row
        yield connection


def ask(database: sqlite3.Connection, question: str) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in database.execute(question)]


def test_records_and_links_are_the_report(cli: Cli, database: sqlite3.Connection) -> None:
    def as_line(row: sqlite3.Row) -> dict[str, Any]:
        line = {name: row[name] for name in row.keys() if name not in ("id", "text")}  # noqa: SIM118  (a Row iterates over values)
        for name in ("fields", "directives", "headings", "alternates", "sources"):
            line[name] = None if line[name] is None else json.loads(line[name])
        line["truncated"] = None if line["truncated"] is None else bool(line["truncated"])
        links = database.execute("SELECT target FROM links WHERE source = ? ORDER BY position", (row["id"],))
        return {**line, "links": [target for (target,) in links]}

    shown = [as_line(row) for row in database.execute("SELECT * FROM records ORDER BY id")]
    expected = [json.loads(line) for line in cli("report", "x.crawl", "--format", "jsonl").out.splitlines()]
    assert shown == expected


def test_a_link_says_where_it_stands_on_its_page(database: sqlite3.Connection) -> None:
    found = ask(database, "SELECT source, position, target, text, rel FROM links ORDER BY source, position")
    assert found == [(1, 0, "http://a.test/b", "first", None), (1, 1, "http://o.test/?a,b", None, "sponsored nofollow")]


def test_the_file_is_sound_and_its_references_hold(database: sqlite3.Connection) -> None:
    assert ask(database, "PRAGMA integrity_check") == [("ok",)]
    assert ask(database, "PRAGMA foreign_key_check") == []
    assert ask(database, "PRAGMA journal_mode") == [("delete",)]


def test_what_is_often_asked_for_has_an_index(database: sqlite3.Connection) -> None:
    for question in (
        "SELECT id FROM records WHERE url = 'x'",
        "SELECT id FROM records WHERE status = 404",
        "SELECT source FROM links WHERE target = 'x'",
        "SELECT target FROM links WHERE source = 1",
    ):
        ((*_, plan),) = ask(database, f"EXPLAIN QUERY PLAN {question}")
        assert "USING" in plan, plan
        assert "INDEX" in plan, plan


def test_pages_and_the_pages_that_link_somewhere_are_asked_for_in_a_line(database: sqlite3.Connection) -> None:
    assert ask(database, "SELECT count(*) FROM pages") == [(4,)]
    linking = "SELECT r.url, l.rel FROM links l JOIN records r ON r.id = l.source WHERE l.target = 'http://o.test/?a,b'"
    assert ask(database, linking) == [("http://a.test/", "sponsored nofollow")]


def test_words_are_found_without_regard_to_case_and_accents(database: sqlite3.Connection) -> None:
    found = "SELECT r.url FROM records_fts f JOIN records r ON r.id = f.rowid WHERE records_fts MATCH 'unicode'"
    assert ask(database, found) == [("http://a.test/b",)]


def test_the_main_text_is_there_and_its_words_are_found(database: sqlite3.Connection) -> None:
    found = "SELECT r.url, r.text FROM records_fts f JOIN records r ON r.id = f.rowid WHERE records_fts MATCH 'main'"
    assert ask(database, found) == [("http://a.test/", "The main text")]
    assert ask(database, "SELECT count(text) FROM records") == [(1,)]


def test_datasette_finds_the_full_text_index_of_records(database: sqlite3.Connection) -> None:
    pattern = '%VIRTUAL TABLE%USING FTS%content="records"%'  # from its `detect_fts_sql`
    assert database.execute("SELECT name FROM sqlite_master WHERE sql LIKE ?", (pattern,)).fetchone()[0] == "records_fts"


def test_meta_tells_what_the_sidecar_tells_but_the_clock(database: sqlite3.Connection, tmp_path: Path) -> None:
    meta = dict(ask(database, "SELECT key, value FROM meta"))
    beside = json.loads((tmp_path / "out.db.meta.json").read_text())
    assert {kind: int(meta[kind]) for kind in beside["counts"]} == beside["counts"]
    assert meta["report_sha256"] == beside["report_sha256"]
    assert meta["settings_hash"] == beside["settings_hash"]
    assert (meta["deterministic"], meta["reasons"]) == ("true", "[]")
