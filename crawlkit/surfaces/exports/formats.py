"""The formats of `crawlkit export`, the writer of each, and the export as a whole: all of its files, or none."""

import hashlib
import io
from collections.abc import Callable
from contextlib import ExitStack
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import BinaryIO, assert_never

from crawlkit.durable import open_replacement
from crawlkit.state.reading import CrawlReader
from crawlkit.surfaces.exports.cdxj import write_cdxj
from crawlkit.surfaces.exports.edges import write_edges
from crawlkit.surfaces.exports.job import ExportJob
from crawlkit.surfaces.exports.parquet import parquet_writer
from crawlkit.surfaces.exports.sitemap import write_sitemap
from crawlkit.surfaces.exports.sqlite import write_sqlite
from crawlkit.surfaces.report import ReportFormat, ReportOptions, write_report
from crawlkit.surfaces.sidecar import meta_of, sidecar, sidecar_path

_READ_BYTES = 1 << 20


class ExportFormat(StrEnum):
    """What a crawl can be exported to."""

    CSV = "csv"
    JSONL = "jsonl"
    SQLITE = "sqlite"
    PARQUET = "parquet"
    EDGES = "edges"
    SITEMAP = "sitemap"
    CDXJ = "cdxj"


Writer = Callable[[ExportJob], int]
"""Writes a job's records and returns how many rows there are. OSErrors pass through."""


def writer_of(format_: ExportFormat) -> Writer:  # noqa: PLR0911  (one return a format)
    """Return the writer of a format; UsageError if it needs a package that is not installed."""
    match format_:
        case ExportFormat.CSV:
            return partial(_write_report, ReportFormat.CSV)
        case ExportFormat.JSONL:
            return partial(_write_report, ReportFormat.JSONL)
        case ExportFormat.SQLITE:
            return write_sqlite
        case ExportFormat.PARQUET:
            return parquet_writer()
        case ExportFormat.EDGES:
            return write_edges
        case ExportFormat.SITEMAP:
            return write_sitemap
        case ExportFormat.CDXJ:
            return write_cdxj
        case unknown:
            assert_never(unknown)


def export(crawl: CrawlReader, format_: ExportFormat, path: Path, write: Writer) -> None:
    """Replace `path`, and what belongs to it, by the export of a crawl, each file atomically, once all are written.

    The sidecar counts the rows and the crawl's records, with the SHA-256 of the JSON report of the same records.

    Raises:
        StorageError: something could not be written. Whatever goes wrong before the first file is replaced, also in reading
            the crawl, leaves all old files as they were.
    """
    with ExitStack() as files:  # closed from the last to the first: the sidecar is replaced when all else is
        beside = files.enter_context(open_replacement(sidecar_path(path)))
        out = files.enter_context(open_replacement(path))
        job = ExportJob(crawl, meta_of(crawl), path, out, files)
        rows = write(job)
        out.flush()
        counts = job.tally.counts()
        more = {"format": format_.value, "rows": rows, "report_sha256": counts.sha256}
        beside.write(sidecar(counts.by_kind(), _sha256_of(out), job.meta, more))
        beside.flush()


def _write_report(format_: ReportFormat, job: ExportJob) -> int:
    counts = write_report(job.records(), job.out, io.StringIO(), ReportOptions(format_))
    return sum(counts.by_kind().values())


def _sha256_of(file: BinaryIO) -> str:
    """Return the SHA-256 (hex) of what was written to `file`."""
    digest = hashlib.sha256()
    with Path(file.name).open("rb") as written:
        while piece := written.read(_READ_BYTES):
            digest.update(piece)
    return digest.hexdigest()
