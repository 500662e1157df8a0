"""New connections, opened straight at checked addresses; `proxy` has the other way to open one."""

import asyncio
import errno
import resource
import ssl
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, Protocol, TypeVar

import httpx

from crawlkit.errors import TooManyOpenFiles
from crawlkit.net.request import Origin
from crawlkit.net.resolver import GuardedResolver
from crawlkit.net.wire import Connection

NO_FILES: Final = (errno.EMFILE, errno.ENFILE)
_OTHER_FILES: Final = 32  # that come and go: name look-ups, the state's
_ATTEMPT_S: Final = 3.0  # for an address while another one is left; a lost SYN is sent again after one second
Opened = TypeVar("Opened")
MakeTls = Callable[[], ssl.SSLContext]
"""Returns what verifies servers, the same each time; made the first time, since reading all roots takes 30 ms."""


class Opener(Protocol):
    """How connections are opened."""

    async def open(self, origin: Origin, new: Callable[[], Connection]) -> Connection:
        """Return a connection, made by `new`, on which requests to `origin` are answered.

        Raises socket.gaierror; httpx.ConnectError, AddressRefusedError among them; httpx.ProxyError; OSError if files run out.
        """
        ...

    def close(self) -> None:
        """Give up what look-ups need."""
        ...


class Direct:
    """Opens connections to the origin itself."""

    def __init__(self, resolver: GuardedResolver, tls: MakeTls) -> None:
        self._resolver = resolver
        self._tls = tls

    async def open(self, origin: Origin, new: Callable[[], Connection]) -> Connection:
        """Open one at the first of the origin's checked addresses that takes it."""
        tls = self._tls() if origin.scheme == "https" else None

        async def attempt(address: str, port: int) -> Connection:
            connection = await open_at(address, port, new(), tls=tls, name=origin.host)
            connection.address = address
            return connection

        return await first_of(await self._resolver.addresses(origin.host, origin.port), attempt)

    def close(self) -> None:
        """Give up the resolver."""
        self._resolver.close()


async def open_at(address: str, port: int, connection: Connection, *, tls: ssl.SSLContext | None, name: str) -> Connection:
    """Return `connection`, open at an address; with TLS where `tls` is given, to `name`. Raises OSError, ssl.SSLError."""
    try:
        await asyncio.get_running_loop().create_connection(
            lambda: connection, address, port, ssl=tls, server_hostname=name.removesuffix(".") if tls else None
        )
    except BaseException:
        connection.abort()
        # uvloop, cancelled between making a connection and giving it, closes it and never says so.
        connection.connection_lost(None)
        raise
    return connection


async def first_of(addresses: Sequence[tuple[str, int]], attempt: Callable[[str, int], Awaitable[Opened]]) -> Opened:
    """Return what `attempt` opens at the first address where it does not fail, or is silent for some seconds.

    A failure of TLS ends it: the next address would show the same certificate. Raises httpx.ConnectError, OSError if files
    run out, and what `attempt` raises besides.
    """
    failure: OSError | None = None
    for number, (address, port) in enumerate(addresses, 1):
        try:
            async with asyncio.timeout(_ATTEMPT_S if number < len(addresses) else None):
                return await attempt(address, port)
        except ssl.SSLError as error:
            raise httpx.ConnectError(tls_failure(error)) from error
        except OSError as error:  # a TimeoutError is one
            if error.errno in NO_FILES:
                raise
            failure = error
    # The loop's own words are none where a handshake is reset.
    said = f"no connection within {_ATTEMPT_S:g} s" if isinstance(failure, TimeoutError) else "the connection was reset"
    raise httpx.ConnectError(str(failure) or said) from failure


def tls_failure(error: ssl.SSLError) -> str:
    """Return what kind of failure it is: of the certificate, in OpenSSL's own words, or of the handshake."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"certificate: {error.verify_message}"
    return f"TLS: {(error.reason or str(error)).replace('_', ' ').lower()}"


def out_of_files(more: int) -> TooManyOpenFiles:
    """Return what to say where a file is missing: `more` connections would be needed than there are."""
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = limit + more + _OTHER_FILES
    return TooManyOpenFiles(
        f"too many open files: this process may have {limit} and the crawl needs about {needed}; "
        f"raise the limit with `ulimit -n {needed}` or lower `workers`"
    )
