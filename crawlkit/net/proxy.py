"""Connections through an HTTP proxy that the settings name: forwarded requests for http, tunnels for https.

The guard holds. A name is resolved and checked here, and a tunnel is asked for the address that was checked. Only a
forwarded request goes by name (RFC 9112 section 3.2.2 has the proxy look at nothing else), so there the proxy's own
look-up decides; a `--resolve` rule is kept by a tunnel. Where `names_are_its_own`, for networks whose names only the proxy
can resolve, names are neither looked up nor checked; addresses in URLs always are. The proxy itself may be anywhere.
"""

import asyncio
import socket
from collections.abc import Callable
from http.client import responses
from typing import Final

import httpx
import msgspec

from crawlkit.net.connect import MakeTls, first_of, open_at
from crawlkit.net.request import DEFAULT_PORTS, Origin
from crawlkit.net.resolver import GuardedResolver, check_name, host_port, is_address_literal
from crawlkit.net.wire import Connection, Forward

PROXY_REFUSES: Final = 407
_NOT_REACHED: Final = (502, 503, 504)  # what proxies say where the host has no name, no open port or no time


class ProxyFailedError(httpx.ProxyError):
    """The proxy, not the host, is why there is no answer."""


class _NotReachedError(OSError):
    """The proxy found no way to an address."""


class Proxy(msgspec.Struct, frozen=True):
    """A proxy at `origin`. `proof` is the value of Proxy-Authorization."""

    origin: Origin
    proof: bytes | None = None
    names_are_its_own: bool = False

    def __repr__(self) -> str:  # a proof is a secret
        return f"Proxy(origin={self.origin!r}, names_are_its_own={self.names_are_its_own!r})"

    @property
    def fields(self) -> bytes:
        """What it is told about who asks: header lines."""
        return b"" if self.proof is None else b"Proxy-Authorization: %b\r\n" % self.proof


class ThroughProxy:
    """Opens connections through a proxy. `tls` verifies it and the servers behind it alike."""

    def __init__(self, proxy: Proxy, resolver: GuardedResolver, tls: MakeTls) -> None:
        self._proxy = proxy
        self._resolver = resolver
        self._tls = tls

    async def open(self, origin: Origin, new: Callable[[], Connection]) -> Connection:
        """Open a connection to the proxy for a plain origin, a tunnel for one with TLS or of which a rule says where it is."""
        has_rule = self._resolver.has_rule(origin.host)
        if self._proxy.names_are_its_own and not has_rule and not is_address_literal(origin.host):
            check_name(origin.host)
            addresses = [(origin.host, origin.port)]
        else:
            addresses = await self._checked(origin)
        if origin.scheme == "http" and not has_rule:
            connection = await self._reach(new)
            connection.forward = Forward(f"http://{_authority(origin)}".encode(), self._proxy.fields)
            return connection

        async def attempt(address: str, port: int) -> Connection:
            connection = await self._tunnel(origin, host_port(address, port), new)
            connection.address = address if is_address_literal(address) else None
            return connection

        return await first_of(addresses, attempt)

    def close(self) -> None:
        """Give up the resolver."""
        self._resolver.close()

    async def _checked(self, origin: Origin) -> list[tuple[str, int]]:
        try:
            return await self._resolver.addresses(origin.host, origin.port)
        except socket.gaierror as error:
            said = f"{error.strerror or error}; it is looked up here, not by the proxy, unless allow_private is all"
            raise socket.gaierror(error.errno, said) from error

    async def _reach(self, new: Callable[[], Connection]) -> Connection:
        scheme, host, port = self._proxy.origin
        tls = self._tls() if scheme == "https" else None

        async def attempt(address: str, port: int) -> Connection:
            return await open_at(address, port, new(), tls=tls, name=host)

        try:
            return await first_of(await self._resolver.unguarded(host, port), attempt)
        except (httpx.ConnectError, socket.gaierror) as error:
            raise ProxyFailedError(f"the proxy {host_port(host, port)}: {error}") from error

    async def _tunnel(self, origin: Origin, target: str, new: Callable[[], Connection]) -> Connection:
        """Return a connection to `target` (an address and a port) through the proxy, with TLS where `origin` has it."""
        asked = await self._reach(new)
        try:
            await self._ask_for_tunnel(asked, target)
            transport = asked.hand_over()
        except BaseException as error:
            asked.abort()
            if isinstance(error, httpx.TransportError) and not isinstance(error, ProxyFailedError):
                raise ProxyFailedError(f"the proxy: {error}") from error
            raise
        try:
            return await self._begin(origin, transport, new())
        except BaseException:
            transport.abort()
            raise

    async def _begin(self, origin: Origin, transport: asyncio.Transport, connection: Connection) -> Connection:
        """Let `connection` go on with what is now a transport to the origin itself."""
        inner: asyncio.Transport | None = transport
        if origin.scheme == "https":
            name, loop = origin.host.removesuffix("."), asyncio.get_running_loop()
            inner = await loop.start_tls(transport, connection, self._tls(), server_hostname=name)
        else:
            transport.set_protocol(connection)
        connection.connection_made(inner or transport)
        return connection

    async def _ask_for_tunnel(self, connection: Connection, target: str) -> None:
        authority = target.encode()
        await connection.ask(b"CONNECT %b HTTP/1.1\r\nHost: %b\r\n%b\r\n" % (authority, authority, self._proxy.fields))
        status = connection.status
        if status in _NOT_REACHED:
            raise _NotReachedError(f"the proxy answers {_named(status)} to CONNECT {target}")
        if not 200 <= status < 300:
            raise refusal(status, f"CONNECT {target}")


def refusal(status: int, request: str) -> ProxyFailedError:
    """Return what it means that the proxy itself answers `request` so."""
    way_out = ": name where its user:password is read with proxy_auth, or correct it" if status == PROXY_REFUSES else ""
    return ProxyFailedError(f"the proxy answers {_named(status)} to {request}{way_out}")


def _named(status: int) -> str:
    return f"{status} {responses[status]}" if status in responses else str(status)


def _authority(origin: Origin) -> str:
    if origin.port != DEFAULT_PORTS[origin.scheme]:
        return host_port(origin.host, origin.port)
    return f"[{origin.host}]" if ":" in origin.host else origin.host
