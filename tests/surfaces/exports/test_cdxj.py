"""`export --to cdxj`: by what it says, and by nothing else, independent readers find each page in the archive."""

import json
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from fastwarc.warc import ArchiveIterator as FastIterator
from warcio.archiveiterator import ArchiveIterator

from crawlkit.archive.surt import surt_of
from crawlkit.errors import UsageError
from crawlkit.surfaces.commands import HELP
from crawlkit.surfaces.export_command import export_command
from crawlkit.surfaces.exports import cdxj as exporting
from tests.engine.test_archiving import SITE, A, extents, files, start


def export(directory: Path, output: Path) -> list[tuple[str, str, dict[str, str]]]:
    result = CliRunner().invoke(
        export_command, [str(directory), "--to", "cdxj", "-o", str(output)], standalone_mode=False, help_option_names=HELP
    )
    if result.exception is not None:
        raise result.exception
    found = []
    for line in output.read_text().splitlines():
        key, stamp, told = line.split(" ", 2)
        found.append((key, stamp, json.loads(told)))
    return found


@pytest.fixture(scope="module")
def archived(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("archived") / "c"
    start(directory, warc_size=2_500)
    return directory


def replay(directory: Path, index: list[tuple[str, str, dict[str, str]]], url: str) -> tuple[str, bytes]:
    """Status line and content of a URL, as a tool finds them: by key, then for a revisit by digest."""
    told = next(told for key, _, told in index if key == surt_of(url))
    record = member(directory, told)
    status, content = record.http_headers.statusline, record.content_stream().read()
    if told["mime"] == "warc/revisit":
        original = next(o for _, _, o in index if o["digest"] == told["digest"] and o["mime"] != "warc/revisit")
        content = member(directory, original).content_stream().read()
    return status, content


def member(directory: Path, told: dict[str, str]) -> Any:
    with (directory / "warc" / told["filename"]).open("rb") as file:
        file.seek(int(told["offset"]))
        data = file.read(int(told["length"]))
    [seen] = fast(data)
    record = next(iter(ArchiveIterator(BytesIO(data))))
    assert record.rec_headers.get_header("WARC-Record-ID") == seen
    return record


def fast(data: bytes) -> Iterator[str]:
    for record in FastIterator(BytesIO(data)):
        yield record.headers["WARC-Record-ID"]


@pytest.mark.parametrize("path", ["/", "/a", "/twin", "/deep", "/late"])
def test_a_page_is_replayed_by_the_index(archived: Path, tmp_path: Path, path: str) -> None:
    index = export(archived, tmp_path / "x.cdxj")
    assert replay(archived, index, f"{A}{path}") == ("200 OK", SITE.reply("a.test:80", path).body)


def test_each_answer_has_a_line_and_lines_are_sorted(archived: Path, tmp_path: Path) -> None:
    index = export(archived, tmp_path / "x.cdxj")
    assert sorted(told["url"] for _, _, told in index) == sorted(e.url for e in extents(archived))
    lines = (tmp_path / "x.cdxj").read_bytes().splitlines()
    assert lines == sorted(lines)
    assert {told["url"].removeprefix(A): (told["status"], told["mime"]) for _, _, told in index}["/gone"] == (
        "404",
        "text/plain",
    )
    meta = json.loads((tmp_path / "x.cdxj.meta.json").read_text())
    assert (meta["format"], meta["rows"]) == ("cdxj", len(lines))


def test_more_lines_than_fit_into_memory_are_merged(archived: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = export(archived, tmp_path / "x.cdxj")
    monkeypatch.setattr(exporting, "_LINES_A_RUN", 2)
    assert export(archived, tmp_path / "y.cdxj") == whole


def test_a_crawl_without_an_archive_is_refused(tmp_path: Path) -> None:
    start(tmp_path / "c", warc=False)
    with pytest.raises(UsageError, match="keeps no archive"):
        export(tmp_path / "c", tmp_path / "x.cdxj")
    assert not list(tmp_path.glob("x.*"))


def test_lines_name_files_that_are_there(archived: Path, tmp_path: Path) -> None:
    index = export(archived, tmp_path / "x.cdxj")
    assert {told["filename"] for _, _, told in index} == {path.name for path in files(archived)}
