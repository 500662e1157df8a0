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
        """Send a message and wait until most is on its way; ConnectionError if the other end is gone."""
        self.post(message)
        await self._writer.drain()

    def post(self, message: bytes) -> None:
        """Send a message without waiting, for whoever must never wait for a reader; ConnectionError as for `send`."""
        if self._writer.is_closing():  # uvloop would raise RuntimeError
            raise ConnectionResetError
        self._writer.write(len(message).to_bytes(4, "big") + message)

    def close(self) -> None:
        """Hang up."""
        self._writer.close()
