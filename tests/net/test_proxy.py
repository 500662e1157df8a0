"""Requests through a proxy: what it is asked, what the guard keeps from it, and whose failure a failure is."""

import asyncio
import re
import socket
import ssl

import pytest

from crawlkit.model import FetchFailure, Reason, Response
from crawlkit.net.proxy import Proxy
from crawlkit.net.request import Origin
from crawlkit.net.resolver import GuardedResolver, parse_resolves
from tests.net.certificates import tls_client, tls_server
from tests.net.client import BOTH_LOOPS, LoopFactory, open_fetcher
from tests.net.raw_server import End, RawServer, Script, raw_server
from tests.net.table_dns import TableDns
from tests.net.tunnel_proxy import TunnelProxy, tunnel_proxy

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
KEEP_OK = Script((OK,), End.KEEP)
PROOF = b"Basic bWU6aHVudGVyMg=="
PUBLIC = "93.184.216.34"
WEB = {
    "public.example": (PUBLIC,),
    "localhost": (PUBLIC,),  # whose certificate there is
    "inside.example": ("10.0.0.7",),
    "proxy.example": ("127.0.0.1",),
}


def web_resolver(*rules: str, dns: TableDns | None = None) -> GuardedResolver:
    return GuardedResolver(parse_resolves(rules), dns=dns or TableDns(WEB))


def at(server: RawServer | TunnelProxy) -> Origin:
    return Origin("http", "127.0.0.1", server.port)


async def forwarded(
    *urls: str,
    scripts: tuple[Script | bytes, ...] = (KEEP_OK,),
    resolver: GuardedResolver | None = None,
    names_are_its_own: bool = False,
) -> tuple[list[Response | FetchFailure], RawServer]:
    """The answers of a proxy that plays scripts itself."""
    async with raw_server(scripts) as server:
        proxy = Proxy(at(server), PROOF, names_are_its_own)
        async with open_fetcher(resolver or web_resolver(), proxy=proxy) as fetcher:
            return [await fetcher.fetch(url) for url in urls], server


async def tunnelled(
    *urls: str,
    known: tuple[str, ...] = (f"{PUBLIC}:443",),
    resolver: GuardedResolver | None = None,
    names_are_its_own: bool = False,
    certificate: str = "localhost",
    proxy_tls: ssl.SSLContext | None = None,
) -> tuple[list[Response | FetchFailure], TunnelProxy, RawServer]:
    """The answers of a TLS server behind a proxy that knows where `known` targets are."""
    async with (
        raw_server([KEEP_OK], tls=tls_server(certificate)) as server,
        tunnel_proxy(dict.fromkeys(known, server.port), tls=proxy_tls) as proxy,
    ):
        asked = Origin("https", "localhost", proxy.port) if proxy_tls else at(proxy)
        through = Proxy(asked, PROOF, names_are_its_own)
        async with open_fetcher(resolver or web_resolver(), tls=tls_client("localhost"), proxy=through, timeout_s=5) as fetcher:
            return [await fetcher.fetch(url) for url in urls], proxy, server


def reason_of(answer: Response | FetchFailure) -> Reason | None:
    return answer.reason if isinstance(answer, FetchFailure) else None


def test_a_plain_request_goes_to_the_proxy_whole_and_its_connection_is_kept() -> None:
    urls = ("http://public.example/a?b=%7E", "http://public.example/", "http://public.example:8080/x", f"http://{PUBLIC}/")
    answers, server = asyncio.run(forwarded(*urls))
    assert [answer.body for answer in answers if isinstance(answer, Response)] == [b"ok"] * 4
    assert server.targets() == [url.encode() for url in urls]
    lines = server.heads[2].split(b"\r\n")
    assert lines[0] == b"GET http://public.example:8080/x HTTP/1.1"
    assert b"Host: public.example:8080" in lines
    assert lines.count(b"Proxy-Authorization: " + PROOF) == 1
    assert server.connections == 3


def test_an_ipv6_host_stands_in_brackets_in_what_the_proxy_is_asked() -> None:
    url = "http://[2606:2800:220:1::1]:8080/"
    _, server = asyncio.run(forwarded(url))
    assert server.targets() == [url.encode()]


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("http://inside.example/", Reason.ADDRESS),
        ("https://inside.example/", Reason.ADDRESS),
        ("http://10.0.0.7/", Reason.ADDRESS),
        ("https://[::ffff:a00:7]/", Reason.ADDRESS),
        ("http://169.254.169.254/latest/", Reason.ADDRESS),
        ("http://nowhere.example/", Reason.NAME_NOT_FOUND),
        ("https://nowhere.example/", Reason.NAME_NOT_FOUND),
    ],
)
def test_the_guard_refuses_before_the_proxy_is_asked_anything(url: str, reason: Reason) -> None:
    (answer,), server = asyncio.run(forwarded(url))
    assert reason_of(answer) is reason
    assert isinstance(answer, FetchFailure)
    assert ("unless allow_private is all" in answer.message) == (reason is Reason.NAME_NOT_FOUND)
    assert server.connections == 0


@BOTH_LOOPS
def test_with_tls_the_proxy_is_asked_for_a_tunnel_to_the_checked_address_and_sees_nothing_else(
    loop_factory: LoopFactory,
) -> None:
    with asyncio.Runner(loop_factory=loop_factory) as runner:
        answers, proxy, server = runner.run(tunnelled("https://localhost/a", "https://localhost/b"))
    assert [answer.body for answer in answers if isinstance(answer, Response)] == [b"ok", b"ok"]
    assert proxy.heads == [
        f"CONNECT {PUBLIC}:443 HTTP/1.1\r\nHost: {PUBLIC}:443\r\nProxy-Authorization: {PROOF.decode()}\r\n\r\n".encode()
    ]
    assert server.targets() == [b"/a", b"/b"]
    assert not any(b"Proxy-" in head for head in server.heads)


def test_a_certificate_in_a_tunnel_is_verified_for_the_host_of_the_url() -> None:
    (answer,), _, server = asyncio.run(tunnelled("https://localhost/", certificate="other"))
    assert reason_of(answer) is Reason.TLS
    assert server.heads == []


def test_the_next_address_is_asked_for_where_the_proxy_does_not_reach_one() -> None:
    dns = TableDns({"localhost": ("2606:2800:220:1::1", PUBLIC)})
    (answer,), proxy, _ = asyncio.run(tunnelled("https://localhost/", resolver=web_resolver(dns=dns)))
    assert isinstance(answer, Response)
    assert proxy.targets() == ["[2606:2800:220:1::1]:443", f"{PUBLIC}:443"]


def test_where_names_are_the_proxy_s_own_they_are_not_looked_up_and_addresses_are_checked_all_the_same() -> None:
    dns = TableDns({})
    resolver = web_resolver(dns=dns)
    urls = ("https://localhost/", "https://localhost./", "https://10.0.0.7/", "https://" + "a" * 64 + ".example/")
    answers, proxy, _ = asyncio.run(
        tunnelled(*urls, known=("localhost:443", "localhost.:443"), resolver=resolver, names_are_its_own=True)
    )
    assert list(map(reason_of, answers)) == [None, None, Reason.ADDRESS, Reason.NAME_NOT_FOUND]
    assert proxy.targets() == ["localhost:443", "localhost.:443"]
    (answer,), server = asyncio.run(forwarded("http://in.example/", resolver=web_resolver(dns=dns), names_are_its_own=True))
    assert isinstance(answer, Response)
    assert server.targets() == [b"http://in.example/"]
    assert dns.asked == []


@pytest.mark.parametrize("names_are_its_own", [False, True])
def test_what_a_rule_names_is_reached_by_a_tunnel(names_are_its_own: bool) -> None:
    async def plain() -> tuple[Response | FetchFailure, list[str]]:
        async with raw_server([KEEP_OK]) as server, tunnel_proxy({"10.0.0.9:81": server.port}) as proxy:
            resolver = web_resolver("*.example=10.0.0.9:81")
            through = Proxy(at(proxy), PROOF, names_are_its_own)
            async with open_fetcher(resolver, proxy=through) as fetcher:
                answers = [await fetcher.fetch(f"http://a.example/{number}") for number in range(2)]
                assert server.targets() == [b"/0", b"/1"]
                assert not any(b"Proxy-" in head for head in server.heads)
                return answers[1], proxy.targets()

    answer, targets = asyncio.run(plain())
    assert isinstance(answer, Response)
    assert targets == ["10.0.0.9:81"]
    (answer,), *_ = asyncio.run(
        tunnelled("https://localhost/", known=("10.0.0.9:81",), resolver=web_resolver("localhost=10.0.0.9:81"))
    )
    assert isinstance(answer, Response)


@BOTH_LOOPS
@pytest.mark.parametrize("certificate", ["localhost", "other"])
def test_a_proxy_may_itself_be_asked_over_tls_and_is_verified(loop_factory: LoopFactory, certificate: str) -> None:
    # The proxy is `localhost` as it is looked up; so is the host, of which a rule says where it is.
    resolver = web_resolver(f"localhost={PUBLIC}", dns=TableDns({"localhost": ("127.0.0.1",)}))
    with asyncio.Runner(loop_factory=loop_factory) as runner:
        (answer,), proxy, _ = runner.run(tunnelled("https://localhost/", resolver=resolver, proxy_tls=tls_server(certificate)))
    if certificate == "localhost":
        assert isinstance(answer, Response)
        assert proxy.targets() == [f"{PUBLIC}:443"]
    else:
        assert reason_of(answer) is Reason.PROXY
        assert isinstance(answer, FetchFailure)
        assert "certificate" in answer.message
        assert proxy.heads == []


def test_a_body_that_is_cut_in_a_tunnel_inside_of_tls_leaves_nothing_open() -> None:
    async def play() -> Response | FetchFailure:
        flood = Script((b"HTTP/1.1 200 OK\r\n\r\n", b"x" * 65536), End.FLOOD)
        async with (
            raw_server([flood], tls=tls_server("localhost")) as server,
            tunnel_proxy({f"{PUBLIC}:443": server.port}) as proxy,
            open_fetcher(
                web_resolver(), tls=tls_client("localhost"), proxy=Proxy(at(proxy)), max_body_bytes=1 << 18
            ) as fetcher,
        ):
            return await fetcher.fetch("https://localhost/")

    answer = asyncio.run(play())
    assert isinstance(answer, Response)
    assert (len(answer.body), answer.truncated) == (1 << 18, True)


def answered(status: bytes) -> Script:
    return Script((b"HTTP/1.1 " + status + b"\r\nContent-Length: 5\r\n\r\nproxy",), End.KEEP)


@pytest.mark.parametrize(
    ("script", "reason", "said"),
    [
        (answered(b"407 Proxy Authentication Required"), Reason.PROXY, "answers 407 .*proxy_auth"),
        (answered(b"403 Forbidden"), Reason.PROXY, r"answers 403 Forbidden to CONNECT 93\.184\.216\.34:443"),
        (answered(b"302 Found"), Reason.PROXY, "answers 302"),
        (answered(b"599 Odd"), Reason.PROXY, "answers 599 to"),
        (answered(b"502 Bad Gateway"), Reason.CONNECT, "the proxy answers 502 Bad Gateway to CONNECT"),
        (answered(b"503 Service Unavailable"), Reason.CONNECT, "the proxy answers 503"),
        (answered(b"504 Gateway Timeout"), Reason.CONNECT, "the proxy answers 504"),
        (Script((b"SSH-2.0-x\r\n",)), Reason.PROXY, "no HTTP/1 status line"),
        (Script(()), Reason.PROXY, "closed"),
        (Script((), End.RESET), Reason.PROXY, "the proxy: "),
        (Script((b"HTTP/1.1 200 OK\r\n\r\nbanner",), End.STALL), Reason.PROXY, "bytes before"),
        (Script((), End.STALL), Reason.TIMEOUT, "no complete answer"),
    ],
    ids=lambda value: None if isinstance(value, Script) else str(value),
)
def test_a_tunnel_that_is_not_made_is_the_proxy_s_failure_or_tells_of_the_host(
    script: Script, reason: Reason, said: str
) -> None:
    async def play() -> Response | FetchFailure:
        async with (
            raw_server([script]) as server,
            open_fetcher(web_resolver(), proxy=Proxy(at(server)), timeout_s=0.3) as fetcher,
        ):
            return await fetcher.fetch("https://public.example/")

    answer = asyncio.run(play())
    assert isinstance(answer, FetchFailure)
    assert answer.reason is reason
    assert re.search(said, answer.message)


@pytest.mark.parametrize("end", [End.CLOSE, End.RESET])
@BOTH_LOOPS
def test_the_end_of_a_tunnel_during_the_handshake_is_a_failure(end: End, loop_factory: LoopFactory) -> None:
    async def play() -> Response | FetchFailure:
        async with (
            raw_server([Script((), end, greets=True)]) as server,
            tunnel_proxy({f"{PUBLIC}:443": server.port}) as proxy,
            open_fetcher(web_resolver(), proxy=Proxy(at(proxy)), timeout_s=5) as fetcher,
        ):
            return await fetcher.fetch("https://public.example/")

    with asyncio.Runner(loop_factory=loop_factory) as runner:
        assert reason_of(runner.run(play())) in (Reason.CONNECT, Reason.TLS)


def test_a_407_to_a_forwarded_request_is_the_proxy_s_and_one_from_a_tunnel_the_site_s() -> None:
    refusal = answered(b"407 Proxy Authentication Required")
    (answer,), _ = asyncio.run(forwarded("http://public.example/", scripts=(refusal,)))
    assert isinstance(answer, FetchFailure)
    assert answer.reason is Reason.PROXY
    assert re.search("answers 407 .*http://public.example:80: .*proxy_auth", answer.message)

    async def through_a_tunnel() -> Response | FetchFailure:
        async with (
            raw_server([refusal]) as server,
            tunnel_proxy({"10.0.0.9:80": server.port}) as proxy,
            open_fetcher(web_resolver("a.example=10.0.0.9"), proxy=Proxy(at(proxy))) as fetcher,
        ):
            return await fetcher.fetch("http://a.example/")

    site = asyncio.run(through_a_tunnel())
    assert isinstance(site, Response)
    assert (site.status, site.body) == (407, b"proxy")


@pytest.mark.parametrize("url", ["http://public.example/", "https://public.example/"])
@pytest.mark.parametrize("host", ["127.0.0.1", "proxy.example", "nowhere.example"])
def test_a_proxy_that_cannot_be_reached_is_named(url: str, host: str) -> None:
    async def play() -> Response | FetchFailure:
        with socket.socket() as closed:
            closed.bind(("127.0.0.1", 0))
            proxy = Proxy(Origin("http", host, closed.getsockname()[1]))
            async with open_fetcher(web_resolver(), proxy=proxy) as fetcher:
                return await fetcher.fetch(url)

    answer = asyncio.run(play())
    assert isinstance(answer, FetchFailure)
    assert answer.reason is Reason.PROXY
    assert answer.message.startswith(f"the proxy {host}:")


def test_the_proxies_of_the_environment_are_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    async def play() -> tuple[Response | FetchFailure, int]:
        async with raw_server([KEEP_OK]) as server, raw_server([KEEP_OK]) as ambient:
            for name in ("http_proxy", "https_proxy", "all_proxy"):
                for spelling in (name, name.upper()):
                    monkeypatch.setenv(spelling, ambient.url())
            rules = parse_resolves([f"a.example=127.0.0.1:{server.port}"])
            async with open_fetcher(GuardedResolver(rules)) as fetcher:
                return await fetcher.fetch("http://a.example/"), ambient.connections

    answer, connections = asyncio.run(play())
    assert isinstance(answer, Response)
    assert connections == 0


def test_the_secret_is_in_no_text_of_a_proxy() -> None:
    assert "Basic" not in repr(Proxy(Origin("http", "proxy.example", 3128), PROOF))
