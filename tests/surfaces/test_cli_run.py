"""`crawlkit run`: what it crawls, where to, with which settings, and how it ends."""

import io
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from crawlkit.config import Config
from crawlkit.model import Kind
from crawlkit.state.reading import open_crawl_for_reading
from crawlkit.testing.graph import Features, make_graph
from crawlkit.testing.server import SiteServer
from crawlkit.testing.site import Site, page, redirect, robots, status
from tests.surfaces.conftest import Cli

FAST = ("--delay", "0", "--host-concurrency", "8", "--retries", "0")
GOOD = Site({"/": page("Home", ["/a", "/b"]), "/a": page("A", ["/b"]), "/b": page("B")})


@pytest.fixture
def server() -> Iterator[SiteServer]:
    with SiteServer(GOOD) as running:
        yield running


def lines(cli: Cli, directory: object) -> list[dict[str, Any]]:
    result = cli("report", directory, "--format", "jsonl")
    assert result.status == 0
    return [json.loads(line) for line in result.out.splitlines()]


def frozen(directory: Path) -> Config:
    with open_crawl_for_reading(directory) as crawl:
        return crawl.config()


def test_a_crawl_goes_into_a_directory_named_by_the_host_of_its_first_seed(
    cli: Cli, server: SiteServer, tmp_path: Path
) -> None:
    result = cli("run", f"{server.url}/", "http://localhost:1/", *FAST, "--max-pages", "3")
    assert [path.name for path in tmp_path.iterdir()] == ["127.0.0.1.crawl"]
    assert "crawlkit report 127.0.0.1.crawl" in result.err


def test_a_crawl_without_failures_ends_with_0_and_keeps_standard_output_for_data(cli: Cli, server: SiteServer) -> None:
    result = cli("run", f"{server.url}/", *FAST)
    assert (result.status, result.out) == (0, "")
    assert "crawlkit: finished" in result.err
    assert "3 pages, 0 redirects, 0 failures, 0 excluded, 0 left" in result.err
    assert "resume with" not in result.err


@pytest.mark.parametrize("code", [404, 403, 500, 503])
def test_a_failed_page_makes_the_status_1_unless_told_otherwise(cli: Cli, server: SiteServer, code: int) -> None:
    server.site = GOOD | {"/b": status(code)}
    assert cli("run", f"{server.url}/", "-d", "one.crawl", *FAST).status == 1
    assert cli("run", f"{server.url}/", "-d", "two.crawl", *FAST, "--exit-zero").status == 0
    assert [line["kind"] for line in lines(cli, "two.crawl")] == ["page", "page", "failure"]


def test_excluded_pages_and_redirects_are_no_failures(cli: Cli, server: SiteServer) -> None:
    server.site = GOOD | {"/robots.txt": robots("User-agent: *\nDisallow: /b\n"), "/a": redirect("/c"), "/c": page("C")}
    assert cli("run", f"{server.url}/", "-d", "x.crawl", *FAST).status == 0
    assert {line["url"].removeprefix(server.url): line["kind"] for line in lines(cli, "x.crawl")} == {
        "/": "page",
        "/a": "redirect",
        "/b": "excluded",
        "/c": "page",
    }


def test_quiet_says_nothing_and_verbose_says_more(cli: Cli, server: SiteServer) -> None:
    seed = f"{server.url}/"
    assert cli("run", seed, "-d", "q.crawl", *FAST, "-q").err == ""
    normal = cli("run", seed, "-d", "n.crawl", *FAST).err
    verbose = cli("run", seed, "-d", "v.crawl", *FAST, "-v").err
    assert len(verbose.splitlines()) > len(normal.splitlines())
    assert "4 requests, 1 host, " in verbose


def test_seeds_come_from_files_standard_input_and_arguments(
    cli: Cli, server: SiteServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.site = Site({f"/{name}": page(name) for name in "abcde"})
    (tmp_path / "one.txt").write_bytes(f"\ufeff# the first\n\n  {server.url}/a  \r\n{server.url}/b\r\n".encode())
    (tmp_path / "two.txt").write_text(f"{server.url}/c#part\n{server.url}/a\n")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(f"{server.url}/d\n".encode())))
    options = ("-i", "one.txt", "--input", "two.txt", "-i", "-", "-d", "x.crawl")
    assert cli("run", f"{server.url}/e", *options, *FAST).status == 0
    assert [line["title"] for line in lines(cli, "x.crawl")] == list("abcde")


def test_later_settings_win_from_end_to_end(
    cli: Cli, server: SiteServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.crawlkit]\nworkers = 1\ntimeout = 11\ndelay = 0\n")
    (tmp_path / "crawlkit.toml").write_text('workers = 2\ntimeout = "12s"\nretries = 2\nexclude = ["/b$"]\n')
    (tmp_path / "more.toml").write_text('workers = 3\nretries = 5\nhost_concurrency = 3\nexclude = ["/nothing$"]\n')
    monkeypatch.setenv("CRAWLKIT_WORKERS", "4")
    monkeypatch.setenv("CRAWLKIT_HOST_CONCURRENCY", "4")
    cli("run", f"{server.url}/", "-d", "x.crawl", "-c", "more.toml", "--workers", "5")
    config = frozen(tmp_path / "x.crawl")
    assert (config.workers, config.host_concurrency, config.retries, config.timeout, config.delay) == (5, 4, 5, 12.0, 0.0)
    assert config.exclude == ("/nothing$",)
    assert len(lines(cli, "x.crawl")) == 3


def test_what_was_in_force_is_frozen_and_the_surroundings_change_no_resume(
    cli: Cli, server: SiteServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cli("run", f"{server.url}/", "-d", "x.crawl", *FAST, "--max-pages", "1")
    before = frozen(tmp_path / "x.crawl")
    monkeypatch.setenv("CRAWLKIT_MAX_PAGES", "none")
    (tmp_path / "crawlkit.toml").write_text("max_pages = 17\n")
    cli("resume", "x.crawl")
    assert frozen(tmp_path / "x.crawl") == before
    assert len(lines(cli, "x.crawl")) == 1


@pytest.mark.parametrize("workers", [1, 3, 48])
def test_the_records_are_those_of_a_breadth_first_search(cli: Cli, workers: int) -> None:
    features = Features(redirects=9, chain=3, canonicals=6, missing=4, outside=3, nofollow=4, unreachable=3)
    graph = make_graph(90, 7, features=features)
    with SiteServer(graph.site()) as server:
        here = graph.at(server.url)
        cli("run", f"{server.url}/", "-d", "x.crawl", "-w", workers, *FAST, "--max-depth", "3")
        found = lines(cli, "x.crawl")
    answers = here.answers(max_depth=3)
    assert {line["url"]: (line["kind"], line["depth"]) for line in found} == {
        url: (answer.kind, answer.depth) for url, answer in answers.items()
    }
    assert all(tuple(line["links"]) == here.links(line["url"]) for line in found if line["kind"] == Kind.PAGE)


def test_a_limit_is_exact_and_ends_with_the_resume_line(cli: Cli) -> None:
    graph = make_graph(60, 2, features=Features(redirects=8, chain=2, missing=5))
    with SiteServer(graph.site()) as server:
        result = cli("run", f"{server.url}/", "-d", "x.crawl", *FAST, "--max-pages", "17")
        assert result.status in (0, 1)
        assert "limit on pages" in result.err
        assert result.err.splitlines()[-1] == "resume with: crawlkit resume x.crawl"
        assert [line["kind"] for line in lines(cli, "x.crawl")].count("page") == 17
        quiet = cli("resume", "x.crawl", "-q")
        assert quiet.err == "resume with: crawlkit resume x.crawl\n"
        assert quiet.status == result.status


def test_many_hosts_are_crawled_through_resolve(cli: Cli) -> None:
    graph = make_graph(60, 11, hosts=4, features=Features(redirects=6, chain=2, canonicals=4, missing=3, outside=2))
    with SiteServer(graph.site()) as server:
        where = f"*.test=127.0.0.1:{server.port}"
        result = cli("run", "http://h1.test/", "--resolve", where, "--scope", "any", *FAST)
        assert result.status == 1
        found = lines(cli, "h1.test.crawl")
    hosts = {"h1.test", "h2.test", "h3.test", "h4.test", "outside.test"}
    answers = graph.answers("http://h1.test/", scope=hosts)
    assert {line["url"]: (line["kind"], line["status"], line["depth"]) for line in found} == {
        url: (answer.kind, answer.status, answer.depth) for url, answer in answers.items()
    }
    assert {request.host for request in server.log} == hosts


def test_the_scope_is_what_was_asked_for(cli: Cli) -> None:
    site = Site(
        {
            "one.test/": page("1", ["http://www.one.test/", "http://two.test/", "/docs/a"]),
            "one.test/docs/a": page("docs", ["/", "/docs/b", "/docsb"]),
            "one.test/docs/b": page("b"),
            "one.test/docsb": page("other"),
            "www.one.test/": page("www"),
            "two.test/": page("2"),
        }
    )
    with SiteServer(site) as server:
        for scope, seed, expected in (
            ("host", "http://one.test/", {"1", "docs", "b", "other"}),
            ("domain", "http://one.test/", {"1", "docs", "b", "other", "www"}),
            ("any", "http://one.test/", {"1", "docs", "b", "other", "www", "2"}),
            ("prefix", "http://one.test/docs/a", {"docs"}),
            ("host", "http://www.one.test/", {"www"}),
        ):
            directory = f"{scope}-{len(expected)}.crawl"
            options = ("--resolve", f"*=127.0.0.1:{server.port}", "--scope", scope, "-d", directory)
            assert cli("run", seed, *options, *FAST).status == 0
            assert {line["title"] for line in lines(cli, directory)} == expected


@pytest.mark.parametrize(
    ("site", "said"),
    [
        (
            {"/": redirect("http://www.one.test/")},
            "seed http://one.test/ redirected out of scope to http://www.one.test/: use that as seed, or --scope domain",
        ),
        ({"/": status(404)}, "seed http://one.test/ led to no page: The server answered with a status from 400 to 499."),
        ({"/robots.txt": robots("User-agent: *\nDisallow: /\n")}, "robots.disallow"),
        ({"/": redirect("/gone")}, "seed http://one.test/ led to no page: it redirected to http://one.test/gone"),
    ],
)
@pytest.mark.parametrize("options", [(), ("-q",), ("--exit-zero",)])
def test_a_crawl_without_a_page_fails_and_says_why(cli: Cli, site: dict[str, Any], said: str, options: tuple[str, ...]) -> None:
    with SiteServer(Site(site)) as server:
        result = cli("run", "http://one.test/", "--resolve", f"*=127.0.0.1:{server.port}", *FAST, *options)
    assert result.status == 1
    assert said in result.err


def test_a_seed_that_cannot_be_reached_is_a_failed_page(cli: Cli, server: SiteServer) -> None:
    result = cli("run", f"{server.url}/", "http://127.0.0.1:1/", "-d", "x.crawl", *FAST)
    assert result.status == 1
    assert [line["kind"] for line in lines(cli, "x.crawl")] == ["failure", "page", "page", "page"]
    alone = cli("run", "http://127.0.0.1:1/", "-d", "y.crawl", *FAST)
    assert alone.status == 1
    assert "seed http://127.0.0.1:1/ led to no page: The host could not be reached for its robots.txt." in alone.err
    assert "(host.unreachable: [Errno 111] Connection refused)" in alone.err
    assert "  0 pages, 0 redirects, 1 failure, 0 excluded, 0 left; " in alone.err


def test_a_limit_on_time_ends_the_run_and_resuming_makes_no_request(cli: Cli) -> None:
    with SiteServer(make_graph(50, 1).site()) as server:
        result = cli("run", f"{server.url}/", "-d", "x.crawl", "--no-robots", "--delay", "500ms", "--max-time", "2s")
        assert (result.status, result.out) == (0, "")
        assert "the limit on time is reached; --set max_time=DURATION goes beyond it" in result.err
        assert "limit.time" in result.err
        made = len(server.log)
        assert 1 <= made <= 5
        again = cli("resume", "x.crawl")
        assert (again.status, len(server.log)) == (0, made)
        assert "resume with: crawlkit resume x.crawl" in again.err
        longer = cli("resume", "x.crawl", "--set", "max_time=none", "--set", "delay=0")
        assert "50 pages" in longer.err


def test_every_request_says_whom_to_write_to_over_resumes_too(cli: Cli, server: SiteServer) -> None:
    cli("run", f"{server.url}/", "-d", "x.crawl", "--contact", "me@a.test", "--max-pages", "1", *FAST)
    cli("resume", "x.crawl", "--set", "max_pages=none")
    assert len(server.log) == 4
    assert {dict(request.headers)["from"] for request in server.log} == {"me@a.test"}
    assert {dict(request.headers)["user-agent"] for request in server.log} == {Config(contact="me@a.test").sent_user_agent()}
