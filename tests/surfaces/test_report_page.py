"""`report --format html`: one page that needs nothing beside itself, in which nothing of a crawled page is markup."""

import base64
import hashlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from crawlkit.model import Kind, Reason, Record
from crawlkit.surfaces.report_page.figures import MOST_ORIGINS, MOST_SLOW, Bar, Figures, Slow
from crawlkit.testing.server import SiteServer
from crawlkit.testing.site import Reply, Site, page, redirect, status
from tests.browser import needs_chromium, rendered
from tests.surfaces.conftest import Cli

HOSTILE = "</script><script>document.title='taken over'</script><img src=x onerror=\"document.title='taken over'\">"
ESCAPED = HOSTILE.replace("&", "&amp;").replace("<", "&lt;")
FAST = ("--delay", "0", "--host-concurrency", "8", "--retries", "0", "-q", "--exit-zero")


@pytest.fixture
def crawled(cli: Cli) -> Iterator[str]:
    """A small site with a hostile title, crawled into x.crawl."""
    hostile = Reply(200, (("content-type", "text/html"),), f"<title>{ESCAPED}</title><a href='/?\"><b>x'>x</a>".encode())
    site = Site(
        {
            "/": page("Home", ["/a", "/b", "/moved", "/gone", "/hostile"]),
            "/a": page("Same", ["/gone"], text="the same"),
            "/b": page("Same", ["/gone"], text="the same"),
            "/moved": redirect("/a", 301),
            "/gone": status(410),
            "/hostile": hostile,
        }
    )
    with SiteServer(site) as running:
        assert cli("run", f"{running.url}/", "-d", "x.crawl", *FAST).status == 0
        yield running.url


def made(cli: Cli) -> str:
    assert cli("report", "x.crawl", "--format", "html", "-o", "r.html").status == 0
    return Path("r.html").read_text(encoding="utf-8")


def data(text: str, name: str) -> Any:
    found = re.search(rf'<script type="application/json" id="data-{name}">(.*?)</script>', text, re.S)
    assert found is not None
    return json.loads(found[1])


def test_its_rows_are_the_records_of_the_report(cli: Cli, crawled: str) -> None:
    text = made(cli)
    records = [json.loads(line) for line in cli("report", "x.crawl", "--format", "jsonl").out.splitlines()]
    kinds = data(text, "crawl")[0]["kinds"]
    assert [(row[0], kinds[row[1]], row[2], row[6]) for row in data(text, "rows")] == [
        (record["url"], record["kind"], record["status"], record["title"]) for record in records
    ]
    assert HOSTILE in [record["title"] for record in records]


def test_it_names_what_is_broken_with_who_links_there_and_what_is_alike(cli: Cli, crawled: str) -> None:
    text = made(cli)
    broken = {row[0]: row for row in data(text, "broken")}
    assert broken[f"{crawled}/gone"][3:] == [3, [f"{crawled}/", f"{crawled}/a", f"{crawled}/b"]]
    assert broken[f"{crawled}/moved"][2] == f"{crawled}/a"
    assert data(text, "duplicates") == [[f"{crawled}/b", f"{crawled}/a", "exact", 2]]


def test_no_byte_of_a_crawled_page_is_markup_and_only_the_own_script_and_style_may_run(cli: Cli, crawled: str) -> None:
    text = made(cli)
    assert text.count("<script") == text.count("</script>") == 6
    assert "taken over'</script>" not in text
    for kind, name in (("script", "script-src"), ("style", "style-src")):
        own = re.findall(rf"<{kind}>(.*?)</{kind}>", text, re.S)
        assert len(own) == 1
        digest = base64.b64encode(hashlib.sha256(own[0].encode()).digest()).decode()
        assert f"{name} 'sha256-{digest}'" in text
    assert "default-src 'none'" in text
    assert re.findall(r"(?:src|href)=\"(?!#)[^\"]*\"", text.partition("<script type")[0]) == []


@needs_chromium
def test_a_browser_shows_it_and_takes_titles_for_text(cli: Cli, crawled: str, tmp_path: Path) -> None:
    made(cli)
    shown = rendered(tmp_path / "r.html", tmp_path / "profile")
    assert "<title>x.crawl: crawl report</title>" in shown
    assert "1 to 7 of 7" in shown  # the URLs
    assert "1 to 3 of 3" in shown  # what is broken
    assert f">{ESCAPED.replace('>', '&gt;')}</td>" in shown
    assert f'<a href="{crawled}/gone" rel="noopener noreferrer nofollow" target="_blank">{crawled}/gone</a>' in shown


@pytest.mark.parametrize("other", [["--only", "pages"], ["--with-timing"], ["--fields", "url"], ["--broken"]])
def test_it_goes_with_nothing_that_chooses_what_to_show(cli: Cli, other: list[str]) -> None:
    result = cli("report", "x.crawl", "--format", "html", *other)
    assert result.status == 2
    assert result.err.count("\n") == 1
    assert other[0] in result.err


def test_it_goes_to_standard_output_without_a_file(cli: Cli, crawled: str) -> None:
    assert made(cli) == cli("report", "x.crawl", "--format", "html").out


# Figures ---------------------------------------------------------------------------------------------------------------


def test_figures_count_by_kind_status_depth_size_and_origin() -> None:
    figures = Figures()
    for url, depth, size in (("http://a.test/1", 0, 0), ("http://a.test/2", 3, 1023), ("https://a.test/", 99, 1024)):
        figures.add(Record(url=url, kind=Kind.PAGE, depth=depth, status=200, body_bytes=size, elapsed_ms=depth))
    figures.add(Record(url="https://b.test/", kind=Kind.FAILURE, depth=1, reason=Reason.TIMEOUT))
    charts = figures.charts()
    assert charts.kinds == [Bar("page", 3), Bar("failure", 1)]
    assert charts.statuses == [Bar("200", 3), Bar("net.timeout", 1)]
    assert charts.depths[:4] == [Bar("0", 1), Bar("1", 1), Bar("2", 0), Bar("3", 1)]
    assert charts.depths[-1] == Bar("20+", 1)
    assert charts.sizes[0] == Bar("< 1 B", 1)
    assert charts.sizes[-2:] == [Bar("< 1 KiB", 1), Bar("< 2 KiB", 1)]
    assert charts.origins == [Bar("http://a.test", 2), Bar("https://a.test", 1), Bar("https://b.test", 1)]
    assert charts.slowest == [Slow(99, "https://a.test/"), Slow(3, "http://a.test/2"), Slow(0, "http://a.test/1")]


def test_figures_keep_the_greatest_only() -> None:
    figures = Figures()
    for number in range(200):
        for path in range(1 + number % 50):
            url = f"http://{number:03}.test/{path}"
            figures.add(Record(url=url, kind=Kind.PAGE, depth=0, status=200, elapsed_ms=number * 50 + path))
    charts = figures.charts()
    assert [length for _, length in charts.origins] == sorted((1 + n % 50 for n in range(200)), reverse=True)[:MOST_ORIGINS]
    assert [ms for ms, _ in charts.slowest] == list(range(9999, 9999 - MOST_SLOW, -1))


def test_no_record_makes_empty_charts() -> None:
    charts = Figures().charts()
    assert charts.kinds == charts.depths == charts.origins == []
