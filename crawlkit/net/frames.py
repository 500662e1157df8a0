"""Messages between a process and one that it starts, over a pair of sockets: the length in four bytes, then the message."""

import asyncio
import socket
from typing import Self


def pair() -> tuple[socket.socket, socket.socket]:
    """Return the two ends of a connection: one to keep, one to be inherited."""
    return socket.socketpair()


def inherited(descriptor: int) -> socket.socket:
    """Return the end of a connection that this process inherited."""
    return socket.socket(fileno=descriptor)


class Frames:
    """Whole messages over a connected stream."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def over(cls, connection: socket.socket) -> Self:
        """Return the messages over one end of a connection, which is closed with them."""
        return cls(*await asyncio.open_connection(sock=connection))

    async def receive(self) -> bytes | None:
        """Return the next message, None once the other end is gone."""
        try:
            length = int.from_bytes(await self._reader.readexactly(4), "big")
            return await self._reader.readexactly(length)
        except (asyncio.IncompleteReadError, ConnectionError):
            return None

    async def send(self, message: bytes) -> None:
        """Send a message; ConnectionError if the other end is gone."""
        self._writer.write(len(message).to_bytes(4, "big") + message)
        await self._writer.drain()

    def close(self) -> None:
        """Hang up."""
        self._writer.close()
