"""One URL to one answer, or to the reason why there is none: never an exception for what a remote did."""

import asyncio
import gzip
import re
import socket
import time
import tracemalloc
from collections.abc import AsyncIterator
from ssl import SSLContext

import httpx
import pytest
import uvloop
from hypothesis import given
from hypothesis import strategies as st

from crawlkit.model import FetchFailure, Reason, Response
from crawlkit.net.fetch import Fetcher
from crawlkit.net.resolver import GuardedResolver, parse_resolves
from crawlkit.net.transport import unverified_tls
from tests.net.certificates import tls_client, tls_server
from tests.net.client import BOTH_LOOPS, LoopFactory, fetch_script, fetch_scripts, open_fetcher, resolver_for
from tests.net.raw_server import End, Script, raw_server

MIB = 1 << 20
PAGE = b"<a href=/x>x</a>" * 100


def head(*lines: bytes, status: bytes = b"200 OK") -> bytes:
    return b"\r\n".join([b"HTTP/1.1 " + status, *lines, b"", b""])


def ok(body: bytes, *lines: bytes) -> bytes:
    return head(b"Content-Length: %d" % len(body), *lines) + body


def answer_to(script: Script | bytes, *, timeout_s: float = 20.0, max_body_bytes: int = MIB) -> Response | FetchFailure:
    return asyncio.run(fetch_script(script, timeout_s=timeout_s, max_body_bytes=max_body_bytes))


def page_of(script: Script | bytes, *, max_body_bytes: int = MIB) -> Response:
    answer = answer_to(script, max_body_bytes=max_body_bytes)
    assert isinstance(answer, Response), answer
    return answer


def reason_of(answer: Response | FetchFailure) -> Reason:
    assert isinstance(answer, FetchFailure), answer
    assert answer.message
    return answer.reason


def test_an_answer_is_its_status_its_headers_as_received_and_its_body() -> None:
    script = ok(PAGE, b"X-Two: 1", b"Content-Type: text/html", b"x-two: \xe9")
    assert page_of(script) == Response(
        200,
        (
            (b"content-length", b"1600"),
            (b"x-two", b"1"),
            (b"content-type", b"text/html"),
            (b"x-two", b"\xe9"),
        ),
        PAGE,
    )


def test_a_redirect_is_an_answer_and_is_not_followed() -> None:
    async def fetch() -> tuple[Response | FetchFailure, int]:
        moved = head(b"Location: /next", b"Location: \xe9", b"Content-Length: 0", status=b"301 Moved Permanently")
        async with raw_server([moved]) as server, open_fetcher(await resolver_for(server)) as fetcher:
            return await fetcher.fetch(server.url()), len(server.heads)

    answer, requests = asyncio.run(fetch())
    assert isinstance(answer, Response)
    assert (answer.status, answer.header_values(b"location"), requests) == (301, [b"/next", b"\xe9"], 1)


@pytest.mark.parametrize("status", [b"200 OK", b"404 Not Found", b"429 ", b"500 Oops", b"599 x", b"999 Request denied"])
def test_every_final_status_is_an_answer(status: bytes) -> None:
    assert page_of(head(b"Content-Length: 2", status=status) + b"no").status == int(status[:3])


def test_answers_in_between_are_passed_over() -> None:
    assert page_of(head(status=b"100 Continue") + head(b"Link: </x>", status=b"103 Early Hints") + ok(PAGE)).body == PAGE


def test_a_body_may_come_in_chunks_by_length_or_to_the_end_of_the_connection() -> None:
    chunked = head(b"Transfer-Encoding: chunked") + b"3\r\nabc\r\n4\r\ndefg\r\n0\r\n\r\n"
    assert page_of(chunked) == Response(200, ((b"transfer-encoding", b"chunked"),), b"abcdefg")
    assert page_of(head() + PAGE) == Response(200, (), PAGE)
    assert page_of(Script((ok(PAGE)[:50], ok(PAGE)[50:]), End.STALL)).body == PAGE


def test_an_encoded_body_is_decoded() -> None:
    assert page_of(ok(gzip.compress(PAGE), b"Content-Encoding: gzip")).body == PAGE


@pytest.mark.parametrize("end", [End.CLOSE, End.RESET])
@pytest.mark.parametrize(
    "cut",
    [
        head(b"Content-Length: 5000") + PAGE,
        head(b"Transfer-Encoding: chunked") + b"640\r\n" + PAGE + b"\r\n5\r\n",
        head(b"Content-Encoding: gzip") + gzip.compress(PAGE)[:-8],
    ],
    ids=["length", "chunked", "gzip"],
)
def test_a_body_cut_short_keeps_what_came_and_is_truncated(cut: bytes, end: End) -> None:
    answer = page_of(Script((cut,), end))
    assert (answer.status, answer.body, answer.truncated) == (200, PAGE, True)


def test_a_body_that_ends_with_a_reset_is_truncated() -> None:
    answer = page_of(Script((head(), PAGE), End.RESET))
    assert answer.truncated
    assert PAGE.startswith(answer.body)


def test_a_large_body_cut_short_keeps_all_that_came() -> None:
    body = bytes(range(256)) * 8192
    answer = page_of(head(b"Content-Length: 9000000") + body, max_body_bytes=10 * MIB)
    assert (answer.body, answer.truncated) == (body, True)


def test_a_body_is_read_no_further_than_its_cap() -> None:
    assert page_of(ok(PAGE), max_body_bytes=len(PAGE)).truncated is False
    answer = page_of(ok(PAGE), max_body_bytes=100)
    assert (answer.body, answer.truncated) == (PAGE[:100], True)
    flood = Script((head(b"Content-Type: audio/mpeg"), b"\xff" * 65536), End.FLOOD)
    answer = page_of(flood, max_body_bytes=100_000)
    assert (len(answer.body), answer.truncated) == (100_000, True)


def test_a_server_that_never_ends_is_stopped_by_the_deadline() -> None:
    script = Script((head(b"Transfer-Encoding: chunked"), b"100\r\n" + b"." * 256 + b"\r\n"), End.FLOOD)
    assert reason_of(answer_to(script, timeout_s=0.1, max_body_bytes=1 << 40)) is Reason.TIMEOUT


@pytest.mark.parametrize("parts", [(), (b"HTTP/1.1 200 OK\r\n",), (head(b"Content-Length: 9"), b"abc"), (head(),)])
def test_a_silent_server_is_a_timeout_wherever_it_falls_silent(parts: tuple[bytes, ...]) -> None:
    assert reason_of(answer_to(Script(parts, End.STALL), timeout_s=0.05)) is Reason.TIMEOUT


@pytest.mark.parametrize("end", [End.CLOSE, End.RESET])
@pytest.mark.parametrize("parts", [(), (b"HTTP/1.1 200 OK\r\nContent-Le",)])
def test_a_connection_that_breaks_before_the_head_is_complete_is_a_reset(parts: tuple[bytes, ...], end: End) -> None:
    assert reason_of(answer_to(Script(parts, end))) is Reason.RESET


@pytest.mark.parametrize(
    "raw",
    [
        b"SSH-2.0-OpenSSH_9.6\r\n",
        b"ICY 200 OK\r\nicy-name: radio\r\n\r\n",
        b"<html>no head</html>",
        b"\x15\x03\x01\x00\x02\x02\x46",
        head(status=b"101 Switching Protocols"),
        head(b"Connection: upgrade", b"Upgrade: websocket", status=b"101 Switching Protocols"),
        ok(b"", b"X-Big: " + b"x" * 200_000),
        ok(b"", *(b"X-Many-%d: x" % n for n in range(1000))),
        ok(b"", b"Bad Name: x"),
        head(b"Transfer-Encoding: gzip") + b"x",
        head(b"Transfer-Encoding: chunked", b"Transfer-Encoding: chunked") + b"0\r\n\r\n",
        head(b"Content-Length: 2", b"Content-Length: 3") + b"abc",
        head(b"Content-Length: 3", b"Content-Length: 3") + b"abc",
        head(b"Content-Length: 3, 3") + b"abc",
        ok(b"", b"X: a\0b"),
        b"HTTP/0.9 200 OK\r\n\r\n" + PAGE,
        b"HTTP/2.0 200 OK\r\n\r\n" + PAGE,
        b"RTSP/1.1 200 OK\r\n\r\n" + PAGE,
        b"\r\n" + ok(PAGE),
        head(status=b"100 Continue") + b"\r\n" + ok(PAGE),
        head(status=b"100 Continue") * 100 + ok(PAGE),
        head(b" folded: first"),
    ],
)
def test_an_answer_that_is_not_http_is_a_protocol_failure(raw: bytes) -> None:
    assert reason_of(answer_to(raw)) is Reason.PROTOCOL


def test_a_long_but_honest_header_is_taken() -> None:
    assert page_of(ok(PAGE, b"Content-Security-Policy: " + b"x" * 20_000)).body == PAGE


def test_a_port_without_a_listener_is_a_connect_failure() -> None:
    async def fetch() -> Response | FetchFailure:
        async with raw_server([b""]) as server:
            resolver, url = await resolver_for(server), server.url()
        async with open_fetcher(resolver) as fetcher:
            return await fetcher.fetch(url)

    assert reason_of(asyncio.run(fetch())) is Reason.CONNECT


@pytest.mark.parametrize(
    "host", ["a123456789012345678901234567890123456789012345678901234567890123.example", "a..example", "x" * 300]
)
def test_a_name_that_cannot_exist_is_not_found(host: str) -> None:
    async def fetch() -> Response | FetchFailure:
        async with open_fetcher(GuardedResolver()) as fetcher:
            return await fetcher.fetch(f"https://{host}/")

    assert reason_of(asyncio.run(fetch())) is Reason.NAME_NOT_FOUND


def test_a_name_that_tls_cannot_hold_is_a_failure_even_where_a_rule_gives_it_an_address() -> None:
    async def fetch() -> Response | FetchFailure:
        async with raw_server([ok(PAGE)]) as server:
            resolver = GuardedResolver(parse_resolves([f"*=127.0.0.1:{server.port}"]))
            async with open_fetcher(resolver) as fetcher:
                return await fetcher.fetch("https://" + "a" * 64 + ".example/")

    assert reason_of(asyncio.run(fetch())) is Reason.NAME_NOT_FOUND


async def fetch_tls(server_tls: SSLContext | None, client_tls: SSLContext, scheme: str) -> Response | FetchFailure:
    async with raw_server([ok(PAGE)], tls=server_tls) as server:
        resolver = GuardedResolver(parse_resolves([f"localhost=127.0.0.1:{server.port}"]))
        async with open_fetcher(resolver, tls=client_tls, timeout_s=5) as fetcher:
            return await fetcher.fetch(f"{scheme}://localhost/")


@BOTH_LOOPS
def test_a_page_over_tls_that_verifies_is_an_answer(loop_factory: LoopFactory) -> None:
    with asyncio.Runner(loop_factory=loop_factory) as runner:
        answer = runner.run(fetch_tls(tls_server("localhost"), tls_client("localhost"), "https"))
    assert isinstance(answer, Response)
    assert (answer.body, answer.truncated) == (PAGE, False)


@pytest.mark.parametrize(
    ("certificate", "roots", "kind"),
    [
        ("localhost", (), "self.signed"),
        ("localhost", ("other",), "self.signed"),
        ("other", ("other",), "[Hh]ostname mismatch"),
        ("expired", ("expired",), "expired"),
    ],
    ids=["self-signed", "unknown root", "wrong host", "expired"],
)
@BOTH_LOOPS
def test_a_certificate_that_does_not_verify_is_a_tls_failure_of_its_kind(
    certificate: str, roots: tuple[str, ...], kind: str, loop_factory: LoopFactory
) -> None:
    with asyncio.Runner(loop_factory=loop_factory) as runner:
        answer = runner.run(fetch_tls(tls_server(certificate), tls_client(*roots), "https"))
    assert reason_of(answer) is Reason.TLS
    assert isinstance(answer, FetchFailure)
    assert re.fullmatch(f"certificate: .*{kind}.*", answer.message)


@pytest.mark.parametrize("certificate", ["localhost", "other", "expired"])
def test_any_certificate_will_do_where_none_is_verified(certificate: str) -> None:
    answer = asyncio.run(fetch_tls(tls_server(certificate), unverified_tls(), "https"))
    assert isinstance(answer, Response)
    assert answer.body == PAGE


def test_plain_http_on_a_tls_port_is_a_tls_failure() -> None:
    async def fetch() -> Response | FetchFailure:
        async with raw_server([Script((ok(PAGE),), greets=True)]) as server:
            resolver = GuardedResolver(parse_resolves([f"localhost=127.0.0.1:{server.port}"]))
            async with open_fetcher(resolver, tls=tls_client("localhost")) as fetcher:
                return await fetcher.fetch("https://localhost/")

    answer = asyncio.run(fetch())
    assert answer == FetchFailure(Reason.TLS, "TLS: wrong version number")


@BOTH_LOOPS
def test_a_stalled_tls_handshake_is_a_timeout(loop_factory: LoopFactory) -> None:
    async def fetch() -> Response | FetchFailure:
        async with raw_server([Script((), End.STALL, greets=True)]) as server:
            resolver = GuardedResolver(parse_resolves([f"localhost=127.0.0.1:{server.port}"]))
            async with open_fetcher(resolver, timeout_s=0.1) as fetcher:
                return await fetcher.fetch("https://localhost/")

    with asyncio.Runner(loop_factory=loop_factory) as runner:
        assert reason_of(runner.run(fetch())) is Reason.TIMEOUT


@BOTH_LOOPS
def test_a_tls_connection_is_kept_and_one_with_an_endless_body_is_closed_at_the_cap(loop_factory: LoopFactory) -> None:
    async def fetch() -> tuple[list[Response | FetchFailure], int]:
        scripts = [Script((ok(PAGE),), End.KEEP), Script((head(), b"x" * 65536), End.FLOOD)]
        async with raw_server(scripts, tls=tls_server("localhost")) as server:
            resolver = GuardedResolver(parse_resolves([f"localhost=127.0.0.1:{server.port}"]))
            async with open_fetcher(resolver, tls=tls_client("localhost")) as fetcher:
                return [await fetcher.fetch("https://localhost/") for _ in range(3)], server.connections

    with asyncio.Runner(loop_factory=loop_factory) as runner:
        answers, connections = runner.run(fetch())
    assert [(len(a.body), a.truncated) for a in answers if isinstance(a, Response)] == [
        (len(PAGE), False),
        (MIB, True),
        (MIB, True),
    ]
    assert connections == 2


def test_a_cancellation_from_outside_passes_through() -> None:
    async def fetch() -> None:
        async with raw_server([Script((), End.STALL)]) as server, open_fetcher(await resolver_for(server)) as fetcher:
            task = asyncio.create_task(fetcher.fetch(server.url()))
            await server.asked.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    asyncio.run(fetch())


async def _fetched(transport: httpx.AsyncBaseTransport, url: str) -> Response | FetchFailure:
    return await Fetcher(transport, timeout_s=1, max_body_bytes=100, user_agent="x").fetch(url)


def test_a_bug_passes_through() -> None:
    def broken(request: httpx.Request) -> httpx.Response:
        raise KeyError("ours")

    transport = httpx.MockTransport(broken)
    with pytest.raises(KeyError):
        asyncio.run(_fetched(transport, "http://a.example/"))


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (httpx.ConnectError("x"), Reason.CONNECT),
        (httpx.ConnectTimeout("x"), Reason.TIMEOUT),
        (httpx.ReadTimeout("x"), Reason.TIMEOUT),
        (httpx.ReadError("x"), Reason.RESET),
        (httpx.RemoteProtocolError("x"), Reason.PROTOCOL),
        (httpx.UnsupportedProtocol("x"), Reason.PROTOCOL),
        (OSError("x"), Reason.RESET),
        (TimeoutError("x"), Reason.RESET),
        (socket.gaierror(socket.EAI_NONAME, "x"), Reason.NAME_NOT_FOUND),
        (socket.gaierror(socket.EAI_NODATA, "x"), Reason.NAME_NOT_FOUND),
        (socket.gaierror(socket.EAI_AGAIN, "x"), Reason.DNS),
        (socket.gaierror(socket.EAI_FAIL, "x"), Reason.DNS),
    ],
)
def test_a_transports_errors_are_reasons(error: Exception, reason: Reason) -> None:
    def failing(request: httpx.Request) -> httpx.Response:
        raise error

    transport = httpx.MockTransport(failing)
    assert reason_of(asyncio.run(_fetched(transport, "http://a.example/"))) is reason


class Silence(httpx.AsyncByteStream):
    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield b"some"
        raise httpx.ReadTimeout("silent")


def test_a_transports_timeout_within_a_body_is_a_timeout() -> None:
    transport = httpx.MockTransport(lambda request: httpx.Response(200, stream=Silence()))
    assert reason_of(asyncio.run(_fetched(transport, "http://a.example/"))) is Reason.TIMEOUT


def test_any_transport_will_do() -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, headers={"Content-Encoding": "gzip"}, content=gzip.compress(bytes(request.url.raw_path)))

    transport = httpx.MockTransport(answer)
    got = asyncio.run(_fetched(transport, "http://a.example/p?q"))
    assert isinstance(got, Response)
    assert (got.body, got.truncated) == (b"/p?q", False)


def test_a_transport_that_looks_at_the_url_sees_all_of_it() -> None:
    seen: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        return httpx.Response(204)

    transport = httpx.MockTransport(answer)
    asyncio.run(_fetched(transport, "https://a.example:8443/p%7E?q=1"))
    (request,) = seen
    assert str(request.url) == "https://a.example:8443/p%7E?q=1"
    assert (request.method, request.headers["host"], request.content) == ("GET", "a.example:8443", b"")
    assert request.extensions["target"] == b"/p%7E?q=1"


def test_a_url_that_httpx_cannot_hold_is_fetched_all_the_same() -> None:
    async def fetch() -> Response | FetchFailure:
        async with raw_server([ok(PAGE)]) as server:
            resolver = GuardedResolver(parse_resolves([f"*=127.0.0.1:{server.port}"]))
            async with open_fetcher(resolver) as fetcher:
                return await fetcher.fetch(f"http://a.example/?{'x' * 70_000}")

    answer = asyncio.run(fetch())
    assert isinstance(answer, Response)
    assert answer.body == PAGE


def test_an_endless_body_costs_little_memory() -> None:
    flood = Script((head(), b"x" * 65536), End.FLOOD)
    tracemalloc.start()
    try:
        answer = page_of(flood, max_body_bytes=2 * MIB)
        peak_bytes = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert (len(answer.body), answer.truncated) == (2 * MIB, True)
    assert peak_bytes < 8 * MIB  # the pieces and the body made of them, and the server


def test_it_works_on_uvloop() -> None:
    scripts: list[Script | bytes] = [
        Script((ok(PAGE),), End.KEEP),
        ok(PAGE)[:-10],
        Script((head(b"Content-Length: 5000") + PAGE,), End.RESET),
    ]
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        whole, cut, reset = runner.run(fetch_scripts(*scripts, times=3))
    assert isinstance(whole, Response)
    assert (whole.body, whole.truncated) == (PAGE, False)
    assert isinstance(cut, Response)
    assert (cut.body, cut.truncated) == (PAGE[:-10], True)
    assert isinstance(reset, Response)
    assert (reset.body, reset.truncated) == (PAGE, True)


PIECES = st.sampled_from(
    [
        b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 204 No\r\n", b"HTTP/1.1 100 C\r\n\r\n", b"Content-Length: 5\r\n",
        b"Content-Encoding: gzip\r\n", b"Content-Encoding: br\r\n", b"Transfer-Encoding: chunked\r\n", b"\r\n",
        b"5\r\nhello\r\n", b"0\r\n\r\n", b"hello",
        b"\x1f\x8b\x08", b"ffffffffffffffffff\r\n", b"-1\r\n", b"Connection: close\r\n", b"\n", b"\0",
        b"Set-Cookie: =;;=\r\n", b"Location: http://[\r\n",
    ]
)  # fmt: skip


@given(
    st.lists(st.lists(PIECES | st.binary(max_size=20), max_size=5).map(b"".join), max_size=4),
    st.sampled_from([End.CLOSE, End.RESET]),
)
def test_whatever_a_server_says_ends_in_an_answer_or_a_reason(parts: list[bytes], end: End) -> None:
    first = b"HTTP/1.1 200 OK\r\n" if len(parts) % 2 else b""
    started_s = time.monotonic()
    answer = answer_to(Script((first, *parts), end))
    assert isinstance(answer, Response | FetchFailure)
    assert time.monotonic() - started_s < 10
