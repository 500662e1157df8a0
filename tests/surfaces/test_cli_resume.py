"""`crawlkit resume`: after a limit, after the end, with other settings."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from crawlkit.config import Config
from crawlkit.state.reading import open_crawl_for_reading
from crawlkit.testing.graph import Features, Graph, make_graph
from crawlkit.testing.server import SiteServer
from crawlkit.testing.site import Site, page, redirect, status
from tests.surfaces.conftest import Cli

FAST = ("--delay", "0", "--host-concurrency", "8", "--retries", "0")
GRAPH = make_graph(80, 6, links_per_page=5, features=Features(redirects=6, chain=2, canonicals=4, missing=3))


@pytest.fixture
def server() -> Iterator[SiteServer]:
    with SiteServer(GRAPH.site()) as running:
        yield running


@pytest.fixture
def graph(server: SiteServer) -> Graph:
    return GRAPH.at(server.url)


def report(cli: Cli, directory: str) -> str:
    result = cli("report", directory, "--format", "jsonl")
    assert result.status == 0
    return result.out


def frozen(directory: Path) -> Config:
    with open_crawl_for_reading(directory) as crawl:
        return crawl.config()


def test_a_finished_crawl_is_resumed_without_a_request_and_ends_as_it_did(cli: Cli, server: SiteServer) -> None:
    first = cli("run", f"{server.url}/", "-d", "x.crawl", *FAST)
    made, before = len(server.log), report(cli, "x.crawl")
    for _ in range(2):
        again = cli("resume", "x.crawl")
        assert (again.status, again.out) == (first.status, "") == (1, "")
        assert "resume with" not in again.err
        assert "crawlkit: finished" in again.err
    assert cli("resume", "x.crawl", "--exit-zero").status == 0
    assert len(server.log) == made
    assert report(cli, "x.crawl") == before


def test_a_crawl_stopped_by_its_limit_goes_on_only_when_it_is_raised(cli: Cli, server: SiteServer) -> None:
    cli("run", f"{server.url}/", "-d", "whole.crawl", *FAST)
    expected = report(cli, "whole.crawl")
    whole = len(server.log)
    cli("run", f"{server.url}/", "-d", "x.crawl", *FAST, "--max-pages", "5")
    made = len(server.log)
    assert cli("resume", "x.crawl").err.splitlines()[-1] == "resume with: crawlkit resume x.crawl"
    assert len(server.log) == made
    for pages in (20, 50):
        result = cli("resume", "x.crawl", "--set", f"max_pages={pages}")
        assert f"{pages} pages" in result.err
        assert report(cli, "x.crawl").count('"kind":"page"') == pages
    last = cli("resume", "x.crawl", "--set", "max-pages=none")
    assert "depends on order" not in last.err
    assert "resume with" not in last.err
    assert report(cli, "x.crawl") == expected
    asked = Counter(request.target for request in server.log[whole:])
    assert set(asked.values()) == {1}
    assert len(asked) == len(expected.splitlines()) + len(["/robots.txt"])


def test_a_limit_by_host_stops_and_goes_on(cli: Cli) -> None:
    graph = make_graph(60, 9, hosts=3)
    with SiteServer(graph.site()) as server:
        options = ("--resolve", f"*=127.0.0.1:{server.port}", "-d", "x.crawl", *FAST)
        first = cli("run", *graph.seeds, *options, "--max-pages-per-host", "4")
        assert "12 pages" in first.err
        assert "limit.host" in first.err
        assert "--set max_pages_per_host=N goes beyond it" in first.err
        assert first.err.splitlines()[-1] == "resume with: crawlkit resume x.crawl"
        assert "12 pages" in cli("resume", "x.crawl").err
        assert "60 pages" in cli("resume", "x.crawl", "--set", "max_pages_per_host=none").err


@pytest.mark.slow
def test_a_raised_depth_admits_what_it_had_kept_out(cli: Cli, server: SiteServer, graph: Graph) -> None:
    cli("run", f"{server.url}/", "-d", "x.crawl", *FAST, "--max-depth", "1")
    assert len(report(cli, "x.crawl").splitlines()) == len(graph.answers(max_depth=1))
    made = len(server.log)
    for depth in ("3", "none"):
        cli("run", f"{server.url}/", "-d", f"{depth}.crawl", *FAST, "--max-depth", depth)
        cli("resume", "x.crawl", "--set", f"max_depth={depth}")
        assert report(cli, "x.crawl") == report(cli, f"{depth}.crawl")
    assert made < len(graph.answers())


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("scope=any", "scope: frozen when the crawl began"),
        ("include=/p", "include: frozen"),
        ("exclude=/p", "exclude: frozen"),
        ("user_agent=other/1", "user_agent: frozen"),
        ("robots=off", "robots: frozen"),
        ("max_body=1KiB", "max_body: frozen"),
        ("resolve=*=127.0.0.1:1", "resolve: frozen"),
        ("max_pages=4", "max_pages: this limit was 5 when the crawl began and may only be raised"),
        ("max_depth=3", "max_depth: this limit was None when the crawl began and may only be raised"),
    ],
)
def test_what_the_report_rests_on_may_not_change(cli: Cli, server: SiteServer, tmp_path: Path, change: str, said: str) -> None:
    cli("run", f"{server.url}/", "-d", "x.crawl", *FAST, "--max-pages", "5")
    made, before = len(server.log), frozen(tmp_path / "x.crawl")
    result = cli("resume", "x.crawl", "--set", change, "--set", "workers=2")
    assert result.status == 2
    assert result.err.startswith(f"crawlkit: {said}")
    assert len(result.err.splitlines()) == 1
    assert (len(server.log), frozen(tmp_path / "x.crawl")) == (made, before)


def test_how_the_work_is_done_may_change_and_is_kept(cli: Cli, server: SiteServer, tmp_path: Path) -> None:
    cli("run", f"{server.url}/", "-d", "x.crawl", *FAST, "--max-pages", "5")
    changes = ("workers=2", "delay=1ms", "timeout=3s", "retries=1", "checkpoint_interval=2s", "host-concurrency=2")
    options = [word for change in changes for word in ("--set", change)]
    cli("resume", "x.crawl", *options)
    config = frozen(tmp_path / "x.crawl")
    assert (config.workers, config.delay, config.timeout, config.host_concurrency) == (2, 0.001, 3.0, 2)
    with open_crawl_for_reading(tmp_path / "x.crawl") as crawl:
        assert [sorted(run.changes) for run in crawl.runs] == [
            [],
            sorted(c.partition("=")[0].replace("-", "_") for c in changes),
        ]
    cli("resume", "x.crawl")
    assert frozen(tmp_path / "x.crawl") == config


def test_a_failure_is_final_for_a_resume(cli: Cli) -> None:
    with SiteServer(Site({"/": page("home", ["/bad"]), "/bad": status(500)})) as server:
        assert cli("run", f"{server.url}/", "-d", "x.crawl", *FAST).status == 1
        server.site = Site({"/": page("home"), "/bad": page("mended")})
        assert cli("resume", "x.crawl").status == 1
        assert [request.target for request in server.log] == ["/robots.txt", "/", "/bad"]


def test_a_seed_whose_redirect_is_still_to_be_followed_is_not_called_out_of_scope(cli: Cli) -> None:
    with SiteServer(Site({"/": redirect("/later"), "/later": page("later")})) as server:
        options = ("--no-robots", "--delay", "1h", "--max-time", "300ms")
        result = cli("run", f"{server.url}/", "-d", "x.crawl", *options)
        assert "out of scope" not in result.err
        assert result.err.splitlines()[-1] == "resume with: crawlkit resume x.crawl"
