"""Rows of a view as text, JSON lines or CSV, on a stream or into a file with its sidecar."""

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO, assert_never

import msgspec

from crawlkit.durable import open_replacement
from crawlkit.state.reading import CrawlReader
from crawlkit.surfaces.csv_rows import csv_row
from crawlkit.surfaces.health.views import Row, View, row_type, rows_of
from crawlkit.surfaces.report import ReportFormat
from crawlkit.surfaces.sidecar import meta_of, sidecar, sidecar_path


def write_view(view: View, crawl: CrawlReader, format_: ReportFormat, out: BinaryIO) -> tuple[int, str]:
    """Write the rows of a view; return their number and the SHA-256 (hex) of the bytes. OSErrors of `out` pass through."""
    header = csv_row(row_type(view).__struct_fields__) if format_ is ReportFormat.CSV else b""
    as_bytes = _formatter(format_)
    digest = hashlib.sha256(header)
    out.write(header)
    count = 0
    for row in rows_of(view, crawl):
        written = as_bytes(row)
        digest.update(written)
        out.write(written)
        count += 1
    return count, digest.hexdigest()


def write_view_file(view: View, crawl: CrawlReader, format_: ReportFormat, path: Path) -> None:
    """Replace `path` by a view and `path` + `.meta.json` by its sidecar, as `report.write_report_file` does for a report."""
    with open_replacement(sidecar_path(path)) as beside, open_replacement(path) as out:
        count, sha256 = write_view(view, crawl, format_, out)
        beside.write(sidecar({view.value: count}, sha256, meta_of(crawl)))
        beside.flush()


_encode = msgspec.json.Encoder().encode


def _formatter(format_: ReportFormat) -> Callable[[Row], bytes]:
    match format_:
        case ReportFormat.TEXT:
            return lambda row: row.text().encode() + b"\n"
        case ReportFormat.JSONL:
            return lambda row: _encode(row) + b"\n"
        case ReportFormat.CSV:
            return lambda row: csv_row(msgspec.structs.astuple(row))
        case unknown:
            assert_never(unknown)
