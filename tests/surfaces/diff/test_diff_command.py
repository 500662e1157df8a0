"""`crawlkit diff`: crawl directories and reports, as text and JSON, with what is wrong said in a line."""

import json
from pathlib import Path
from typing import Any

import pytest

from crawlkit.model import Kind, Reason, Record
from crawlkit.state.directory import DirectoryLock
from tests.surfaces.conftest import Cli
from tests.surfaces.made_crawls import Make, page

A = "http://a.test"
BEFORE = [
    page(f"{A}/", title="Home", digest="sha256:1", canonical=f"{A}/"),
    page(f"{A}/away", status=204),
    page(f"{A}/moved"),
    page(f"{A}/same", title="Same"),
    page(f"{A}/text", digest="sha256:1"),
    page(f"{A}/titled", title="Old", canonical=f"{A}/"),
]
AFTER = [
    page(f"{A}/", title="Home", digest="sha256:1", canonical=f"{A}/"),
    Record(url=f"{A}/late", kind=Kind.FAILURE, depth=1, reason=Reason.TIMEOUT),
    Record(url=f"{A}/moved", kind=Kind.REDIRECT, depth=1, status=301, redirect_to=f"{A}/"),
    page(f"{A}/same", title="Same", elapsed_ms=5, attempts=2),
    page(f"{A}/text", digest="sha256:2"),
    page(f"{A}/titled", title=None, canonical=None),
]
TEXT = [
    f"- {A}/away 204",
    f"+ {A}/late net.timeout",
    f'~ {A}/moved kind "page" -> "redirect"; status 200 -> 301; redirect_to none -> "{A}/"',
    f"~ {A}/text content",
    f'~ {A}/titled title "Old" -> none; canonical "{A}/" -> none',
]


@pytest.fixture
def sides(cli: Cli, make: Make, tmp_path: Path) -> Path:
    """Make a.crawl and b.crawl, and their reports."""
    for name, records in (("a", BEFORE), ("b", AFTER)):
        make(records, f"{name}.crawl")
        cli("report", f"{name}.crawl", "--format", "jsonl", "--with-timing", "-o", f"{name}.jsonl")
    return tmp_path


@pytest.mark.parametrize("before", ["a.crawl", "a.jsonl"])
@pytest.mark.parametrize("after", ["b.crawl", "b.jsonl"])
def test_text_is_a_line_for_each_difference(cli: Cli, sides: Path, before: str, after: str) -> None:
    result = cli("diff", before, after)
    assert (result.status, result.out.splitlines(), result.err) == (0, TEXT, "")


def test_json_has_what_differs_on_both_sides(cli: Cli, sides: Path) -> None:
    found: list[dict[str, Any]] = [json.loads(line) for line in cli("diff", "a.crawl", "b.crawl", "--json").out.splitlines()]
    assert [(line["url"].removeprefix(A), line["change"]) for line in found] == [
        ("/away", "removed"),
        ("/late", "added"),
        ("/moved", "changed"),
        ("/text", "changed"),
        ("/titled", "changed"),
    ]
    assert (found[1]["before"], found[1]["after"]["reason"]) == (None, "net.timeout")
    assert (found[3]["before"], found[3]["after"]) == ({"digest": "sha256:1"}, {"digest": "sha256:2"})


def test_the_summary_counts_on_standard_error(cli: Cli, sides: Path) -> None:
    result = cli("diff", "a.crawl", "b.crawl", "--summary")
    assert result.out.splitlines() == TEXT
    assert result.err == (
        "1 added, 1 removed, 3 changed, 2 the same (kind 1, status 1, redirect_to 1, digest 1, title 1, canonical 1)\n"
    )


def test_no_difference_is_status_0_and_nothing_on_standard_output(cli: Cli, sides: Path, make: Make) -> None:
    make(BEFORE[::-1], "c.crawl")
    result = cli("diff", "a.jsonl", "c.crawl", "--summary")
    assert (result.status, result.out, result.err) == (0, "", "0 added, 0 removed, 0 changed, 6 the same\n")


def test_a_report_with_some_fields_is_compared_by_these(cli: Cli, sides: Path) -> None:
    (sides / "few.jsonl").write_text(cli("report", "b.crawl", "--format", "jsonl", "--fields", "url,digest").out)
    assert cli("diff", "a.crawl", "few.jsonl").out.splitlines() == [f"- {A}/away 204", f"+ {A}/late", f"~ {A}/text content"]


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("not json\n", "bad.jsonl, line 1 is not of a report with --format jsonl"),
        ('{"url":"a"}\n{"url":1}\n', "bad.jsonl, line 2 is not of a report"),
        (b"\xff\xfe\n", "bad.jsonl, line 1 is not of a report"),
        ('{"url":"b"}\n{"url":"a"}\n', "line 2: the URLs of a report are sorted"),
        ('{"url":"a"}\n{"url":"a"}\n', "line 2: the URLs of a report are sorted"),
    ],
)
def test_a_file_that_is_no_report_is_status_2(cli: Cli, sides: Path, content: str | bytes, complaint: str) -> None:
    (sides / "bad.jsonl").write_bytes(content if isinstance(content, bytes) else content.encode())
    result = cli("diff", "bad.jsonl", "b.crawl")
    assert (result.status, len(result.err.splitlines())) == (2, 1)
    assert complaint in result.err


def test_the_same_crawl_twice_is_status_2(cli: Cli, sides: Path) -> None:
    result = cli("diff", "a.crawl", "./a.crawl")
    assert (result.status, result.err) == (2, "crawlkit: a.crawl and a.crawl are the same crawl\n")


def test_what_is_not_there_or_running_is_status_3(cli: Cli, sides: Path) -> None:
    for arguments in (("a.crawl", "none.crawl"), ("none.jsonl", "a.crawl")):
        result = cli("diff", *arguments)
        assert (result.status, result.out, len(result.err.splitlines())) == (3, "", 1)
    with DirectoryLock(sides / "b.crawl"):
        result = cli("diff", "a.crawl", "b.crawl")
    assert (result.status, len(result.err.splitlines())) == (3, 1)
    assert "is in use by another crawlkit" in result.err
