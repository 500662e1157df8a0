"""A site as a loopback server, in a thread or as a process of its own.

    with SiteServer(site) as server:
        ...  # server.url, server.log

    python -m crawlkit.testing.server --pages 500 --seed 1 --log FILE

The process prints its URL as the first line, appends one JSON line to FILE for each request that has ended
(`log.read_log` reads them), and stops when its standard input closes or on SIGTERM. With more than one host its pages
are those of `h1.test`, `h2.test`, ...: resolve these names to its address and port.

HTTP/1.1 with keep-alive, as much of it as GET needs: requests have no body and are answered one after the other.
"""

import argparse
import asyncio
import contextlib
import http
import signal
import socket
import struct
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Self, assert_never

from crawlkit.testing.graph import Features, make_graph
from crawlkit.testing.log import RequestLog, encode
from crawlkit.testing.site import Fault, Headers, Reply, Site

BACKLOG = 1024
MAX_HEAD_BYTES = 64 * 1024
FLOOD_BYTES = 16 * 1024
GARBAGE = b"\x00\xff this is not HTTP \x00\r\n\r\n"
_RESET_ON_CLOSE = struct.pack("ii", 1, 0)  # SO_LINGER, no time: closing sends RST


class SiteServer:
    """Serves `site` on 127.0.0.1 from a thread of its own while the context is open.

    `site` may be replaced at any time. A port of 0 is any free one; opened again, the server has the port it had.
    Requests still open when it stops end then.
    """

    def __init__(self, site: Site, *, port: int = 0, log: RequestLog | None = None) -> None:
        self.site = site
        self.port = port
        self.log = RequestLog() if log is None else log
        self.connections: set[_Connection] = set()
        self._stop: Callable[[], None]

    @property
    def url(self) -> str:
        """The base of its URLs, without a trailing slash."""
        return f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        listening = socket.create_server(("127.0.0.1", self.port), backlog=BACKLOG)
        self.port = listening.getsockname()[1]
        loop = asyncio.new_event_loop()
        stopping = asyncio.Event()

        def run() -> None:
            with contextlib.closing(loop):
                loop.run_until_complete(self._serve(loop, listening, stopping))

        thread = threading.Thread(target=run, name="site-server", daemon=True)

        def stop() -> None:
            loop.call_soon_threadsafe(stopping.set)
            thread.join()

        self._stop = stop
        thread.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._stop()

    async def _serve(self, loop: asyncio.AbstractEventLoop, listening: socket.socket, stopping: asyncio.Event) -> None:
        server = await loop.create_server(lambda: _Connection(self, loop), sock=listening, backlog=BACKLOG)
        await stopping.wait()
        server.close()
        while self.connections:
            for connection in self.connections:
                connection.transport.abort()
            await asyncio.sleep(0)
        await server.wait_closed()


class _Connection(asyncio.Protocol):
    """One client. `_index` is the request being answered, None between requests."""

    transport: asyncio.Transport

    def __init__(self, server: SiteServer, loop: asyncio.AbstractEventLoop) -> None:
        self._server = server
        self._loop = loop
        self._unread = bytearray()
        self._index: int | None = None
        self._timer: asyncio.Handle | None = None
        self._keep_alive = True
        self._flood = b""
        self._paused = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self._server.connections.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._server.connections.discard(self)
        if self._timer is not None:
            self._timer.cancel()
        self._end()

    def data_received(self, data: bytes) -> None:
        self._unread += data
        self._next()

    def pause_writing(self) -> None:
        self._paused = True

    def resume_writing(self) -> None:
        self._paused = False
        self._pour()

    def _next(self) -> None:
        """Answer what has been asked, one request after the other."""
        while self._index is None and not self.transport.is_closing():
            end = self._unread.find(b"\r\n\r\n")
            if end < 0:
                if len(self._unread) > MAX_HEAD_BYTES:
                    self.transport.abort()
                return
            head = self._unread[:end].decode("latin-1")
            del self._unread[: end + 4]
            self._begin(head)

    def _begin(self, head: str) -> None:
        first, *lines = head.split("\r\n")
        headers = tuple((name.lower(), value.strip()) for name, _, value in (line.partition(":") for line in lines))
        named = dict(headers)
        target = first.split(" ")[1] if first.count(" ") == 2 else ""
        host = named.get("host", "")
        self._keep_alive = named.get("connection", "").lower() != "close" and first.endswith("HTTP/1.1")
        self._index = self._server.log.begin(host, target, headers)
        reply = self._server.site.reply(host.lower(), target) if target else Reply(400)
        if reply.delay_s:
            self._later(reply.delay_s, lambda: self._act(reply))
        else:
            self._act(reply)

    def _later(self, delay_s: float, action: Callable[[], None]) -> None:
        def run() -> None:
            action()
            self._next()

        self._timer = self._loop.call_later(delay_s, run)

    def _act(self, reply: Reply) -> None:
        """Send the answer, or do what stands in its place."""
        headers, body = reply.on_wire()
        head = _head(reply.status, headers)
        match reply.fault:
            case None | Fault.BOMB:
                self.transport.write(head + body)
                self._answered()
            case Fault.DROP:
                self.transport.close()
            case Fault.CUT:
                self.transport.write(head + body[: len(body) // 2])
                self.transport.close()
            case Fault.RESET:
                connection: socket.socket = self.transport.get_extra_info("socket")
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
                self.transport.abort()
            case Fault.STALL:
                self.transport.write(head)
            case Fault.DRIP:
                self.transport.write(head)
                self._later(reply.drip_s, lambda: self._drip(reply, 0))
            case Fault.GARBAGE:
                self.transport.write(GARBAGE)
                self.transport.close()
            case Fault.ENDLESS:
                self.transport.write(head)
                chunk = b"%x\r\n%b\r\n" % (len(body), body)
                self._flood = chunk * (FLOOD_BYTES // len(chunk) + 1)
                self._pour()
            case _:
                assert_never(reply.fault)

    def _drip(self, reply: Reply, position: int) -> None:
        self.transport.write(reply.body[position : position + 1])
        if position + 1 < len(reply.body):
            self._later(reply.drip_s, lambda: self._drip(reply, position + 1))
        else:
            self._answered()

    def _pour(self) -> None:
        """Write some of an endless body each turn, while the client takes it."""
        if self._flood and not self._paused and not self.transport.is_closing():
            self.transport.write(self._flood)
            self._timer = self._loop.call_soon(self._pour)

    def _answered(self) -> None:
        self._end()
        if not self._keep_alive:
            self.transport.close()

    def _end(self) -> None:
        if self._index is not None:
            index, self._index = self._index, None
            self._server.log.end(index)


def _head(status: int, headers: Headers) -> bytes:
    try:
        phrase = http.HTTPStatus(status).phrase
    except ValueError:  # a code of nobody's: the phrase may be empty (RFC 9112 section 4)
        phrase = ""
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers)
    return f"HTTP/1.1 {status} {phrase}\r\n{lines}\r\n".encode("latin-1")


def _arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m crawlkit.testing.server", description="Serve a seeded web graph.")
    parser.add_argument("--pages", type=int, required=True)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--hosts", type=int, default=1)
    parser.add_argument("--links-per-page", type=int, default=10)
    for feature in fields(Features):
        parser.add_argument(f"--{feature.name}", type=int, default=feature.default)
    parser.add_argument("--page-bytes", type=int, default=0)
    parser.add_argument("--delay-s", type=float, default=0.0, help="before the first byte of each answer")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--log", type=Path, help="append one JSON line a request")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> None:
    """Serve until standard input closes or SIGTERM comes."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    given = _arguments(arguments)
    features = Features(**{feature.name: getattr(given, feature.name) for feature in fields(Features)})
    graph = make_graph(given.pages, given.seed, hosts=given.hosts, links_per_page=given.links_per_page, features=features)
    site = graph.site(page_bytes=given.page_bytes, delay_s=given.delay_s)
    with contextlib.ExitStack() as stack:
        log = RequestLog()
        if given.log is not None:
            file = stack.enter_context(given.log.open("ab", buffering=0))
            log = RequestLog(on_end=lambda request: file.write(encode(request)))
        server = stack.enter_context(SiteServer(site, port=given.port, log=log))
        sys.stdout.write(f"{server.url}\n")
        sys.stdout.flush()
        sys.stdin.buffer.read()


if __name__ == "__main__":
    main()
