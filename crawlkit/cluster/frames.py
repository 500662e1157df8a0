"""Messages over a stream socket: the length in four bytes, then the message."""

import asyncio


class Frames:
    """Whole messages over a connected stream."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

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
