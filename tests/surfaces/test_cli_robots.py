"""`crawlkit robots`: the verdict, the line that decided, the delay in force, and what the answer's status means."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from crawlkit.config import USER_AGENT
from crawlkit.testing.server import SiteServer
from crawlkit.testing.site import Fault, Reply, Site, redirect, robots, status
from tests.surfaces.conftest import Cli, Said

RULES = """User-agent: *
Disallow: /private
Allow: /private/open
Crawl-delay: 2.5

User-agent: otherbot
Disallow: /
Crawl-delay: 90
"""


@pytest.fixture
def server() -> Iterator[SiteServer]:
    with SiteServer(Site({"/robots.txt": robots(RULES)})) as running:
        yield running


def told(result: Said) -> dict[str, str]:
    """Return what was printed, by the word before the colon."""
    assert result.err == ""
    return dict(line.split(": ", 1) for line in result.out.splitlines())


@pytest.mark.parametrize(
    ("path", "verdict", "line"),
    [
        ("/", "allowed", "none matches"),
        ("/private/x", "disallowed", "2: Disallow: /private"),
        ("/private/open", "allowed", "3: Allow: /private/open"),
        ("/robots.txt", "allowed", "none matches"),
    ],
)
def test_the_verdict_comes_with_the_line_that_decided(cli: Cli, server: SiteServer, path: str, verdict: str, line: str) -> None:
    result = cli("robots", f"{server.url}{path}")
    assert result.status == 0
    assert told(result) == {
        "url": f"{server.url}{path}",
        "agent": "crawlkit",
        "robots.txt": f"{server.url}/robots.txt",
        "answer": "200: the file decides",
        "verdict": verdict,
        "line": line,
        "group": "*",
        "crawl-delay": "2500ms",
        "delay in force": "2500ms",
    }


@pytest.mark.parametrize("agent", ["otherbot", "OtherBot/2.0 (+https://other.test)"])
def test_another_agent_is_judged_by_its_product_token_but_not_sent(cli: Cli, server: SiteServer, agent: str) -> None:
    said = told(cli("robots", f"{server.url}/", "--agent", agent))
    assert (said["verdict"], said["line"], said["crawl-delay"]) == ("disallowed", "7: Disallow: /", "90s")
    assert dict(server.log[0].headers)["user-agent"] == USER_AGENT


def test_the_user_agent_in_force_is_judged_and_sent(cli: Cli, server: SiteServer, tmp_path: Path) -> None:
    (tmp_path / "crawlkit.toml").write_text('user_agent = "otherbot/1.0"\n')
    assert told(cli("robots", f"{server.url}/"))["verdict"] == "disallowed"
    assert dict(server.log[0].headers)["user-agent"] == "otherbot/1.0"


@pytest.mark.parametrize(
    ("options", "agent", "in_force"),
    [
        (["--delay", "1s"], "crawlkit", "2500ms"),
        (["--delay", "10s"], "crawlkit", "10s"),
        ([], "otherbot", "none: above the accepted 1m, so a crawl excludes the URLs of this origin (robots.delay_too_long)"),
        (["--max-crawl-delay", "90s"], "otherbot", "90s"),
    ],
)
def test_the_delay_in_force_follows_from_the_settings(
    cli: Cli, server: SiteServer, options: list[str], agent: str, in_force: str
) -> None:
    assert told(cli("robots", f"{server.url}/", "--agent", agent, *options))["delay in force"] == in_force


@pytest.mark.parametrize(
    ("answer", "meaning"),
    [
        (status(404), "404: there is no file, so all is allowed"),
        (status(403), "403: there is no file, so all is allowed"),
        (redirect(""), "302: redirected to nowhere, or more than 5 times, so all is allowed"),
        (redirect("/robots.txt", 301), "301: redirected to nowhere, or more than 5 times, so all is allowed"),
    ],
)
def test_without_a_file_the_class_of_the_status_allows_all(cli: Cli, server: SiteServer, answer: Reply, meaning: str) -> None:
    server.site = Site({"/robots.txt": answer})
    result = cli("robots", f"{server.url}/private/x")
    said = told(result)
    assert result.status == 0
    assert (said["answer"], said["verdict"], said["crawl-delay"]) == (meaning, "allowed", "none")
    assert said["delay in force"] == "1s"


@pytest.mark.parametrize(
    ("answer", "meaning"),
    [
        (status(503), "503: the server failed; nothing is allowed until a later try succeeds"),
        (status(429), "429: too many requests; nothing is allowed until a later try succeeds"),
        (Reply(fault=Fault.CUT, body=b"Disallow: /"), "200: only a part of the file arrived; nothing is allowed until a later"),
        (Reply(fault=Fault.DROP), "net.reset: The connection broke before the answer was complete. Nothing is allowed until"),
    ],
)
def test_what_could_not_be_had_disallows_for_now_and_is_status_1(
    cli: Cli, server: SiteServer, answer: Reply, meaning: str
) -> None:
    server.site = Site({"/robots.txt": answer})
    result = cli("robots", f"{server.url}/")
    said = told(result)
    assert result.status == 1
    assert said["answer"].startswith(meaning)
    assert said["verdict"] == "disallowed for now"
    assert "line" not in said


def test_up_to_five_redirects_are_followed_and_the_last_place_is_named(cli: Cli, server: SiteServer) -> None:
    hops = {f"/{hop}": redirect(f"/{hop + 1}") for hop in range(1, 5)}
    server.site = Site({"/robots.txt": redirect("/1"), **hops, "/5": robots(RULES), "/6": robots("")})
    said = told(cli("robots", f"{server.url}/private"))
    assert (said["verdict"], said["robots.txt"]) == ("disallowed", f"{server.url}/5")

    server.site |= {"/5": redirect("/6")}
    assert told(cli("robots", f"{server.url}/private"))["verdict"] == "allowed"
    assert "/6" not in [request.target for request in server.log]


def test_a_redirect_to_a_private_address_that_is_not_the_sites_own_is_refused(cli: Cli, server: SiteServer) -> None:
    with SiteServer(Site({"/robots.txt": robots("")})) as inside:
        server.site = Site({"/robots.txt": redirect(f"{inside.url}/robots.txt")})
        result = cli("robots", f"{server.url}/")
        assert result.status == 1
        assert told(result)["answer"].startswith("net.private_address: ")
        assert len(inside.log) == 0


def test_a_host_name_may_be_resolved_by_hand(cli: Cli, server: SiteServer) -> None:
    result = cli("robots", "http://site.test/private", "--resolve", f"site.test=127.0.0.1:{server.port}")
    assert told(result)["verdict"] == "disallowed"
    assert server.log[0].host == "site.test"


def test_a_local_file_is_read_instead_and_nobody_is_asked(cli: Cli, server: SiteServer, tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("User-agent: *\nDisallow: /all\n")
    result = cli("robots", f"{server.url}/all/x", "--file", "mine.txt")
    said = told(result)
    assert (result.status, said["verdict"], said["line"]) == (0, "disallowed", "2: Disallow: /all")
    assert (said["robots.txt"], said["answer"]) == ("mine.txt", "a local file, taken for the site's")
    assert len(server.log) == 0


def test_what_a_site_wrote_cannot_steer_the_terminal(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "evil.txt").write_bytes(b"User-agent: *\nDisallow: /\x1b[2J\xff*\nDisallow: /x\x1b]0;owned\x07*\nDisallow: /\n")
    said = told(cli("robots", "http://a.test/x%1B]0;owned%07", "--file", "evil.txt"))
    assert said["line"] == "3: Disallow: /x\ufffd]0;owned\ufffd*"


def test_a_contact_is_sent_with_the_request(cli: Cli, server: SiteServer) -> None:
    cli("robots", f"{server.url}/", "--contact", "me@a.test")
    headers = dict(server.log[0].headers)
    assert headers["from"] == "me@a.test"
    assert headers["user-agent"] == f"{USER_AGENT.removesuffix(')')}; me@a.test)"

    cli("robots", f"{server.url}/", "--contact", "https://a.test/bot")
    headers = dict(server.log[1].headers)
    assert "from" not in headers
    assert headers["user-agent"].endswith("; https://a.test/bot)")


def as_json(result: Said) -> dict[str, Any]:
    assert result.err == ""
    said: dict[str, Any] = json.loads(result.out)
    return said


def test_as_json_it_is_one_object_with_base_units(cli: Cli, server: SiteServer) -> None:
    assert as_json(cli("robots", f"{server.url}/private/x", "--json")) == {
        "url": f"{server.url}/private/x",
        "agent": "crawlkit",
        "source": f"{server.url}/robots.txt",
        "status": 200,
        "reason": None,
        "answer": "200: the file decides",
        "verdict": "disallowed",
        "line": 2,
        "rule": "Disallow: /private",
        "group": "*",
        "crawl_delay_s": 2.5,
        "delay_s": 2.5,
    }
    other = as_json(cli("robots", f"{server.url}/", "--json", "--agent", "OtherBot/1"))
    assert [other[key] for key in ("group", "crawl_delay_s", "delay_s")] == ["otherbot", 90.0, None]


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (status(503), ("disallowed for now", 503, None, None, 1)),
        (status(404), ("allowed", 404, None, None, 0)),
        (robots("User-agent: else\nDisallow: /"), ("allowed", 200, None, None, 0)),
        (Reply(fault=Fault.DROP), ("disallowed for now", None, "net.reset", None, 1)),
    ],
)
def test_json_has_null_for_what_there_is_not(cli: Cli, server: SiteServer, answer: Reply, expected: tuple[Any, ...]) -> None:
    server.site = Site({"/robots.txt": answer})
    result = cli("robots", f"{server.url}/", "--json")
    said = as_json(result)
    assert (said["verdict"], said["status"], said["reason"], said["group"], result.status) == expected
    assert (said["line"], said["rule"], said["crawl_delay_s"], said["delay_s"]) == (None, None, None, 1.0)


def test_a_local_file_has_no_status(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("User-agent: *\nDisallow: /\n")
    said = as_json(cli("robots", "https://a.test/", "--file", "mine.txt", "--json"))
    assert (said["source"], said["status"], said["verdict"], said["line"]) == ("mine.txt", None, "disallowed", 2)


def test_unverified_certificates_are_warned_of_where_one_is_asked(cli: Cli, server: SiteServer, tmp_path: Path) -> None:
    result = cli("robots", f"{server.url}/", "--insecure", "--json")
    assert result.err.startswith("crawlkit: warning: certificates are not verified (insecure)")
    assert json.loads(result.out)["verdict"] == "allowed"
    (tmp_path / "mine.txt").write_text("")
    assert cli("robots", f"{server.url}/", "--insecure", "--file", "mine.txt").err == ""
