"""`crawlkit run --since`: only what has changed is sent again, and the report is that of a fresh crawl."""

import hashlib
import json
import shutil
import signal
import socketserver
import threading
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from tests.processes import command, started, wait_while_running
from tests.surfaces.conftest import Cli

FAST = ("--delay", "0", "--host-concurrency", "4", "--retries", "0", "-q")


class Changing:
    """Pages with validators, and what was answered: 304 to who knows the page already, by ETag or by date."""

    def __init__(self, count: int = 12) -> None:
        self.pages = {f"/{n}": f"<title>{n}</title><a href=/{n + 1}>x</a><p>text of {n}, a few words" for n in range(1, count)}
        self.pages["/"] = "<title>home</title><a href=/1>x</a>"
        self.dated = {"/2": "Mon, 01 Jan 2024 00:00:00 GMT"}
        self.bare = {"/3"}
        self.answered: Counter[int] = Counter()
        self.asked: list[str] = []

    def answer(self, path: str, headers: Any) -> tuple[int, dict[str, str], bytes]:
        self.asked.append(path)
        if path not in self.pages:
            return 404, {}, b""
        body = self.pages[path].encode()
        if path in self.bare:
            return 200, {}, body
        if path in self.dated:
            known = headers.get("If-Modified-Since") == self.dated[path]
            return (304 if known else 200), {"Last-Modified": self.dated[path]}, b"" if known else body
        tag = f'"{hashlib.sha256(body).hexdigest()[:8]}"'
        known = headers.get("If-None-Match") == tag
        return (304 if known else 200), {"ETag": tag}, b"" if known else body


class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True

    def handle_error(self, *_: object) -> None:
        """Say nothing of clients that were killed."""


@pytest.fixture
def site() -> Iterator[tuple[Changing, str]]:
    changing = Changing()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            status, headers, body = changing.answer(self.path, self.headers)
            changing.answered[status] += 1
            self.send_response(status)
            for name, value in {"Content-Type": "text/html", **headers}.items():
                self.send_header(name, value)
            if status != 304:
                self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with Server(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield changing, f"http://127.0.0.1:{server.server_address[1]}/"
        server.shutdown()
        thread.join()


def report(cli: Cli, directory: str, *more: str) -> bytes:
    assert cli("report", directory, "--format", "jsonl", "-o", f"{directory}.jsonl", *more).status == 0
    return Path(f"{directory}.jsonl").read_bytes()


@pytest.mark.parametrize("kept", [(), ("--text", "--anchors", "--near-duplicates", "--extract", "t=p")])
def test_an_unchanged_site_is_hardly_sent_and_gives_the_same_report(
    cli: Cli, site: tuple[Changing, str], kept: tuple[str, ...]
) -> None:
    changing, seed = site
    assert cli("run", seed, "-d", "a.crawl", *FAST, *kept).status == 1
    changing.answered.clear()
    assert cli("run", seed, "-d", "b.crawl", "--since", "a.crawl", *FAST, *kept).status == 1
    # Of the bare page nothing tells a change; the last link's target and robots.txt are not there.
    assert changing.answered == {304: 11, 200: 1, 404: 2}
    assert report(cli, "b.crawl") == report(cli, "a.crawl")
    if kept:
        fields = ("--fields", "url,text,fields.t")
        assert report(cli, "b.crawl", *fields) == report(cli, "a.crawl", *fields)
    timed = [json.loads(line) for line in report(cli, "b.crawl", "--with-timing").splitlines()]
    assert sum(line["not_modified"] for line in timed) == 11
    assert {line["status"] for line in timed if line["not_modified"]} == {200}
    assert cli("verify", "b.crawl").status == 0


def test_what_changed_is_sent_and_leads_on(cli: Cli, site: tuple[Changing, str]) -> None:
    changing, seed = site
    cli("run", seed, "-d", "a.crawl", *FAST)
    changing.pages["/5"] = "<title>new</title><a href=/6>x</a><a href=/new>x</a>"
    changing.pages["/new"] = "<title>added</title>"
    cli("run", seed, "-d", "b.crawl", "--since", "a.crawl", *FAST)
    cli("run", seed, "-d", "fresh.crawl", *FAST)
    assert report(cli, "b.crawl") == report(cli, "fresh.crawl")
    assert b'"title":"added"' in report(cli, "b.crawl")


def test_a_page_that_was_not_had_whole_is_asked_for_anew(cli: Cli, site: tuple[Changing, str]) -> None:
    changing, seed = site
    changing.pages["/"] += "<a href=/2>more than one link"
    cut = ("--max-links", "1", *FAST)
    cli("run", seed, "-d", "a.crawl", *cut)
    changing.answered.clear()
    cli("run", seed, "-d", "b.crawl", "--since", "a.crawl", *cut)
    assert changing.answered[200] == 2  # the bare page too
    assert report(cli, "b.crawl") == report(cli, "a.crawl")


def test_a_304_that_nobody_asked_for_stays_one(cli: Cli, site: tuple[Changing, str]) -> None:
    changing, seed = site
    changing.dated["/2"] = ""  # is what no header at all is taken for
    changing.answer = lambda path, _: (304, {}, b"")  # type: ignore[method-assign, assignment]
    cli("run", seed, "-d", "a.crawl", *FAST, "--no-robots")
    (line,) = map(json.loads, report(cli, "a.crawl", "--with-timing").splitlines())
    assert (line["kind"], line["status"], line["not_modified"]) == ("page", 304, False)


def test_over_a_kill_and_a_resume_it_goes_by_the_earlier_crawl(cli: Cli, site: tuple[Changing, str], tmp_path: Path) -> None:
    changing, seed = site
    changing.pages |= Changing(80).pages
    cli("run", seed, "-d", "a.crawl", *FAST)
    changing.asked.clear()
    arguments = ("run", seed, "-d", "b.crawl", "--since", "a.crawl", *FAST, "--checkpoint-interval", "10ms")
    with started(command(*arguments), tmp_path) as process:
        wait_while_running(process, lambda: len(changing.asked) > 40)
        process.send_signal(signal.SIGKILL)
        process.wait()
    changing.answered.clear()
    assert cli("resume", "b.crawl", "-q").status == 1
    assert changing.answered[200] <= 2
    assert report(cli, "b.crawl") == report(cli, "a.crawl")


def test_a_crawl_that_is_gone_running_or_another_one_is_status_3_and_named(
    cli: Cli, site: tuple[Changing, str], tmp_path: Path
) -> None:
    _, seed = site
    assert cli("run", seed, "-d", "b.crawl", "--since", "no.crawl", *FAST).status == 3
    assert not (tmp_path / "b.crawl").exists()
    cli("run", seed, "-d", "a.crawl", *FAST)
    said = cli("run", seed, "-d", "a.crawl", "--since", "a.crawl", *FAST)
    assert said.status == 3
    assert cli("run", seed, "-d", "b.crawl", "--since", "a.crawl", "--max-pages", "3", *FAST).status == 0
    shutil.move("a.crawl", "elsewhere.crawl")
    said = cli("resume", "b.crawl", "--set", "max_pages=none")
    assert said.status == 3
    assert str(tmp_path / "a.crawl") in said.err
    cli("run", seed, "-d", "a.crawl", *FAST)
    said = cli("resume", "b.crawl", "--set", "max_pages=none")
    assert said.status == 3
    assert "another crawl" in said.err
    shutil.rmtree("a.crawl")
    shutil.move("elsewhere.crawl", "a.crawl")
    assert cli("resume", "b.crawl", "-q", "--set", "max_pages=none").status == 1
    shutil.rmtree("a.crawl")
    assert cli("resume", "b.crawl").status == 1  # it has finished, and needs it no more


def test_settings_that_decide_what_is_read_must_agree(cli: Cli, site: tuple[Changing, str], tmp_path: Path) -> None:
    _, seed = site
    cli("run", seed, "-d", "a.crawl", *FAST)
    said = cli("run", seed, "-d", "b.crawl", "--since", "a.crawl", "--extract", "t=p", *FAST)
    assert said.status == 2
    assert "another extract" in said.err
    assert not (tmp_path / "b.crawl").exists()
