"""Sitemaps as a user meets them: over loopback, of all forms, large ones too, over a kill."""

import gzip
import json
import signal
from pathlib import Path
from typing import Any

import pytest

from crawlkit.testing.server import SiteServer
from crawlkit.testing.site import Reply, Site, page, robots, status
from tests.processes import command, started, wait_while_running
from tests.surfaces.conftest import Cli

FAST = ("--delay", "0", "--host-concurrency", "4", "--retries", "0", "-d", "x.crawl")


def xml(text: str, kind: str = "application/xml") -> Reply:
    return Reply(200, (("content-type", kind),), text.encode())


def urlset(*places: str, more: str = "") -> str:
    return "<urlset>" + "".join(f"<url><loc>{place}</loc>{more}</url>" for place in places) + "</urlset>"


SITE = Site({
    "/robots.txt": robots("User-agent: *\nSitemap: /index.xml\nSitemap: /gone.xml\nSitemap: /page\n"),
    "/": page("Home", ["/a"]),
    "/a": page("A"),
    "/b": page("B"),
    "/page": page("No sitemap"),
    "/index.xml": xml(
        "<sitemapindex><sitemap><loc>/one.xml.gz</loc></sitemap><sitemap><loc>/index.xml</loc></sitemap></sitemapindex>"
    ),
    "/one.xml.gz": Reply(
        200, (("content-type", "application/gzip"),),
        gzip.compress(urlset("/a", "/b", more="<lastmod>2024-06-03</lastmod><priority>0.7</priority>").encode()),
    ),
    "/gone.xml": status(404),
    "/list.txt": xml("HOST/c\nHOST/d\n", "text/plain"),
    "/c": page("C"),
})  # fmt: skip


def lines(cli: Cli) -> dict[str, dict[str, Any]]:
    said = cli("report", "x.crawl", "--format", "jsonl", "-o", "x.jsonl")
    assert said.status == 0
    return {line["url"]: line for line in map(json.loads, Path("x.jsonl").read_text().splitlines())}


def test_sitemaps_are_read_and_what_came_of_them_is_told(cli: Cli) -> None:
    with SiteServer(SITE) as server:
        said = cli("run", f"{server.url}/", "--sitemaps", *FAST)
        assert said.status == 0
        assert "sitemaps: 0 waiting, 2 read, 2 failed, 0 cut, 4 urls" in said.err
        found = lines(cli)
        told = {
            url.removeprefix(server.url): (line["sources"], line["lastmod"], line["priority"]) for url, line in found.items()
        }
        assert told == {
            "/": (["seed"], None, None),
            "/a": (["sitemap", "link"], "2024-06-03T00:00:00Z", 0.7),
            "/b": (["sitemap"], "2024-06-03T00:00:00Z", 0.7),
        }
        counts = {"waiting": 0, "read": 2, "failed": 2, "cut": 0, "urls": 4}
        assert json.loads(cli("status", "x.crawl", "--json").out)["sitemaps"] == counts
        assert json.loads(Path("x.jsonl.meta.json").read_text())["sitemaps"] == counts
        assert cli("report", "x.crawl", "--orphans").out == f"{server.url}/b 200\n"
        assert cli("verify", "x.crawl").status == 0


def test_a_seed_may_be_a_list_of_urls(cli: Cli) -> None:
    with SiteServer(SITE) as server:
        server.site = SITE | {"/robots.txt": status(404), "/list.txt": xml(f"{server.url}/c\n{server.url}/d\n", "text/plain")}
        assert cli("run", f"{server.url}/list.txt", "--sitemaps", *FAST).status == 1
        told = {url.removeprefix(server.url): line["sources"] for url, line in lines(cli).items()}
        assert told == {"/list.txt": ["seed"], "/c": ["sitemap"], "/d": ["sitemap"]}
        assert sum(request.target == "/list.txt" for request in server.log) == 1


@pytest.mark.parametrize("option", [(), ("--no-sitemaps",)])
def test_they_are_off_unless_asked_for(cli: Cli, option: tuple[str, ...]) -> None:
    with SiteServer(SITE) as server:
        cli("run", f"{server.url}/", *option, *FAST)
        assert {request.target for request in server.log} == {"/robots.txt", "/", "/a"}


def test_a_kill_while_a_large_one_is_taken_in_loses_nothing(cli: Cli, tmp_path: Path) -> None:
    named = [f"/p{number}" for number in range(2_000)]
    site = Site(
        {
            "/robots.txt": robots("User-agent: *\nSitemap: /big.xml\nDisallow: /p\n"),
            "/": page("Home"),
            "/big.xml": xml(urlset(*named)),
        }
    )
    with SiteServer(site) as server:
        arguments = ("run", f"{server.url}/", "--sitemaps", "--checkpoint-interval", "20ms", "-q", *FAST)
        with started(command(*arguments), tmp_path) as process:
            wait_while_running(process, lambda: any(request.target == "/big.xml" for request in server.log[:]))
            process.send_signal(signal.SIGKILL)
            process.wait()
        assert cli("resume", "x.crawl", "-q").status == 0
        assert set(lines(cli)) == {f"{server.url}/", *(server.url + each for each in named)}
        assert cli("verify", "x.crawl").status == 0
