"""Each misbehaviour as it is on the wire, and a log that can be trusted."""

import gzip
import http.client
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from crawlkit.testing.graph import Features, make_graph
from crawlkit.testing.log import RequestLog, read_log
from crawlkit.testing.server import FLOOD_BYTES, GARBAGE, MAX_HEAD_BYTES, SiteServer
from crawlkit.testing.site import BOMB_BYTES, Fault, Reply, Site, in_turn, page, status

TIMEOUT_S = 10.0


@contextmanager
def sent(server: SiteServer, data: bytes) -> Iterator[socket.socket]:
    """Give a socket on which `data` has been sent."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=TIMEOUT_S) as client:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        client.sendall(data)
        yield client


@contextmanager
def asked(server: SiteServer, target: str = "/", *, more: str = "") -> Iterator[socket.socket]:
    """Give a socket on which a GET has been sent."""
    with sent(server, f"GET {target} HTTP/1.1\r\nHost: h1.test\r\n{more}\r\n".encode()) as client:
        yield client


def rest(client: socket.socket) -> bytes:
    """Return all bytes until the server closes."""
    return b"".join(iter(lambda: client.recv(65536), b""))


def read_until(client: socket.socket, done: Callable[[bytes], bool]) -> bytes:
    """Return what has arrived once `done` of it holds."""
    got = b""
    while not done(got):
        chunk = client.recv(65536)
        assert chunk, f"closed after {got!r}"
        got += chunk
    return got


def all_ended(log: RequestLog) -> bool:
    return len(log) > 0 and all(request.ended_s is not None for request in log)


def misbehaving(fault: Fault, body: bytes = b"abcdefgh") -> SiteServer:
    return SiteServer(Site({"/": Reply(body=body, fault=fault, drip_s=0.001), "/ok": status(200)}))


class TestAnswers:
    def test_a_reply_is_sent_byte_for_byte(self) -> None:
        site = Site({"/a?q=%C3%A4": Reply(299, (("X-A", "\xe4"),), b"body")})
        with SiteServer(site) as server, asked(server, "/a?q=%C3%A4", more="Connection: close\r\n") as client:
            assert rest(client) == b"HTTP/1.1 299 \r\nX-A: \xe4\r\ncontent-length: 4\r\n\r\nbody"

    def test_one_connection_serves_many_requests_even_sent_at_once(self) -> None:
        with SiteServer(Site({"/1": Reply(body=b"one", delay_s=0.01), "/2": Reply(body=b"two")})) as server:
            both = "Connection: keep-alive\r\n\r\nGET /2 HTTP/1.1\r\nHost: h1.test\r\nConnection: close\r\n"
            with asked(server, "/1", more=both) as client:
                answers = rest(client)
        assert answers.index(b"one") < answers.index(b"two")
        assert [request.target for request in server.log] == ["/1", "/2"]
        assert server.log.in_flight_max == {"h1.test": 1}

    def test_a_head_may_arrive_in_pieces(self) -> None:
        with SiteServer(Site({"/": Reply(body=b"whole")})) as server, sent(server, b"GET / HT") as client:
            for piece in (b"TP/1.1\r\nHost: h\r", b"\n\r", b"\n"):
                client.sendall(piece)
            assert read_until(client, lambda got: got.endswith(b"whole"))

    def test_any_host_header_is_answered_and_ports_are_told_apart(self) -> None:
        with SiteServer(Site({"h1.test/": status(201), "h1.test:81/": status(202), "/": status(203)})) as server:
            client = http.client.HTTPConnection("127.0.0.1", server.port, timeout=TIMEOUT_S)
            codes = []
            for host in ("h1.test", "H1.Test:80", "h1.test:81", f"127.0.0.1:{server.port}"):
                client.request("GET", "/", headers={"Host": host})
                response = client.getresponse()
                response.read()
                codes.append(response.status)
            client.close()
        assert codes == [201, 201, 202, 203]

    def test_a_route_may_answer_in_turn_and_the_site_may_be_replaced(self) -> None:
        with SiteServer(Site({"/": in_turn(status(503), status(200))})) as server:
            client = http.client.HTTPConnection("127.0.0.1", server.port, timeout=TIMEOUT_S)

            def code() -> int:
                client.request("GET", "/")
                response = client.getresponse()
                response.read()
                return response.status

            codes = [code(), code(), code()]
            server.site = Site({"/": status(410)})
            codes.append(code())
            client.close()
        assert codes == [503, 200, 200, 410]

    def test_what_is_not_a_request_line_gets_400(self) -> None:
        with SiteServer(Site()) as server, sent(server, b"nonsense\r\n\r\n") as client:
            assert rest(client).startswith(b"HTTP/1.1 400 Bad Request\r\n")

    def test_a_head_without_end_is_cut_off(self) -> None:
        with SiteServer(Site()) as server, sent(server, b"") as client:
            with pytest.raises((ConnectionResetError, BrokenPipeError)):
                client.sendall(bytes(100 * MAX_HEAD_BYTES))
            assert len(server.log) == 0

    def test_a_delay_passes_before_the_first_byte(self) -> None:
        with (
            SiteServer(Site({"/": Reply(delay_s=0.05)})) as server,
            asked(server, more="Connection: close\r\n") as client,
        ):
            rest(client)
        (request,) = server.log
        assert request.ended_s is not None
        assert request.ended_s - request.at_s >= 0.05


class TestFaults:
    def test_drop_closes_before_any_byte(self) -> None:
        with misbehaving(Fault.DROP) as server, asked(server) as client:
            assert rest(client) == b""

    def test_cut_closes_in_the_middle_of_the_announced_length(self) -> None:
        with misbehaving(Fault.CUT) as server, asked(server) as client:
            head, _, body = rest(client).partition(b"\r\n\r\n")
        assert b"content-length: 8" in head
        assert body == b"abcd"

    def test_reset_resets(self) -> None:
        with misbehaving(Fault.RESET) as server, asked(server) as client, pytest.raises(ConnectionResetError):
            rest(client)

    def test_stall_sends_the_head_and_nothing_more(self) -> None:
        with misbehaving(Fault.STALL) as server:
            with asked(server) as client:
                got = read_until(client, lambda got: b"\r\n\r\n" in got)
                assert got.endswith(b"content-length: 8\r\n\r\n")
                client.settimeout(0.05)
                with pytest.raises(TimeoutError):
                    client.recv(1)
                assert server.log[0].ended_s is None
            assert server.log.wait_for(all_ended)

    def test_drip_sends_one_byte_at_a_time(self) -> None:
        with misbehaving(Fault.DRIP) as server:
            with asked(server) as client:
                got = read_until(client, lambda got: got.endswith(b"h"))
            assert got.endswith(b"\r\n\r\nabcdefgh")
            assert server.log.wait_for(all_ended)
        (request,) = server.log
        assert request.ended_s is not None
        assert request.ended_s - request.at_s >= 8 * 0.001

    def test_drip_can_be_broken_off(self) -> None:
        with SiteServer(Site({"/": Reply(body=b"ab", fault=Fault.DRIP, drip_s=1e6)})) as server:
            with asked(server) as client:
                assert read_until(client, lambda got: b"\r\n\r\n" in got).endswith(b"\r\n\r\n")
            assert server.log.wait_for(all_ended)

    def test_garbage_is_not_http(self) -> None:
        with misbehaving(Fault.GARBAGE) as server, asked(server) as client:
            assert rest(client) == GARBAGE

    def test_endless_goes_on_while_it_is_read_and_others_are_served_meanwhile(self) -> None:
        with misbehaving(Fault.ENDLESS) as server:
            with asked(server) as client:
                got = read_until(client, lambda got: len(got) > 1_000_000)
                head, _, body = got.partition(b"\r\n\r\n")
                assert b"transfer-encoding: chunked" in head
                assert body.startswith(b"8\r\nabcdefgh\r\n" * 100)
                with asked(server, "/ok", more="Connection: close\r\n") as other:
                    assert rest(other).startswith(b"HTTP/1.1 200 OK")
                assert read_until(client, lambda got: len(got) > 1_000_000)
            assert server.log.wait_for(all_ended)

    def test_endless_waits_while_it_is_not_read_and_then_goes_on(self) -> None:
        with misbehaving(Fault.ENDLESS) as server, asked(server) as client:
            assert server.log.wait_for(lambda log: len(log) == 1)
            (connection,) = server.connections
            other = http.client.HTTPConnection("127.0.0.1", server.port, timeout=TIMEOUT_S)

            def turn() -> int:
                other.request("GET", "/ok")
                other.getresponse().read()
                return connection.transport.get_write_buffer_size()

            assert any(turn() for _ in range(5000)), "the kernel's buffers never filled"
            assert max(turn() for _ in range(100)) < 2 * (64 * 1024 + FLOOD_BYTES)
            left = 32 * 1024 * 1024  # more than the kernel buffers
            while left > 0:
                left -= len(client.recv(1024 * 1024))
            other.close()

    def test_bomb_decodes_to_64_mib(self) -> None:
        with misbehaving(Fault.BOMB) as server, asked(server, more="Connection: close\r\n") as client:
            head, _, body = rest(client).partition(b"\r\n\r\n")
        assert b"content-encoding: gzip" in head
        assert len(gzip.decompress(body)) == BOMB_BYTES

    @pytest.mark.parametrize("fault", Fault)
    def test_the_server_stops_with_any_of_them_open(self, fault: Fault) -> None:
        with ExitStack() as clients:
            with misbehaving(fault) as server:
                clients.enter_context(asked(server))
                assert server.log.wait_for(lambda log: len(log) == 1)
            assert all_ended(server.log)


class TestLog:
    def test_it_holds_host_target_headers_and_times_in_order(self) -> None:
        more = "User-Agent:  me/1 \r\nConnection: close\r\n"
        with SiteServer(Site({"/a?b": status(200)})) as server, asked(server, "/a?b", more=more) as client:
            rest(client)
        (request,) = server.log
        assert (request.host, request.target) == ("h1.test", "/a?b")
        assert request.headers == (("host", "h1.test"), ("user-agent", "me/1"), ("connection", "close"))
        assert request.ended_s is not None
        assert request.at_s <= request.ended_s

    def test_most_in_flight_is_counted_by_host(self) -> None:
        everyone = threading.Barrier(4)  # three clients and the test
        with SiteServer(Site({"/": Reply(fault=Fault.STALL, body=b"x"), "/ok": status(200)})) as server:

            def hold() -> None:
                with asked(server) as client:
                    read_until(client, lambda got: b"\r\n\r\n" in got)
                    everyone.wait(TIMEOUT_S)

            clients = [threading.Thread(target=hold) for _ in range(3)]
            for client in clients:
                client.start()
            everyone.wait(TIMEOUT_S)
            for client in clients:
                client.join()
            assert server.log.wait_for(all_ended)
            with asked(server, "/ok", more="Connection: close\r\n") as late:
                rest(late)
        assert server.log.in_flight_max == {"h1.test": 3}

    def test_a_server_opened_again_has_its_port_and_its_log(self) -> None:
        server = SiteServer(Site({"/": status(200)}))
        ports = []
        for _ in range(2):
            with server, asked(server, more="Connection: close\r\n") as client:
                rest(client)
                ports.append(server.port)
            with pytest.raises(ConnectionRefusedError), asked(server):
                pass
        assert ports[0] == ports[1]
        assert len(server.log) == 2


class TestProcess:
    ARGUMENTS = ("--pages", "20", "--seed", "5", "--redirects", "2", "--page-bytes", "3000")

    @contextmanager
    def process(self, *arguments: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
        """Give a server process and its URL."""
        command = [sys.executable, "-m", "crawlkit.testing.server", *self.ARGUMENTS, *arguments]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            try:
                assert process.stdout is not None
                yield process, process.stdout.readline().rstrip("\n")
            finally:
                process.kill()

    def get(self, url: str, target: str) -> bytes:
        client = http.client.HTTPConnection(url.removeprefix("http://"), timeout=TIMEOUT_S)
        client.request("GET", target)
        body = client.getresponse().read()
        client.close()
        return body

    def test_it_serves_the_graph_of_its_seed_and_appends_to_its_log(self, tmp_path: Path) -> None:
        log = tmp_path / "log"
        expected = make_graph(20, 5, features=Features(redirects=2)).site(page_bytes=3000).reply("any", "/p3").body
        for run in (1, 2):
            with self.process("--log", str(log)) as (process, url):
                assert self.get(url, "/p3") == expected
                process.communicate(timeout=TIMEOUT_S)  # closes its standard input
                assert process.returncode == 0
            requests = read_log(log)
            assert [request.target for request in requests] == ["/p3"] * run
            assert requests[-1].host == url.removeprefix("http://")

    def test_it_stops_on_sigterm_and_its_log_is_whole(self, tmp_path: Path) -> None:
        log = tmp_path / "log"
        with self.process("--log", str(log)) as (process, url):
            self.get(url, "/")
            self.get(url, "/missing?x")
            process.send_signal(signal.SIGTERM)
            assert process.wait(TIMEOUT_S) == 0
        assert [request.target for request in read_log(log)] == ["/", "/missing?x"]


def test_pages_of_the_server_can_be_followed_from_its_url() -> None:
    graph = make_graph(15, 2)
    with SiteServer(graph.site()) as server:
        moved = graph.at(server.url)
        client = http.client.HTTPConnection("127.0.0.1", server.port, timeout=TIMEOUT_S)
        for url in moved.bfs():
            client.request("GET", url.removeprefix(server.url))
            response = client.getresponse()
            assert (response.status, response.read()[:15]) == (200, page("").body[:15])
        client.close()
