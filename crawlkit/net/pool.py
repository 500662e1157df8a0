"""Connections kept for the next request to the same origin, and new ones opened at checked addresses."""

import asyncio
import errno
import resource
import ssl
from collections import OrderedDict
from typing import Final

import httpx

from crawlkit.errors import TooManyOpenFiles
from crawlkit.net.request import Origin
from crawlkit.net.resolver import GuardedResolver
from crawlkit.net.wire import Connection

_IDLE_S: Final = 30.0  # servers keep theirs from 5 to 75 s
_ATTEMPT_S: Final = 3.0  # for an address while another one is left; a lost SYN is sent again after one second
_NO_FILES: Final = (errno.EMFILE, errno.ENFILE)
_OTHER_FILES: Final = 32  # that come and go: name look-ups, the state's


class Pool:
    """Keeps up to `most_idle` connections for other requests, none for long; in use are as many as requests under way.

    `most_busy` says how many of those there will be. Close it when there are none.
    """

    def __init__(self, resolver: GuardedResolver, tls: ssl.SSLContext, *, most_busy: int, most_idle: int = 256) -> None:
        self._resolver = resolver
        self._tls = tls
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
            connection = kept[-1]
            self._forget(connection)
            if not connection.lost and not connection.has_unread:
                return connection
            connection.abort()
        return None

    def give_back(self, origin: Origin, connection: Connection) -> None:
        """Keep a connection whose answer has been read; close one that is not fit for another request."""
        if not connection.fit:
            connection.abort()
            return
        loop = asyncio.get_running_loop()
        self._idle[connection] = (origin, loop.time())
        self._of_origin.setdefault(origin, []).append(connection)
        if len(self._idle) > self._most_idle:
            self._drop_longest_idle()
        if self._sweeper is None:
            self._sweeper = loop.call_later(_IDLE_S, self._sweep)

    async def connect(self, origin: Origin) -> Connection:
        """Return a new connection to `origin`, at the first of its checked addresses that takes one.

        Idle ones are given up for it where files run out. Raises socket.gaierror; httpx.ConnectError, AddressRefusedError
        among them; TooManyOpenFiles.
        """
        while True:
            try:
                return await self._try_addresses(origin)
            except OSError as error:
                if error.errno not in _NO_FILES:
                    raise
                if not self._idle:
                    raise self._out_of_files() from error
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
        self._resolver.close()

    async def _try_addresses(self, origin: Origin) -> Connection:
        addresses = await self._resolver.addresses(origin.host, origin.port)
        failure: OSError | None = None
        for number, (address, port) in enumerate(addresses, 1):
            try:
                async with asyncio.timeout(_ATTEMPT_S if number < len(addresses) else None):
                    return await self._open_at(origin, address, port)
            except ssl.SSLError as error:
                raise httpx.ConnectError(_tls_failure(error)) from error
            except OSError as error:  # a TimeoutError is one
                if error.errno in _NO_FILES:
                    raise
                failure = error
        raise httpx.ConnectError(str(failure) or f"no connection within {_ATTEMPT_S:g} s") from failure

    async def _open_at(self, origin: Origin, address: str, port: int) -> Connection:
        connection = Connection(self._lost)
        tls = self._tls if origin.scheme == "https" else None
        name = origin.host.removesuffix(".") if tls else None
        self._open.add(connection)
        try:
            await asyncio.get_running_loop().create_connection(lambda: connection, address, port, ssl=tls, server_hostname=name)
        except BaseException:
            connection.abort()
            self._open.discard(connection)
            raise
        return connection

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
        loop = asyncio.get_running_loop()
        self._sweeper = None
        while self._idle:
            _, since_s = next(iter(self._idle.values()))
            if since_s + _IDLE_S > loop.time():
                self._sweeper = loop.call_at(since_s + _IDLE_S, self._sweep)
                return
            self._drop_longest_idle()

    def _out_of_files(self) -> TooManyOpenFiles:
        limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        needed = limit - len(self._open) + self._most_busy + _OTHER_FILES
        return TooManyOpenFiles(
            f"too many open files: this process may have {limit} and the crawl needs about {needed}; "
            f"raise the limit with `ulimit -n {needed}` or lower `workers`"
        )


def _tls_failure(error: ssl.SSLError) -> str:
    """Return what kind of failure it is: of the certificate, in OpenSSL's own words, or of the handshake."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"certificate: {error.verify_message}"
    return f"TLS: {(error.reason or str(error)).replace('_', ' ').lower()}"
