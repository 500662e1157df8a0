"""What `run` and `resume` say on standard error: levels, lines for people, lines for machines."""

import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from crawlkit.clock import SystemClock
from crawlkit.engine.events import Retrying
from crawlkit.surfaces.log import Log, LogFormat, Verbosity
from crawlkit.testing.server import SiteServer
from crawlkit.testing.site import Site, page, robots
from tests.surfaces.conftest import Cli

SITE = Site(
    {
        "/": page("Home", ["/a", "/no", "/gone", '/it\'s "here"']),
        "/a": page("A"),
        "/robots.txt": robots("User-agent: *\nDisallow: /no"),
    }
)
FAST = ("--delay", "0", "--retries", "0")


@pytest.fixture
def server() -> Iterator[SiteServer]:
    with SiteServer(SITE) as running:
        yield running


def lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["-q"], {}),
        ([], {"run.began": 1, "run.ended": 1}),
        (["-v"], {"run.began": 1, "run.ended": 1, "robots.read": 1, "settled": 5}),
        (["-vv"], {"run.began": 1, "run.ended": 1, "robots.read": 1, "settled": 5, "claimed": 5}),
    ],
)
def test_each_line_is_an_event_as_json(cli: Cli, server: SiteServer, options: list[str], expected: dict[str, int]) -> None:
    said = cli("run", f"{server.url}/", "-d", "x.crawl", *FAST, "--log-format", "json", *options)

    events = lines(said.err)
    assert (said.status, said.out) == (1, "")
    assert Counter(event["event"] for event in events) == expected
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", event["time"]) for event in events)


def test_the_fields_tell_what_became_of_each_url_and_of_the_run(cli: Cli, server: SiteServer) -> None:
    events = lines(cli("run", f"{server.url}/", "-d", "x.crawl", *FAST, "--log-format", "json", "-v").err)

    settled = {event["url"].removeprefix(server.url): event for event in events if event["event"] == "settled"}
    assert settled["/"].items() >= {"host": "127.0.0.1", "kind": "page", "status": 200, "reason": None, "depth": 0}.items()
    assert settled["/gone"].items() >= {"kind": "failure", "status": 404, "reason": "http.client_error"}.items()
    assert (
        settled["/no"].items() >= {"kind": "excluded", "reason": "robots.disallow", "message": "line 2: Disallow: /no"}.items()
    )
    assert events[-1].items() >= {"event": "run.ended", "how": "finished", "status": 1, "pages": 2, "resume": None}.items()


def test_a_run_that_is_to_be_resumed_says_how_even_when_quiet(cli: Cli, server: SiteServer) -> None:
    said = cli("run", f"{server.url}/", "-d", "x.crawl", *FAST, "--log-format", "json", "-q", "--max-pages", "1")

    [ended] = lines(said.err)
    assert (ended["how"], ended["resume"]) == ("limit.pages", "crawlkit resume x.crawl")


def test_warnings_and_why_there_is_no_page_are_events_too(cli: Cli) -> None:
    said = cli("run", "http://127.0.0.1:1/", "-d", "x.crawl", *FAST, "--log-format", "json", "-q", "--insecure")

    warning, ended = lines(said.err)
    assert (warning["event"], "certificates are not verified" in warning["message"]) == ("warning", True)
    assert "led to no page" in ended["why"][0]


def test_lines_for_people_have_one_event_each_with_its_fields(cli: Cli, server: SiteServer) -> None:
    said = cli("run", f"{server.url}/", "-d", "x.crawl", *FAST, "-vv").err.splitlines()

    events = [line.split(" ") for line in said if re.match(r"\d{4}-", line)]
    assert Counter(words[1] for words in events) == {"run.began": 1, "robots.read": 1, "settled": 5, "claimed": 5}
    assert all("=" in word for line in said if " claimed " in line for word in line.split(" ")[2:])
    [no] = [line for line in said if f"url={server.url}/no " in line]
    assert no.endswith('message="line 2: Disallow: /no" depth=1 attempts=0')


def test_what_a_server_says_cannot_forge_a_line(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    log = Log(tmp_path, LogFormat.TEXT, Verbosity.VERBOSE, SystemClock())
    log.on_event(Retrying("http://a.test/", "a.test", None, None, 'a"\n2026 settled \x1b[31m\x9b\u2028x', 1), 0.0)

    [line] = capfd.readouterr().err.splitlines()
    assert line.startswith("1970-01-01T00:00:00.000Z retrying url=http://a.test/ host=a.test message=")
    assert not re.search(r"[\x00-\x1f\x7f-\x9f]", line)
