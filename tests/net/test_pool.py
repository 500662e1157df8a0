"""Which connections are kept, for how long, and what happens where there can be no more."""

import asyncio
import os
import resource
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, TypeVar

import httpx
import pytest

from crawlkit.errors import ExitStatus, TooManyOpenFiles
from crawlkit.model import FetchFailure, Reason, Response
from crawlkit.net.connect import Direct
from crawlkit.net.fetch import Fetcher
from crawlkit.net.pool import Pool
from crawlkit.net.request import Origin
from crawlkit.net.resolver import GuardedResolver, parse_resolves
from crawlkit.net.transport import WireTransport, open_transport
from tests.net.client import LONG_S, NO_ROOTS, open_fetcher, resolver_for
from tests.net.raw_server import End, RawServer, Script, raw_server

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
KEEP_OK = Script((OK,), End.KEEP)
BREAKS = [Script((), End.CLOSE), Script((), End.RESET)]
Result = TypeVar("Result")


class JumpingLoop(asyncio.SelectorEventLoop):
    """A loop whose time can be set forward."""

    ahead_s = 0.0

    def time(self) -> float:
        return super().time() + self.ahead_s


def run_jumping(play: Callable[[JumpingLoop], Coroutine[Any, Any, Result]]) -> Result:
    loop = JumpingLoop()
    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        return runner.run(play(loop))


async def some_turns() -> None:
    for _ in range(20):  # loopback delivers at once: what is sent is read within a turn or two of the loop
        await asyncio.sleep(0)


@asynccontextmanager
async def many_hosts(*scripts: Script) -> AsyncIterator[tuple[RawServer, GuardedResolver]]:
    """A server that is every host."""
    async with raw_server(scripts) as server:
        yield server, GuardedResolver(parse_resolves([f"*=127.0.0.1:{server.port}"]))


class TableDns:
    def __init__(self, *addresses: str) -> None:
        self.addresses = addresses

    async def look_up(self, host: str) -> tuple[str, ...]:
        return self.addresses

    def close(self) -> None:
        pass


async def _fetch_in_order(*scripts: Script, times: int) -> tuple[list[Response | FetchFailure], RawServer]:
    async with raw_server(scripts) as server, open_fetcher(await resolver_for(server)) as fetcher:
        return [await fetcher.fetch(server.url(f"/{n}")) for n in range(times)], server


@pytest.mark.parametrize("breaks", BREAKS)
def test_a_request_that_a_kept_connection_did_not_survive_is_sent_again_on_a_new_one(breaks: Script) -> None:
    answers, server = asyncio.run(_fetch_in_order(KEEP_OK, breaks, KEEP_OK, times=2))
    assert all(isinstance(answer, Response) for answer in answers)
    assert (server.targets(), server.connections) == ([b"/0", b"/1", b"/1"], 2)


@pytest.mark.parametrize("breaks", BREAKS)
def test_it_is_sent_again_once(breaks: Script) -> None:
    (_, answer), server = asyncio.run(_fetch_in_order(KEEP_OK, breaks, breaks, KEEP_OK, times=2))
    assert isinstance(answer, FetchFailure)
    assert answer.reason is Reason.RESET
    assert server.targets() == [b"/0", b"/1", b"/1"]


@pytest.mark.parametrize("end", [End.CLOSE, End.RESET])
def test_it_is_not_sent_again_if_anything_of_an_answer_came(end: End) -> None:
    (_, answer), server = asyncio.run(_fetch_in_order(KEEP_OK, Script((b"H",), end), KEEP_OK, times=2))
    if isinstance(answer, FetchFailure):  # a reset may overtake the byte
        assert answer.reason is Reason.RESET
        assert server.targets() == [b"/0", b"/1"]
    else:
        assert end is End.RESET


async def _kept_after(script: Script) -> bool:
    async with raw_server([script]) as server, open_fetcher(await resolver_for(server)) as fetcher:
        for _ in range(2):
            await fetcher.fetch(server.url())
        return server.connections == 1


@pytest.mark.parametrize(
    ("answer", "kept"),
    [
        (OK, True),
        (b"HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\nno", True),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", True),
        (b"HTTP/1.1 304 Not Modified\r\n\r\n", True),
        (b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok", False),
        (b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok", False),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n2\r\nok\r\n0\r\n\r\n", False),
        (OK + b"surplus", False),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nokno crlf", False),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9000000\r\n\r\n" + b"x" * (2 << 20), False),
    ],
)
def test_a_connection_is_kept_only_if_it_is_clear_where_the_next_answer_begins(answer: bytes, kept: bool) -> None:
    assert asyncio.run(_kept_after(Script((answer,), End.KEEP))) is kept


def test_more_idle_connections_than_the_bound_are_not_kept_the_longest_idle_going_first() -> None:
    async def play() -> tuple[list[bool], int, int]:
        async with many_hosts(KEEP_OK) as (server, resolver):
            transport = WireTransport(Pool(Direct(resolver, lambda: NO_ROOTS), most_busy=1, most_idle=3))
            fetcher = Fetcher(transport, timeout_s=LONG_S, max_body_bytes=100, user_agent="testkit/1.0")
            for n in range(5):
                await fetcher.fetch(f"http://h{n}.example/")
            await some_turns()
            closed = [writer.transport.is_closing() for writer in server.writers]
            await fetcher.fetch("http://h2.example/")
            after_kept = server.connections
            await fetcher.fetch("http://h0.example/")
            await transport.aclose()
            return closed, after_kept, server.connections

    assert asyncio.run(play()) == ([True, True, False, False, False], 5, 6)


def test_idle_connections_that_servers_closed_take_no_room() -> None:
    async def play() -> int:
        async with many_hosts(KEEP_OK) as (server, resolver):
            transport = WireTransport(Pool(Direct(resolver, lambda: NO_ROOTS), most_busy=1, most_idle=3))
            fetcher = Fetcher(transport, timeout_s=LONG_S, max_body_bytes=100, user_agent="testkit/1.0")
            for n in range(3):
                await fetcher.fetch(f"http://h{n}.example/")
            for writer in server.writers[1:]:
                writer.close()
            await some_turns()
            for host in ("h3", "h4", "h0"):
                await fetcher.fetch(f"http://{host}.example/")
            await transport.aclose()
            return server.connections

    assert asyncio.run(play()) == 5


def test_a_connection_on_which_something_came_unasked_is_not_taken_even_before_the_loop_has_closed_it() -> None:
    async def play() -> None:
        async with many_hosts(KEEP_OK) as (_, resolver):
            pool = Pool(Direct(resolver, lambda: NO_ROOTS), most_busy=1)
            origin = Origin("http", "a.example", 80)
            connection = await pool.connect(origin)
            await connection.ask(b"GET / HTTP/1.1\r\n\r\n")
            assert await connection.read() == b"ok"
            pool.give_back(origin, connection)
            connection.data_received(OK)
            assert pool.take(origin) is None
            await pool.aclose()

    asyncio.run(play())


def test_a_request_that_is_given_up_closes_its_connection_at_once() -> None:
    async def play() -> bool:
        half = Script((b"HTTP/1.1 200 OK\r\n",), End.STALL)
        async with raw_server([half]) as server, open_fetcher(await resolver_for(server), timeout_s=0.05) as fetcher:
            assert isinstance(await fetcher.fetch(server.url()), FetchFailure)
            await some_turns()
            return server.writers[0].transport.is_closing()

    assert asyncio.run(play())


def test_an_idle_connection_is_closed_after_half_a_minute() -> None:
    async def play(loop: JumpingLoop) -> list[bool]:
        async with raw_server([KEEP_OK]) as server, open_fetcher(await resolver_for(server), timeout_s=1000) as fetcher:
            await fetcher.fetch(server.url())
            closed = []
            for jump_s in (29, 2):
                loop.ahead_s += jump_s
                await some_turns()
                closed.append(server.writers[0].transport.is_closing())
            return closed

    assert run_jumping(play) == [False, True]


def test_a_connection_that_the_server_closed_meanwhile_is_not_taken() -> None:
    async def play() -> tuple[list[bytes], int]:
        async with raw_server([KEEP_OK]) as server, open_fetcher(await resolver_for(server)) as fetcher:
            await fetcher.fetch(server.url())
            server.writers[0].close()
            await some_turns()
            assert isinstance(await fetcher.fetch(server.url()), Response)
            return server.targets(), server.connections

    assert asyncio.run(play()) == ([b"/", b"/"], 2)


def test_closing_the_transport_closes_its_connections() -> None:
    async def play() -> bool:
        async with raw_server([KEEP_OK]) as server:
            async with open_fetcher(await resolver_for(server)) as fetcher:
                await fetcher.fetch(server.url())
            await some_turns()
            return server.writers[0].transport.is_closing()

    assert asyncio.run(play())


def test_the_next_address_is_tried_where_one_refuses() -> None:
    async def play() -> Response | FetchFailure:
        async with raw_server([KEEP_OK]) as server:
            addresses = ("127.0.0.9", "127.0.0.1")
            allowed = {f"a.example:{server.port}": addresses}
            async with open_fetcher(GuardedResolver((), allowed, dns=TableDns(*addresses))) as fetcher:
                return await fetcher.fetch(f"http://a.example:{server.port}/")

    assert isinstance(asyncio.run(play()), Response)


def test_the_next_address_is_tried_where_one_is_silent_for_some_seconds() -> None:
    async def play(loop: JumpingLoop) -> Response | FetchFailure:
        async with raw_server([KEEP_OK]) as server:
            addresses = ("127.0.0.9", "127.0.0.1")
            allowed = {f"a.example:{server.port}": addresses}
            resolver = GuardedResolver((), allowed, dns=TableDns(*addresses))
            with full_backlog("127.0.0.9", server.port):
                async with open_fetcher(resolver, timeout_s=1000) as fetcher:
                    fetching = asyncio.create_task(fetcher.fetch(f"http://a.example:{server.port}/"))
                    await some_turns()
                    assert not fetching.done()
                    loop.ahead_s += 4
                    return await fetching

    assert isinstance(run_jumping(play), Response)


@contextmanager
def full_backlog(address: str, port: int) -> Iterator[None]:
    """A port that takes no connection and refuses none."""
    with socket.socket() as listening:
        listening.bind((address, port))
        listening.listen(0)
        waiting = [socket.socket() for _ in range(4)]
        for client in waiting:
            client.setblocking(False)
            client.connect_ex((address, port))
        yield
        for client in waiting:
            client.close()


@pytest.mark.parametrize(
    "request_",
    [
        httpx.Request("POST", "http://127.0.0.1/", content=b"x"),
        httpx.Request("GET", "http://127.0.0.1/", headers={"X": "a\r\nY: b"}),
        httpx.Request("GET", "http://127.0.0.1/", extensions={"target": b"/ HTTP/1.1\r\nX: y\r\n"}),
        httpx.Request("GET", "http://127.0.0.1/", extensions={"target": b"/a b"}),
        httpx.Request("GET", "ftp://127.0.0.1/"),
    ],
    ids=["post", "header", "target", "space", "ftp"],
)
def test_a_request_that_would_be_another_one_on_the_wire_is_refused(request_: httpx.Request) -> None:
    async def play() -> None:
        transport = open_transport(GuardedResolver(), connections=1, tls=NO_ROOTS)
        try:
            with pytest.raises((httpx.LocalProtocolError, httpx.UnsupportedProtocol)):
                await transport.handle_async_request(request_)
        finally:
            await transport.aclose()

    asyncio.run(play())


@contextmanager
def no_files_left() -> Iterator[None]:
    """This process may open no more files."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    highest = max(int(file.name) for file in Path("/proc/self/fd").iterdir())
    resource.setrlimit(resource.RLIMIT_NOFILE, (highest + 1, limits[1]))
    taken: list[int] = []
    try:
        while True:
            try:
                taken.append(os.dup(0))
            except OSError:
                break
        yield
    finally:
        for number in taken:
            os.close(number)
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_where_files_run_out_that_is_said_with_the_limit_needed_and_no_page_has_failed(host: str) -> None:
    async def play() -> None:
        async with raw_server([KEEP_OK]) as server:
            allowed = {f"{host}:{server.port}": ("127.0.0.1",)}
            async with open_fetcher(GuardedResolver((), allowed)) as fetcher:
                await asyncio.to_thread(int)  # its thread, so that a look-up has one
                with no_files_left():
                    await fetcher.fetch(server.url(host=host))

    with pytest.raises(TooManyOpenFiles, match=r"may have \d+ .* needs about \d+; .*ulimit -n \d+") as caught:
        asyncio.run(play())
    assert caught.value.exit_status is ExitStatus.STORAGE


@pytest.fixture
def server_url() -> Iterator[str]:
    """A server in a process of its own: it has files when this one has none."""
    command = [sys.executable, "-m", "crawlkit.testing.server", "--pages", "1", "--seed", "1"]
    root = Path(__file__).resolve().parent.parent.parent
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=root) as process:
        assert process.stdout is not None
        yield process.stdout.readline().decode().strip()
        process.communicate()


def test_idle_connections_are_given_up_where_files_run_out(server_url: str) -> None:
    async def play() -> list[Response | FetchFailure]:
        address = server_url.removeprefix("http://")
        async with open_fetcher(GuardedResolver(parse_resolves([f"*.example={address}"]))) as fetcher:
            first = await fetcher.fetch("http://a.example/")
            with no_files_left():
                return [first, await fetcher.fetch("http://b.example/")]

    assert all(isinstance(answer, Response) for answer in asyncio.run(play()))


class SilentTransport(asyncio.Transport):
    def abort(self) -> None:
        pass

    def is_closing(self) -> bool:
        return True


class SilentLoop(asyncio.SelectorEventLoop):
    """Makes a connection, closes it and never says so: as uvloop does when it is cancelled just then."""

    async def create_connection(self, protocol_factory: Any, *_: Any, **__: Any) -> Any:
        protocol_factory().connection_made(SilentTransport())
        raise asyncio.CancelledError


async def _connect_in_vain() -> None:
    pool = Pool(Direct(GuardedResolver(parse_resolves(["*=127.0.0.1:9"])), lambda: NO_ROOTS), most_busy=1)
    with pytest.raises(asyncio.CancelledError):
        await pool.connect(Origin("http", "a.test", 80))
    async with asyncio.timeout(5):
        await pool.aclose()


def test_a_pool_is_closed_though_a_connection_was_given_up_in_the_making() -> None:
    with asyncio.Runner(loop_factory=SilentLoop) as runner:
        runner.run(_connect_in_vain())
