"""The report: its exact bytes, its fields and their order, its digest, and that a failure leaves the old file."""

import csv
import hashlib
import io
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlkit.errors import StateDamaged, StorageError, UsageError
from crawlkit.model import Kind, OrderReason, Reason, Record
from crawlkit.sentences import SENTENCES
from crawlkit.state.checkpoint import Run
from crawlkit.surfaces.report import (
    Only,
    ReportFormat,
    ReportOptions,
    write_report,
    write_report_file,
)
from crawlkit.surfaces.selection import Selection, read_fields
from crawlkit.surfaces.sidecar import ReportMeta

PAGE = Record(
    url="https://example.com/",
    kind=Kind.PAGE,
    depth=0,
    status=200,
    content_type="text/html",
    charset="utf-8",
    body_bytes=1234,
    truncated=False,
    title="Ünïcode «title»",
    digest="sha256:00",
    links=("https://example.com/about", "https://external.example.net/"),
    nofollow=(1,),
    canonical="https://example.com/",
    directives=("noindex",),
    description="About «it»",
    language="de-AT",
    headings=(1, 2, 0, 0, 0, 3),
    alternates=(("en", "https://example.com/en"),),
    etag='W/"7"',
    last_modified="Mon, 01 Jan 2024 00:00:00 GMT",
    words=321,
    text_digest="sha256:01",
    sources=5,
    lastmod="2024-01-02T00:00:00Z",
    priority=0.5,
    fetched_at=1700000000.5,
    elapsed_ms=12,
    attempts=1,
)
BARE_PAGE = Record(url="https://example.com/bare", kind=Kind.PAGE, depth=1, status=204)
FAILURE = Record(
    url="https://example.com/gone",
    kind=Kind.FAILURE,
    depth=1,
    status=404,
    reason=Reason.CLIENT_ERROR,
    message="HTTP/1.1 404 Not Found",
    attempts=1,
    via="https://example.com/",
)
REDIRECT = Record(url="https://example.com/old", kind=Kind.REDIRECT, depth=1, status=301, redirect_to="https://example.com/new")
EXCLUDED = Record(url="https://example.com/private", kind=Kind.EXCLUDED, depth=1, reason=Reason.ROBOTS_DISALLOW)
RECORDS = [PAGE, BARE_PAGE, FAILURE, REDIRECT, EXCLUDED]

FIELDS = [
    *("url", "kind", "status", "depth", "content_type", "charset", "bytes", "truncated", "title", "digest", "links"),
    *("redirect_to", "canonical", "duplicate_of", "fields", "reason", "detail"),
    *("description", "language", "directives", "headings", "alternates", "etag", "last_modified", "words", "text_digest"),
    *("sources", "lastmod", "priority", "near_duplicate_of"),
]
TIMING_FIELDS = ["message", "fetched_at", "elapsed_ms", "attempts", "via", "not_modified"]
JSONL = ReportOptions(format=ReportFormat.JSONL)
TIMED = ReportOptions(format=ReportFormat.JSONL, with_timing=True)
CSV = ReportOptions(format=ReportFormat.CSV)
TIMED_CSV = ReportOptions(format=ReportFormat.CSV, with_timing=True)
META = ReportMeta(settings_hash="sha256:ab")


def written(options: ReportOptions, records: list[Record] | None = None) -> tuple[bytes, str]:
    """Return what goes to standard output and to standard error."""
    out, err = io.BytesIO(), io.StringIO()
    write_report(RECORDS if records is None else records, out, err, options)
    return out.getvalue(), err.getvalue()


def lines(options: ReportOptions) -> list[dict[str, Any]]:
    return [json.loads(line) for line in written(options)[0].splitlines()]


def test_text_is_pages_with_their_links_and_failures_go_to_standard_error() -> None:
    out, err = written(ReportOptions())
    assert out.decode() == (
        "URL: https://example.com/\n"
        "Links:\n"
        "  https://example.com/about\n"
        "  https://external.example.net/\n"
        "URL: https://example.com/bare\n"
        "Links:\n"
    )
    assert err == "FAILED https://example.com/gone: http.client_error\n"


def test_text_of_all_kinds_is_a_block_each() -> None:
    out, err = written(ReportOptions(only=Only.ALL))
    assert out.decode().endswith(
        "URL: https://example.com/gone\n"
        "Failed: http.client_error\n"
        "URL: https://example.com/old\n"
        "Redirect: https://example.com/new\n"
        "URL: https://example.com/private\n"
        "Excluded: robots.disallow\n"
    )
    assert err.startswith("FAILED ")


@pytest.mark.parametrize("options", [JSONL, TIMED])
def test_a_line_has_all_fields_in_the_order_of_the_contract(options: ReportOptions) -> None:
    for line in lines(options):
        assert list(line) == FIELDS + (TIMING_FIELDS if options.with_timing else [])


def test_a_line_is_exactly_these_bytes() -> None:
    assert written(JSONL, [PAGE])[0].decode() == (
        '{"url":"https://example.com/","kind":"page","status":200,"depth":0,"content_type":"text/html",'
        '"charset":"utf-8","bytes":1234,"truncated":false,"title":"Ünïcode «title»","digest":"sha256:00",'
        '"links":["https://example.com/about","https://external.example.net/"],"redirect_to":null,'
        '"canonical":"https://example.com/","duplicate_of":null,"fields":{},"reason":null,"detail":null,'
        '"description":"About «it»","language":"de-AT","directives":["noindex"],'
        '"headings":{"h1":1,"h2":2,"h3":0,"h4":0,"h5":0,"h6":3},"alternates":{"en":"https://example.com/en"},'
        '"etag":"W/\\"7\\"","last_modified":"Mon, 01 Jan 2024 00:00:00 GMT","words":321,"text_digest":"sha256:01",'
        '"sources":["sitemap","link"],"lastmod":"2024-01-02T00:00:00Z","priority":0.5,"near_duplicate_of":null}\n'
    )


def chosen(*names: str, format: ReportFormat = ReportFormat.JSONL) -> str:
    return written(ReportOptions(format=format, selection=Selection(names)), [PAGE, FAILURE])[0].decode()


def test_fields_are_those_chosen_in_the_order_given() -> None:
    assert chosen("words", "url", "attempts") == (
        '{"words":321,"url":"https://example.com/","attempts":1}\n'
        '{"words":null,"url":"https://example.com/gone","attempts":1}\n'
    )


def test_fields_choose_the_columns_of_csv() -> None:
    expected = "url,language,fields.price\nhttps://example.com/,de-AT,\nhttps://example.com/gone,,\n"
    assert chosen("url", "language", "fields.price", format=ReportFormat.CSV) == expected


@pytest.mark.parametrize(
    ("text", "names"),
    [("url", ["url"]), (" url , title,", ["url", "title"]), ("fields,fields.price,via", ["fields", "fields.price", "via"])],
)
def test_a_list_of_fields_is_read(text: str, names: list[str]) -> None:
    assert list(read_fields(text, ["price"])) == names


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("url,titel", "unknown field 'titel'; the nearest known one is title"),
        ("fields.prize", "unknown field 'fields.prize'; the nearest known one is fields.price"),
        ("url,url", "'url' is there twice"),
        (",", "name at least one field"),
        ("Ü" * 500, "unknown field 'ÜÜ"),
    ],
)
def test_a_wrong_field_is_told_with_the_nearest(text: str, told: str) -> None:
    with pytest.raises(UsageError, match=re.escape(told)) as raised:
        read_fields(text, ["price"])
    assert len(str(raised.value)) < 300


def test_what_a_record_lacks_is_null_and_its_links_are_empty() -> None:
    (line,) = (line for line in lines(JSONL) if line["kind"] == "excluded")
    assert line["links"] == []
    assert line["fields"] == {}
    assert line["reason"] == "robots.disallow"
    rest = set(FIELDS) - {"url", "kind", "depth", "links", "fields", "reason", "detail", "directives", "alternates", "sources"}
    assert all(line[name] is None for name in rest)


@pytest.mark.parametrize("reason", Reason)
def test_detail_is_the_fixed_sentence_of_the_reason(reason: Reason) -> None:
    record = Record(url="https://a.test/", kind=Kind.FAILURE, depth=0, reason=reason, message="Errno 111 at 0x7f")
    line = json.loads(written(JSONL, [record])[0])
    assert (line["reason"], line["detail"]) == (reason.value, SENTENCES[reason])


def test_what_depends_on_time_or_order_is_shown_with_timing_only() -> None:
    failure = lines(TIMED)[2]
    assert failure["message"] == "HTTP/1.1 404 Not Found"
    assert failure["via"] == "https://example.com/"
    assert lines(TIMED)[0]["fetched_at"] == 1700000000.5
    assert "Not Found" not in written(JSONL)[0].decode()


@given(st.none() | st.text(), st.none() | st.floats(0, 1e10), st.none() | st.integers(0, 10**9), st.integers(0, 9))
def test_without_timing_the_bytes_do_not_depend_on_time_order_or_attempts(
    text: str | None, at: float | None, elapsed_ms: int | None, attempts: int
) -> None:
    other = Record(
        url=FAILURE.url,
        kind=FAILURE.kind,
        depth=FAILURE.depth,
        status=FAILURE.status,
        reason=FAILURE.reason,
        message=text,
        fetched_at=at,
        elapsed_ms=elapsed_ms,
        attempts=attempts,
        via=text,
    )
    for options in (JSONL, CSV, ReportOptions(only=Only.ALL)):
        assert written(options, [other]) == written(options, [FAILURE])


@pytest.mark.parametrize(
    ("only", "kinds"),
    [
        (None, {"page", "failure", "redirect", "excluded"}),
        (Only.ALL, {"page", "failure", "redirect", "excluded"}),
        (Only.PAGES, {"page"}),
        (Only.REDIRECTS, {"redirect"}),
        (Only.FAILURES, {"failure"}),
        (Only.EXCLUDED, {"excluded"}),
    ],
)
def test_only_chooses_the_kind_and_counts_stay_those_of_the_crawl(only: Only | None, kinds: set[str]) -> None:
    options = ReportOptions(format=ReportFormat.JSONL, only=only)
    assert {line["kind"] for line in lines(options)} == kinds
    out = io.BytesIO()
    counts = write_report(RECORDS, out, io.StringIO(), options)
    assert (counts.pages, counts.redirects, counts.failures, counts.excluded) == (2, 1, 1, 1)
    assert counts.sha256 == hashlib.sha256(out.getvalue()).hexdigest()


def test_json_lines_say_nothing_on_standard_error() -> None:
    assert written(JSONL)[1] == ""


def test_csv_rows_are_exactly_these_bytes() -> None:
    assert written(CSV, [PAGE, EXCLUDED])[0].decode() == (
        "url,kind,status,depth,content_type,charset,bytes,truncated,title,digest,links,redirect_to,canonical,duplicate_of,"
        "fields,reason,detail,description,language,directives,headings,alternates,etag,last_modified,words,text_digest,"
        "sources,lastmod,priority,near_duplicate_of\n"
        "https://example.com/,page,200,0,text/html,utf-8,1234,false,Ünïcode «title»,sha256:00,"
        '"[""https://example.com/about"",""https://external.example.net/""]",,https://example.com/,,{},,,'
        'About «it»,de-AT,"[""noindex""]","{""h1"":1,""h2"":2,""h3"":0,""h4"":0,""h5"":0,""h6"":3}",'
        '"{""en"":""https://example.com/en""}","W/""7""","Mon, 01 Jan 2024 00:00:00 GMT",321,sha256:01,'
        '"[""sitemap"",""link""]",2024-01-02T00:00:00Z,0.5,\n'
        "https://example.com/private,excluded,,1,,,,,,,[],,,,{},robots.disallow,robots.txt disallows this URL.,"
        ",,[],,{},,,,,[],,,\n"
    )


@pytest.mark.parametrize(("table", "same_lines"), [(CSV, JSONL), (TIMED_CSV, TIMED)])
def test_csv_says_what_json_lines_say(table: ReportOptions, same_lines: ReportOptions) -> None:
    def as_cell(value: Any) -> str:
        return "" if value is None else value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))

    out, err = written(table)
    rows = list(csv.DictReader(io.StringIO(out.decode(), newline="")))
    assert err == ""
    assert rows == [{name: as_cell(value) for name, value in line.items()} for line in lines(same_lines)]
    assert list(rows[0]) == list(lines(same_lines)[0])


def test_a_csv_report_without_records_has_its_header_and_the_digest_covers_it() -> None:
    out = io.BytesIO()
    counts = write_report([], out, io.StringIO(), CSV)
    assert out.getvalue().startswith(b"url,kind,")
    assert counts.sha256 == hashlib.sha256(out.getvalue()).hexdigest()


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_a_title_is_kept_as_it_is_and_stays_on_its_line(title: str) -> None:
    out = written(JSONL, [Record(url="https://a.test/", kind=Kind.PAGE, depth=0, title=title)])[0]
    assert out.count(b"\n") == 1
    assert json.loads(out)["title"] == title


def test_records_are_taken_one_at_a_time() -> None:
    out = io.BytesIO()

    def stream() -> Iterator[Record]:
        for number in range(3):
            assert out.getvalue().count(b"\n") == number
            yield BARE_PAGE

    assert write_report(stream(), out, io.StringIO(), JSONL).pages == 3


def test_a_report_file_comes_with_a_sidecar_that_vouches_for_it(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    run = Run(1, 5.0, 7.5, "finished", pages=2)
    meta = ReportMeta(settings_hash="sha256:ab", reasons=(OrderReason.LIMIT_PAGES, OrderReason.TRANSIENT), runs=(run,))
    write_report_file(path, RECORDS, io.StringIO(), JSONL, meta)
    assert path.read_bytes() == written(JSONL)[0]
    assert json.loads((tmp_path / "out.jsonl.meta.json").read_text()) == {
        "counts": {"pages": 2, "redirects": 1, "failures": 1, "excluded": 1},
        "settings_hash": "sha256:ab",
        "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
        "deterministic": False,
        "reasons": ["limit.pages", "failure.transient"],
        "runs": [msgspec.to_builtins(run) for run in meta.runs],
        "running": False,
    }
    assert len(list(tmp_path.iterdir())) == 2


def test_a_report_is_deterministic_exactly_when_nothing_speaks_against_it() -> None:
    assert META.deterministic
    assert not ReportMeta(settings_hash="", reasons=(OrderReason.HOOK,)).deterministic


def test_text_to_a_file_names_failures_on_standard_error_too(tmp_path: Path) -> None:
    err = io.StringIO()
    write_report_file(tmp_path / "out.txt", RECORDS, err, ReportOptions(), META)
    assert err.getvalue().startswith("FAILED https://example.com/gone")


def test_damage_met_half_way_leaves_the_old_report_and_sidecar(tmp_path: Path) -> None:
    path, sidecar = tmp_path / "out", tmp_path / "out.meta.json"
    path.write_text("old")
    sidecar.write_text("old too")

    def damaged() -> Iterator[Record]:
        yield PAGE
        raise StateDamaged("block checksum")

    with pytest.raises(StateDamaged):
        write_report_file(path, damaged(), io.StringIO(), JSONL, META)
    assert (path.read_text(), sidecar.read_text()) == ("old", "old too")
    assert len(list(tmp_path.iterdir())) == 2


def test_a_disk_too_full_for_the_sidecar_leaves_the_old_report(tmp_path: Path) -> None:
    """A limit on file size stands for the full disk: the empty report fits, the sidecar does not."""
    path = tmp_path / "out"
    path.write_text("old")
    program = (
        "import io, resource, signal, sys; from pathlib import Path\n"
        "from crawlkit.surfaces.report import ReportOptions, write_report_file\n"
        "from crawlkit.surfaces.sidecar import ReportMeta\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN); resource.setrlimit(resource.RLIMIT_FSIZE, (50, 50))\n"
        "write_report_file(Path(sys.argv[1]), [], io.StringIO(), ReportOptions(), ReportMeta('sha256:ab'))"
    )
    done = subprocess.run([sys.executable, "-c", program, str(path)], capture_output=True, text=True, check=False)
    assert "StorageError: cannot write" in done.stderr.splitlines()[-1]
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_report_that_cannot_be_written_is_a_storage_error(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="No such file or directory"):
        write_report_file(tmp_path / "none" / "out", RECORDS, io.StringIO(), JSONL, META)
    (tmp_path / "out.meta.json").mkdir()
    with pytest.raises(StorageError, match="not a regular file"):
        write_report_file(tmp_path / "out", RECORDS, io.StringIO(), JSONL, META)
    assert not (tmp_path / "out").exists()
