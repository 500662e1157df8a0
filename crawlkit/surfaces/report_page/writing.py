"""The page as a stream: its parts, and between them the records, one at a time."""

import html
import itertools
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

import msgspec

from crawlkit.durable import open_replacement
from crawlkit.model import Kind, Record
from crawlkit.state.reading import CrawlReader
from crawlkit.surfaces.health.broken import Broken, find_broken
from crawlkit.surfaces.health.duplicates import Duplicate, find_duplicates
from crawlkit.surfaces.pages.assembling import assets_of, without_markup
from crawlkit.surfaces.report_page.figures import Figures

MOST_ROWS = 250_000
"""Records in the table. A browser takes 100,000 in a second, and a million not at all; charts count all of them."""
MOST_BROKEN = 5_000
MOST_PAGES_A_BROKEN = 10
MOST_DUPLICATES = 5_000

_KINDS = tuple(Kind)


def write_page(crawl: CrawlReader, out: BinaryIO) -> None:
    """Write the page. OSErrors of `out` pass through."""
    assets = assets_of(__package__)
    before, after = assets.markup.split("{{data}}")
    title = html.escape(crawl.directory.resolve().name)
    head = before.replace("{{csp}}", assets.policy()).replace("{{style}}", assets.style)
    head = head.replace("{{title}}", title)  # last, as a directory may be called anything
    out.write(head.encode())
    for name, rows in _tables(crawl):
        _write_json(out, name, rows)
    out.write(after.replace("{{script}}", assets.script).encode())


def write_page_file(crawl: CrawlReader, path: Path) -> None:
    """Replace `path` by the page, atomically; StorageError if it could not be written."""
    with open_replacement(path) as out:
        write_page(crawl, out)


def _tables(crawl: CrawlReader) -> Iterator[tuple[str, Iterable[object]]]:
    """Yield the page's data, by name; the charts are counted while the rows are taken, hence the order."""
    figures = Figures()
    yield "rows", _rows(crawl.pages.walk_marked(), figures)
    yield "charts", [figures.charts()]
    yield "broken", map(_broken, itertools.islice(find_broken(crawl), MOST_BROKEN))
    yield "duplicates", map(_duplicate, itertools.islice(find_duplicates(crawl), MOST_DUPLICATES))
    yield "crawl", [_crawl(crawl)]


def _rows(records: Iterable[Record], figures: Figures) -> Iterator[list[object]]:
    for number, record in enumerate(records):
        figures.add(record)
        if number < MOST_ROWS:
            yield _row(record)


def _row(record: Record) -> list[object]:
    """Return a record as the script reads it: by position."""
    return [
        record.url, _KINDS.index(record.kind), record.status, record.depth, record.body_bytes, record.content_type,
        record.title, record.reason, record.redirect_to, record.elapsed_ms, len(record.links), record.words,
    ]  # fmt: skip


def _broken(row: Broken) -> list[object]:
    return [row.url, str(row.status or row.reason), row.redirect_to, row.pages, row.linked_from[:MOST_PAGES_A_BROKEN]]


def _duplicate(row: Duplicate) -> list[object]:
    return [row.url, row.duplicate_of, row.likeness, row.pages]


def _crawl(crawl: CrawlReader) -> dict[str, object]:
    counters = crawl.counters
    return {
        "kinds": _KINDS,
        "seeds": list(itertools.islice(crawl.seeds(), 20)),
        "records": counters.records,
        "bytes": counters.body_bytes,
        "hosts": counters.hosts,
        "elapsed_s": counters.elapsed_s,
        "runs": len(crawl.runs),
        "finished": counters.finished,
        "reasons": sorted(counters.reasons),
        "refused": dict(sorted(counters.refused.items())),
        "most_rows": MOST_ROWS,
    }


def _write_json(out: BinaryIO, name: str, rows: Iterable[object]) -> None:
    out.write(f'<script type="application/json" id="data-{name}">[\n'.encode())
    for number, row in enumerate(rows):
        out.write((b",\n" if number else b"") + without_markup(msgspec.json.encode(row)))
    out.write(b"\n]</script>\n")
