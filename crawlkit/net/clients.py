"""Who connects to a socket of ours: a task for each, so many at once and no more."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from crawlkit.net.local import Socket

AGAIN_AFTER_S = 1.0
"""How long no client is taken where no more files may be opened: the crawl needs them more."""


class Clients:
    """Serves who connects by `serve`, a task for each; what comes beyond `most` at once is closed."""

    def __init__(self, serve: Callable[[Socket], Coroutine[Any, Any, None]], most: int) -> None:
        self._serve = serve
        self._most = most
        self._tasks: set[asyncio.Task[None]] = set()

    async def accept(self, listening: Socket) -> None:
        """Take clients, for ever."""
        while True:
            try:
                connection, _ = await asyncio.get_running_loop().sock_accept(listening)
            except OSError:
                await asyncio.sleep(AGAIN_AFTER_S)
                continue
            if len(self._tasks) >= self._most:
                connection.close()
                continue
            client = asyncio.create_task(self._serve(connection))
            self._tasks.add(client)
            client.add_done_callback(self._tasks.discard)

    async def end(self) -> None:
        """End all that are being served."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
