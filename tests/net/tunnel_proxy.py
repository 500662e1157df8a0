"""A loopback proxy that makes tunnels, into a small internet of its own."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from crawlkit.net.request import Origin


@dataclass(slots=True)
class TunnelProxy:
    """`ports`: what `CONNECT` targets are, as ports of loopback; others are answered 502."""

    ports: Mapping[str, int]
    port: int = 0
    heads: list[bytes] = field(default_factory=list)

    def origin(self, scheme: str = "http", host: str = "127.0.0.1") -> Origin:
        return Origin(scheme, host, self.port)

    def targets(self) -> list[str]:
        return [head.split(b" ")[1].decode() for head in self.heads]

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            self.heads.append(head)
            port = self.ports.get(self.targets()[-1])
            if port is None or not head.startswith(b"CONNECT "):
                writer.write(b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n")
                await reader.read()
                return
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            try:
                async with asyncio.TaskGroup() as both:
                    both.create_task(_pipe(reader, far_writer))
                    both.create_task(_pipe(far_reader, writer))
            finally:
                far_writer.transport.abort()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.transport.abort()


async def _pipe(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    except ConnectionError:
        pass
    writer.close()


@asynccontextmanager
async def tunnel_proxy(ports: Mapping[str, int], *, tls: ssl.SSLContext | None = None) -> AsyncIterator[TunnelProxy]:
    proxy = TunnelProxy(ports)
    server = await asyncio.start_server(proxy.serve, "127.0.0.1", 0, ssl=tls)
    proxy.port = server.sockets[0].getsockname()[1]
    try:
        yield proxy
    finally:
        server.close()
        await server.wait_closed()
