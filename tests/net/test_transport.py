"""What leaves on the wire, and which connections it takes."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest
import uvloop

from crawlkit.model import FetchFailure, Reason, Response
from crawlkit.net.decode import ACCEPT_ENCODING
from crawlkit.net.fetch import Fetcher
from crawlkit.net.resolver import GuardedResolver, parse_resolves
from crawlkit.net.transport import open_transport
from tests.net.client import LONG_S, NO_ROOTS, fetch_scripts, open_fetcher, resolver_for
from tests.net.raw_server import End, RawServer, Script, raw_server

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
KEEP_OK = Script((OK,), End.KEEP)

TARGETS = [
    "/", "/%7Euser/~user", "/a%2fb%2Fb", "/a|b", "/a[1]", "/it's", "/a;b=c", "//double//", "/?", "/a?", "/?q=a%20b",
    "/?q=a|b[c]'d%22", "/%", "/%zz", "/a%00b", "/?a=%E2%82%AC&b=%e9", "/a+b?c+d=e%2Bf", "/?x=1&x=1&&=",
    "/a:b@c!$&'()*,=", "/?a?b=/c/../d", "/{}^`\\", "/.well-known/a", "/%2e%2e/x", "/?http://h.example/?a=b",
]  # fmt: skip


async def _targets_on_the_wire(targets: list[str]) -> list[bytes]:
    async with raw_server([KEEP_OK]) as server, open_fetcher(await resolver_for(server)) as fetcher:
        for target in targets:
            assert isinstance(await fetcher.fetch(server.url(target)), Response)
        return server.targets()


def test_the_request_target_is_the_urls_own_bytes() -> None:
    assert asyncio.run(_targets_on_the_wire(TARGETS)) == [target.encode() for target in TARGETS]


def test_a_url_of_60000_bytes_leaves_whole() -> None:
    target = "/p?redirect=" + "%3F" * 20_000
    assert asyncio.run(_targets_on_the_wire([target])) == [target.encode()]


async def _request_without_extension() -> list[bytes]:
    async with raw_server([KEEP_OK]) as server:
        transport = open_transport(await resolver_for(server), connections=1, tls=NO_ROOTS)
        response = await transport.handle_async_request(httpx.Request("GET", server.url("/a?b=%7E")))
        assert await response.aread() == b"ok"
        await response.aclose()
        await transport.aclose()
        return server.targets()


def test_the_transport_serves_plain_httpx_requests_too() -> None:
    assert asyncio.run(_request_without_extension()) == [b"/a?b=%7E"]


async def _heads(*hosts: str) -> tuple[list[bytes], RawServer]:
    async with raw_server([KEEP_OK]) as server:
        rules = parse_resolves([f"*=127.0.0.1:{server.port}"])
        async with open_fetcher(GuardedResolver(rules)) as fetcher:
            for host in hosts:
                assert isinstance(await fetcher.fetch(f"http://{host}/"), Response)
        return server.heads, server


def test_the_request_says_who_asks_and_what_can_be_undone_and_nothing_else() -> None:
    heads, _ = asyncio.run(_heads("a.example"))
    assert heads[0].split(b"\r\n") == [
        b"GET / HTTP/1.1",
        b"Host: a.example",
        b"User-Agent: testkit/1.0",
        b"Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
        b"Accept-Encoding: " + ACCEPT_ENCODING,
        b"",
        b"",
    ]


@pytest.mark.parametrize("host", ["a.example:8081", "a.example.", "xn--i-7iq.ws", "xn--n3h", "a_b.example", "a!b'c"])
def test_the_host_header_is_the_urls_own(host: str) -> None:
    heads, _ = asyncio.run(_heads(host))
    assert heads[0].split(b"\r\n")[1] == b"Host: " + host.encode()


def test_a_connection_is_kept_for_the_next_request_to_the_same_host_only() -> None:
    _, server = asyncio.run(_heads("a.example", "a.example", "b.example", "a.example"))
    assert server.connections == 2


async def _cookies() -> list[bytes]:
    answer = Script((OK.replace(b"\r\n\r\n", b"\r\nSet-Cookie: id=7; Path=/\r\n\r\n"),), End.KEEP)
    async with raw_server([answer]) as server:
        rules = parse_resolves([f"a.example=127.0.0.1:{server.port}"])  # a name: cookie jars pass over addresses
        async with open_fetcher(GuardedResolver(rules)) as fetcher:
            await fetcher.fetch("http://a.example/")
            await fetcher.fetch("http://a.example/")
        return server.heads


def test_a_cookie_is_not_sent_back() -> None:
    first, second = asyncio.run(_cookies())
    assert first == second


async def _refused(resolver: GuardedResolver, url: str) -> tuple[Response | FetchFailure, int]:
    async with raw_server([KEEP_OK]) as server, open_fetcher(resolver) as fetcher:
        return await fetcher.fetch(url.format(port=server.port)), server.connections


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:{port}/", "http://localhost:{port}/", "http://[::ffff:7f00:1]:{port}/", "http://[::1]:{port}/",
        "http://0.0.0.0:{port}/",
    ],
)  # fmt: skip
def test_a_private_address_is_refused_before_any_connection(url: str) -> None:
    answer, connections = asyncio.run(_refused(GuardedResolver(), url))
    assert isinstance(answer, FetchFailure)
    assert answer.reason is Reason.ADDRESS
    assert connections == 0


async def _other_port() -> tuple[Response | FetchFailure, Response | FetchFailure]:
    async with (
        raw_server([KEEP_OK]) as seed,
        raw_server([KEEP_OK]) as other,
        open_fetcher(await resolver_for(seed)) as fetcher,
    ):
        return await fetcher.fetch(seed.url()), await fetcher.fetch(other.url())


def test_a_seed_on_loopback_opens_its_own_port_and_no_other() -> None:
    seed, other = asyncio.run(_other_port())
    assert isinstance(seed, Response)
    assert isinstance(other, FetchFailure)
    assert other.reason is Reason.ADDRESS


async def _requests_of(script: Script) -> int:
    async with raw_server([script]) as server, open_fetcher(await resolver_for(server)) as fetcher:
        answer = await fetcher.fetch(server.url())
        assert isinstance(answer, FetchFailure)
        assert answer.reason is Reason.RESET
        return server.connections


@pytest.mark.parametrize("end", [End.CLOSE, End.RESET])
def test_a_request_is_never_sent_twice(end: End) -> None:
    assert asyncio.run(_requests_of(Script((), end))) == 1


def test_surplus_bytes_are_part_of_no_answer() -> None:
    surplus = Script((OK + b"HTTP/1.1 200 OK\r\n",), End.KEEP)
    first, second = asyncio.run(fetch_scripts(surplus, Script((OK.replace(b"ok", b"no"),), End.KEEP), times=2))
    assert isinstance(first, Response)
    assert isinstance(second, Response)
    assert (first.body, second.body) == (b"ok", b"no")


async def _answer_nobody_asked_for() -> list[bytes]:
    evil = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil"
    async with raw_server([Script((OK,), End.KEEP)]) as server, open_fetcher(await resolver_for(server)) as fetcher:
        first = await fetcher.fetch(server.url())
        server.writers[0].write(evil)
        await server.writers[0].drain()
        for _ in range(20):  # loopback delivers at once: the bytes are read within a turn or two of the loop
            await asyncio.sleep(0)
        second = await fetcher.fetch(server.url())
        assert isinstance(first, Response)
        assert isinstance(second, Response)
        assert server.connections == 2
        return [first.body, second.body]


def test_an_answer_that_came_unasked_is_never_taken_for_the_next_ones() -> None:
    assert asyncio.run(_answer_nobody_asked_for()) == [b"ok", b"ok"]


@pytest.mark.parametrize("banner", [b"SSH-2.0-x\r\n", OK])
def test_a_server_that_speaks_first_is_answered_for_in_bounded_tries(banner: bytes) -> None:
    (answer,) = asyncio.run(fetch_scripts(Script((banner,), End.CLOSE, greets=True)))
    assert isinstance(answer, Response | FetchFailure)


STALE = b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 4\r\nConnection: close\r\n\r\nlate"


async def _unread_before_the_request(said: bytes | None) -> tuple[list[bytes], int]:
    async with raw_server([KEEP_OK]) as server, open_fetcher(await resolver_for(server)) as fetcher:
        answers = [await fetcher.fetch(server.url())]
        if said is None:
            server.writers[0].write_eof()
        else:
            server.writers[0].write(said)  # into the client's socket at once, and no turn of the loop to read it
        answers.append(await fetcher.fetch(server.url()))
        assert all(isinstance(answer, Response) for answer in answers)
        return [answer.body for answer in answers if isinstance(answer, Response)], server.connections


@pytest.mark.parametrize("said", [STALE, OK.replace(b"ok", b"no"), b"\r\n", None], ids=["408", "200", "blank", "end"])
@pytest.mark.parametrize("loop_factory", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_what_came_unread_before_a_request_is_never_its_answer(
    said: bytes | None, loop_factory: Callable[[], asyncio.AbstractEventLoop]
) -> None:
    with asyncio.Runner(loop_factory=loop_factory) as runner:
        assert runner.run(_unread_before_the_request(said)) == ([b"ok", b"ok"], 2)


def test_a_408_on_a_kept_connection_is_asked_again_on_a_new_one_once() -> None:
    late = Script((STALE,), End.STALL)
    first, second, third = asyncio.run(fetch_scripts(KEEP_OK, late, KEEP_OK, late, late, times=3))
    assert isinstance(first, Response)
    assert isinstance(second, Response)
    assert (second.status, second.body) == (200, b"ok")
    assert isinstance(third, Response)
    assert (third.status, third.body) == (408, b"late")


def test_a_408_on_a_new_connection_is_the_answer() -> None:
    (answer,) = asyncio.run(fetch_scripts(Script((STALE,))))
    assert isinstance(answer, Response)
    assert answer.status == 408


def test_roots_are_read_for_the_first_https_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "missing.pem"))

    async def fetch() -> tuple[Response | FetchFailure, Response | FetchFailure]:
        async with raw_server([KEEP_OK]) as server:
            transport = open_transport(await resolver_for(server), connections=1)
            fetcher = Fetcher(transport, timeout_s=LONG_S, max_body_bytes=1 << 20, user_agent="testkit/1.0")
            try:
                return await fetcher.fetch(server.url()), await fetcher.fetch(server.url(scheme="https"))
            finally:
                await transport.aclose()

    plain, secure = asyncio.run(fetch())
    assert isinstance(plain, Response)
    assert isinstance(secure, FetchFailure)
    assert "No such file" in secure.message
