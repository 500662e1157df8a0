"""`crawlkit explain`: the verdict first, then why, then how to have it otherwise; one object with --json."""

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from crawlkit.engine.explain.answer import Explanation
from crawlkit.surfaces.cli import run_cli
from crawlkit.testing.server import SiteServer
from crawlkit.testing.site import Site, page, robots, status
from tests.processes import environment
from tests.surfaces.conftest import Cli

RULES = "User-agent: *\nDisallow: /secret\n"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[SiteServer, Path]]:
    """A site, and a crawl of it."""
    site = Site(
        {
            "/robots.txt": robots(RULES),
            "/": page("Home", ["/a", "/secret", "/gone", "/no", "/\x1b[31m"]),
            "/a": page("A", ["/b"]),
            "/gone": status(404),
        }
    )
    directory = tmp_path_factory.mktemp("explained") / "x.crawl"
    limits = (
        "--max-depth",
        "1",
        "--exclude",
        "no$",
        "--delay",
        "0",
        "--retries",
        "0",
        "--warc",
        "--checkpoint-interval",
        "10ms",
    )
    with SiteServer(site) as running:
        assert run_cli(["run", f"{running.url}/", "-d", str(directory), *limits, "-q"]) == 1
        yield running, directory


@pytest.fixture
def server(served: tuple[SiteServer, Path], tmp_path: Path) -> SiteServer:
    """The site, with a crawl of it in x.crawl."""
    server, directory = served
    shutil.copytree(directory, tmp_path / "x.crawl")
    return server


def told(cli: Cli, url: str) -> dict[str, Any]:
    result = cli("explain", "x.crawl", url, "--json")
    assert (result.status, result.err) == (0, "")
    said: dict[str, Any] = json.loads(result.out)
    return said


def test_the_verdict_comes_first_then_how_to_have_it_otherwise(cli: Cli, server: SiteServer) -> None:
    asked = len(server.log)
    result = cli("explain", "x.crawl", f"{server.url}/secret")
    assert (result.status, result.err) == (0, "")
    assert result.out.splitlines()[:4] == [
        f"{server.url}/secret: excluded by robots.txt line 2: Disallow: /secret",
        "  code: robots.disallow",
        "  to fetch it anyway, start another crawl with --no-robots",
        "rules",
    ]
    assert len(server.log) == asked  # no request is made


def test_then_why(cli: Cli, server: SiteServer) -> None:
    lines = cli("explain", "x.crawl", f"{server.url}/a#top").out.splitlines()
    assert lines[0] == f"{server.url}/a: fetched: status 200"
    assert "  url.fragment: '#top' -> ''" in lines
    assert "  scope: ok: scope=host: 127.0.0.1" in lines
    assert "  depth: ok: depth 1, at most 1" in lines
    assert "path (none is shorter)" in lines
    assert lines[lines.index("path (none is shorter)") + 1 :][:2] == [f"  seed: {server.url}/", f"  link: {server.url}/a"]
    assert "sources: link" in lines
    assert "attempts: 1, 0 of them failed" in lines
    assert any(line.startswith("archived: warc/crawlkit-") for line in lines)
    assert "host 127.0.0.1" in lines


def test_a_page_that_was_cut_off_says_so_in_the_verdict(cli: Cli) -> None:
    with SiteServer(Site({"/": page("Long")})) as server:
        cli("run", f"{server.url}/", "--dir", "cut.crawl", "--max-body", "20", "--delay", "0.0001s")
        lines = cli("explain", "cut.crawl", f"{server.url}/").out.splitlines()
    assert lines[0] == f"{server.url}/: fetched: status 200, cut off"
    assert "  gap: 0s; breaker: closed" in lines  # rounded: nobody reads ten digits of a gap


def test_a_rule_that_keeps_a_url_out_is_shown_with_its_line_of_the_settings(
    cli: Cli, server: SiteServer, tmp_path: Path
) -> None:
    lines = cli("explain", "x.crawl", f"{server.url}/no").out.splitlines()
    written = (tmp_path / "x.crawl" / "config.toml").read_text().splitlines()
    number = next(number for number, line in enumerate(written, 1) if line.startswith("exclude ="))
    assert f"  scope: scope.exclude: exclude[0]: /no$/  [config.toml line {number}: {written[number - 1]}]" in lines
    assert f"  link: {server.url}/" in lines


@pytest.mark.parametrize(
    ("path", "code", "remedy"),
    [
        ("/", "done.page", None),
        ("/gone", "http.client_error", "to try it again: crawlkit resume x.crawl --retry-failed=http.client_error"),
        ("/b", "depth.limit", "to crawl it: crawlkit resume x.crawl --set max_depth=2"),
        ("/c", "never.linked", "to crawl it: start another crawl with it as a seed"),
    ],
)
def test_one_object(cli: Cli, server: SiteServer, path: str, code: str, remedy: str | None) -> None:
    said = told(cli, server.url + path)
    assert list(said) == list(Explanation.__struct_fields__)
    assert (said["url"], said["code"], said["remedy"]) == (server.url + path, code, remedy)


@pytest.mark.parametrize(("path", "option"), [("/gone", "--retry-failed=http.client_error"), ("/b", "--set max_depth=2")])
def test_the_remedies_are_commands_that_work(cli: Cli, server: SiteServer, path: str, option: str) -> None:
    remedy = told(cli, server.url + path)["remedy"].partition(": crawlkit ")[2]
    assert remedy == f"resume x.crawl {option}"
    asked = len(server.log)
    assert cli(*remedy.split(), "-q").status == 1
    assert path in [request.target for request in server.log[asked:]]
    assert told(cli, server.url + path)["code"] == "http.client_error"


@pytest.mark.parametrize(
    ("text", "code"), [("", "url.invalid"), ("example.com/x", "url.invalid"), ("mailto:me@a.test", "url.scheme")]
)
def test_what_is_no_url_has_a_verdict_too(cli: Cli, server: SiteServer, text: str, code: str) -> None:
    said = told(cli, text)
    assert (said["typed"], said["url"], said["code"], said["rules"]) == (text, None, code, [])
    result = cli("explain", "x.crawl", text)
    assert (result.status, result.err) == (0, "")
    assert f"  code: {code}" in result.out.splitlines()


def test_nothing_that_a_terminal_would_obey_is_printed(cli: Cli, server: SiteServer) -> None:
    out = cli("explain", "x.crawl", f"{server.url}/\x1b[31m\u202e\n").out
    assert out.startswith(f"{server.url}/%1B[31m%E2%80%AE: never met")
    assert not {"\x1b", "\u202e"} & set(out)


def test_an_argument_whose_bytes_are_no_text(cli: Cli, server: SiteServer, tmp_path: Path) -> None:
    command: list[str | bytes] = [sys.executable, "-m", "crawlkit", "explain", "x.crawl", b"http://a.test/\xff", "--json"]
    ended = subprocess.run(command, cwd=tmp_path, env=environment(), capture_output=True, check=False, timeout=30)
    assert (ended.returncode, ended.stderr) == (0, b"")
    assert json.loads(ended.stdout)["code"] == "url.invalid"


def test_a_directory_that_is_no_crawl_is_status_3(cli: Cli) -> None:
    result = cli("explain", "nowhere.crawl", "http://a.test/")
    assert (result.status, result.out) == (3, "")
    assert len(result.err.splitlines()) == 1
