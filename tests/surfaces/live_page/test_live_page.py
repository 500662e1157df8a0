"""The live page's requests, as they come from a browser and from who should not be there."""

import json
import signal
import socket
from pathlib import Path

import pytest

from crawlkit.testing.server import SiteServer
from tests.processes import command, ended, started
from tests.surfaces.conftest import Cli
from tests.surfaces.live_page.shown import Page, showing
from tests.surfaces.made_crawls import Make


def test_it_shows_a_running_crawl(live: Page) -> None:
    while any(host["in_flight"] for host in live.shown()["status"]["waiting"]):
        pass  # hosts are looked at more seldom
    shown = live.shown()
    status, lately = shown["status"], shown["lately"]
    assert (status["state"], status["live"], status["paused"]) == ("running", True, False)
    assert (status["pages"], status["failures"], status["queued"]) == (3, 1, 3)
    assert [(host["host"], host["state"], host["queued"]) for host in status["waiting"]] == [
        ("c.test", "gap", 2), ("a.test", "gap", 1),
    ]  # fmt: skip
    assert lately["statuses"] == {"200": 3, "404": 1}
    assert sum(point[1] for point in lately["timeline"]["points"]) == 4
    (failing,) = lately["failures"]
    assert (failing["reason"], failing["message"], failing["again"]) == ("http.client_error", "HTTP 404", False)
    assert failing["url"].startswith("http://b.test/gone?")


def test_who_has_not_the_token_gets_nothing_but_403(live: Page) -> None:
    for path in ("/", "/events", "/api/explain", "/api/pause", "/favicon.ico"):
        for query in ("", "token=", f"token={live.token[:-1]}", f"token={live.token}x", f"Token={live.token}"):
            for method in ("GET", "POST"):
                answer = live.ask(path, query, method=method)
                assert (answer.status, answer.text) == (403, "Forbidden\n")
    cookie = live.ask("/", "", headers={"Cookie": f"token={live.token}", "Authorization": f"Bearer {live.token}"})
    assert cookie.status == 403
    assert not live.shown()["status"]["paused"]


def test_a_page_from_elsewhere_can_neither_read_it_nor_pause_the_crawl(live: Page) -> None:
    assert live.ask("/events", headers={"Host": f"evil.test:{live.port}"}).status == 403
    assert live.ask("/api/pause", method="POST", headers={"Origin": "http://evil.test"}).status == 403
    get, delete = live.ask("/api/pause", method="GET"), live.ask("/", method="DELETE")
    assert (get.status, get.headers["allow"], delete.status, delete.headers["allow"]) == (405, "POST", 405, "GET, HEAD")
    assert (live.ask("/", method="HEAD").status, live.ask("/", method="HEAD").text) == (200, "")
    assert not live.shown()["status"]["paused"]
    headers = live.ask("/").headers
    assert "default-src 'none'" in headers["content-security-policy"]
    assert "frame-ancestors 'none'" in headers["content-security-policy"]
    assert (headers["referrer-policy"], headers["cache-control"]) == ("no-referrer", "no-store")
    assert "access-control-allow-origin" not in headers


def test_it_pauses_and_continues(live: Page) -> None:
    live.json("/api/pause", method="POST")
    assert live.shown()["status"]["paused"]
    live.json("/api/continue", method="POST")
    assert not live.shown()["status"]["paused"]


def test_it_explains_urls_of_a_running_crawl(live: Page) -> None:
    verdicts = {
        "http://a.test/": "done.page",
        "http://c.test/2": "pending.queued",
        "http://never.test/": "never.linked",
        "%3Cimg%20src=x%3E": "url.invalid",
        "": "url.invalid",
        "http://a.test/" + "x" * 10_000: "trap.length",
    }
    assert {text: live.json("/api/explain", f"&url={text}")["code"] for text in verdicts} == verdicts


def test_its_last_event_says_how_the_run_ended(live: Page, tmp_path: Path) -> None:
    events = live.events()
    assert next(events)[0] == "shown"
    live.process.send_signal(signal.SIGINT)
    name, last = list(events)[-1]
    assert (name, last["status"]["state"], last["status"]["pages"]) == ("over", "stopped", 3)
    assert last["lately"]["statuses"] == {"200": 3, "404": 1}
    assert ended(live.process, 10).status == 130


def test_readers_that_hang_do_not_hold_up_the_end(live: Page) -> None:
    with socket.create_connection(("127.0.0.1", live.port)) as half, socket.create_connection(("127.0.0.1", live.port)) as full:
        half.sendall(b"GET / HT")
        full.sendall(f"GET /events?token={live.token} HTTP/1.1\r\nHost: 127.0.0.1:{live.port}\r\n\r\n".encode())
        live.process.send_signal(signal.SIGTERM)
        assert ended(live.process, 10).status == 143


def test_a_crawl_at_rest_is_shown_and_can_be_resumed_meanwhile(live: Page, tmp_path: Path) -> None:
    live.process.kill()
    ended(live.process)
    with showing(tmp_path, "ui", "x.crawl") as page:
        shown = page.shown()
        assert (shown["status"]["state"], shown["status"]["pages"], shown["problem"]) == ("stopped", 3, None)
        assert shown["lately"]["statuses"] == {"200": 3, "404": 1}
        assert sum(point[1] for point in shown["lately"]["timeline"]["points"]) == 4
        assert [failing["reason"] for failing in shown["lately"]["failures"]] == ["http.client_error"]
        assert [host["host"] for host in shown["status"]["waiting"]] == ["c.test", "a.test"]
        assert page.json("/api/explain", "&url=http://a.test/")["code"] == "done.page"
        assert "no crawl runs" in page.json("/api/pause", method="POST")["error"]
        with showing(tmp_path, "resume", "x.crawl", "--ui", "-q") as resumed:
            while not page.shown()["status"]["live"]:
                pass
            assert page.json("/api/explain", "&url=http://c.test/2")["code"] == "pending.queued"
            page.json("/api/pause", method="POST")
            while not resumed.shown()["status"]["paused"]:
                pass
            resumed.process.send_signal(signal.SIGINT)
            assert ended(resumed.process, 10).status == 130
        assert page.shown()["status"]["state"] == "stopped"
        page.process.send_signal(signal.SIGINT)
        assert ended(page.process, 10).status == 0


@pytest.mark.parametrize("place", ["http://a.test/", "127.0.0.1", "127.0.0.1:99999", "127.0.0.1:-1", "127.0.0.1:x"])
def test_a_place_that_is_none_begins_no_crawl(cli: Cli, place: str) -> None:
    refused = cli("run", "http://a.test/", "-d", "x.crawl", f"--ui={place}")
    assert (refused.status, refused.err.count("\n")) == (2, 1)
    assert place in refused.err
    assert not Path("x.crawl").exists()


def test_a_port_that_is_taken_begins_no_crawl(cli: Cli, server: SiteServer) -> None:
    refused = cli("run", "http://a.test/", "-d", "x.crawl", f"--ui=127.0.0.1:{server.port}")
    assert (refused.status, refused.err.count("\n")) == (2, 1)
    assert "cannot listen" in refused.err
    assert not Path("x.crawl").exists()


def test_other_machines_are_let_in_only_when_asked_and_with_a_warning(settings: list[str], tmp_path: Path) -> None:
    with showing(tmp_path, "run", "http://a.test/", "-d", "x.crawl", *settings, "--ui", "0.0.0.0:0") as page:
        assert page.process.stderr is not None
        assert b"other machines can reach" in page.process.stderr.readline()
        assert page.ask("/", "").status == 403


def test_a_crawl_that_cannot_be_read_is_a_problem_that_is_told(cli: Cli, make: Make, tmp_path: Path) -> None:
    (make() / "CHECKPOINT").write_bytes(b"{}\n")
    with showing(tmp_path, "ui", "x.crawl") as page:
        events = page.events()
        name, problem = next(events)
        assert (name, list(problem)) == ("problem", ["error"])
        assert "CHECKPOINT" in problem["error"]
        assert "CHECKPOINT" in page.json("/api/explain", "&url=http://a.test/")["error"]
        page.process.send_signal(signal.SIGINT)
        assert {name for name, _ in events} <= {"problem"}
        assert ended(page.process, 10).status == 0


def test_a_log_of_json_says_where_it_is(settings: list[str], tmp_path: Path) -> None:
    arguments = command("run", "http://a.test/", "-d", "x.crawl", *settings, "--ui", "--log-format", "json")
    with started(arguments, tmp_path) as process:
        assert process.stderr is not None
        said = json.loads(process.stderr.readline())
        assert (said["event"], said["what"]) == ("serving", "live page")
        assert Page(process, said["url"]).json("/api/shown")["status"]["state"] == "running"


def test_ui_of_no_crawl_is_status_3(cli: Cli) -> None:
    refused = cli("ui", "x.crawl")
    assert (refused.status, refused.err.count("\n")) == (3, 1)
