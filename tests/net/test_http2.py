"""HTTP/2: the same promises as over HTTP/1.1, on the wire of a real server."""

import asyncio
import random
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pytest

from crawlkit.errors import TooManyOpenFiles
from crawlkit.model import FetchFailure, Reason, Response
from crawlkit.net.fetch import Fetcher
from crawlkit.net.http2 import Http2Transport
from crawlkit.net.resolver import GuardedResolver, parse_resolves
from crawlkit.net.transport import open_transport, unverified_tls
from tests.net.certificates import tls_client, tls_server
from tests.net.client import BOTH_LOOPS, LONG_S, LoopFactory
from tests.net.h2_server import H2Answer, H2End, H2Server, h2_server
from tests.net.raw_server import End, Script, raw_server
from tests.net.table_dns import TableDns
from tests.net.test_pool import no_files_left

MIB = 1 << 20
OK = H2Answer(body=b"ok")
URL = "https://localhost/"


@asynccontextmanager
async def fetcher_over_h2(
    resolver: GuardedResolver, *, insecure: bool = False, timeout_s: float = LONG_S, max_body_bytes: int = MIB
) -> AsyncIterator[Fetcher]:
    tls = unverified_tls() if insecure else tls_client("localhost")
    plain = open_transport(resolver, connections=4, tls=tls)
    transport = Http2Transport(plain, resolver, tls, connections=4)
    try:
        yield Fetcher(transport, timeout_s=timeout_s, max_body_bytes=max_body_bytes, user_agent="testkit/1.0")
    finally:
        await transport.aclose()


def to(port: int) -> GuardedResolver:
    return GuardedResolver(parse_resolves([f"*=127.0.0.1:{port}"]))


async def fetch_h2(
    answers: Sequence[H2Answer], *urls: str, certificate: str = "localhost", insecure: bool = False, timeout_s: float = LONG_S
) -> tuple[list[Response | FetchFailure], H2Server]:
    async with (
        h2_server(answers, certificate=certificate) as server,
        fetcher_over_h2(to(server.port), insecure=insecure, timeout_s=timeout_s) as fetcher,
    ):
        return [await fetcher.fetch(url) for url in urls], server


def shown(answers: Sequence[Response | FetchFailure]) -> list[object]:
    return [(a.status, a.body, a.truncated) if isinstance(a, Response) else a.reason for a in answers]


def reason_of(answer: Response | FetchFailure) -> Reason | None:
    return answer.reason if isinstance(answer, FetchFailure) else None


@BOTH_LOOPS
def test_pages_come_over_one_connection_asked_for_by_their_own_targets(loop_factory: LoopFactory) -> None:
    targets = ["/", "/%7Euser/~user", "/a|b?q=[c]'d%22", "//double//", "/?"]
    with asyncio.Runner(loop_factory=loop_factory) as runner:
        answers, server = runner.run(fetch_h2([OK], *(URL[:-1] + target for target in targets)))
    assert shown(answers) == [(200, b"ok", False)] * 5
    assert server.targets() == [target.encode() for target in targets]
    assert server.connections == 1
    request = server.requests[0]
    assert request[b":authority"] == b"localhost"
    assert request[b"user-agent"] == b"testkit/1.0"
    assert b"host" not in request
    assert b"cookie" not in request


@BOTH_LOOPS
def test_a_large_body_arrives_whole_and_one_above_the_cap_is_cut(loop_factory: LoopFactory) -> None:
    large = random.Random(1).randbytes(MIB - 1)
    with asyncio.Runner(loop_factory=loop_factory) as runner:
        answers, _ = runner.run(fetch_h2([H2Answer(body=large), H2Answer(body=large * 2)], URL, URL))
    assert shown(answers) == [(200, large, False), (200, (large * 2)[:MIB], True)]


def test_a_body_cut_at_the_cap_does_not_stall_the_pages_after_it() -> None:
    flood = H2Answer(body=bytes(40 * MIB))
    answers, server = asyncio.run(fetch_h2([flood, OK, flood, OK], *[URL] * 4, timeout_s=10))
    assert [a.truncated for a in answers if isinstance(a, Response)] == [True, False, True, False]
    assert server.connections == 3


def test_a_request_given_up_at_its_deadline_does_not_stall_the_pages_after_it() -> None:
    async def play() -> list[object]:
        silent = H2Answer(status=None, end=H2End.STALL)
        async with h2_server([silent, OK]) as server, fetcher_over_h2(to(server.port), timeout_s=0.3) as fetcher:
            return [*shown([await fetcher.fetch(URL), await fetcher.fetch(URL)]), server.connections]

    assert asyncio.run(play()) == [Reason.TIMEOUT, (200, b"ok", False), 2]


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        (H2Answer(b"404", body=b"no"), (404, b"no", False)),
        (H2Answer(b"301", ((b"location", b"/b"),)), (301, b"", False)),
        (H2Answer(body=b"cut", end=H2End.RESET), (200, b"cut", True)),
        (H2Answer(status=None, end=H2End.RESET), Reason.PROTOCOL),
        (H2Answer(status=None, end=H2End.CLOSE), Reason.RESET),
        (H2Answer(status=None, end=H2End.STALL), Reason.TIMEOUT),
        (H2Answer(end=H2End.STALL), Reason.TIMEOUT),
        (H2Answer(b"abc"), Reason.PROTOCOL),
        (H2Answer(b""), Reason.PROTOCOL),
        (H2Answer(headers=((b"x", b"y" * 1000),) * 100), Reason.PROTOCOL),
        (H2Answer(body=b"\0\0\4\1\4\0\0\0\1\xff\xff\xff\xff", end=H2End.RAW), Reason.PROTOCOL),  # no HPACK
        (H2Answer(body=b"\0\0\1\0\1\0\0\0\1x", end=H2End.RAW), Reason.PROTOCOL),  # a body before its head
        (H2Answer(body=b"HTTP/1.1 200 OK\r\n\r\n", end=H2End.RAW), Reason.TIMEOUT),  # the length of a large frame
        (H2Answer(body=b"\0\0\0\4\0\0\0\0\0" * 1000, end=H2End.RAW), Reason.TIMEOUT),  # settings for ever
    ],
    ids=map(str, range(14)),
)
def test_every_answer_ends_in_an_outcome(answer: H2Answer, outcome: object) -> None:
    answers, _ = asyncio.run(fetch_h2([answer], URL, timeout_s=0.5))
    assert shown(answers) == [outcome]


@pytest.mark.parametrize(
    "answer",
    [
        H2Answer(headers=((b"content-length", b"9"),), body=b"cut"),
        H2Answer(headers=((b"content-length", b"1"),), body=b"more"),
        H2Answer(body=b"cut", end=H2End.CLOSE),
    ],
    ids=["short", "long", "closed"],
)
def test_a_body_that_is_not_what_it_was_said_to_be_is_never_whole(answer: H2Answer) -> None:
    (one,), _ = asyncio.run(fetch_h2([answer], URL))
    # The engine tells of the head only if it came in an earlier packet than what is wrong.
    assert (isinstance(one, Response) and one.truncated) or reason_of(one) in (Reason.PROTOCOL, Reason.RESET)


@pytest.mark.parametrize("seed", range(16))
def test_broken_frames_are_never_an_exception(seed: int) -> None:
    chance = random.Random(seed)
    frames = b"".join(
        bytes([0, 0, length, chance.randrange(11), chance.randrange(64), 0, 0, 0, chance.randrange(3)])
        + chance.randbytes(length)
        for length in (chance.randrange(30) for _ in range(8))
    )
    head = b"\0\0\1\1\4\0\0\0\1\x88" if seed % 2 else b""  # status 200, and then a broken body
    answer = H2Answer(body=head + frames, end=H2End.RAW)
    answers, _ = asyncio.run(fetch_h2([answer], URL, URL, timeout_s=0.1))
    assert all(isinstance(one, FetchFailure) or one.status == 200 for one in answers)


@pytest.mark.parametrize("end", [H2End.GOAWAY, H2End.WHOLE])
def test_a_connection_that_the_server_closed_meanwhile_costs_no_failure(end: H2End) -> None:
    async def play() -> tuple[list[object], int]:
        async with h2_server([H2Answer(body=b"ok", end=end)]) as server, fetcher_over_h2(to(server.port)) as fetcher:
            answers = [await fetcher.fetch(URL)]
            server.writers[0].transport.abort()
            answers.append(await fetcher.fetch(URL))
            return shown(answers), server.connections

    assert asyncio.run(play()) == ([(200, b"ok", False)] * 2, 2)


@pytest.mark.parametrize("certificate", ["other", "expired"])
def test_a_certificate_is_verified_for_the_host_unless_it_is_asked_otherwise(certificate: str) -> None:
    answers, server = asyncio.run(fetch_h2([OK], URL, certificate=certificate))
    assert shown(answers) == [Reason.TLS]
    assert isinstance(answers[0], FetchFailure)
    assert answers[0].message.startswith("certificate: ")
    assert server.requests == []
    answers, server = asyncio.run(fetch_h2([OK], URL, certificate=certificate, insecure=True))
    assert shown(answers) == [(200, b"ok", False)]


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("https://inside.example:{port}/", Reason.ADDRESS),
        ("https://127.0.0.1:{port}/", Reason.ADDRESS),
        ("https://[::ffff:7f00:1]:{port}/", Reason.ADDRESS),
        ("https://nowhere.example:{port}/", Reason.NAME_NOT_FOUND),
        ("https://" + "a" * 64 + ".example:{port}/", Reason.NAME_NOT_FOUND),
        ("http://127.0.0.1:{port}/", Reason.ADDRESS),
    ],
)
def test_the_guard_refuses_before_any_connection(url: str, reason: Reason) -> None:
    async def play() -> tuple[list[object], int]:
        resolver = GuardedResolver(dns=TableDns({"inside.example": ("127.0.0.1",)}))
        async with h2_server([OK]) as server, fetcher_over_h2(resolver) as fetcher:
            return shown([await fetcher.fetch(url.format(port=server.port))]), server.connections

    assert asyncio.run(play()) == ([reason], 0)


def test_the_address_that_was_checked_is_the_one_connected_to_and_the_next_where_it_refuses() -> None:
    async def play() -> list[object]:
        async with h2_server([OK]) as server:
            addresses = ("127.0.0.9", "127.0.0.1")
            resolver = GuardedResolver((), {f"localhost:{server.port}": addresses}, dns=TableDns({"localhost": addresses}))
            async with fetcher_over_h2(resolver) as fetcher:
                return shown([await fetcher.fetch(f"https://localhost:{server.port}/")])

    assert asyncio.run(play()) == [(200, b"ok", False)]


def test_a_server_that_does_not_take_it_is_asked_over_http_1_1_and_plain_http_too() -> None:
    async def play() -> list[object]:
        keep = Script((b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",), End.KEEP)
        found: list[object] = []
        for tls, scheme in ((tls_server("localhost"), "https"), (None, "http")):
            async with raw_server([keep], tls=tls) as server, fetcher_over_h2(to(server.port)) as fetcher:
                found += shown([await fetcher.fetch(f"{scheme}://localhost/{number}") for number in range(2)])
                assert server.targets() == [b"/0", b"/1"]
                assert server.connections == 1
        return found

    assert asyncio.run(play()) == [(200, b"ok", False)] * 4


def test_requests_to_one_host_share_a_connection_at_the_same_time() -> None:
    async def play() -> tuple[list[object], int]:
        async with h2_server([OK]) as server, fetcher_over_h2(to(server.port)) as fetcher:
            answers = await asyncio.gather(*(fetcher.fetch(f"{URL}{number}") for number in range(8)))
            return shown(answers), server.connections

    assert asyncio.run(play()) == ([(200, b"ok", False)] * 8, 1)


def test_where_files_run_out_that_is_said_and_no_page_has_failed() -> None:
    async def play() -> None:
        async with h2_server([OK]) as server, fetcher_over_h2(to(server.port)) as fetcher:
            with no_files_left():
                await fetcher.fetch(URL)

    with pytest.raises(TooManyOpenFiles, match=r"may have \d+ .* needs about \d+; .*ulimit -n \d+"):
        asyncio.run(play())
