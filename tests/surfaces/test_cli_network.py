"""Settings of the network, from the command line to the wire: secrets, headers, private addresses, certificates, links."""

import base64
import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from crawlkit.testing.server import SiteServer
from crawlkit.testing.site import Site, page, redirect
from tests.surfaces.conftest import Cli

SECRET = "me:hunter2"
ENCODED = base64.b64encode(SECRET.encode()).decode()
FAST = ("--delay", "0", "--retries", "0", "-d", "x.crawl")
SITE = Site(
    {
        "a.test/": page("A", ["/1", "http://b.test/", "/away"]),
        "a.test/1": page("One"),
        "a.test/away": redirect("http://b.test/moved"),
        "b.test/": page("B"),
        "b.test/moved": page("Moved"),
    }
)


@pytest.fixture
def server() -> Iterator[SiteServer]:
    with SiteServer(SITE) as running:
        yield running


def records(cli: Cli) -> dict[str, Any]:
    lines = cli("report", "x.crawl", "--format", "jsonl").out.splitlines()
    return {record["url"]: record for record in map(json.loads, lines)}


def stored(directory: Path) -> bytes:
    return b"".join(path.read_bytes() for path in directory.rglob("*") if path.is_file())


def run_with_auth(cli: Cli, server: SiteServer, *options: str) -> Any:
    to_server = ("--resolve", f"*.test=127.0.0.1:{server.port}", "--scope", "any")
    return cli("run", "http://a.test/", "--auth", "a.test=env:SITE_SECRET", *to_server, *FAST, *options)


def test_a_secret_goes_to_its_host_alone_and_is_read_again_by_resume(
    cli: Cli, server: SiteServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SITE_SECRET", SECRET)
    first = run_with_auth(cli, server, "--max-pages", "1")
    assert (first.status, len(records(cli))) == (0, 1)

    monkeypatch.delenv("SITE_SECRET")
    asked = len(server.log)
    gone = cli("resume", "x.crawl", "--set", "max_pages=none")
    assert gone.status == 2
    assert "auth: a.test: the environment variable SITE_SECRET is not set" in gone.err
    assert len(server.log) == asked

    monkeypatch.setenv("SITE_SECRET", SECRET)
    last = cli("resume", "x.crawl", "--set", "max_pages=none", "-v")
    assert (last.status, len(records(cli))) == (0, 5)

    proofs = [(request.host, dict(request.headers).get("authorization")) for request in server.log]
    assert {host for host, _ in proofs} == {"a.test", "b.test"}
    assert all(proof == (f"Basic {ENCODED}" if host == "a.test" else None) for host, proof in proofs)

    report = cli("report", "x.crawl", "--format", "jsonl", "--with-timing").out
    said = [first, gone, last, cli("status", "x.crawl", "--json"), cli("verify", "x.crawl")]
    everything = stored(tmp_path) + "".join([report, *(part for each in said for part in (each.out, each.err))]).encode()
    assert b"SITE_SECRET" in everything
    assert b"hunter2" not in everything
    assert ENCODED.encode() not in everything


def test_a_secret_that_is_not_there_stops_a_run_before_there_is_a_directory(
    cli: Cli, server: SiteServer, tmp_path: Path
) -> None:
    refused = run_with_auth(cli, server)
    assert (refused.status, len(server.log)) == (2, 0)
    assert "SITE_SECRET is not set" in refused.err
    assert not (tmp_path / "x.crawl").exists()


def test_a_crawl_that_has_finished_needs_its_secret_no_more(
    cli: Cli, server: SiteServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SITE_SECRET", SECRET)
    assert run_with_auth(cli, server).status == 0
    monkeypatch.delenv("SITE_SECRET")
    assert cli("resume", "x.crawl").status == 0


def test_headers_are_sent_with_each_request_over_a_resume_too(cli: Cli, server: SiteServer) -> None:
    rule = ("--resolve", f"*.test=127.0.0.1:{server.port}")
    cli("run", "http://a.test/", *rule, *FAST, "--header", "X-A: 1", "--header", "Accept: text/html", "--max-pages", "1")
    cli("resume", "x.crawl", "--set", "max_pages=none")
    sent = [dict(request.headers) for request in server.log]
    assert len(sent) >= 4
    assert {(headers.get("x-a"), headers.get("accept")) for headers in sent} == {("1", "text/html")}


def test_a_headers_secret_is_stored_nowhere_and_read_again_by_resume(
    cli: Cli, server: SiteServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rule = ("--resolve", f"*.test=127.0.0.1:{server.port}")
    secret = ("--header", "X-Api-Key: env:SITE_KEY")
    monkeypatch.setenv("SITE_KEY", "hunter2")
    said = [cli("run", "http://a.test/", *rule, *FAST, *secret, "--max-pages", "1", "-v"), cli("config", "show", *secret)]
    monkeypatch.delenv("SITE_KEY")
    gone = cli("resume", "x.crawl", "--set", "max_pages=none")
    assert (gone.status, gone.out) == (2, "")
    assert "header: X-Api-Key: the environment variable SITE_KEY is not set" in gone.err
    monkeypatch.setenv("SITE_KEY", "hunter3")
    said += [cli("resume", "x.crawl", "--set", "max_pages=none"), cli("status", "x.crawl", "--json")]
    said.append(cli("report", "x.crawl", "--format", "jsonl", "--with-timing"))

    keys = [dict(request.headers)["x-api-key"] for request in server.log]
    assert set(keys) == {"hunter2", "hunter3"}
    everything = stored(tmp_path) + "".join(part for each in (*said, gone) for part in (each.out, each.err)).encode()
    assert b"SITE_KEY" in everything
    assert b"hunter" not in everything


def test_a_literal_secret_is_refused_by_status_2_that_names_the_way(cli: Cli, tmp_path: Path) -> None:
    refused = cli("run", "http://a.test/", "--header", "Cookie: session=hunter2")
    assert (refused.status, "Cookie: env:NAME or Cookie: file:PATH" in refused.err, "hunter2" in refused.err) == (
        2,
        True,
        False,
    )
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("options", "outcome"),
    [
        ((), "net.private_address"),
        (("--allow-private", "10.0.0.0/8"), "net.private_address"),
        (("--allow-private", "10.0.0.0/8", "--allow-private=127.0.0.0/8"), None),
        (("--allow-private",), None),
    ],
)
def test_links_lead_to_private_addresses_only_where_that_is_allowed(
    cli: Cli, options: tuple[str, ...], outcome: str | None
) -> None:
    with SiteServer(Site({"/inside": page("Inside")})) as inside:
        link = f"{inside.url}/inside"
        with SiteServer(Site({"/": page("Home", [link, "http://169.254.169.254/latest/"])})) as server:
            cli("run", f"{server.url}/", "--scope", "any", *FAST, *options)
    found = records(cli)
    assert found[link]["reason"] == outcome
    assert found["http://169.254.169.254/latest/"]["reason"] == "net.private_address"


def test_unverified_certificates_are_warned_of_in_every_run(cli: Cli, server: SiteServer) -> None:
    warning = "crawlkit: warning: certificates are not verified (insecure)"
    rule = ("--resolve", f"*.test=127.0.0.1:{server.port}")
    first = cli("run", "http://a.test/", *rule, *FAST, "--insecure", "--max-pages", "1", "-q")
    assert first.err.startswith(warning)
    assert cli("resume", "x.crawl", "--set", "max_pages=none").err.startswith(warning)
    assert "insecure" not in cli("run", "http://a.test/", *rule, "--delay", "0", "-d", "y.crawl").err


def test_of_a_page_with_too_many_links_the_first_are_kept_and_it_is_marked(cli: Cli) -> None:
    links = [f"http://b.test/{number}" for number in range(5)]
    with SiteServer(Site({"/": page("Home", links)})) as server:
        cli("run", f"{server.url}/", *FAST, "--max-links", "3")
        record = records(cli)[f"{server.url}/"]
    assert (record["links"], record["truncated"]) == (links[:3], True)


@pytest.fixture
def proxy() -> Iterator[SiteServer]:
    """A proxy as far as a.test goes."""
    with SiteServer(Site({"http://a.test/": page("A")})) as running:
        yield running


@pytest.mark.parametrize("robots", ["--robots", "--no-robots"])
def test_a_proxy_that_is_down_is_why_pages_failed_and_resume_may_name_another(cli: Cli, proxy: SiteServer, robots: str) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        down = f"http://127.0.0.1:{closed.getsockname()[1]}"
        run = cli("run", "http://a.test/", "--proxy", down, "--allow-private=all", *FAST, robots)
    assert run.status == 1
    assert "net.proxy" in run.err
    assert len(proxy.log) == 0
    lines = cli("report", "x.crawl", "--format", "jsonl", "--only", "all", "--with-timing").out.splitlines()
    (record,) = map(json.loads, lines)
    assert record["reason"] == "net.proxy"
    assert record["message"].startswith(f"the proxy {down.removeprefix('http://')}: ")
    again = cli("resume", "x.crawl", "--retry-failed=net.proxy", "--set", f"proxy={proxy.url}")
    assert again.status == 0
    assert {request.host for request in proxy.log} == {"a.test"}


def test_a_password_in_the_proxy_s_url_is_refused_and_neither_shown_nor_stored(cli: Cli, tmp_path: Path) -> None:
    refused = cli("run", "http://a.test/", "--proxy", f"http://{SECRET}@127.0.0.1:3128", *FAST)
    assert refused.status == 2
    assert "proxy_auth, as env:NAME or file:PATH" in refused.err
    assert "hunter2" not in refused.err
    assert list(tmp_path.iterdir()) == []


def test_the_proxy_s_secret_goes_to_the_proxy_and_is_nowhere_else(
    cli: Cli, proxy: SiteServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = ("--proxy", proxy.url, "--proxy-auth", "env:PROXY_SECRET", "--allow-private=all", *FAST)
    gone = cli("run", "http://a.test/", *options)
    assert gone.status == 2
    assert "proxy_auth: the environment variable PROXY_SECRET is not set" in gone.err
    assert list(tmp_path.iterdir()) == []

    monkeypatch.setenv("PROXY_SECRET", SECRET)
    assert cli("run", "http://a.test/", *options, "-v").status == 0
    assert {dict(request.headers).get("proxy-authorization") for request in proxy.log} == {f"Basic {ENCODED}"}
    assert cli("robots", "http://a.test/", *options[:5]).status == 0
    assert b"hunter2" not in stored(tmp_path)
    assert ENCODED.encode() not in stored(tmp_path)
