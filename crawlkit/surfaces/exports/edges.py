"""The link graph, one row for each link of each page: CSV where the file is named `.csv`, else JSON lines."""

from collections.abc import Iterator

import msgspec

from crawlkit.model import Record
from crawlkit.surfaces.csv_rows import csv_row
from crawlkit.surfaces.exports.job import ExportJob


class Edge(msgspec.Struct, frozen=True, kw_only=True):
    """One link. `rel` is `nofollow` where it does not count, by its own rel or by what the page says to robots."""

    source: str
    target: str
    text: str | None
    rel: str | None


def edges_of(record: Record) -> Iterator[Edge]:
    """Yield the links of a record in their order on the page."""
    nofollow = frozenset(record.nofollow)
    for index, target in enumerate(record.links):
        yield Edge(source=record.url, target=target, text=None, rel="nofollow" if index in nofollow else None)


def write_edges(job: ExportJob) -> int:
    """Write the edges, by source and then in the order of the page."""
    if job.path.suffix.lower() == ".csv":
        job.out.write(csv_row(Edge.__struct_fields__))
        as_row = _csv_row
    else:
        as_row = _json_line
    count = 0
    for record in job.records():
        for edge in edges_of(record):
            job.out.write(as_row(edge))
            count += 1
    return count


_encode = msgspec.json.Encoder().encode


def _json_line(edge: Edge) -> bytes:
    return _encode(edge) + b"\n"


def _csv_row(edge: Edge) -> bytes:
    return csv_row(msgspec.structs.astuple(edge))
