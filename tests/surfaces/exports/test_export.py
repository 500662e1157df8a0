"""`crawlkit export`: every format holds what the JSON report holds, and a failure leaves the old file and nothing else."""

import csv
import hashlib
import json
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from crawlkit.model import OrderReason, Record
from crawlkit.state.directory import DirectoryLock
from crawlkit.surfaces.exports.formats import ExportFormat
from crawlkit.testing.forks import Faults, Nursery
from tests import processes
from tests.state.making import run_child
from tests.surfaces.conftest import Cli
from tests.surfaces.made_crawls import RECORDS, Make, make_crawl, page

OF_RECORDS = [format_ for format_ in ExportFormat if format_ is not ExportFormat.CDXJ]  # which needs an archive
EVERY = pytest.mark.parametrize("format_", OF_RECORDS)


def report_of(cli: Cli, directory: Path) -> tuple[list[dict[str, Any]], str]:
    """Return the lines of the JSON report, and the SHA-256 of its bytes."""
    out = cli("report", directory, "--format", "jsonl").out
    return [json.loads(line) for line in out.splitlines()], hashlib.sha256(out.encode()).hexdigest()


@EVERY
def test_the_sidecar_vouches_for_the_file_and_ties_it_to_the_report(
    cli: Cli, make: Make, tmp_path: Path, format_: ExportFormat
) -> None:
    directory = make(reasons=[OrderReason.LIMIT_PAGES])
    result = cli("export", directory, "--to", format_, "-o", "out.file")
    assert (result.status, result.out, result.err) == (0, "", "")
    meta = json.loads((tmp_path / "out.file.meta.json").read_text())
    rows = {ExportFormat.EDGES: 2, ExportFormat.SITEMAP: 2}.get(format_, len(RECORDS))
    assert (meta["format"], meta["rows"]) == (format_.value, rows)
    assert meta["counts"] == {"pages": 4, "redirects": 1, "failures": 1, "excluded": 1}
    assert meta["sha256"] == hashlib.sha256((tmp_path / "out.file").read_bytes()).hexdigest()
    assert meta["report_sha256"] == report_of(cli, directory)[1]
    assert (meta["deterministic"], meta["reasons"]) == (False, ["limit.pages"])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.file", "out.file.meta.json", "x.crawl"]


@EVERY
def test_equal_records_give_equal_bytes_however_they_came(cli: Cli, make: Make, tmp_path: Path, format_: ExportFormat) -> None:
    for number, records in enumerate([RECORDS, RECORDS[::-1]]):
        assert cli("export", make(records, f"{number}.crawl"), "--to", format_, "-o", f"out{number}").status == 0
    assert (tmp_path / "out0").read_bytes() == (tmp_path / "out1").read_bytes()


@EVERY
def test_what_a_killed_export_left_is_written_over(cli: Cli, make: Make, tmp_path: Path, format_: ExportFormat) -> None:
    make()
    for name in ("out", "again"):
        assert cli("export", "x.crawl", "--to", format_, "-o", name).status == 0
        (tmp_path / "again.tmp").write_bytes(b"half" * 9999)
    (tmp_path / "again.tmp").unlink()
    assert (tmp_path / "out").read_bytes() == (tmp_path / "again").read_bytes()


@pytest.mark.parametrize("format_", [ExportFormat.CSV, ExportFormat.JSONL])
def test_csv_and_jsonl_are_the_report(cli: Cli, make: Make, tmp_path: Path, format_: ExportFormat) -> None:
    directory = make()
    cli("export", directory, "--to", format_, "-o", "export")
    cli("report", directory, "--format", format_, "-o", "report")
    assert (tmp_path / "export").read_bytes() == (tmp_path / "report").read_bytes()


def test_edges_are_the_links_of_the_report_as_json_lines_or_csv(cli: Cli, make: Make, tmp_path: Path) -> None:
    directory = make()
    cli("export", directory, "--to", "edges", "-o", "edges.jsonl")
    edges = [json.loads(line) for line in (tmp_path / "edges.jsonl").read_text().splitlines()]
    lines, _ = report_of(cli, directory)
    assert [(edge["source"], edge["target"]) for edge in edges] == [
        (line["url"], link) for line in lines for link in line["links"]
    ]
    assert [(edge["text"], edge["rel"]) for edge in edges] == [("first", None), (None, "sponsored nofollow")]
    cli("export", directory, "--to", "edges", "-o", "edges.CSV")
    with (tmp_path / "edges.CSV").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert rows == [{name: value or "" for name, value in edge.items()} for edge in edges]


@EVERY
def test_a_crawl_without_records_can_be_exported(cli: Cli, make: Make, tmp_path: Path, format_: ExportFormat) -> None:
    assert cli("export", make([]), "--to", format_, "-o", "out").status == 0
    assert json.loads((tmp_path / "out.meta.json").read_text())["rows"] == 0


def test_what_is_asked_for_wrongly_is_status_2(cli: Cli, make: Make, tmp_path: Path) -> None:
    make()
    for arguments in (["--to", "xlsx", "-o", "out"], ["-o", "out"], ["--to", "csv"], ["--to", "csv", "-o", "x.crawl"]):
        result = cli("export", "x.crawl", *arguments)
        assert (result.status, result.out, len(result.err.splitlines())) == (2, "", 1), result
    assert [path.name for path in tmp_path.iterdir()] == ["x.crawl"]


def test_parquet_without_pyarrow_is_status_2_and_names_the_extra(
    cli: Cli, make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)  # how Python marks what cannot be imported
    result = cli("export", make(), "--to", "parquet", "-o", "out")
    assert result.status == 2
    assert result.err == "crawlkit: Parquet needs pyarrow, which is not installed: pip install 'crawlkit[parquet]'\n"
    assert [path.name for path in tmp_path.iterdir()] == ["x.crawl"]


@EVERY
def test_an_output_that_cannot_be_is_status_4(cli: Cli, make: Make, tmp_path: Path, format_: ExportFormat) -> None:
    make()
    result = cli("export", "x.crawl", "--to", format_, "-o", "missing/out")
    assert (result.status, len(result.err.splitlines())) == (4, 1)
    assert "missing/out" in result.err
    assert [path.name for path in tmp_path.iterdir()] == ["x.crawl"]


def test_a_running_crawl_is_refused(cli: Cli, make: Make, tmp_path: Path) -> None:
    with DirectoryLock(make()):
        result = cli("export", "x.crawl", "--to", "csv", "-o", "out")
    assert result.status == 3
    assert "is in use by another crawlkit" in result.err
    assert [path.name for path in tmp_path.iterdir()] == ["x.crawl"]


@pytest.fixture(scope="module")
def nursery() -> Iterator[Nursery]:
    with Nursery() as running:
        yield running


def large() -> Iterator[Record]:
    """Yield records that no compression makes small."""
    rng = Random(1)
    for number in range(800):
        links = tuple(f"http://a.test/{rng.randbytes(16).hex()}" for _ in range(3))
        yield page(f"http://a.test/{rng.randbytes(16).hex()}/{number}", title=rng.randbytes(64).hex(), links=links)


@EVERY
def test_a_full_disk_is_status_4_and_leaves_the_old_file_and_nothing_else(
    make: Make, tmp_path: Path, nursery: Nursery, format_: ExportFormat
) -> None:
    """A limit on file sizes stands for the full disk."""
    directory = make(large())
    nursery.run("report", str(directory))  # after this one LevelDB has nothing of its own to write on opening
    out = tmp_path / "out"
    out.write_text("old")
    ended = nursery.run("export", str(directory), "--to", format_, "-o", str(out), faults=Faults(file_bytes=20_000))
    assert ended.status == 4, ended
    assert len(ended.output.splitlines()) == 1
    assert f"cannot write {out}" in ended.output
    assert out.read_text() == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "x.crawl"]


ROOM_FOR_THE_FILE_ALONE = """
import resource, sys
from pathlib import Path
from crawlkit.state.reading import open_crawl_for_reading
from crawlkit.surfaces.exports.formats import ExportFormat, export, writer_of
with open_crawl_for_reading(Path(sys.argv[1])) as crawl:
    resource.setrlimit(resource.RLIMIT_FSIZE, (200, 200))
    export(crawl, ExportFormat.JSONL, Path(sys.argv[2]), writer_of(ExportFormat.JSONL))
"""


def test_a_disk_too_full_for_the_sidecar_leaves_the_old_file(make: Make, tmp_path: Path) -> None:
    directory, out = make([]), tmp_path / "out"
    out.write_text("old")
    ended = run_child(ROOM_FOR_THE_FILE_ALONE, directory, out)
    assert "StorageError: cannot write" in ended.stderr.splitlines()[-1]
    assert out.read_text() == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "x.crawl"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_without_leaving_a_half_written_file(make: Make, tmp_path: Path, number: signal.Signals) -> None:
    links = tuple(f"http://a.test/{n}" for n in range(500))  # enough for a second of writing
    directory = make(page(f"http://a.test/{n}", links=links) for n in range(2000))
    half = tmp_path / "out.tmp"
    with processes.started(processes.command("export", directory, "--to", "csv", "-o", tmp_path / "out"), tmp_path) as process:
        processes.wait_while_running(process, lambda: half.exists() and half.stat().st_size > 0)
        process.send_signal(number)
        assert processes.ended(process).status == 128 + number
    assert [path.name for path in tmp_path.iterdir()] == ["x.crawl"]


def test_damage_met_half_way_leaves_the_old_file(cli: Cli, tmp_path: Path) -> None:
    directory = make_crawl(tmp_path / "x.crawl", large())
    cli("report", directory, "-o", tmp_path / "all")
    table = max((directory / "db").glob("*.ldb"), key=lambda path: path.stat().st_size)
    content = bytearray(table.read_bytes())
    content[len(content) // 2] ^= 1
    table.write_bytes(content)
    (tmp_path / "out").write_text("old")
    for format_ in OF_RECORDS:
        result = cli("export", directory, "--to", format_, "-o", "out")
        assert (result.status, (tmp_path / "out").read_text()) == (3, "old"), format_
    assert sorted(path.name for path in tmp_path.iterdir()) == ["all", "all.meta.json", "out", "x.crawl"]
