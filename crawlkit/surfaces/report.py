"""Records as a report: text, JSON lines or CSV, as a stream, with counts and the digest of what was written.

Whoever calls hands over the records sorted by the bytes of their URL. Without timing, what is written is a function of
the records alone, so that two crawls can be compared byte for byte.
"""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import BinaryIO, TextIO, assert_never

import msgspec

from crawlkit.durable import open_replacement
from crawlkit.model import Kind, Record
from crawlkit.surfaces.csv_rows import csv_row
from crawlkit.surfaces.lines import Line, TimedLine, as_line, as_timed_line
from crawlkit.surfaces.selection import Selection
from crawlkit.surfaces.sidecar import ReportMeta, sidecar, sidecar_path


class ReportFormat(StrEnum):
    """How a record is written."""

    TEXT = "text"
    JSONL = "jsonl"
    CSV = "csv"


class Only(StrEnum):
    """Which records are written."""

    PAGES = "pages"
    REDIRECTS = "redirects"
    FAILURES = "failures"
    EXCLUDED = "excluded"
    ALL = "all"


@dataclass(frozen=True, slots=True)
class ReportOptions:
    """What to write and how. `only` is by default pages for text, all for the others. Text has no timing.

    With a `selection`, which text has not, it alone says which fields are shown, those of timing among them.
    """

    format: ReportFormat = ReportFormat.TEXT
    only: Only | None = None
    with_timing: bool = False
    selection: Selection | None = None

    def kinds(self) -> frozenset[Kind]:
        """Return the kinds of records that are written."""
        match self.only or (Only.PAGES if self.format is ReportFormat.TEXT else Only.ALL):
            case Only.PAGES:
                return frozenset({Kind.PAGE})
            case Only.REDIRECTS:
                return frozenset({Kind.REDIRECT})
            case Only.FAILURES:
                return frozenset({Kind.FAILURE})
            case Only.EXCLUDED:
                return frozenset({Kind.EXCLUDED})
            case Only.ALL:
                return frozenset(Kind)
            case unknown:
                assert_never(unknown)


@dataclass(frozen=True, slots=True)
class ReportCounts:
    """How many records of each kind there are, written or not, and the SHA-256 (hex) of the bytes written."""

    pages: int
    redirects: int
    failures: int
    excluded: int
    sha256: str

    def by_kind(self) -> dict[str, int]:
        """Return the numbers of records."""
        return {"pages": self.pages, "redirects": self.redirects, "failures": self.failures, "excluded": self.excluded}


def write_report(records: Iterable[Record], out: BinaryIO, err: TextIO, options: ReportOptions) -> ReportCounts:
    """Write the records that `options` ask for to `out`; text also names every failure on `err`.

    Takes one record at a time. `out` and `err` are flushed by whoever opened them; their OSErrors pass through.
    """
    kinds = options.kinds()
    formatted = _formatter(options)
    names_failures = options.format is ReportFormat.TEXT
    counts: Counter[Kind] = Counter()
    header = _header(options)
    digest = hashlib.sha256(header)
    out.write(header)
    for record in records:
        counts[record.kind] += 1
        if names_failures and record.kind is Kind.FAILURE:
            err.write(f"FAILED {record.url}: {record.reason}\n")
        if record.kind in kinds:
            written = formatted(record)
            digest.update(written)
            out.write(written)
    return ReportCounts(
        pages=counts[Kind.PAGE],
        redirects=counts[Kind.REDIRECT],
        failures=counts[Kind.FAILURE],
        excluded=counts[Kind.EXCLUDED],
        sha256=digest.hexdigest(),
    )


def write_report_file(
    path: Path, records: Iterable[Record], err: TextIO, options: ReportOptions, meta: ReportMeta
) -> ReportCounts:
    """Replace `path` by the report and `path` + `.meta.json` by its sidecar, each atomically, once both are written.

    Raises:
        StorageError: one of them could not be written. Whatever goes wrong, also in `records`, the old report stays.
    """
    with (
        open_replacement(sidecar_path(path)) as beside,
        open_replacement(path) as out,
    ):
        counts = write_report(records, out, err, options)
        beside.write(sidecar(counts.by_kind(), counts.sha256, meta))
        beside.flush()  # a full disk shows here, before either file is replaced
    return counts


def _formatter(options: ReportOptions) -> Callable[[Record], bytes]:
    match options.format:
        case ReportFormat.TEXT:
            return _text
        case ReportFormat.JSONL:
            if options.selection is not None:
                return _chosen_line(options.selection)
            return _timed_line if options.with_timing else json_line
        case ReportFormat.CSV:
            if options.selection is not None:
                return _chosen_csv_row(options.selection)
            return _csv_row(as_timed_line if options.with_timing else as_line)
        case unknown:
            assert_never(unknown)


def _header(options: ReportOptions) -> bytes:
    """Return what stands above all records."""
    if options.format is not ReportFormat.CSV:
        return b""
    if options.selection is not None:
        return csv_row(options.selection.names)
    return csv_row((TimedLine if options.with_timing else Line).__struct_fields__)


def _text(record: Record) -> bytes:
    lines = [f"URL: {record.url}"]
    match record.kind:
        case Kind.PAGE:
            lines += ["Links:", *(f"  {link}" for link in record.links)]
        case Kind.REDIRECT:
            lines.append(f"Redirect: {record.redirect_to}")
        case Kind.FAILURE:
            lines.append(f"Failed: {record.reason}")
        case Kind.EXCLUDED:
            lines.append(f"Excluded: {record.reason}")
        case unknown:
            assert_never(unknown)
    return ("\n".join(lines) + "\n").encode()


_encode = msgspec.json.Encoder().encode


def json_line(record: Record) -> bytes:
    """Return a record as its line of the JSON report, line end included."""
    return _encode(as_line(record)) + b"\n"


def _timed_line(record: Record) -> bytes:
    return _encode(as_timed_line(record)) + b"\n"


def _csv_row(as_seen: Callable[[Record], Line]) -> Callable[[Record], bytes]:
    return lambda record: csv_row(msgspec.structs.astuple(as_seen(record)))


def _chosen_line(selection: Selection) -> Callable[[Record], bytes]:
    return lambda record: _encode(selection.values(record)) + b"\n"


def _chosen_csv_row(selection: Selection) -> Callable[[Record], bytes]:
    return lambda record: csv_row(selection.values(record).values())
