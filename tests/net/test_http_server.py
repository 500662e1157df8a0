"""The server beside a crawl: what readers do wrong is answered or ends their connection, and holds nothing up."""

import asyncio
import gc
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from http import HTTPStatus
from typing import Any

import pytest

from crawlkit.net.http_server import (
    MOST_CONNECTIONS,
    MOST_STREAMS,
    Asked,
    Reply,
    is_loopback,
    listen_at,
    not_allowed,
    serving_http,
    text_reply,
)

LARGE = b"x" * (4 * 2**20)

WRONG = {
    "garbage": (b"\x00\xff\x00\r\n\r\n", 400),
    "no HTTP": (b"hello\r\n\r\n", 400),
    "an end in the head": (b"GET / HTTP/1.1\r\nHost: a", 400),
    "a head too long": (b"GET / HTTP/1.1\r\nX: " + b"x" * 40_000 + b"\r\n\r\n", 431),
    "a URL too long": (b"GET /?" + b"x" * 40_000 + b" HTTP/1.1\r\n\r\n", 431),
    "a body": (b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello", 413),
    "a chunked body": (b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n", 413),
    "two lengths": (b"POST / HTTP/1.1\r\nContent-Length: 0\r\nContent-Length: 5\r\n\r\n", 400),
    "too many fields": (b"GET /?" + b"&".join(b"a=1" for _ in range(50)) + b" HTTP/1.1\r\nHost: a\r\n\r\n", 400),
    "a tunnel": (b"CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n", 400),
}


async def echo(asked: Asked) -> Reply:
    return text_reply(HTTPStatus.OK, f"{asked.method} {asked.path} {asked.query} {asked.headers.get('x-a')}")


async def stream(_: Asked) -> Reply:
    async def ticks() -> AsyncIterator[bytes]:
        yield b"first"
        await asyncio.Event().wait()

    return Reply(HTTPStatus.OK, "text/plain", ticks())


async def large(_: Asked) -> Reply:
    return Reply(HTTPStatus.OK, "application/octet-stream", LARGE)


def served(answer: Callable[[Asked], Awaitable[Reply]], use: Callable[[int], Awaitable[None]]) -> None:
    """Use a server on a port of its own, in which nothing must fail unseen."""
    unseen: list[dict[str, Any]] = []

    async def main() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: unseen.append(context))
        with listen_at("127.0.0.1", 0) as listening:
            async with serving_http(listening, answer, asyncio.Event()):
                await use(listening.getsockname()[1])
                gc.collect()  # a task that failed tells so when it is let go

    asyncio.run(asyncio.wait_for(main(), 30))
    gc.collect()
    assert unseen == []


async def answer_to(port: int, request: bytes) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(request)
        writer.write_eof()
        return await reader.read()
    except OSError:  # it has read enough, or takes nobody now
        return b"reset"
    finally:
        writer.close()


def test_a_request_is_read_and_answered() -> None:
    async def use(port: int) -> None:
        answer = await answer_to(port, b"GET /a/b?x=1&y=%20&x=2 HTTP/1.1\r\nHost: a\r\nX-A: seven\r\n\r\n")
        head, _, body = answer.partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200 OK\r\n")
        assert b"Connection: close" in head
        assert body == b"GET /a/b {'x': '2', 'y': ' '} seven\n"

    served(echo, use)


@pytest.mark.parametrize(
    "request_",
    [
        b"GET / HTTP/1.0\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: \r\n\r\n",
        b"GET / HTTP/1.1\r\nConnection: upgrade\r\nUpgrade: websocket\r\nHost: a\r\n\r\n",
    ],
    ids=["1.0", "h2c", "websocket"],
)
def test_what_asks_for_another_protocol_is_answered_in_ours(request_: bytes) -> None:
    async def use(port: int) -> None:
        head, _, body = (await answer_to(port, request_)).partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200 OK\r\n")
        assert body == b"GET / {} None\n"

    served(echo, use)


@pytest.mark.parametrize("answer", [echo, large, stream])
def test_the_head_of_a_head_is_that_of_a_get(answer: Callable[[Asked], Awaitable[Reply]]) -> None:
    async def use(port: int) -> None:
        head = await answer_to(port, b"HEAD /a HTTP/1.1\r\nHost: a\r\n\r\n")
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET /a HTTP/1.1\r\nHost: a\r\n\r\n")
        assert await reader.readuntil(b"\r\n\r\n") == head
        assert head.startswith(b"HTTP/1.1 200 OK\r\n")
        writer.close()

    served(answer, use)


def test_a_method_that_is_not_answered_is_told_which_are() -> None:
    async def refusing(_: Asked) -> Reply:
        return not_allowed("GET", "HEAD")

    async def use(port: int) -> None:
        head, _, body = (await answer_to(port, b"DELETE / HTTP/1.1\r\nHost: a\r\n\r\n")).partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 405 Method Not Allowed\r\n")
        assert b"\r\nAllow: GET, HEAD\r\n" in head
        assert body == b"Method Not Allowed\n"

    served(refusing, use)


def test_no_cache_keeps_an_answer_unless_it_says_so() -> None:
    async def kept(_: Asked) -> Reply:
        return Reply(HTTPStatus.OK, "text/plain", b"", {"Cache-Control": "max-age=9"})

    async def use(port: int) -> None:
        answer = await answer_to(port, b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        assert answer.count(b"Cache-Control: ") == answer.count(b"Cache-Control: max-age=9\r\n") == 1
        assert b"X-Content-Type-Options: nosniff\r\n" in answer

    served(kept, use)


def test_a_reader_that_takes_nothing_does_not_hold_up_the_end() -> None:
    async def use(port: int) -> None:
        reader = socket.create_connection(("127.0.0.1", port))
        reader.sendall(b"GET /large HTTP/1.1\r\n\r\n")
        assert (await answer_to(port, b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")).endswith(LARGE)
        readers.append(reader)

    readers: list[socket.socket] = []
    served(large, use)
    readers[0].close()


def test_an_address_that_is_taken_is_an_error() -> None:
    with listen_at("127.0.0.1", 0) as listening, pytest.raises(OSError, match="in use"):
        listen_at("127.0.0.1", listening.getsockname()[1])


@pytest.mark.parametrize(("request_", "status"), WRONG.values(), ids=list(WRONG))
def test_what_is_no_request_for_us_is_answered_by_its_status(request_: bytes, status: int) -> None:
    async def use(port: int) -> None:
        answer = await answer_to(port, request_)
        assert answer.startswith(f"HTTP/1.1 {status} ".encode()) or (answer == b"reset" and len(request_) > 16_384)
        assert b" 200 OK" in await answer_to(port, b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")

    served(echo, use)


def test_more_connections_than_are_served_at_once_are_closed_and_those_that_hang_do_not_hold_up_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("crawlkit.net.http_server.HEAD_WITHIN_S", 1e6)  # the end alone ends them
    hanging: list[socket.socket] = []

    async def use(port: int) -> None:
        for _ in range(MOST_CONNECTIONS):
            hanging.append(socket.create_connection(("127.0.0.1", port)))
            hanging[-1].sendall(b"GET / HT")
        while await answer_to(port, b"GET / HTTP/1.1\r\nHost: a\r\n\r\n") not in (b"", b"reset"):
            pass  # not all of them have been accepted
        hanging.pop().close()
        while b" 200 OK" not in await answer_to(port, b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"):
            pass  # the server has not seen the end of the other yet

    served(echo, use)
    for reader in hanging:
        with reader:
            assert reader.recv(1) == b""


def test_streams_leave_room_for_others() -> None:
    async def use(port: int) -> None:
        open_streams = [await asyncio.open_connection("127.0.0.1", port) for _ in range(MOST_STREAMS)]
        for reader, writer in open_streams:
            writer.write(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            await reader.readuntil(b"first")
        assert b" 503 " in await answer_to(port, b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        for _, writer in open_streams:
            writer.close()

    served(stream, use)


def test_addresses() -> None:
    assert [is_loopback(text) for text in ("127.0.0.1", "127.9.9.9", "::1", "0.0.0.0", "192.0.2.1", "::")] == [
        True, True, True, False, False, False,
    ]  # fmt: skip
