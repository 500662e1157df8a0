"""The small server for who looks at a crawl: what is asked, and what clients do wrong."""

import asyncio
import contextlib
import gc
import socket
from collections.abc import Awaitable, Callable, Coroutine
from http import HTTPStatus
from typing import Any

import pytest

from crawlkit.net.http_server import MOST_CLIENTS, MOST_HEAD_BYTES, REQUEST_WITHIN_S, Answer, HttpServer, listen_at

HELLO = b"hello\n"
LARGE = b"x" * (4 * 2**20)


def answer(path: str) -> Answer:
    if path == "/large":
        return Answer(LARGE, "application/octet-stream")
    return Answer(HELLO) if path == "/hello" else Answer(b"no\n", status=HTTPStatus.NOT_FOUND)


def serve(client: Callable[[int], Awaitable[None]], host: str = "127.0.0.1") -> None:
    """Run a client against a server on a port of its own, in which nothing must fail unseen."""
    unseen: list[dict[str, Any]] = []

    async def main() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: unseen.append(context))
        with listen_at(host, 0) as listening:
            async with HttpServer(answer).accepting(listening):
                await client(listening.getsockname()[1])
                gc.collect()  # a task that failed tells so when it is let go

    asyncio.run(asyncio.wait_for(main(), 30))
    gc.collect()
    assert unseen == []


async def said(port: int, request: bytes, host: str = "127.0.0.1") -> bytes:
    """Send a request as it is, and return all that is answered until the connection closes."""
    reader, writer = await asyncio.open_connection(host, port)
    try:
        writer.write(request)
        return await reader.read()
    except ConnectionError:
        return b""  # it is closed before all that was sent is read
    finally:
        writer.close()


@pytest.mark.parametrize(
    ("request_", "status", "body"),
    [
        (b"GET /hello HTTP/1.1\r\nHost: x\r\n\r\n", b"200 OK", HELLO),
        (b"GET /hello?a=b&c HTTP/1.1\r\nHost: x\r\nAccept: text/plain\r\n\r\n", b"200 OK", HELLO),
        (b"GET /hello HTTP/1.0\r\n\r\n", b"200 OK", HELLO),
        (b"GET /hello HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n", b"200 OK", HELLO),
        (b"HEAD /hello HTTP/1.1\r\nHost: x\r\n\r\n", b"200 OK", b""),
        (b"GET /other HTTP/1.1\r\nHost: x\r\n\r\n", b"404 Not Found", b"no\n"),
        (b"POST /hello HTTP/1.1\r\nContent-Length: 0\r\n\r\n", b"405 Method Not Allowed", b"only GET is answered\n"),
        (b"\x00\xff garbage\r\n\r\n", b"400 Bad Request", b"not an HTTP request\n"),
        (b"GET /large HTTP/1.1\r\nHost: x\r\n\r\n", b"200 OK", LARGE),
    ],
)
def test_what_is_asked_is_answered(request_: bytes, status: bytes, body: bytes) -> None:
    async def client(port: int) -> None:
        head, _, found = (await said(port, request_)).partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 " + status)
        assert found == body
        assert b"Connection: close" in head

    serve(client)


def test_the_head_of_a_head_is_that_of_a_get() -> None:
    async def client(port: int) -> None:
        get, head = [await said(port, b"%b /hello HTTP/1.1\r\n\r\n" % method) for method in (b"GET", b"HEAD")]
        assert get == head + HELLO
        assert b"Content-Length: 6\r\n" in head

    serve(client)


@pytest.mark.parametrize(
    "request_", [b"", b"GET /hel", b"GET /hello HTTP/1.1\r\nX: " + b"y" * (2 * MOST_HEAD_BYTES)], ids=["", "half", "long"]
)
def test_what_is_no_whole_request_ends_its_own_connection_only(request_: bytes) -> None:
    async def client(port: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(request_)
        if len(request_) < MOST_HEAD_BYTES:
            writer.write_eof()
        with contextlib.suppress(ConnectionError):  # it did not read all
            assert await reader.read() == b""
        writer.close()
        assert (await said(port, b"GET /hello HTTP/1.1\r\n\r\n")).endswith(HELLO)

    serve(client)


def test_clients_that_hang_are_bounded_and_hold_up_no_end() -> None:
    async def client(port: int) -> None:
        hanging = [await asyncio.open_connection("127.0.0.1", port) for _ in range(MOST_CLIENTS + 3)]
        reads: list[Coroutine[Any, Any, bytes]] = [reader.read() for reader, _ in hanging[MOST_CLIENTS:]]
        assert await asyncio.wait_for(asyncio.gather(*reads), REQUEST_WITHIN_S / 2) == [b""] * 3
        for _, writer in hanging:
            writer.close()

    serve(client)


def test_a_client_that_takes_nothing_holds_up_no_end() -> None:
    async def client(port: int) -> None:
        connection = socket.create_connection(("127.0.0.1", port))
        connection.sendall(b"GET /large HTTP/1.1\r\n\r\n")
        assert (await said(port, b"GET /hello HTTP/1.1\r\n\r\n")).endswith(HELLO)
        connections.append(connection)

    connections: list[socket.socket] = []
    serve(client)
    connections[0].close()


def test_an_address_that_is_taken_is_an_error() -> None:
    with listen_at("127.0.0.1", 0) as listening, pytest.raises(OSError, match="in use"):
        listen_at("127.0.0.1", listening.getsockname()[1])
