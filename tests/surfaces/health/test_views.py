"""`crawlkit report` with a view on the site's health: what each finds, in which order, and how it is written."""

import csv
import hashlib
import io
import json
from pathlib import Path
from typing import Any

import pytest

from crawlkit.model import Kind, Reason, Record, Source
from crawlkit.surfaces.health import broken, orphans
from crawlkit.surfaces.health.views import View
from tests.state.making import run_child
from tests.surfaces.conftest import Cli
from tests.surfaces.made_crawls import Make, page

A = "http://a.test"


def redirect(path: str, target: str, **facts: Any) -> Record:
    return Record(url=A + path, kind=Kind.REDIRECT, depth=1, redirect_to=target, **{"status": 301, **facts})


def failure(path: str, status: int | None = 404, reason: Reason = Reason.CLIENT_ERROR, **facts: Any) -> Record:
    return Record(url=A + path, kind=Kind.FAILURE, depth=1, status=status, reason=reason, **facts)


def excluded(path: str) -> Record:
    return Record(url=A + path, kind=Kind.EXCLUDED, depth=1, reason=Reason.ROBOTS_DISALLOW)


def rows(cli: Cli, view: str) -> list[dict[str, Any]]:
    result = cli("report", "x.crawl", f"--{view}", "--format", "jsonl")
    assert (result.status, result.err) == (0, "")
    return [json.loads(line) for line in result.out.splitlines()]


def text(cli: Cli, view: str) -> list[str]:
    return cli("report", "x.crawl", f"--{view}").out.splitlines()


# Broken links --------------------------------------------------------------------------------------------------------


def test_broken_names_the_pages_that_link_to_what_failed_or_redirects(cli: Cli, make: Make) -> None:
    make(
        [
            page(f"{A}/", links=(f"{A}/gone", f"{A}/fine", f"{A}/moved", "http://out.test/")),
            page(f"{A}/fine", links=(f"{A}/gone",)),
            failure("/gone"),
            failure("/late", None, Reason.TIMEOUT),
            redirect("/moved", f"{A}/fine"),
            excluded("/secret"),
        ]
    )
    assert rows(cli, "broken") == [
        {
            "url": f"{A}/gone",
            "kind": "failure",
            "status": 404,
            "reason": "http.client_error",
            "redirect_to": None,
            "pages": 2,
            "linked_from": [f"{A}/", f"{A}/fine"],
        },
        {
            "url": f"{A}/late",
            "kind": "failure",
            "status": None,
            "reason": "net.timeout",
            "redirect_to": None,
            "pages": 0,
            "linked_from": [],
        },
        {
            "url": f"{A}/moved",
            "kind": "redirect",
            "status": 301,
            "reason": None,
            "redirect_to": f"{A}/fine",
            "pages": 1,
            "linked_from": [f"{A}/"],
        },
    ]
    assert text(cli, "broken") == [
        f"{A}/gone 404, linked from 2",
        f"  {A}/",
        f"  {A}/fine",
        f"{A}/late net.timeout, linked from 0",
        f"{A}/moved 301 -> {A}/fine, linked from 1",
        f"  {A}/",
    ]


def test_of_many_pages_that_link_the_first_are_named_and_all_are_counted(cli: Cli, make: Make) -> None:
    sources = [f"{A}/{n:03}" for n in range(broken.MOST_LISTED + 7)]
    make([*(page(url, links=(f"{A}/gone",)) for url in reversed(sources)), failure("/gone")])
    ((row,), lines) = (rows(cli, "broken"), text(cli, "broken"))
    assert (row["pages"], row["linked_from"]) == (107, sources[:100])
    assert (len(lines), lines[-1]) == (102, "  and 7 more")


def test_links_that_the_filter_takes_for_broken_are_looked_up(cli: Cli, make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(broken, "_FILTER_BITS", 1)
    monkeypatch.setattr(broken, "_ROWS_AT_ONCE", 2)
    links = tuple(f"{A}/{n}" for n in range(9))
    make([page(f"{A}/", links=links), page(f"{A}/x", links=links[5:]), failure("/7"), failure("/3")])
    assert [(row["url"], row["pages"]) for row in rows(cli, "broken")] == [(f"{A}/3", 1), (f"{A}/7", 2)]


# Orphans -------------------------------------------------------------------------------------------------------------


def test_orphans_are_in_a_sitemap_and_nothing_else_leads_to_them(cli: Cli, make: Make) -> None:
    listed = {"sources": Source.SITEMAP | Source.LINK, "lastmod": "2026-01-01T00:00:00Z"}
    make(
        [
            page(f"{A}/", links=(f"{A}/linked", f"{A}/old"), nofollow=(0,), sources=Source.SEED | Source.SITEMAP),
            page(f"{A}/linked", **listed),
            page(f"{A}/moved-to", **listed),
            page(f"{A}/only-itself", links=(f"{A}/only-itself",), canonical=f"{A}/only-itself", **listed),
            page(f"{A}/itself-too", links=(f"{A}/itself-too",), **listed),
            page(f"{A}/unlisted", links=(f"{A}/itself-too",), sources=Source.LINK),
            failure("/gone", sources=Source.SITEMAP),
            redirect("/old", f"{A}/moved-to"),
        ]
    )
    assert rows(cli, "orphans") == [
        {"url": f"{A}/", "kind": "page", "status": 200, "lastmod": None},
        {"url": f"{A}/gone", "kind": "failure", "status": 404, "lastmod": None},
        {"url": f"{A}/only-itself", "kind": "page", "status": 200, "lastmod": "2026-01-01T00:00:00Z"},
    ]
    assert text(cli, "orphans") == [f"{A}/ 200", f"{A}/gone 404", f"{A}/only-itself 200"]


def test_links_are_followed_up_whatever_is_remembered_of_them(cli: Cli, make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(orphans, "_REMEMBERED", 2)
    urls = [f"{A}/{n}" for n in range(20)]
    listed = [
        page(url, links=(urls[(n + 1) % 19], urls[0], "http://o.test/"), sources=Source.SITEMAP) for n, url in enumerate(urls)
    ]
    make(listed)
    assert text(cli, "orphans") == [f"{A}/19 200"]


# Redirects -----------------------------------------------------------------------------------------------------------


def chain(row: dict[str, Any]) -> list[tuple[str, int | None]]:
    return [(hop["url"].removeprefix(A), hop["status"]) for hop in row["chain"]]


def test_redirects_are_followed_to_their_end(cli: Cli, make: Make) -> None:
    make([redirect("/1", f"{A}/2"), redirect("/2", f"{A}/3", status=302), page(f"{A}/3")])
    first, second = rows(cli, "redirects")
    assert chain(first) == [("/1", 301), ("/2", 302), ("/3", 200)]
    assert {name: value for name, value in first.items() if name != "chain"} == {
        "url": f"{A}/1",
        "status": 301,
        "hops": 2,
        "final": f"{A}/3",
        "final_status": 200,
        "problem": None,
    }
    assert (second["hops"], second["final"]) == (1, f"{A}/3")
    assert text(cli, "redirects")[0] == f"{A}/1 301 -> {A}/2 302 -> {A}/3 200"


@pytest.mark.parametrize(
    ("records", "problem", "hops", "last"),
    [
        ([redirect("/a", f"{A}/a")], "loop", 1, ("/a", 301)),
        ([redirect("/a", f"{A}/b"), redirect("/b", f"{A}/c"), redirect("/c", f"{A}/b")], "loop", 3, ("/b", 301)),
        ([redirect("/a", f"{A}/gone"), failure("/gone", 410)], "failure", 1, ("/gone", 410)),
        ([redirect("/a", f"{A}/secret"), excluded("/secret")], "excluded", 1, ("/secret", None)),
        ([redirect("/a", f"{A}/out")], "not_crawled", 1, ("/out", None)),
        ([redirect("/a", f"{A}/out", hops=10)], "too_many", 1, ("/out", None)),
        ([redirect("/a", f"{A}/a0"), *(redirect(f"/a{n}", f"{A}/a{n + 1}") for n in range(40))], "too_many", 20, ("/a19", 301)),
    ],
)
def test_chains_that_end_nowhere_say_why(
    cli: Cli, make: Make, records: list[Record], problem: str, hops: int, last: tuple[str, int | None]
) -> None:
    make(records)
    first = rows(cli, "redirects")[0]
    assert (first["problem"], first["hops"], chain(first)[-1]) == (problem, hops, last)
    assert (first["final"], first["final_status"]) == (A + last[0], last[1])
    assert text(cli, "redirects")[0].endswith(f" [{problem}]")


# Titles --------------------------------------------------------------------------------------------------------------


def test_titles_are_missing_or_shared_among_pages_that_count(cli: Cli, make: Make) -> None:
    make(
        [
            page(f"{A}/1", title="Home"),
            page(f"{A}/2", title="About"),
            page(f"{A}/3"),
            page(f"{A}/4", title="Home"),
            page(f"{A}/5", title="Home", canonical=f"{A}/1"),
            page(f"{A}/6", title="Home", directives=("noindex",)),
            page(f"{A}/7", content_type="application/pdf"),
            page(f"{A}/8", title="home"),
        ]
    )
    found = [(row["url"].removeprefix(A), row["problem"], row["title"], row["pages"]) for row in rows(cli, "titles")]
    assert found == [("/3", "missing", None, 1), ("/1", "duplicate", "Home", 2), ("/4", "duplicate", "Home", 2)]
    assert text(cli, "titles") == [
        f"missing {A}/3",
        f"duplicate {A}/1 shares with 1: Home",
        f"duplicate {A}/4 shares with 1: Home",
    ]


def test_titles_come_in_the_order_of_their_bytes_and_then_of_urls(cli: Cli, make: Make) -> None:
    titles = ["é", "z", "Z", "é", "Z", "z", "日", "日"]
    make(page(f"{A}/{n}", title=title) for n, title in enumerate(titles))
    found = [(row["title"], row["url"]) for row in rows(cli, "titles")]
    assert found == sorted(((title, f"{A}/{n}") for n, title in enumerate(titles)), key=lambda row: (row[0].encode(), row[1]))


# Canonicals ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("targets", "problem", "status", "leads_to"),
    [
        ([page(f"{A}/c")], "other", 200, None),
        ([page(f"{A}/c", canonical=f"{A}/c")], "other", 200, None),
        ([page(f"{A}/c", canonical=f"{A}/d")], "chain", 200, f"{A}/d"),
        ([page(f"{A}/c", directives=("noindex",))], "noindex", 200, None),
        ([page(f"{A}/c", status=203)], "status", 203, None),
        ([redirect("/c", f"{A}/d")], "redirect", 301, f"{A}/d"),
        ([redirect("/c", f"{A}/d", hops=10)], "failure", 301, f"{A}/d"),
        ([failure("/c")], "failure", 404, None),
        ([excluded("/c")], "excluded", None, None),
        ([], "not_crawled", None, None),
    ],
)
def test_a_canonical_is_judged_by_what_it_turned_out_to_be(
    cli: Cli, make: Make, targets: list[Record], problem: str, status: int | None, leads_to: str | None
) -> None:
    make([page(f"{A}/", canonical=f"{A}/c"), page(f"{A}/self", canonical=f"{A}/self"), page(f"{A}/none"), *targets])
    first = rows(cli, "canonicals")[0]
    assert first == {
        "url": f"{A}/",
        "problem": problem,
        "canonical": f"{A}/c",
        "canonical_status": status,
        "leads_to": leads_to,
    }
    shown = f"{problem} {A}/ -> {A}/c" + (f" {status}" if status else "") + (f" -> {leads_to}" if leads_to else "")
    assert text(cli, "canonicals")[0] == shown


def test_a_page_that_is_its_own_canonical_or_names_none_is_not_shown(cli: Cli, make: Make) -> None:
    make([page(f"{A}/", canonical=f"{A}/"), page(f"{A}/none"), redirect("/r", f"{A}/", canonical=f"{A}/none")])
    assert rows(cli, "canonicals") == []


# All of them ---------------------------------------------------------------------------------------------------------

EVERY = pytest.mark.parametrize("view", View)
SITE = [
    page(f"{A}/", title="=x", digest="sha256:1", canonical=f"{A}/c", links=(f"{A}/gone", f"{A}/moved")),
    page(f"{A}/2", title="", digest="sha256:1", sources=Source.SITEMAP),
    page(f"{A}/3", sources=Source.SITEMAP),
    failure("/gone"),
    redirect("/moved", f"{A}/2"),
]


@EVERY
def test_csv_says_what_json_lines_say(cli: Cli, make: Make, view: View) -> None:
    def as_cell(value: object) -> str:
        return "" if value is None else value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))

    make(SITE)
    table = list(csv.DictReader(io.StringIO(cli("report", "x.crawl", f"--{view}", "--format", "csv").out, newline="")))
    expected = rows(cli, view)
    assert expected
    assert table == [{name: as_cell(value) for name, value in row.items()} for row in expected]


@EVERY
def test_a_view_does_not_depend_on_the_order_in_which_records_came(cli: Cli, make: Make, view: View) -> None:
    said = []
    for name, records in (("1", SITE), ("2", SITE[::-1])):
        make(records, name)
        said.append([cli("report", name, f"--{view}", "--format", format_).out for format_ in ("text", "jsonl", "csv")])
    assert said[0] == said[1]


@EVERY
def test_a_view_goes_into_a_file_with_its_sidecar(cli: Cli, make: Make, tmp_path: Path, view: View) -> None:
    make(SITE)
    result = cli("report", "x.crawl", f"--{view}", "--format", "csv", "-o", "out.csv")
    assert (result.status, result.out, result.err) == (0, "", "")
    written = (tmp_path / "out.csv").read_bytes()
    assert written.decode() == cli("report", "x.crawl", f"--{view}", "--format", "csv").out
    meta = json.loads((tmp_path / "out.csv.meta.json").read_text())
    assert (meta["counts"], meta["sha256"]) == ({view.value: len(rows(cli, view))}, hashlib.sha256(written).hexdigest())


@EVERY
def test_a_crawl_without_records_has_nothing_to_mend(cli: Cli, make: Make, view: View) -> None:
    make([])
    assert (text(cli, view), rows(cli, view)) == ([], [])


def test_views_stand_alone(cli: Cli, make: Make) -> None:
    make(SITE)
    for options in (
        ["--broken", "--titles"],
        ["--broken", "--only", "pages"],
        ["--broken", "--with-timing"],
        ["--broken", "--fields", "url"],
    ):
        result = cli("report", "x.crawl", *options)
        assert (result.status, result.out, len(result.err.splitlines())) == (2, "", 1)
        assert "cannot go together" in result.err


SMALL_DISK = """
import resource, sys
from crawlkit.surfaces.cli import run_cli
from crawlkit.surfaces.health import scratch
scratch._CACHE_KIB = 64
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))  # a limit on file sizes stands for the full disk
sys.exit(run_cli(sys.argv[1:]))
"""


def test_no_room_to_sort_in_is_status_4(cli: Cli, make: Make, tmp_path: Path) -> None:
    directory = make(page(f"{A}/{n:05}{'x' * 300}", title=f"{n % 7}{'y' * 3000}") for n in range(3000))
    assert cli("report", directory).status == 0  # after this one LevelDB has nothing of its own to write on opening
    (tmp_path / "out").write_text("old")
    ended = run_child(SMALL_DISK, "report", directory, "--titles", "-o", tmp_path / "out")
    assert (ended.returncode, len(ended.stderr.splitlines())) == (4, 1), ended
    assert "cannot sort in the temporary directory" in ended.stderr
    assert (tmp_path / "out").read_text() == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "x.crawl"]


# Duplicates ----------------------------------------------------------------------------------------------------------


def test_duplicates_are_listed_by_the_first_of_them(cli: Cli, make: Make) -> None:
    make(
        [
            page(f"{A}/a", digest="sha256:1", simhash=0),
            page(f"{A}/b", digest="sha256:2", simhash=1),
            page(f"{A}/c", digest="sha256:2", simhash=1),
            page(f"{A}/d", digest="sha256:1", simhash=0),
            page(f"{A}/e", digest="sha256:3", simhash=2**63 - 1),
        ]
    )
    near = {"duplicate_of": f"{A}/a", "likeness": "near", "pages": 3}
    assert rows(cli, "duplicates") == [
        {"url": f"{A}/d", "duplicate_of": f"{A}/a", "likeness": "exact", "pages": 2},
        {"url": f"{A}/b", **near},
        {"url": f"{A}/c", **near},
        {"url": f"{A}/c", "duplicate_of": f"{A}/b", "likeness": "exact", "pages": 2},
    ]
    assert text(cli, "duplicates")[0] == f"exact {A}/d is like {A}/a (2 pages)"
