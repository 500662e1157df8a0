"""Rows for formats that hold a whole crawl: the report's fields, the main text, in groups that memory can hold."""

from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from crawlkit.model import Content, Record
from crawlkit.surfaces.exports.job import ExportJob
from crawlkit.surfaces.lines import Line, as_line


class FullLine(Line, frozen=True, kw_only=True):
    """A line with the main text, where the crawl keeps texts."""

    text: str | None


class Row(NamedTuple):
    """One record, with what is kept beside it."""

    record: Record
    content: Content | None
    line: FullLine


class GroupSize(NamedTuple):
    """Where a group of rows ends: at so many of them, or at so many links, or so many characters of text."""

    rows: int
    links: int
    characters: int


def groups_of(job: ExportJob, size: GroupSize) -> Iterator[list[Row]]:
    """Yield the job's records in groups, which depend on the records alone."""
    group: list[Row] = []
    links = characters = 0
    for record in job.records():
        content = job.crawl.pages.content(record.url)
        text = None if content is None else content.text
        line = FullLine(**msgspec.structs.asdict(as_line(record)), text=text)
        group.append(Row(record, content, line))
        links += len(record.links)
        characters += len(text or "")
        if len(group) >= size.rows or links >= size.links or characters >= size.characters:
            yield group
            group, links, characters = [], 0, 0
    if group:
        yield group
