"""The fake web answers as a server would, and fails as httpx's transports do."""

import asyncio
import gzip
import itertools

import httpx
import pytest

from crawlkit.testing.clock import ManualClock
from crawlkit.testing.fakeweb import CHUNK_BYTES, FakeWeb
from crawlkit.testing.log import RequestLog
from crawlkit.testing.site import BOMB_BYTES, Fault, Reply, Site, in_turn, page, redirect, status

ORIGIN = "http://h1.test"


def fetch(web: FakeWeb, url: str = f"{ORIGIN}/") -> httpx.Response:
    """Return the answer, its body read."""

    async def run() -> httpx.Response:
        response = await web.handle_async_request(httpx.Request("GET", url))
        await response.aread()
        return response

    return asyncio.run(run())


def test_the_site_answers_with_its_status_headers_and_body() -> None:
    reply = page("Home", ["/a"])
    response = fetch(FakeWeb(Site({"h1.test/a?b=c": reply})), f"{ORIGIN}/a?b=c")
    assert (response.status_code, response.content) == (200, reply.body)
    assert response.headers["content-type"] == "text/html; charset=utf-8"
    assert response.headers["content-length"] == str(len(reply.body))


def test_a_client_of_httpx_can_use_it() -> None:
    async def run() -> str:
        web = FakeWeb(Site({"/old": redirect("/new"), "/new": page("New")}))
        async with httpx.AsyncClient(transport=web, follow_redirects=True) as client:
            return (await client.get(f"{ORIGIN}/old")).text

    assert "<title>New</title>" in asyncio.run(run())


def test_the_origin_tells_ports_and_schemes_apart() -> None:
    web = FakeWeb(Site({"h1.test:443/": status(201), "h1.test:8080/": status(202), "h1.test/": status(203)}))
    urls = ("https://h1.test/", "http://h1.test:8080/", "http://h1.test/")
    assert [fetch(web, url).status_code for url in urls] == [201, 202, 203]


def test_a_target_given_as_extension_goes_before_the_url() -> None:
    web = FakeWeb(Site({"/%7Ea": status(201)}))
    request = httpx.Request("GET", f"{ORIGIN}/~a", extensions={"target": b"/%7Ea"})
    assert asyncio.run(web.handle_async_request(request)).status_code == 201


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        (Fault.DROP, httpx.RemoteProtocolError),
        (Fault.RESET, httpx.ReadError),
        (Fault.GARBAGE, httpx.RemoteProtocolError),
    ],
)
def test_a_fault_before_the_head_raises_from_the_request(fault: Fault, error: type[Exception]) -> None:
    web = FakeWeb(Site({"/": Reply(body=b"abcd", fault=fault)}))
    with pytest.raises(error):
        asyncio.run(web.handle_async_request(httpx.Request("GET", f"{ORIGIN}/")))
    assert web.log[0].ended_s is not None


@pytest.mark.parametrize(
    ("fault", "error", "before"),
    [(Fault.CUT, httpx.RemoteProtocolError, b"ab"), (Fault.STALL, httpx.ReadTimeout, b"")],
)
def test_a_fault_in_the_body_raises_while_it_is_read(fault: Fault, error: type[Exception], before: bytes) -> None:
    web = FakeWeb(Site({"/": Reply(body=b"abcd", fault=fault)}))

    read = bytearray()

    async def run() -> None:
        response = await web.handle_async_request(httpx.Request("GET", f"{ORIGIN}/"))
        assert response.headers["content-length"] == "4"
        async for chunk in response.aiter_raw():
            read.extend(chunk)

    with pytest.raises(error):
        asyncio.run(run())
    assert read == before
    assert web.log[0].ended_s is not None


def test_a_route_can_refuse_the_connection() -> None:
    def refuse() -> Reply:
        raise httpx.ConnectError("refused")

    web = FakeWeb(Site({"/": refuse}))
    with pytest.raises(httpx.ConnectError):
        fetch(web)
    assert web.log[0].ended_s is not None


def test_delay_and_drip_wait_by_the_sleep_given() -> None:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    site = Site({"/": Reply(body=b"abc", delay_s=7.0, fault=Fault.DRIP, drip_s=2.0)})
    assert fetch(FakeWeb(site, sleep=sleep)).content == b"abc"
    assert slept == [7.0, 2.0, 2.0, 2.0]


def test_no_time_passes_unless_a_sleep_is_given() -> None:
    assert fetch(FakeWeb(Site({"/": Reply(body=b"x", delay_s=1e9, fault=Fault.DRIP, drip_s=1e9)}))).content == b"x"


def test_an_endless_body_goes_on_until_a_timeout_or_its_reader_ends_it() -> None:
    web = FakeWeb(Site({"/": Reply(body=b"ab", fault=Fault.ENDLESS)}))

    async def read_some() -> bytes:
        response = await web.handle_async_request(httpx.Request("GET", f"{ORIGIN}/"))
        read = b""
        async for chunk in response.aiter_raw():
            read += chunk
            if len(read) > 1000:
                break
        await response.aclose()
        return read

    async def read_all() -> None:
        response = await web.handle_async_request(httpx.Request("GET", f"{ORIGIN}/"))
        async with asyncio.timeout(0.01):
            async for _ in response.aiter_raw():
                pass

    assert asyncio.run(read_some()) == b"ab" * 501
    with pytest.raises(TimeoutError):
        asyncio.run(read_all())
    assert all(request.ended_s is not None for request in web.log)


def test_a_bomb_arrives_encoded() -> None:
    web = FakeWeb(Site({"/": Reply(fault=Fault.BOMB)}))

    async def run() -> tuple[str, bytes]:
        response = await web.handle_async_request(httpx.Request("GET", f"{ORIGIN}/"))
        return response.headers["content-encoding"], b"".join([chunk async for chunk in response.aiter_raw()])

    encoding, body = asyncio.run(run())
    assert encoding == "gzip"
    assert len(gzip.decompress(body)) == BOMB_BYTES


def test_long_bodies_come_in_chunks() -> None:
    web = FakeWeb(Site({"/": Reply(body=b"x" * (CHUNK_BYTES + 1))}))

    async def run() -> list[int]:
        response = await web.handle_async_request(httpx.Request("GET", f"{ORIGIN}/"))
        return [len(chunk) async for chunk in response.stream]  # type: ignore[union-attr]

    assert asyncio.run(run()) == [CHUNK_BYTES, 1]


def test_the_log_holds_what_was_asked_on_the_clock_given() -> None:
    clock = ManualClock(100.0)

    async def sleep(seconds: float) -> None:
        clock.advance(seconds)

    web = FakeWeb(Site({"/": Reply(delay_s=3.0, body=b"x")}), sleep=sleep, log=RequestLog(clock.now))
    fetch(web, "http://h1.test:8080/")
    (request,) = web.log
    assert (request.at_s, request.ended_s, request.host, request.target) == (100.0, 103.0, "h1.test:8080", "/")
    assert ("host", "h1.test:8080") in request.headers


def test_most_in_flight_counts_until_the_body_is_read_or_closed() -> None:
    web = FakeWeb(Site(otherwise=lambda host, target: page(target)))

    async def run() -> None:
        def request() -> httpx.Request:
            return httpx.Request("GET", f"{ORIGIN}/")

        unread = [await web.handle_async_request(request()) for _ in range(3)]
        await unread[0].aread()
        await unread[1].aclose()
        await unread[1].aclose()
        await (await web.handle_async_request(request())).aread()
        assert [r.ended_s is None for r in web.log] == [False, False, True, False]

    asyncio.run(run())
    assert web.log.in_flight_max == {"h1.test": 3}


def test_the_site_may_change_between_requests() -> None:
    web = FakeWeb(Site({"/": in_turn(status(503), status(200))}))
    codes = [fetch(web).status_code for _ in range(2)]
    web.site = Site({"/": status(410)})
    assert [*codes, fetch(web).status_code] == [503, 200, 410]


def test_a_million_pages_need_no_table() -> None:
    web = FakeWeb(Site(otherwise=lambda host, target: page(target, [f"/{int(target[1:]) + 1}"])))
    targets = [f"/{n}" for n in itertools.islice(itertools.count(1, 250_000), 4)]
    assert [f"<title>{t}</title>" in fetch(web, ORIGIN + t).text for t in targets] == [True] * 4
