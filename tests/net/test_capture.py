"""What is kept of a fetch for the archive: the bytes of the wire."""

import asyncio
import gzip

import pytest

from crawlkit.exchange import Cut, Exchange
from crawlkit.model import FetchFailure, Response
from crawlkit.net.capture import Capture, Veil
from crawlkit.net.fetch import ExtraHeaders, Fetcher
from crawlkit.net.transport import open_transport
from crawlkit.testing.fakeweb import FakeWeb
from crawlkit.testing.site import Reply, Site
from tests.net.client import LONG_S, NO_ROOTS, open_fetcher, resolver_for
from tests.net.h2_server import H2Answer, h2_server
from tests.net.raw_server import End, RawServer, Script, raw_server
from tests.net.test_http2 import fetcher_over_h2, to

MOST = 1000
PLAIN = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX-Odd:  a \r\n\r\n"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


async def _captured(*scripts: Script | bytes, timeout_s: float, times: int) -> tuple[list[Exchange | None], RawServer]:
    async with raw_server(scripts) as server:
        resolver = await resolver_for(server)
        found = []
        async with open_fetcher(resolver, timeout_s=timeout_s, max_body_bytes=MOST) as fetcher:
            for _ in range(times):
                capture = Capture(Veil())
                answer = await fetcher.fetch(server.url("/a?b"), capture)
                found.append(capture.exchange(answer, MOST))
        return found, server


def captured(*scripts: Script | bytes, timeout_s: float = LONG_S, times: int = 1) -> tuple[list[Exchange | None], RawServer]:
    return asyncio.run(_captured(*scripts, timeout_s=timeout_s, times=times))


def exchange(*scripts: Script | bytes, timeout_s: float = LONG_S) -> Exchange:
    [found], _ = captured(*scripts, timeout_s=timeout_s)
    assert found is not None
    return found


def test_request_head_and_body_are_the_bytes_of_the_wire() -> None:
    [found], server = captured(PLAIN + b"hello")
    assert found == Exchange(server.heads[0], PLAIN, b"hello", None, "127.0.0.1")


def test_each_request_of_a_connection_has_its_own() -> None:
    found, server = captured(Script((PLAIN + b"first",), End.KEEP), Script((PLAIN + b"later",), End.KEEP), times=2)
    assert [each.body for each in found if each] == [b"first", b"later"]
    assert server.connections == 1


@pytest.mark.parametrize(
    ("sent", "head", "body"),
    [
        pytest.param(CHUNKED + b"2\r\nhe\r\n3;x=y\r\nllo\r\n0\r\n\r\n", CHUNKED, b"hello", id="chunks are undone"),
        pytest.param(b"HTTP/1.1 100 Continue\r\n\r\n" + PLAIN + b"hello", PLAIN, b"hello", id="the final head"),
        pytest.param(b"HTTP/1.1 200 OK\nA: b\n\nhello", b"HTTP/1.1 200 OK\r\nA: b\r\n\r\n", b"hello", id="bare LF"),
        pytest.param(b"HTTP/1.1 404 No\r\n\r\n", b"HTTP/1.1 404 No\r\n\r\n", b"", id="no body"),
    ],
)
def test_what_is_kept_of_an_answer(sent: bytes, head: bytes, body: bytes) -> None:
    found = exchange(sent)
    assert (found.head, found.body, found.cut) == (head, body, None)


def test_a_content_coding_is_kept() -> None:
    body = gzip.compress(b"hello")
    head = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n"
    assert exchange(head + body).body == body


BOMB = gzip.compress(bytes(2 * MOST))


@pytest.mark.parametrize(
    ("script", "cut", "body"),
    [
        pytest.param(Script((PLAIN + b"hel",)), Cut.DISCONNECT, b"hel", id="the connection ends"),
        pytest.param(Script((PLAIN, b"hel"), End.STALL), Cut.TIME, b"hel", id="the timeout"),
        pytest.param(b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * (MOST + 1), Cut.LENGTH, b"x" * (MOST + 1), id="the cap"),
        pytest.param(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nx", Cut.UNSPECIFIED, b"", id="unknown coding"),
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n" + BOMB, Cut.LENGTH, BOMB, id="the cap, decoded"),
    ],
)
def test_why_an_answer_is_not_whole(script: Script | bytes, cut: Cut, body: bytes) -> None:
    found = exchange(script, timeout_s=0.3 if cut is Cut.TIME else LONG_S)
    assert (found.cut, found.body) == (cut, body)


@pytest.mark.parametrize("script", [b"", b"HTTP/1.1 200 OK\r\nA", b"garbage\r\n\r\n"])
def test_where_no_head_came_there_is_no_exchange(script: bytes) -> None:
    assert captured(script)[0] == [None]


async def _with_proof() -> tuple[Exchange | None, bytes]:
    async with raw_server([PLAIN + b"hello"]) as server:
        extra = ExtraHeaders(((b"X-Mine", b"1"),), {"127.0.0.1": b"Basic c2VjcmV0"})
        transport = open_transport(await resolver_for(server), connections=1, tls=NO_ROOTS)
        fetcher = Fetcher(transport, timeout_s=LONG_S, max_body_bytes=MOST, user_agent="t", extra=extra)
        capture = Capture(Veil())
        answer = await fetcher.fetch(server.url(), capture)
        await transport.aclose()
        return capture.exchange(answer, MOST), server.heads[0]


def test_what_proves_who_asks_is_sent_and_not_kept() -> None:
    found, sent = asyncio.run(_with_proof())
    assert found is not None
    assert b"Authorization: Basic c2VjcmV0\r\n" in sent
    assert found.request == sent.replace(b"Authorization: Basic c2VjcmV0", b"Authorization: (not archived)")


@pytest.mark.parametrize(
    ("line", "kept"),
    [
        ("authorization: x", "authorization: (not archived)"),
        ("Proxy-Authorization: Basic x", "Proxy-Authorization: (not archived)"),
        ("Cookie: a=b; c=d", "Cookie: (not archived)"),
        ("X-Told: value", "X-Told: (not archived)"),
        ("X-Told-Not: value", "X-Told-Not: value"),
        ("X-Cookie: value", "X-Cookie: value"),
        ("Accept: cookie: x", "Accept: cookie: x"),
    ],
)
def test_values_that_the_settings_do_not_tell_are_not_kept(line: str, kept: str) -> None:
    request = "GET /cookie: HTTP/1.1\r\nHost: a.test\r\n{}\r\nAccept: y\r\n\r\n"
    assert Veil(["X-Told"]).over(request.format(line).encode()) == request.format(kept).encode()


async def _over(web: FakeWeb) -> tuple[Response | FetchFailure, Exchange | None]:
    capture = Capture(Veil())
    answer = await Fetcher(web, timeout_s=LONG_S, max_body_bytes=MOST, user_agent="t").fetch("http://a.test/x?y", capture)
    return answer, capture.exchange(answer, MOST)


def test_over_another_transport_heads_are_made_of_the_fields() -> None:
    web = FakeWeb(Site({"a.test/x?y": Reply(403, (("x-a", "b"),), b"no")}))
    _, found = asyncio.run(_over(web))
    assert found is not None
    assert found.request.startswith(b"GET /x?y HTTP/1.1\r\nHost: a.test\r\n")
    assert found.request.endswith(b"\r\n\r\n")
    assert found.head == b"HTTP/1.1 403 Forbidden\r\nx-a: b\r\ncontent-length: 2\r\n\r\n"
    assert (found.body, found.address, found.protocol) == (b"no", None, None)


async def _over_h2() -> Exchange | None:
    async with (
        h2_server([H2Answer(body=b"ok", headers=((b"x-a", b"b"),))]) as server,
        fetcher_over_h2(to(server.port)) as fetcher,
    ):
        capture = Capture(Veil())
        return capture.exchange(await fetcher.fetch("https://localhost/p?q", capture), MOST)


def test_over_http_2_heads_are_made_of_the_fields_and_the_protocol_is_named() -> None:
    found = asyncio.run(_over_h2())
    assert found is not None
    assert found.request.startswith(b"GET /p?q HTTP/1.1\r\nHost: localhost\r\n")
    assert found.head.startswith(b"HTTP/1.1 200 OK\r\n")
    assert b"\r\nx-a: b\r\n" in found.head
    assert (found.body, found.protocol) == (b"ok", "h2")
