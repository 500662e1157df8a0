"""Connections kept for the next request to the same origin."""

import asyncio
from collections import OrderedDict
from typing import Final

from crawlkit.net.connect import NO_FILES, Opener, out_of_files
from crawlkit.net.request import Origin
from crawlkit.net.wire import Connection

_IDLE_S: Final = 30.0  # servers keep theirs from 5 to 75 s


class Pool:
    """Keeps up to `most_idle` connections for other requests, none for long; in use are as many as requests under way.

    `most_busy` says how many of those there will be. To be made in the loop that they run in; close it when there are none.
    """

    def __init__(self, opener: Opener, *, most_busy: int, most_idle: int = 256) -> None:
        self._opener = opener
        self._loop = asyncio.get_running_loop()
        self._most_busy = most_busy
        self._most_idle = most_idle
        self._open: set[Connection] = set()
        self._idle: OrderedDict[Connection, tuple[Origin, float]] = OrderedDict()  # since when, longest first
        self._of_origin: dict[Origin, list[Connection]] = {}
        self._sweeper: asyncio.TimerHandle | None = None
        self._one_lost = asyncio.Event()

    def take(self, origin: Origin) -> Connection | None:
        """Return the idle connection to `origin` that was used last, if there is one."""
        while kept := self._of_origin.get(origin):
            connection = kept.pop()
            if not kept:
                del self._of_origin[origin]
            del self._idle[connection]
            if not connection.lost and not connection.has_unread:
                return connection
            connection.abort()
        return None

    def give_back(self, origin: Origin, connection: Connection) -> None:
        """Keep a connection whose answer has been read; close one that is not fit for another request."""
        if not connection.fit:
            connection.abort()
            return
        self._idle[connection] = (origin, self._loop.time())
        self._of_origin.setdefault(origin, []).append(connection)
        if len(self._idle) > self._most_idle:
            self._drop_longest_idle()
        if self._sweeper is None:
            self._sweeper = self._loop.call_later(_IDLE_S, self._sweep)

    async def connect(self, origin: Origin) -> Connection:
        """Return a new connection to `origin`.

        Idle ones are given up for it where files run out. Raises what the opener does, and TooManyOpenFiles.
        """
        while True:
            try:
                return await self._opener.open(origin, self._new)
            except OSError as error:
                if error.errno not in NO_FILES:
                    raise
                if not self._idle:
                    raise out_of_files(self._most_busy - len(self._open)) from error
            while self._idle:
                self._drop_longest_idle()
            await asyncio.sleep(0)  # they are closed by the loop

    async def aclose(self) -> None:
        """Close all connections, and what finds addresses."""
        if self._sweeper is not None:
            self._sweeper.cancel()
        for connection in tuple(self._open):
            connection.abort()
        while self._open:
            self._one_lost.clear()
            await self._one_lost.wait()
        self._opener.close()

    def _new(self) -> Connection:
        return Connection(self._open.add, self._lost)

    def _lost(self, connection: Connection) -> None:
        self._one_lost.set()
        self._open.discard(connection)
        if connection in self._idle:
            self._forget(connection)

    def _forget(self, connection: Connection) -> None:
        """Take a connection off the idle ones."""
        origin, _ = self._idle.pop(connection)
        kept = self._of_origin[origin]
        kept.remove(connection)
        if not kept:
            del self._of_origin[origin]

    def _drop_longest_idle(self) -> None:
        connection = next(iter(self._idle))
        self._forget(connection)
        connection.abort()

    def _sweep(self) -> None:
        self._sweeper = None
        while self._idle:
            _, since_s = next(iter(self._idle.values()))
            if since_s + _IDLE_S > self._loop.time():
                self._sweeper = self._loop.call_at(since_s + _IDLE_S, self._sweep)
                return
            self._drop_longest_idle()
