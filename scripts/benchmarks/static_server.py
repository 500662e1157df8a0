"""A small static server, for machines without nginx: files held in memory, HTTP/1.1 with keep-alive, GET only.

    python -m benchmarks.static_server DIRECTORY

Prints its port; stops when its standard input closes.
"""

import asyncio
import sys
from pathlib import Path
from typing import Any

_TYPES = {".html": b"text/html", ".txt": b"text/plain", ".css": b"text/css"}
_MISSING = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"


def read_answers(directory: Path) -> dict[bytes, bytes]:
    """Return each file's whole answer by its path."""
    answers = {}
    for file in directory.rglob("*"):
        if file.is_file():
            body = file.read_bytes()
            head = b"HTTP/1.1 200 OK\r\nServer: bench\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n"
            answers[f"/{file.relative_to(directory)}".encode()] = head % (_TYPES[file.suffix], len(body)) + body
    answers[b"/"] = answers[b"/index.html"]
    return answers


class _Client(asyncio.Protocol):
    def __init__(self, answers: dict[bytes, bytes]) -> None:
        self._answers = answers
        self._unread = b""

    def connection_made(self, transport: Any) -> None:  # uvloop's are not asyncio.Transport
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        *requests, self._unread = (self._unread + data).split(b"\r\n\r\n")
        for request in requests:
            self._transport.write(self._answers.get(request.split(b" ", 2)[1], _MISSING))


async def serve(directory: Path) -> None:
    """Serve until standard input ends."""
    answers = read_answers(directory)
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: _Client(answers), "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await loop.run_in_executor(None, sys.stdin.buffer.read)
    server.close()


if __name__ == "__main__":
    try:
        import uvloop
    except ImportError:
        asyncio.run(serve(Path(sys.argv[1])))
    else:
        uvloop.run(serve(Path(sys.argv[1])))
