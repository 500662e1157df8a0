"""One partition in the process of an actor: the line to the driver is what the driver calls.

The driver tells by `tell` and hears by `listen`, one call of each at a time, so order is kept. `listen` waits a while for
something to be said, so that there is always one on its way: where none comes, the driver is gone, or its machine is.
"""

import asyncio
import contextlib
import io
import os
import traceback
from collections import deque
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from crawlkit.cluster.member import serve
from crawlkit.cluster.messages import Begin
from crawlkit.durable import replace_file
from crawlkit.engine.session import Hooks, Surroundings

LISTEN_S = 1.0
SILENCE_S = 6
"""A partition that the driver does not listen to for so long ends at once. Its successor waits longer for its lock."""


class Heard(NamedTuple):
    """What a partition has to say: messages, lines for standard error, and whether that was all."""

    messages: list[bytes]
    said: str
    over: bool


class Terms(NamedTuple):
    """What a partition is started with, besides its `Begin`.

    `environ` are the driver's variables that the settings name; for others those of the machine hold. `copies` are the files of
    the crawl's directory that a machine needs which does not share the driver's disk.
    """

    hooks_of: Callable[[Begin], Hooks]
    environ: Mapping[str, str]
    directory: Path
    copies: Mapping[str, bytes]


class Partition:
    """The actor. Its methods run in the event loop that Ray gives it, beside the partition's own tasks."""

    def __init__(self) -> None:
        self._inbox: deque[bytes] = deque()
        self._told = asyncio.Event()
        self._outbox: list[bytes] = []
        self._said = io.StringIO()
        self._news = asyncio.Event()
        self._over = False
        self._listening = 0
        self._tasks: list[asyncio.Task[None]] = []

    # What the driver calls -------------------------------------------------------------------------------------------

    async def begin(self, terms: Terms) -> None:
        """Start being a partition: the first message will say which."""
        for name, data in terms.copies.items():
            path = terms.directory / name
            if not path.exists() or path.read_bytes() != data:
                replace_file(path, data)
        self._tasks = [asyncio.create_task(self._serve(terms)), asyncio.create_task(self._watch())]

    async def tell(self, messages: list[bytes]) -> None:
        """Take messages of the driver."""
        self._inbox += messages
        self._told.set()

    async def listen(self) -> Heard:
        """Return what there is to say, soon if it is nothing."""
        self._listening += 1
        try:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LISTEN_S):
                    await self._news.wait()
            self._news.clear()
            messages, self._outbox = self._outbox, []
            said = self._said.getvalue()
            self._said.seek(0)
            self._said.truncate()
            return Heard(messages, said, self._over)
        finally:
            self._listening -= 1

    # The line, as the partition sees it ------------------------------------------------------------------------------

    async def receive(self) -> bytes | None:
        """Return the next message; if the driver is gone this process ends."""
        while not self._inbox:
            self._told.clear()
            await self._told.wait()
        return self._inbox.popleft()

    async def send(self, message: bytes) -> None:
        """Say a message to the driver."""
        self._outbox.append(message)
        self._news.set()

    # -----------------------------------------------------------------------------------------------------------------

    async def _serve(self, terms: Terms) -> None:
        with contextlib.redirect_stderr(self._said):
            try:
                await serve(self, terms.hooks_of, Surroundings(environ={**os.environ, **terms.environ}))
            except Exception:  # the process that it is otherwise would say so, and end
                traceback.print_exc()
        self._over = True
        self._news.set()

    async def _watch(self) -> None:
        """End this process once the driver is gone: as safe as a kill, and a resume finds the directory free.

        Time is counted in turns of this loop: one that was held up knows nothing of who called meanwhile.
        """
        silence_s = 0
        while silence_s < SILENCE_S:
            await asyncio.sleep(1)
            silence_s = 0 if self._listening else silence_s + 1
        os._exit(1)
