"""The link graph, one row for each link of each page: CSV where the file is named `.csv`, else JSON lines."""

import itertools
from collections.abc import Iterator

import msgspec

from crawlkit.model import Content, Record
from crawlkit.surfaces.csv_rows import csv_row
from crawlkit.surfaces.exports.job import ExportJob


class Edge(msgspec.Struct, frozen=True, kw_only=True):
    """One link. `rel` has `nofollow` where it does not count, by its own rel or by what the page says to robots.

    `text`, and the rest of `rel`, are known where the crawl keeps anchors.
    """

    source: str
    target: str
    text: str | None
    rel: str | None


def edges_of(record: Record, content: Content | None) -> Iterator[Edge]:
    """Yield the links of a record in their order on the page; `content` is what was kept beside it."""
    nofollow = frozenset(record.nofollow)
    anchors = () if content is None else content.anchors
    for index, (target, anchor) in enumerate(itertools.zip_longest(record.links, anchors, fillvalue=("", ""))):
        text, rel = anchor
        tokens = rel.split()
        if index in nofollow and "nofollow" not in tokens:
            tokens.append("nofollow")
        yield Edge(source=record.url, target=str(target), text=text or None, rel=" ".join(tokens) or None)


def write_edges(job: ExportJob) -> int:
    """Write the edges, by source and then in the order of the page."""
    if job.path.suffix.lower() == ".csv":
        job.out.write(csv_row(Edge.__struct_fields__))
        as_row = _csv_row
    else:
        as_row = _json_line
    count = 0
    for record in job.records():
        for edge in edges_of(record, job.crawl.pages.content(record.url)):
            job.out.write(as_row(edge))
            count += 1
    return count


_encode = msgspec.json.Encoder().encode


def _json_line(edge: Edge) -> bytes:
    return _encode(edge) + b"\n"


def _csv_row(edge: Edge) -> bytes:
    return csv_row(msgspec.structs.astuple(edge))
