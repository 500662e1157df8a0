"""What is read of a crawl in partitions is, byte for byte, what is read of the same crawl as one."""

import hashlib
import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

import crawlkit
from crawlkit.engine.partitions import open_for_reading
from crawlkit.state.layout import SEARCH
from crawlkit.surfaces.exports.formats import ExportFormat
from crawlkit.surfaces.health.views import View
from tests.surfaces.conftest import Cli
from tests.surfaces.partitions.conftest import Pair
from tests.surfaces.partitions.dividing import A, E, archived_apart

FORMATS = [
    ("text",),
    ("text", "--only", "failures"),
    ("jsonl",),
    ("jsonl", "--with-timing"),
    ("jsonl", "--fields", "url,text,near_duplicate_of,lastmod,priority"),
    ("csv",),
    *[("jsonl", f"--{view.value}") for view in View],
    *[("text", f"--{view.value}") for view in View],
]


@pytest.fixture(params=["finished", "stopped"])
def pair(request: pytest.FixtureRequest) -> Pair:
    found = request.getfixturevalue(request.param)
    assert isinstance(found, Pair)
    return found


@pytest.mark.parametrize("options", FORMATS, ids=" ".join)
def test_reports_and_views_are_the_same_bytes(cli: Cli, pair: Pair, options: tuple[str, ...]) -> None:
    whole, parts = (cli("report", crawl, "--format", *options) for crawl in (pair.whole, pair.parts))
    assert whole.status == parts.status == 0
    assert (parts.out, parts.err) == (whole.out, whole.err)
    assert whole.out or not pair.finished


def test_the_page_for_a_browser_is_the_same_but_for_its_name(cli: Cli, pair: Pair) -> None:
    whole, parts = (cli("report", crawl, "--format", "html").out for crawl in (pair.whole, pair.parts))
    assert whole.count("whole") == parts.count("parts") > 0
    assert parts.replace("parts", "whole") == whole


def test_a_sidecar_vouches_for_the_same_bytes_and_settings(cli: Cli, pair: Pair, tmp_path: Path) -> None:
    metas = []
    for crawl in (pair.whole, pair.parts):
        assert cli("report", crawl, "--format", "jsonl", "-o", "r.jsonl").status == 0
        meta = json.loads((tmp_path / "r.jsonl.meta.json").read_text())
        assert meta["sha256"] == hashlib.sha256((tmp_path / "r.jsonl").read_bytes()).hexdigest()
        for run in meta["runs"]:
            del run["checkpoints"]  # each partition makes its own
        metas.append(meta)
    assert metas[0] == metas[1]
    assert metas[1]["running"] is False


@pytest.mark.parametrize("format_", [f for f in ExportFormat if f is not ExportFormat.CDXJ])
def test_exports_are_the_same_bytes(cli: Cli, pair: Pair, tmp_path: Path, format_: ExportFormat) -> None:
    written = []
    for crawl in (pair.whole, pair.parts):
        assert cli("export", crawl, "--to", format_, "-o", "x").status == 0
        written.append((tmp_path / "x").read_bytes())
    assert written[0] == written[1]
    assert len(written[0]) > 100


def test_the_index_of_the_archives_names_each_file_by_its_partition(cli: Cli, tmp_path: Path) -> None:
    directory = archived_apart(tmp_path / "apart.crawl", {A: 0, E: 1})
    assert cli("export", directory, "--to", "cdxj", "-o", "all.cdxj").status == 0
    lines = (tmp_path / "all.cdxj").read_bytes().splitlines(keepends=True)
    assert lines == sorted(lines)
    files: dict[str, set[str]] = {}
    for line in lines:
        told = json.loads(line.split(b" ", 2)[2])
        files.setdefault(told["filename"], set()).add(told["url"].split("/")[2])
        with (directory / told["filename"]).open("rb") as archive:
            archive.seek(int(told["offset"]))
            assert archive.read(2) == b"\x1f\x8b"
    assert {name[: len("partitions/000/warc/")]: hosts for name, hosts in files.items()} == {
        "partitions/000/warc/": {"a.test"},
        "partitions/001/warc/": {"e.test"},
    }
    singly = 0
    for number in ("000", "001"):
        assert cli("export", directory / "partitions" / number, "--to", "cdxj", "-o", "one.cdxj").status == 0
        singly += len((tmp_path / "one.cdxj").read_bytes().splitlines())
    assert singly == len(lines) > 2


def test_nothing_differs_between_the_two(cli: Cli, pair: Pair) -> None:
    said = cli("diff", pair.whole, pair.parts, "--summary")
    assert (said.status, said.out) == (0, "")
    assert "0 added, 0 removed, 0 changed" in said.err


def test_python_reads_the_same_records(pair: Pair) -> None:
    whole, parts = list(crawlkit.report(pair.whole)), list(crawlkit.report(pair.parts))
    assert parts == whole
    assert len(parts) > 5


def test_a_search_finds_the_same_pages_and_its_index_lies_beside_the_table(cli: Cli, pair: Pair) -> None:
    whole, parts = (cli("search", crawl, "link", "--json") for crawl in (pair.whole, pair.parts))
    assert parts.out == whole.out
    assert parts.out.count("\n") > 1
    with closing(sqlite3.connect(pair.parts / SEARCH)) as index:
        [(count,)] = index.execute("SELECT count(*) FROM records")
    assert count == sum(record.kind == "page" for record in crawlkit.report(pair.parts))
    assert "making" not in cli("search", pair.parts, "link").err  # as no partition has gone on since


def test_hosts_and_seeds_are_those_of_the_crawl(pair: Pair) -> None:
    with open_for_reading(pair.whole) as whole, open_for_reading(pair.parts) as parts:
        assert list(parts.hosts()) == list(whole.hosts())
        assert list(parts.seeds()) == list(whole.seeds())
        assert parts.counters == whole.counters
