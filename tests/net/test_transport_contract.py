"""What every transport of a crawl promises at httpx's seam: one suite, played on ours and on one that is not."""

import asyncio
import gzip
from typing import Any

import httpx
import pytest

from crawlkit.model import FetchFailure, Reason, Response
from tests.net.raw_server import End, Script
from tests.net.test_http_cases import raw_of
from tests.net.transports import AIOHTTP, HTTP2, HTTP2_REFUSED, OURS, OURS_OVER_TLS, Answer, Ends, Kind, Server
from tests.shared_cases import suite

ALL = (OURS, OURS_OVER_TLS, HTTP2, HTTP2_REFUSED, AIOHTTP)
EVERY_KIND = pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.name)
MIB = 1 << 20
OK = Answer(body=b"ok")


def outcomes(
    kind: Kind, *answers: Answer, targets: tuple[str, ...] = ("/",), timeout_s: float = 10
) -> tuple[list[Response | FetchFailure], Server]:
    async def play() -> tuple[list[Response | FetchFailure], Server]:
        async with kind.serving(answers) as server, kind.fetcher_to(server, timeout_s=timeout_s) as fetcher:
            return [await fetcher.fetch(kind.url(server, target)) for target in targets], server

    return asyncio.run(play())


def shown(answers: list[Response | FetchFailure]) -> list[object]:
    return [(a.status, a.body, a.truncated) if isinstance(a, Response) else a.reason for a in answers]


@EVERY_KIND
@pytest.mark.parametrize("status", [200, 204, 304, 404, 503, 599])
def test_an_answer_has_its_status_and_its_body(kind: Kind, status: int) -> None:
    body = b"" if status in (204, 304) else b"<p>body"
    answers, _ = outcomes(kind, Answer(status, body=body))
    assert shown(answers) == [(status, body, False)]


@EVERY_KIND
def test_headers_are_as_received_repeated_ones_in_their_order(kind: Kind) -> None:
    sent = ((b"x-a", b"1"), (b"set-cookie", b"a=1"), (b"x-latin", b"\xe9"), (b"set-cookie", b"b=2"), (b"x-a", b"2"))
    (answer,), _ = outcomes(kind, Answer(headers=sent, body=b"ok"))
    assert isinstance(answer, Response)
    assert tuple(header for header in answer.headers if header[0] != b"content-length") == sent


@pytest.mark.parametrize("kind", [kind for kind in ALL if kind is not AIOHTTP], ids=lambda kind: kind.name)  # it re-quotes
def test_the_target_is_the_urls_own_bytes(kind: Kind) -> None:
    targets = ("/", "/%7Euser/~user", "/a%2fb%2Fb", "/a|b[1]?q=|'%22", "//double//?", "/%zz", "/a;b=c?a?b=/c/../d")
    _, server = outcomes(kind, OK, targets=targets)
    assert server.targets() == [target.encode() for target in targets]


@EVERY_KIND
def test_no_content_coding_is_undone_by_a_transport(kind: Kind) -> None:
    packed = gzip.compress(b"page " * 1000)

    async def play() -> tuple[bytes, bytes]:
        async with kind.serving([Answer(headers=((b"content-encoding", b"gzip"),), body=packed)]) as server:
            async with kind.transport_to(server) as transport:
                request = httpx.Request("GET", kind.url(server))
                response = await transport.handle_async_request(request)
                assert isinstance(response.stream, httpx.AsyncByteStream)
                raw = b"".join([piece async for piece in response.stream])
                await response.stream.aclose()
            async with kind.fetcher_to(server) as fetcher:
                answer = await fetcher.fetch(kind.url(server))
                assert isinstance(answer, Response)
                return raw, answer.body

    assert asyncio.run(play()) == (packed, b"page " * 1000)


@EVERY_KIND
def test_a_redirect_is_not_followed_and_a_cookie_not_sent_back(kind: Kind) -> None:
    away = Answer(302, ((b"location", b"/away"), (b"set-cookie", b"id=7; Path=/")))
    answers, server = outcomes(kind, away, OK, targets=("/", "/b"))
    assert shown(answers) == [(302, b"", False), (200, b"ok", False)]
    assert server.targets() == [b"/", b"/b"]
    heads = [repr(head).lower() for head in (server.heads if not hasattr(server, "requests") else server.requests)]
    assert not any("cookie" in head for head in heads)


@EVERY_KIND
def test_a_connection_is_kept_for_the_next_request(kind: Kind) -> None:
    _, server = outcomes(kind, OK, targets=("/a", "/b", "/c"))
    assert server.connections == 1


@EVERY_KIND
def test_a_body_is_whole_up_to_the_cap_and_cut_there_and_that_stalls_nothing(kind: Kind) -> None:
    fits, more = Answer(body=bytes(MIB)), Answer(body=bytes(3 * MIB))
    answers, _ = outcomes(kind, fits, more, targets=("/",) * 4)
    assert [(len(a.body), a.truncated) for a in answers if isinstance(a, Response)] == [(MIB, False), *[(MIB, True)] * 3]


@EVERY_KIND
def test_a_body_that_breaks_off_is_never_whole(kind: Kind) -> None:
    (answer,), _ = outcomes(kind, Answer(body=b"half", ends=Ends.CUT))
    assert isinstance(answer, Response)
    assert answer.truncated
    assert b"half".startswith(answer.body)


@EVERY_KIND
def test_no_answer_is_a_failure_and_none_in_time_a_timeout(kind: Kind) -> None:
    answers, _ = outcomes(kind, Answer(ends=Ends.GONE))
    assert isinstance(answers[0], FetchFailure)
    answers, _ = outcomes(kind, Answer(ends=Ends.SILENT), timeout_s=0.1)
    assert shown(answers) == [Reason.TIMEOUT]


@EVERY_KIND
def test_a_request_that_is_given_up_leaves_the_transport_fit_for_others(kind: Kind) -> None:
    answers, _ = outcomes(kind, Answer(ends=Ends.SILENT), OK, targets=("/", "/"), timeout_s=0.3)
    assert shown(answers) == [Reason.TIMEOUT, (200, b"ok", False)]


@EVERY_KIND
def test_many_requests_at_once_have_each_their_own_answer(kind: Kind) -> None:
    async def play() -> list[Response | FetchFailure]:
        async with kind.serving([OK]) as server, kind.fetcher_to(server) as fetcher:
            return await asyncio.gather(*(fetcher.fetch(kind.url(server, f"/{number}")) for number in range(12)))

    assert shown(asyncio.run(play())) == [(200, b"ok", False)] * 12


@EVERY_KIND
def test_a_connection_that_ended_meanwhile_costs_no_failure(kind: Kind) -> None:
    async def play() -> list[Response | FetchFailure]:
        async with kind.serving([OK]) as server, kind.fetcher_to(server) as fetcher:
            answers = [await fetcher.fetch(kind.url(server))]
            server.writers[0].transport.abort()
            await server.writers[0].wait_closed()
            return [*answers, await fetcher.fetch(kind.url(server))]

    assert shown(asyncio.run(play())) == [(200, b"ok", False)] * 2


@EVERY_KIND
def test_the_proxies_of_the_environment_are_ignored(kind: Kind, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
        monkeypatch.setenv(name.upper(), "http://127.0.0.1:9")
    answers, _ = outcomes(kind, OK)
    assert shown(answers) == [(200, b"ok", False)]


@pytest.mark.parametrize("case", suite("http_responses"))  # for ours they are in test_http_cases
def test_every_http_1_answer_ends_in_an_outcome_and_a_broken_one_is_never_whole(case: dict[str, Any]) -> None:
    kind = HTTP2_REFUSED

    async def play() -> Response | FetchFailure:
        script = Script((raw_of(case),), End.CLOSE)
        async with kind.serving([script]) as server, kind.fetcher_to(server, timeout_s=5) as fetcher:
            return await fetcher.fetch(kind.url(server))

    answer = asyncio.run(play())
    expected = case["expected"]["h11"]
    if expected["end"] != "complete":
        assert isinstance(answer, FetchFailure) or answer.truncated
    elif isinstance(answer, Response) and not answer.truncated:
        assert answer.status == expected.get("status", 200)
        assert len(answer.body) == expected.get("body_len", len(answer.body))
