"""Groups of rows: bounded by rows, links and characters, and a function of the records."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from crawlkit.durable import open_replacement
from crawlkit.model import Content
from crawlkit.state.reading import open_crawl_for_reading
from crawlkit.surfaces.exports.job import ExportJob
from crawlkit.surfaces.exports.rows import GroupSize, groups_of
from crawlkit.surfaces.sidecar import meta_of
from tests.surfaces import made_crawls
from tests.surfaces.made_crawls import RECORDS, Make, page


@contextmanager
def job_of(directory: Path) -> Iterator[ExportJob]:
    path = directory.parent / "out"
    with open_crawl_for_reading(directory) as crawl, ExitStack() as files:
        yield ExportJob(crawl, meta_of(crawl), path, files.enter_context(open_replacement(path)), files)


def test_a_row_has_the_record_s_line_and_its_text(make: Make) -> None:
    with job_of(make()) as job:
        ((first, *_),) = groups_of(job, GroupSize(100, 100, 100))
    assert (first.line.url, first.line.title, first.line.text) == (RECORDS[0].url, "=1+1", "The main text")
    assert first.record.links == RECORDS[0].links
    assert first.content == Content("The main text", (("first", ""), ("", "sponsored")))


def test_groups_are_cut_by_rows_links_and_characters(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = [(1, 0), (1, 0), (1, 0), (12, 0), (5, 0), (6, 0), (0, 40), (0, 25), (0, 25), (0, 0)]
    records, contents = [], {}
    for number, (links, characters) in enumerate(sizes):
        record = page(f"http://a.test/{number:02}", links=tuple(f"http://b.test/{k}" for k in range(links)))
        records.append(record)
        contents[record.url] = Content("x" * characters)
    monkeypatch.setattr(made_crawls, "CONTENTS", contents)
    with job_of(make(records)) as job:
        groups = [len(group) for group in groups_of(job, GroupSize(rows=3, links=10, characters=40))]
    assert groups == [3, 1, 2, 1, 2, 1]
