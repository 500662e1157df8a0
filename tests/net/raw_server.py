"""A loopback server that plays scripted bytes: what a remote may do to a connection, nothing more."""

import asyncio
import socket
import ssl
import struct
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from enum import Enum, auto


class End(Enum):
    CLOSE = auto()
    RESET = auto()  # a TCP reset instead of an orderly end
    STALL = auto()  # nothing more, and the connection stays open
    KEEP = auto()  # read the next request of the connection, play the next script
    FLOOD = auto()  # the last bytes again and again, at full speed


@dataclass(frozen=True, slots=True)
class Script:
    """What answers one request: the parts, each written by itself, then the end."""

    parts: tuple[bytes, ...]
    end: End = End.CLOSE
    greets: bool = False  # speaks without waiting for a request


@dataclass(slots=True)
class RawServer:
    port: int = 0
    scripts: list[Script] = field(default_factory=list)
    heads: list[bytes] = field(default_factory=list)
    connections: int = 0
    asked: asyncio.Event = field(default_factory=asyncio.Event)
    writers: list[asyncio.StreamWriter] = field(default_factory=list)

    def url(self, target: str = "/", *, host: str = "127.0.0.1", scheme: str = "http") -> str:
        return f"{scheme}://{host}:{self.port}{target}"

    def targets(self) -> list[bytes]:
        return [head.split(b" ")[1] for head in self.heads]

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self.writers.append(writer)
        try:
            await self._play(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.transport.abort()

    async def _play(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            script = self.scripts.pop(0) if len(self.scripts) > 1 else self.scripts[0]
            if not script.greets:
                self.heads.append(await reader.readuntil(b"\r\n\r\n"))
                self.asked.set()
            for part in script.parts:
                writer.write(part)
                await writer.drain()
            match script.end:
                case End.KEEP:
                    continue
                case End.CLOSE:
                    writer.write_eof()
                    await reader.read()  # until the client has closed too: closing first could turn into a reset
                case End.RESET:
                    sock: socket.socket = writer.get_extra_info("socket")
                    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                case End.STALL:
                    await reader.read()
                case End.FLOOD:
                    while not writer.transport.is_closing():
                        writer.write(script.parts[-1])
                        await writer.drain()
                        await asyncio.sleep(0)  # over TLS nothing else makes it wait, and the end would not be noticed
            return


@asynccontextmanager
async def raw_server(scripts: Sequence[Script | bytes], *, tls: ssl.SSLContext | None = None) -> AsyncIterator[RawServer]:
    """Serve the scripts in order, one a request, the last one for all that follow."""
    raw = RawServer(scripts=[s if isinstance(s, Script) else Script((s,)) for s in scripts])
    server = await asyncio.start_server(raw.serve, "127.0.0.1", 0, ssl=tls, limit=1 << 20)
    raw.port = server.sockets[0].getsockname()[1]
    try:
        yield raw
    finally:
        server.close()
        await server.wait_closed()
