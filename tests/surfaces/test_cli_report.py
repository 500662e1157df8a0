"""`crawlkit report` and `crawlkit config`: data on standard output or in a file, all else on standard error."""

import csv
import hashlib
import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from crawlkit.config import SETTINGS
from crawlkit.surfaces.exports.formats import ExportFormat
from crawlkit.testing.server import SiteServer
from crawlkit.testing.site import Reply, Site, page, redirect, robots, status
from tests.surfaces.conftest import Cli

FAST = ("--delay", "0", "--host-concurrency", "8", "--retries", "0")
FIELDS = [
    *("url", "kind", "status", "depth", "content_type", "charset", "bytes", "truncated", "title", "digest", "links"),
    *("redirect_to", "canonical", "duplicate_of", "fields", "reason", "detail"),
    *("description", "language", "directives", "headings", "alternates", "etag", "last_modified", "words", "text_digest"),
    *("sources", "lastmod", "priority", "near_duplicate_of"),
]
TIMING = ["message", "fetched_at", "elapsed_ms", "attempts", "via", "not_modified"]


@pytest.fixture
def server(cli: Cli) -> Iterator[SiteServer]:
    """A site of one record of each kind, crawled into x.crawl."""
    site = Site(
        {
            "/robots.txt": robots("User-agent: *\nDisallow: /secret\n"),
            "/": page("Höme", ["/moved", "/gone", "/secret", "http://elsewhere.test/", "#top"], nofollow=["/no"]),
            "/moved": redirect("/new", 301),
            "/new": page("New", canonical="/"),
            "/gone": status(410),
        }
    )
    with SiteServer(site) as running:
        assert cli("run", f"{running.url}/", "-d", "x.crawl", *FAST, "-q").status == 1
        yield running


def test_text_is_pages_on_standard_output_and_failures_on_standard_error(cli: Cli, server: SiteServer) -> None:
    base = server.url
    result = cli("report", "x.crawl")
    assert result.status == 0
    links = [f"{base}/moved", f"{base}/gone", f"{base}/secret", "http://elsewhere.test/", f"{base}/", f"{base}/no"]
    home = "".join(f"  {link}\n" for link in links)
    assert result.out == f"URL: {base}/\nLinks:\n{home}URL: {base}/new\nLinks:\n"
    assert result.err == f"FAILED {base}/gone: http.client_error\n"


@pytest.mark.parametrize(
    ("only", "paths"),
    [
        ("pages", ["/", "/new"]),
        ("redirects", ["/moved"]),
        ("failures", ["/gone"]),
        ("excluded", ["/secret"]),
        ("all", ["/", "/gone", "/moved", "/new", "/secret"]),
        (None, ["/", "/gone", "/moved", "/new", "/secret"]),
    ],
)
def test_only_chooses_records(cli: Cli, server: SiteServer, only: str | None, paths: list[str]) -> None:
    result = cli("report", "x.crawl", "--format", "jsonl", *([] if only is None else ["--only", only]))
    assert (result.status, result.err) == (0, "")
    assert [json.loads(line)["url"] for line in result.out.splitlines()] == [server.url + path for path in paths]


def test_json_lines_have_the_fields_of_the_contract(cli: Cli, server: SiteServer) -> None:
    base = server.url
    found = [json.loads(line) for line in cli("report", "x.crawl", "--format", "jsonl").out.splitlines()]
    assert all(list(line) == FIELDS for line in found)
    home, gone, moved, new, secret = found
    body = server.site.reply("", "/").body
    assert (home["kind"], home["status"], home["depth"], home["title"]) == ("page", 200, 0, "Höme")
    assert (home["content_type"], home["charset"], home["bytes"], home["truncated"]) == ("text/html", "utf-8", len(body), False)
    assert home["digest"] == f"sha256:{hashlib.sha256(body).hexdigest()}"
    assert (home["reason"], home["detail"], home["redirect_to"], home["fields"]) == (None, None, None, {})
    assert (gone["kind"], gone["status"], gone["reason"]) == ("failure", 410, "http.client_error")
    assert gone["detail"] == "The server answered with a status from 400 to 499."
    assert (moved["kind"], moved["status"], moved["redirect_to"], moved["links"]) == ("redirect", 301, f"{base}/new", [])
    assert (new["canonical"], new["depth"], new["links"]) == (f"{base}/", 1, [])
    assert (secret["kind"], secret["status"], secret["reason"]) == ("excluded", None, "robots.disallow")


def test_timing_comes_only_when_asked_for(cli: Cli, server: SiteServer) -> None:
    lines = [json.loads(line) for line in cli("report", "x.crawl", "--format", "jsonl", "--with-timing").out.splitlines()]
    assert all(list(line) == FIELDS + TIMING for line in lines)
    assert lines[0]["via"] is None
    assert lines[1]["via"] == f"{server.url}/"
    assert lines[0]["fetched_at"] > 1_600_000_000
    assert lines[4]["message"] == "line 2: Disallow: /secret"


def test_a_file_gets_what_standard_output_would_and_a_sidecar(cli: Cli, server: SiteServer, tmp_path: Path) -> None:
    expected = cli("report", "x.crawl", "--format", "jsonl").out
    (tmp_path / "report.jsonl").write_text("an older one")
    result = cli("report", "x.crawl", "--format", "jsonl", "-o", "report.jsonl")
    assert (result.status, result.out) == (0, "")
    assert (tmp_path / "report.jsonl").read_text() == expected
    meta: dict[str, Any] = json.loads((tmp_path / "report.jsonl.meta.json").read_text())
    assert meta["counts"] == {"pages": 2, "redirects": 1, "failures": 1, "excluded": 1}
    assert meta["sha256"] == hashlib.sha256(expected.encode()).hexdigest()
    assert meta["settings_hash"].startswith("sha256:")
    assert (meta["deterministic"], meta["reasons"]) == (True, [])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["report.jsonl", "report.jsonl.meta.json", "x.crawl"]


def test_text_into_a_file_still_names_failures(cli: Cli, server: SiteServer, tmp_path: Path) -> None:
    result = cli("report", "x.crawl", "--output", "report.txt")
    assert (result.status, result.out) == (0, "")
    assert result.err == f"FAILED {server.url}/gone: http.client_error\n"
    assert (tmp_path / "report.txt").read_text() == cli("report", "x.crawl").out


def test_csv_into_a_file_is_what_standard_output_gets(cli: Cli, server: SiteServer, tmp_path: Path) -> None:
    result = cli("report", "x.crawl", "--format", "csv", "--only", "pages", "--with-timing", "-o", "x.csv")
    assert (result.status, result.out, result.err) == (0, "", "")
    with (tmp_path / "x.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["title"] for row in rows] == ["Höme", "New"]
    assert list(rows[0]) == FIELDS + TIMING
    assert (
        cli("report", "x.crawl", "--format", "csv", "--only", "pages", "--with-timing").out == (tmp_path / "x.csv").read_text()
    )


def test_a_crawled_site_is_exported_as_reported_and_shows_what_to_mend(cli: Cli, server: SiteServer, tmp_path: Path) -> None:
    base = server.url
    report = cli("report", "x.crawl", "--format", "jsonl").out.encode()
    for format_ in set(ExportFormat) - {ExportFormat.CDXJ}:  # which is of archives
        assert cli("export", "x.crawl", "--to", format_, "-o", f"x.{format_}").status == 0
        meta = json.loads((tmp_path / f"x.{format_}.meta.json").read_text())
        assert meta["report_sha256"] == hashlib.sha256(report).hexdigest()
    assert cli("report", "x.crawl", "--broken").out.splitlines() == [
        f"{base}/gone 410, linked from 1",
        f"  {base}/",
        f"{base}/moved 301 -> {base}/new, linked from 1",
        f"  {base}/",
    ]
    assert cli("report", "x.crawl", "--redirects").out == f"{base}/moved 301 -> {base}/new 200\n"
    assert cli("report", "x.crawl", "--canonicals").out == f"other {base}/new -> {base}/ 200\n"
    assert cli("search", "x.crawl", "HOME").out.splitlines() == ["Höme", f"  {base}/", "  *Höme*"]


def test_a_sidecar_says_what_made_the_report_depend_on_order(cli: Cli, server: SiteServer, tmp_path: Path) -> None:
    cli("run", f"{server.url}/", "-d", "y.crawl", *FAST, "--max-pages", "1", "-q")
    cli("report", "y.crawl", "-o", "y.txt")
    meta = json.loads((tmp_path / "y.txt.meta.json").read_text())
    assert (meta["deterministic"], meta["reasons"]) == (False, ["limit.pages"])
    server.site |= {"/gone": status(503)}
    cli("run", f"{server.url}/", "-d", "z.crawl", *FAST, "-q")
    cli("report", "z.crawl", "-o", "z.txt")
    assert json.loads((tmp_path / "z.txt.meta.json").read_text())["reasons"] == ["failure.transient"]


def test_the_settings_hash_tells_what_was_crawled_and_not_how(cli: Cli, server: SiteServer, tmp_path: Path) -> None:
    hashes = []
    for number, options in enumerate([(), ("--workers", "2", "--timeout", "3s"), ("--max-depth", "7")]):
        cli("run", f"{server.url}/", "-d", f"{number}.crawl", *FAST, *options, "-q")
        cli("report", f"{number}.crawl", "-o", f"{number}.txt")
        hashes.append(json.loads((tmp_path / f"{number}.txt.meta.json").read_text())["settings_hash"])
    assert hashes[0] == hashes[1] != hashes[2]


def test_a_file_that_cannot_be_written_is_status_4_and_leaves_nothing(cli: Cli, server: SiteServer, tmp_path: Path) -> None:
    result = cli("report", "x.crawl", "-o", "missing/report.txt")
    assert (result.status, result.out) == (4, "")
    assert len(result.err.splitlines()) == 1
    assert "missing/report.txt" in result.err
    assert [path.name for path in tmp_path.iterdir()] == ["x.crawl"]


def test_a_report_changes_nothing(cli: Cli, server: SiteServer) -> None:
    before = json.loads(cli("status", "x.crawl", "--json").out)
    assert cli("report", "x.crawl").out == cli("report", "x.crawl").out
    after = json.loads(cli("status", "x.crawl", "--json").out)
    disk = {key: after[key] for key in after if key.startswith("disk")}  # LevelDB's own files, and those of others
    assert after == {**before, **disk}


def test_settings_are_shown_with_where_they_come_from(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "crawlkit.toml").write_text("workers = 3\n")
    monkeypatch.setenv("CRAWLKIT_DELAY", "250ms")
    result = cli("config", "show", "--max-depth", "2")
    assert (result.status, result.err) == (0, "")
    rows = {line.split()[0]: line.split()[1:] for line in result.out.splitlines()}
    assert set(rows) == {"KEY", *SETTINGS}
    assert rows["workers"] == ["3", "crawlkit.toml"]
    assert rows["delay"] == ["250ms", "CRAWLKIT_DELAY"]
    assert rows["max_depth"] == ["2", "option", "--max-depth"]
    assert rows["timeout"] == ["10s", "default"]
    shown = json.loads(cli("config", "show", "--json").out)
    assert shown["delay"] == {"value": 0.25, "source": "CRAWLKIT_DELAY"}


def test_a_crawl_s_own_copy_of_its_settings_can_be_used_again(cli: Cli, server: SiteServer) -> None:
    assert cli("config", "check", "x.crawl/config.toml").out == "ok\n"
    assert cli("run", f"{server.url}/", "-d", "y.crawl", "-c", "x.crawl/config.toml", "-q").status == 1
    assert cli("report", "y.crawl").out == cli("report", "x.crawl").out


def test_fields_choose_what_is_shown(cli: Cli, server: SiteServer) -> None:
    result = cli("report", "x.crawl", "--format", "jsonl", "--only", "pages", "--fields", "title,url")
    assert result.out == f'{{"title":"Höme","url":"{server.url}/"}}\n{{"title":"New","url":"{server.url}/new"}}\n'
    result = cli("report", "x.crawl", "--format", "csv", "--only", "failures", "--fields", "status,reason")
    assert result.out == "status,reason\n410,http.client_error\n"


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--format", "jsonl", "--fields", "titel"], "the nearest known one is title"),
        (["--fields", "title"], "text has no fields"),
    ],
)
def test_fields_that_cannot_be_are_status_2_in_one_line(cli: Cli, server: SiteServer, options: list[str], told: str) -> None:
    result = cli("report", "x.crawl", *options)
    assert (result.status, result.out) == (2, "")
    assert told in result.err
    assert len(result.err.splitlines()) == 1


def test_extracted_fields_are_in_the_record_and_can_be_chosen(cli: Cli) -> None:
    html = (("Content-Type", "text/html"),)
    shop = {"/": Reply(200, html, b"<h1>A  <i>b</i></h1><a href=/2>2</a><p class=p>7"), "/2": Reply(200, html, b"<p>")}
    with SiteServer(Site(shop)) as server:
        options = ("--extract", "head=h1", "--extract", "prices[]=p.p", "--extract", "next=a@href")
        assert cli("run", f"{server.url}/", "-d", "y.crawl", *FAST, *options, "-q").status == 0
    shown = cli("report", "y.crawl", "--format", "jsonl", "--fields", "fields").out.splitlines()
    assert [json.loads(line)["fields"] for line in shown] == [
        {"head": "A b", "prices": ["7"], "next": f"{server.url}/2"},
        {"head": None, "prices": [], "next": None},
    ]
    assert cli("report", "y.crawl", "--format", "csv", "--fields", "fields.head").out == 'fields.head\nA b\n""\n'
    wrong = cli("report", "y.crawl", "--format", "csv", "--fields", "fields.heda")
    assert (wrong.status, "fields.head" in wrong.err) == (2, True)
    changed = cli("resume", "y.crawl", "--set", "extract=head=h2")
    assert (changed.status, "frozen" in changed.err) == (2, True)


@pytest.mark.parametrize("selector", ["h1 >", "a::text"])
def test_a_bad_selector_is_status_2_and_leaves_nothing(cli: Cli, selector: str, tmp_path: Path) -> None:
    result = cli("run", "http://a.test/", "-d", "z.crawl", "--extract", f"x={selector}")
    assert (result.status, len(result.err.splitlines()), selector in result.err) == (2, 1, True)
    assert not (tmp_path / "z.crawl").exists()


def test_near_duplicates_are_told_where_asked_for(cli: Cli) -> None:
    def article(*changed: str) -> Reply:
        text = " ".join([f"word{n}" for n in range(600)])
        links = "".join(f"<a href=/{name}></a>" for name in "abc")
        return Reply(200, (("Content-Type", "text/html"),), f"<nav>{links}</nav><p>{text} {' '.join(changed)}".encode())

    site = {"/": article("first"), "/a": article("second"), "/b": article("second"), "/c": page("C")}
    with SiteServer(Site(site)) as server:
        for name, options in (("near.crawl", ["--near-duplicates"]), ("exact.crawl", [])):
            assert cli("run", f"{server.url}/", "-d", name, *FAST, *options, "-q").status == 0
        base = server.url

    def alike(name: str) -> list[tuple[str, str | None, str | None]]:
        shown = cli("report", name, "--format", "jsonl", "--fields", "url,duplicate_of,near_duplicate_of").out.splitlines()
        return [tuple(json.loads(line).values()) for line in shown]

    root = f"{base}/"
    assert alike("near.crawl") == [
        (root, None, None),
        (f"{base}/a", None, root),
        (f"{base}/b", f"{base}/a", root),
        (f"{base}/c", None, None),
    ]
    assert [line[1:] for line in alike("exact.crawl")] == [(None, None), (None, None), (f"{base}/a", None), (None, None)]


def test_texts_and_anchors_are_kept_where_asked_for(cli: Cli, tmp_path: Path) -> None:
    html = (("Content-Type", "text/html"),)
    site = {
        "/": Reply(200, html, b"<nav>Menu</nav><p>Zebras\n graze <a href=/2 rel=next>further on</a>"),
        "/2": Reply(200, html, b"<p>b"),
    }
    with SiteServer(Site(site)) as server:
        assert cli("run", f"{server.url}/", "-d", "y.crawl", *FAST, "--text", "--anchors", "-q").status == 0
        assert cli("run", f"{server.url}/", "-d", "n.crawl", *FAST, "-q").status == 0
    base = server.url
    shown = cli("report", "y.crawl", "--format", "jsonl", "--fields", "url,text").out
    assert shown == f'{{"url":"{base}/","text":"Zebras graze further on"}}\n{{"url":"{base}/2","text":"b"}}\n'
    assert cli("report", "n.crawl", "--format", "csv", "--fields", "text").out == 'text\n""\n""\n'
    assert "text" not in json.loads(cli("report", "y.crawl", "--format", "jsonl").out.splitlines()[0])
    assert cli("export", "y.crawl", "--to", "edges", "-o", "edges.jsonl").status == 0
    edge = {"source": f"{base}/", "target": f"{base}/2", "text": "further on", "rel": "next"}
    assert json.loads((tmp_path / "edges.jsonl").read_text()) == edge
    assert f"{base}/" in cli("search", "y.crawl", "zebras").out
    assert cli("export", "y.crawl", "--to", "sqlite", "-o", "y.db").status == 0
    with closing(sqlite3.connect(tmp_path / "y.db")) as database:
        found = "SELECT url FROM records JOIN records_fts ON records.id = records_fts.rowid WHERE records_fts MATCH 'zebras'"
        assert database.execute(found).fetchall() == [(f"{base}/",)]
        assert database.execute("SELECT text, rel FROM links").fetchall() == [("further on", "next")]
    assert cli("search", "n.crawl", "zebras").out == ""
