"""The running crawl's side: a socket beside the crawl, and what is noted for who will ask.

Most crawls are never asked for anything, so what answers (`answering`) is loaded for the first who connects.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from crawlkit.engine.lately import Witness
from crawlkit.engine.pace import Pacer
from crawlkit.engine.session import Running
from crawlkit.net.local import Socket, listen
from crawlkit.state.layout import CONTROL

if TYPE_CHECKING:
    from crawlkit.surfaces.control.answering import Answering

MOST_CLIENTS = 16
SAMPLE_EVERY_S = 1.0


@asynccontextmanager
async def serving(running: Running, warn: Callable[[str], object] = lambda _: None) -> AsyncIterator[None]:
    """Serve a running crawl while the block runs. Where there can be no socket that is warned of, and the crawl goes on."""
    directory = running.coordinator.state.directory
    try:
        listening = listen(directory, CONTROL)
    except OSError as error:
        warn(f"warning: {directory / CONTROL} cannot be made, so the crawl cannot be asked or steered: {error.strerror}")
        yield
        return
    server = _Server(running)
    try:
        async with server.accepting(listening):
            yield
    finally:
        with contextlib.suppress(OSError):
            (directory / CONTROL).unlink()
        listening.close()


class _Server:
    def __init__(self, running: Running) -> None:
        self._running = running
        self._pacer = Pacer()
        self._witness = Witness(running.config)
        running.loop.watch(self._witness)
        self._clients: set[asyncio.Task[None]] = set()
        self._answering: Answering | None = None

    @asynccontextmanager
    async def accepting(self, listening: Socket) -> AsyncIterator[None]:
        """Serve who connects while the block runs."""
        tasks = [asyncio.create_task(self._accept(listening)), asyncio.create_task(self._sample())]
        try:
            yield
        finally:
            if self._answering is not None:
                await self._answering.finish()
            tasks += self._clients
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            if self._answering is not None:
                self._answering.close()

    async def _sample(self) -> None:
        while True:
            self._pacer.sample(self._running.coordinator, self._running.clock.now())
            await asyncio.sleep(SAMPLE_EVERY_S)

    async def _accept(self, listening: Socket) -> None:
        while True:
            try:
                connection, _ = await asyncio.get_running_loop().sock_accept(listening)
            except OSError:  # no more files may be opened: the crawl needs them more
                await asyncio.sleep(SAMPLE_EVERY_S)
                continue
            if len(self._clients) >= MOST_CLIENTS:
                connection.close()
                continue
            client = asyncio.create_task(self._serve(connection))
            self._clients.add(client)
            client.add_done_callback(self._clients.discard)

    async def _serve(self, connection: Socket) -> None:
        try:
            answering = self._loaded()
        except OSError:  # no more files may be opened
            connection.close()
            return
        await answering.serve(connection)

    def _loaded(self) -> "Answering":
        if self._answering is None:
            from crawlkit.surfaces.control.answering import Answering  # noqa: PLC0415  (3 ms of a start)

            self._answering = Answering(self._running, self._pacer, self._witness)
        return self._answering
