"""A loopback server that speaks HTTP/2 over TLS and plays scripted answers, misbehaviour included."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from enum import Enum, auto

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import RequestReceived, WindowUpdated
from h2.exceptions import ProtocolError

from tests.net.certificates import tls_server

Headers = tuple[tuple[bytes, bytes], ...]


class H2End(Enum):
    WHOLE = auto()
    RESET = auto()  # RST_STREAM instead of the stream's end
    STALL = auto()  # nothing more
    CLOSE = auto()  # the connection ends
    GOAWAY = auto()  # the stream ends, and the server says that it will close, and does
    RAW = auto()  # the body is bytes of the connection, not of the stream


@dataclass(frozen=True, slots=True)
class H2Answer:
    """Nothing but the end where `status` is None."""

    status: bytes | None = b"200"
    headers: Headers = ()
    body: bytes = b""
    end: H2End = H2End.WHOLE


@dataclass(slots=True)
class H2Server:
    answers: list[H2Answer]
    port: int = 0
    requests: list[dict[bytes, bytes]] = field(default_factory=list)
    connections: int = 0
    writers: list[asyncio.StreamWriter] = field(default_factory=list)

    def targets(self) -> list[bytes]:
        return [request[b":path"] for request in self.requests]

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self.writers.append(writer)
        connection = _Connection(self, writer)
        try:
            while data := await reader.read(65536):
                connection.take(data)
                await writer.drain()
        except (ConnectionError, ProtocolError):
            pass
        finally:
            writer.transport.abort()


class _Connection:
    def __init__(self, server: H2Server, writer: asyncio.StreamWriter) -> None:
        self._server = server
        self._writer = writer
        config = H2Configuration(
            client_side=False, header_encoding=None, validate_outbound_headers=False, normalize_outbound_headers=False
        )
        self._h2 = H2Connection(config)
        self._h2.initiate_connection()
        self._waiting: dict[int, tuple[memoryview, H2End]] = {}

    def take(self, data: bytes) -> None:
        for event in self._h2.receive_data(data):
            match event:
                case RequestReceived(stream_id=stream, headers=headers):
                    assert isinstance(stream, int)
                    self._server.requests.append({bytes(name): bytes(value) for name, value in headers or ()})
                    answers = self._server.answers
                    self._answer(stream, answers.pop(0) if len(answers) > 1 else answers[0])
                case WindowUpdated():
                    for stream in tuple(self._waiting):
                        self._send_on(stream)
                case _:
                    pass
        self._writer.write(self._h2.data_to_send())

    def _answer(self, stream: int, answer: H2Answer) -> None:
        if answer.end is H2End.RAW:
            self._writer.write(self._h2.data_to_send() + answer.body)
            return
        if answer.status is not None:
            self._h2.send_headers(stream, [(b":status", answer.status), *answer.headers])
        self._waiting[stream] = (memoryview(answer.body), answer.end)
        self._send_on(stream)

    def _send_on(self, stream: int) -> None:
        body, end = self._waiting.pop(stream)
        while body and (room := min(self._h2.local_flow_control_window(stream), self._h2.max_outbound_frame_size)):
            self._h2.send_data(stream, bytes(body[:room]))
            body = body[room:]
        if body:
            self._waiting[stream] = (body, end)
            return
        match end:
            case H2End.WHOLE | H2End.GOAWAY:
                self._h2.end_stream(stream)
                if end is H2End.GOAWAY:
                    self._h2.close_connection()
            case H2End.RESET:
                self._h2.reset_stream(stream, 2)
            case H2End.STALL | H2End.RAW:
                return
            case H2End.CLOSE:
                pass
        if end in (H2End.GOAWAY, H2End.CLOSE):
            self._writer.write(self._h2.data_to_send())
            self._writer.close()


@asynccontextmanager
async def h2_server(answers: Sequence[H2Answer], *, certificate: str = "localhost") -> AsyncIterator[H2Server]:
    """Answer in order, one a request, the last one for all that follow."""
    raw = H2Server(list(answers))
    tls: ssl.SSLContext = tls_server(certificate)
    tls.set_alpn_protocols(["h2"])
    server = await asyncio.start_server(raw.serve, "127.0.0.1", 0, ssl=tls)
    raw.port = server.sockets[0].getsockname()[1]
    try:
        yield raw
    finally:
        server.close()
        await server.wait_closed()
