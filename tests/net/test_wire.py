"""One connection by itself: how an answer is cut into packets changes nothing, and no answer fills memory."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlkit.net.wire import Connection, has_unread

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
ANSWERS = [
    OK,
    b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" + OK,
    b"HTTP/1.1 200 OK\nX-Empty:\nX-Pad:  a b \t\nX-Fold: one\n two\n\nto the end",
    b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 3\r\n\r\nabc",
    CHUNKED + b"3\r\nabc\r\n4;x=y\r\ndefg\r\n0\r\nTrailer: t\r\n\r\n",
    CHUNKED + b"3 \r\nabc\r\n5\r\nde",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 9\r\n\r\n1\r\na\r\n0\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nshort",
    b"HTTP/1.1 204 No Content\r\nContent-Length: 9\r\n\r\n",
    b"HTTP/1.1 304 Not Modified\r\nTransfer-Encoding: chunked\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok",
    b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\nok",
    b"HTTP/1.1 100 Continue\r\n\r\n\r\n" + OK,
    b"HTTP/1.1 200 OK\r\n folded: x\r\n\r\n",
    b"HTTP/0.9 200 OK\r\n\r\n",
    b"RTSP/1.0 200 OK\r\n\r\n",
    b"HTTP/2.0 200 OK\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nX: \0\r\n\r\n",
    b"HTTP/1.1 200",
    b"<html>",
    b"\r\n" + OK,
    b"",
]


class Wire(asyncio.Transport):
    """What a connection does to its socket."""

    def __init__(self) -> None:
        super().__init__()
        self.sent = b""
        self.closed = False
        self.reading = True
        self.asked = asyncio.Event()

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.sent += data
        self.asked.set()

    def abort(self) -> None:
        self.closed = True

    def is_closing(self) -> bool:
        return self.closed

    def pause_reading(self) -> None:
        self.reading = False

    def resume_reading(self) -> None:
        self.reading = True


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of an answer: `error` None if whole."""

    status: int
    headers: tuple[tuple[bytes, bytes], ...]
    body: bytes
    fit: bool
    error: str | None


def opened(wire: Wire, lost: list[Connection] | None = None) -> Connection:
    connection = Connection(lambda _: None, (lost if lost is not None else []).append)
    connection.connection_made(wire)
    return connection


async def ask(wire: Wire, connection: Connection, request: bytes = b"") -> asyncio.Task[None]:
    """Begin to ask: the request is written, its answer has not begun."""
    asking = asyncio.create_task(connection.ask(request))
    await wire.asked.wait()
    return asking


async def read_out(asking: asyncio.Task[None], connection: Connection, keep: Callable[[bytes], object] = len) -> None:
    await asking
    while piece := await connection.read():
        keep(piece)


async def outcome_of(packets: Sequence[bytes], *, ends: bool, exc: Exception | None = None) -> Outcome:
    """What came of an answer in these packets; `fit` as it was before the connection was lost, if it `ends`."""
    wire = Wire()
    connection = opened(wire)
    asking = await ask(wire, connection, b"GET / HTTP/1.1\r\n\r\n")
    assert wire.sent == b"GET / HTTP/1.1\r\n\r\n"
    pieces: list[bytes] = []
    reading = asyncio.create_task(read_out(asking, connection, pieces.append))
    for packet in packets:
        if not wire.closed:
            connection.data_received(packet)
    for _ in range(5):  # what is here is read now
        await asyncio.sleep(0)
    fit = connection.fit
    if wire.closed or ends:
        connection.connection_lost(exc)
    error = None
    try:
        await reading
    except httpx.TransportError as raised:
        error = type(raised).__name__
    return Outcome(connection.status, tuple(connection.headers), b"".join(pieces), fit, error)


def cut(answer: bytes, edges: Sequence[int]) -> list[bytes]:
    bounds = [0, *sorted(edges), len(answer)]
    return [packet for start, end in pairwise(bounds) if (packet := answer[start:end])]


async def outcomes(answer: bytes, edges: Sequence[int]) -> tuple[Outcome, Outcome]:
    """As it is when the answer comes in one packet, and in many. Headers count for answers that are whole."""
    one, many = await outcome_of(cut(answer, ()), ends=True), await outcome_of(cut(answer, edges), ends=True)
    if one.error is None:
        return one, many
    return replace(one, headers=()), replace(many, headers=())


@pytest.mark.parametrize("answer", ANSWERS)
def test_each_byte_by_itself_gives_the_same_as_all_at_once(answer: bytes) -> None:
    one, many = asyncio.run(outcomes(answer, range(len(answer))))
    assert many == one


@given(st.sampled_from(ANSWERS), st.lists(st.integers(0, 150), max_size=6))
def test_where_packets_end_changes_nothing(answer: bytes, edges: list[int]) -> None:
    one, many = asyncio.run(outcomes(answer, edges))
    assert many == one


@pytest.mark.parametrize(
    ("answer", "fit"),
    [
        (OK, True),
        (CHUNKED + b"1\r\na\r\n0\r\n\r\n", True),
        (b"HTTP/1.1 204 No Content\r\n\r\n", True),
        (b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 0\r\n\r\n", True),
        (b"HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n", False),
        (b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n", False),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 9\r\n\r\n0\r\n\r\n", False),
        (OK + b"H", False),
        (OK + OK, False),
        (OK + b"\0", False),
        (CHUNKED + b"0\r\n\r\n0", False),
        (b"HTTP/1.1 204 No Content\r\n\r\nx", False),
        (b"HTTP/1.1 101 Switching Protocols\r\n\r\n", False),
        (OK[:-1], False),
        (CHUNKED + b"1\r\na\r\n", False),
    ],
)
@pytest.mark.parametrize("dripped", [False, True])
def test_only_what_ends_a_whole_answer_in_order_is_fit_for_another_request(answer: bytes, fit: bool, dripped: bool) -> None:
    packets = cut(answer, range(len(answer)) if dripped else ())
    assert asyncio.run(outcome_of(packets, ends=True)).fit is fit


def test_headers_are_as_received_but_for_the_space_around_them() -> None:
    got = asyncio.run(
        outcome_of([b"HTTP/1.1 200 OK\r\nX-A:  a b \t\r\nx-a:\r\nX-F: one\r\n two\r\nX-B: \xff\x01\r\n\r\n"], ends=True)
    )
    assert got.headers == ((b"X-A", b"a b"), (b"x-a", b""), (b"X-F", b"one two"), (b"X-B", b"\xff\x01"))


@pytest.mark.parametrize(
    ("answer", "body"),
    [
        (b"HTTP/1.1 200 OK\nX: y\n\nok", b"ok"),
        (b"HTTP/1.1 200 OK\r\nX: y\n\r\nok", b"ok"),
        (b"HTTP/1.1 200 OK\r\nX: \x01\r\n\r\nok", b"ok"),
        (b"HTTP/1.1 200\r\n\r\nok", b"ok"),
        (CHUNKED + b"2 \t\r\nok\r\n0\r\n\r\n", b"ok"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", b"ok"),
        (CHUNKED + b'2 ;a=b;c="d"\r\nok\r\n0\t;e\r\n\r\n', b"ok"),
    ],
)
def test_what_browsers_take_is_taken(answer: bytes, body: bytes) -> None:
    got = asyncio.run(outcome_of([answer], ends=True))
    assert (got.status, got.body, got.error) == (200, body, None)


def test_an_answer_that_was_not_read_out_leaves_nothing_in_memory() -> None:
    async def play() -> None:
        wire = Wire()
        connection = opened(wire)
        asking = await ask(wire, connection)
        connection.data_received(OK)
        await asking
        assert not connection.fit

    asyncio.run(play())


@pytest.mark.parametrize("exc", [None, ConnectionResetError(104, "reset")])
def test_a_body_without_a_length_ends_with_its_connection_unless_that_was_reset(exc: Exception | None) -> None:
    got = asyncio.run(outcome_of([b"HTTP/1.1 200 OK\r\n\r\n", b"some"], ends=True, exc=exc))
    assert (got.body, got.error) == (b"some", exc and "ReadError")


FLOODS = {
    "header bytes": (b"HTTP/1.1 200 OK\r\nX: ", b"x" * 4096),
    "header lines": (b"HTTP/1.1 200 OK\r\n", b"X: y\r\n" * 8),
    "folded lines": (b"HTTP/1.1 200 OK\r\nX: y\r\n", b" y\r\n" * 8),
    "status line": (b"HTTP/1.1 200 ", b"x" * 4096),
    "interim answers": (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    "interim headers": (b"HTTP/1.1 103 Hints\r\n", b"X: y\r\n" * 8),
    "chunk extension": (CHUNKED + b"1;", b"x" * 4096),
    "trailer bytes": (CHUNKED + b"0\r\nT: ", b"t" * 4096),
    "trailer lines": (CHUNKED + b"0\r\n", b"T: t\r\n" * 8),
    "chunk size": (CHUNKED, b"0" * 4096),
}


@pytest.mark.parametrize("flood", FLOODS.values(), ids=FLOODS)
def test_what_is_no_body_is_not_taken_without_end(flood: tuple[bytes, bytes]) -> None:
    begin, more = flood

    async def taken_bytes() -> int:
        wire = Wire()
        connection = opened(wire)
        asking = await ask(wire, connection)
        connection.data_received(begin or more)
        packets = 0
        while not wire.closed and packets < 100_000:
            connection.data_received(more)
            packets += 1
        connection.connection_lost(None)
        with pytest.raises(httpx.RemoteProtocolError):
            await read_out(asking, connection)
        return packets * len(more)

    assert asyncio.run(taken_bytes()) <= 110 * 1024


def test_a_body_that_nobody_reads_stops_the_socket_and_reading_it_starts_that_again() -> None:
    async def play() -> None:
        wire = Wire()
        connection = opened(wire)
        asking = await ask(wire, connection)
        connection.data_received(b"HTTP/1.1 200 OK\r\n\r\n")
        await asking
        taken_bytes = 0
        while wire.reading and taken_bytes < 10 << 20:
            connection.data_received(b"x" * 65536)
            taken_bytes += 65536
        assert taken_bytes <= 512 * 1024
        assert len(await connection.read()) == taken_bytes
        assert wire.reading

    asyncio.run(play())


def test_chunks_of_one_byte_are_an_honest_body() -> None:
    body = b"1\r\nx\r\n" * 100_000
    packets = [CHUNKED, *(body[n : n + 1460] for n in range(0, len(body), 1460)), b"0\r\n\r\n"]
    got = asyncio.run(outcome_of(packets, ends=False))
    assert (len(got.body), got.fit, got.error) == (100_000, True, None)


def test_what_comes_unasked_closes_the_connection() -> None:
    async def play() -> None:
        wire, lost = Wire(), list[Connection]()
        connection = opened(wire, lost)
        connection.data_received(OK)
        assert wire.closed
        connection.connection_lost(None)
        assert lost == [connection]
        with pytest.raises(httpx.RemoteProtocolError, match="before it is asked"):
            await connection.ask(b"GET / HTTP/1.1\r\n\r\n")

    asyncio.run(play())


def test_untouched_tells_a_connection_that_was_closed_before_from_one_that_broke_off() -> None:
    async def play(packets: list[bytes]) -> bool:
        wire = Wire()
        connection = opened(wire)
        asking = await ask(wire, connection)
        for packet in packets:
            connection.data_received(packet)
        connection.connection_lost(None)
        with pytest.raises(httpx.ReadError):
            await asking
        return connection.untouched

    assert asyncio.run(play([]))
    assert not asyncio.run(play([b"H"]))


def test_a_connection_whose_socket_is_gone_is_not_asked_anything() -> None:
    assert has_unread(asyncio.Transport())  # as TLS is, when what is under it is lost


async def _given_up_before_it_is_open() -> tuple[list[Connection], Wire]:
    made: list[Connection] = []
    connection, wire = Connection(made.append, made.append), Wire()
    connection.abort()
    connection.connection_made(wire)
    return made, wire


def test_a_connection_given_up_before_it_is_open_is_closed_when_it_is() -> None:
    """Or nobody ever closes it: the pool at its end would wait until the server does."""
    made, wire = asyncio.run(_given_up_before_it_is_open())
    assert wire.closed
    assert not made
