"""A running crawl is looked at: status, report, and whatever else connects to its socket."""

import json
import shutil
import signal
import socket
import stat
from pathlib import Path

from crawlkit.testing.server import SiteServer
from tests.processes import command, crawlkit, ended, started, wait_while_running
from tests.surfaces.control.crawls import running, status_of

SAYS_NOTHING = b""
REQUESTS = {
    "garbage": (b"\x00\xff\n", "not a request"),
    "no JSON": (b"status please\n", "not a request"),
    "an unknown request": (b'{"do":"explode"}\n', "not a request"),
    "a later version": (b'{"v":99,"do":"status"}\n', "version 1"),
    "too long": (b'{"do":"' + b"x" * (5 * 2**20) + b"\n", "too long"),
    "half": (b'{"do":"sta', "not a request"),
}


def connect(directory: Path) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(10)
    connection.connect(str(directory / "control.sock"))
    return connection


def answer_to(directory: Path, request: bytes) -> str:
    """Send a request as it is, and return all that is answered until the connection closes."""
    with connect(directory) as connection:
        try:
            connection.sendall(request)
            connection.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # it has read enough
        answer = b""
        while some := connection.recv(65536):
            answer += some
    return answer.decode()


def test_status_of_a_running_crawl_is_of_this_moment_and_names_its_hosts(server: SiteServer, tmp_path: Path) -> None:
    with running(tmp_path, server):
        found = status_of(tmp_path)
        assert (found["state"], found["live"], found["paused"]) == ("running", True, False)
        assert (found["pages"], found["queued"], found["in_flight"], found["hosts"]) == (1, 3, 0, 1)
        (host,) = found["waiting"]
        assert (host["host"], host["state"], host["queued"], host["pages"]) == ("a.test", "gap", 3, 1)
        assert 3500 < host["next_s"] <= 3600
        assert found["disk_bytes"] > 0
        assert found["disk_free_bytes"] > 0
        assert status_of(tmp_path, "--hosts", "0")["waiting"] == []
        text = crawlkit("status", "x.crawl", cwd=tmp_path).out.decode()
        assert "host a.test gap 35" in text
        assert "live            yes" in text


def test_a_report_of_a_running_crawl_is_that_of_its_last_checkpoint(server: SiteServer, tmp_path: Path) -> None:
    with running(tmp_path, server):
        ignore = shutil.ignore_patterns("control.sock")
        shutil.copytree(tmp_path / "x.crawl", tmp_path / "copy", ignore=ignore)
        for arguments in (["--format", "jsonl"], ["--format", "csv", "--with-timing"], [], ["--broken"]):
            lively, still = (crawlkit("report", name, *arguments, cwd=tmp_path) for name in ("x.crawl", "copy"))
            assert (lively.status, lively.out, lively.err) == (0, still.out, still.err)
        for name in ("x.crawl", "copy"):
            assert crawlkit("report", name, "-o", f"{name}.txt", cwd=tmp_path).status == 0
        assert (tmp_path / "x.crawl.txt").read_bytes() == (tmp_path / "copy.txt").read_bytes() != b""
        metas = [json.loads((tmp_path / f"{name}.txt.meta.json").read_text()) for name in ("x.crawl", "copy")]
        assert [meta["running"] for meta in metas] == [True, False]
        assert metas[0]["sha256"] == metas[1]["sha256"]
        assert crawlkit("export", "x.crawl", "--to", "csv", "-o", "x.csv", cwd=tmp_path).status == 0


def test_what_clients_do_wrong_is_answered_and_holds_nothing_up(server: SiteServer, tmp_path: Path) -> None:
    directory = tmp_path / "x.crawl"
    with running(tmp_path, server) as process, connect(directory) as hangs, connect(directory):
        hangs.sendall(b'{"do":')
        for request, words in REQUESTS.values():
            answer = json.loads(answer_to(directory, request))
            assert words in answer["error"], answer
            assert answer["status"] == 2
        assert answer_to(directory, SAYS_NOTHING).count("\n") == 1
        assert status_of(tmp_path)["live"]
        process.send_signal(signal.SIGINT)
        assert ended(process, 5.0).status == 130  # a client that hangs does not hold up the end


def test_more_clients_than_are_served_at_once_are_turned_away(server: SiteServer, tmp_path: Path) -> None:
    with running(tmp_path, server):
        waiting = [connect(tmp_path / "x.crawl") for _ in range(24)]
        try:
            turned_away = 0
            for connection in waiting[16:]:
                turned_away += connection.recv(1) == b""
            assert turned_away == 8
        finally:
            for connection in waiting:
                connection.close()
        assert status_of(tmp_path)["live"]


def test_only_the_owner_may_connect_and_the_socket_goes_with_the_run(server: SiteServer, tmp_path: Path) -> None:
    path = tmp_path / "x.crawl" / "control.sock"
    with running(tmp_path, server) as process:
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        process.send_signal(signal.SIGTERM)
        ended(process)
    assert not path.exists()
    assert (status_of(tmp_path)["state"], status_of(tmp_path)["live"]) == ("stopped", False)


def test_a_socket_that_a_kill_left_is_replaced(server: SiteServer, tmp_path: Path) -> None:
    path = tmp_path / "x.crawl" / "control.sock"
    with running(tmp_path, server) as process:
        process.kill()
        ended(process)
    assert path.exists()
    found = status_of(tmp_path)
    assert (found["state"], found["live"], found["pages"]) == ("stopped", False, 1)
    assert crawlkit("report", "x.crawl", cwd=tmp_path).out.count(b"URL:") == 1
    assert crawlkit("verify", "x.crawl", cwd=tmp_path).status == 0
    with started(command("resume", "x.crawl"), tmp_path) as process:
        wait_while_running(process, lambda: status_of(tmp_path)["live"])


def test_a_path_that_is_too_long_for_a_socket_is_none_for_us(server: SiteServer, tmp_path: Path) -> None:
    long = tmp_path / ("d" * 120)
    long.mkdir()
    with running(long, server):
        assert status_of(long)["live"]
        assert status_of(tmp_path, name=str(long / "x.crawl"))["live"]


def test_where_no_socket_can_be_made_the_crawl_goes_on_and_says_so(server: SiteServer, tmp_path: Path) -> None:
    with running(tmp_path, server) as process:
        process.kill()
        ended(process)
    (tmp_path / "x.crawl" / "control.sock").unlink()
    (tmp_path / "x.crawl" / "control.sock").mkdir()
    with started(command("resume", "x.crawl"), tmp_path) as process:
        assert process.stderr is not None
        lines = iter(process.stderr.readline, b"")
        assert any(b"control.sock cannot be made" in line for line in lines)
        found = status_of(tmp_path)
        assert (found["state"], found["live"]) == ("running", False)
        refused = crawlkit("report", "x.crawl", cwd=tmp_path)
        assert refused.status == 3
        assert f"(pid {process.pid})" in refused.err


def test_watch_prints_a_line_a_second_until_the_crawl_ends(server: SiteServer, tmp_path: Path) -> None:
    with running(tmp_path, server) as process, started(command("status", "x.crawl", "--watch"), tmp_path) as watch:
        assert watch.stdout is not None
        assert watch.stdout.readline().startswith(b"running: 1 pages, 3 queued, 0 in flight")
        process.send_signal(signal.SIGINT)
        ended(process)
        last = ended(watch)
        assert (last.status, last.out.splitlines()[-1].partition(b":")[0]) == (0, b"stopped")


def test_a_url_of_a_running_crawl_is_explained(server: SiteServer, tmp_path: Path) -> None:
    with running(tmp_path, server):
        explained = crawlkit("explain", "x.crawl", "http://a.test/2", cwd=tmp_path)
        assert (explained.status, explained.err) == (0, "")
        assert explained.out.startswith(b"http://a.test/2: queued: it waits for its turn")
        found = json.loads(crawlkit("explain", "x.crawl", "http://b.test/", "--json", cwd=tmp_path).out)
        assert (found["code"], found["host"]) == ("scope.outside", None)
        assert crawlkit("explain", "x.crawl", b"\xff".decode(errors="surrogateescape"), cwd=tmp_path).status == 0
