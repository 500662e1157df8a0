"""The Parquet export: what pyarrow reads back is the report."""

import json
from pathlib import Path

from pyarrow import parquet

from tests.surfaces.conftest import Cli
from tests.surfaces.made_crawls import Make


def test_rows_are_the_lines_of_the_report(cli: Cli, make: Make, tmp_path: Path) -> None:
    make()
    assert cli("export", "x.crawl", "--to", "parquet", "-o", "out.parquet").status == 0
    rows = parquet.read_table(tmp_path / "out.parquet").to_pylist()
    assert [row.pop("text") for row in rows] == ["The main text", *[None] * (len(rows) - 1)]
    expected = [json.loads(line) for line in cli("report", "x.crawl", "--format", "jsonl").out.splitlines()]
    nested = {
        name: [json.loads(row[name]) if row[name] else None for row in rows] for name in ("fields", "alternates", "headings")
    }
    assert [{**row, **{name: nested[name][n] for name in nested}} for n, row in enumerate(rows)] == expected


def test_columns_have_their_types_even_without_rows(cli: Cli, make: Make, tmp_path: Path) -> None:
    cli("export", make([]), "--to", "parquet", "-o", "out.parquet")
    schema = parquet.read_schema(tmp_path / "out.parquet")
    types = {name: str(schema.field(name).type) for name in ("url", "status", "truncated", "links", "fields")}
    assert types == {
        "url": "string",
        "status": "int64",
        "truncated": "bool",
        "links": "list<element: string>",
        "fields": "string",
    }


def test_the_file_s_metadata_names_the_report(cli: Cli, make: Make, tmp_path: Path) -> None:
    cli("export", make(), "--to", "parquet", "-o", "out.parquet")
    meta = parquet.read_metadata(tmp_path / "out.parquet").metadata
    beside = json.loads((tmp_path / "out.parquet.meta.json").read_text())
    assert meta[b"crawlkit.report_sha256"].decode() == beside["report_sha256"]
    assert meta[b"crawlkit.pages"] == b"4"
