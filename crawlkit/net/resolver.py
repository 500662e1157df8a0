"""Host names to addresses, and the guard: nothing but checked addresses ever reaches a connect.

The guard sits behind the look-up, so a name that points inward and a name that changes its mind are caught alike. Three
things open it: a `--resolve` rule and the private addresses a seed's host and port had when the crawl was seeded, each
no further than its host, and `--allow-private` for all of a network but a cloud's metadata service.
"""

import asyncio
import fnmatch
import os
import socket
from collections import OrderedDict
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final, Protocol

import httpx
import msgspec

from crawlkit.config_items import Network, parse_resolve
from crawlkit.errors import ConfigError
from crawlkit.net.addresses import is_in, is_metadata, is_public
from crawlkit.net.request import Origin

_TTL_S: Final = 60.0  # getaddrinfo tells no TTL; a minute is what browsers assume
_CACHED_HOSTS: Final = 4096


class AddressRefusedError(httpx.ConnectError):
    """All addresses of a host are private, and nothing allows them."""


class Resolve(msgspec.Struct, frozen=True):
    """One `--resolve` rule: host names that match `glob` connect to `address`, and to `port` where one is given."""

    glob: str
    address: str
    port: int | None = None


def parse_resolves(texts: Sequence[str]) -> tuple[Resolve, ...]:
    """Return the rules that `GLOB=ADDR[:PORT]` texts stand for, in order; ConfigError names the one that is wrong."""
    return tuple(map(_rule_of, texts))


def _rule_of(text: str) -> Resolve:
    try:
        glob, address, port = parse_resolve(text)
    except ValueError as error:
        raise ConfigError(f"resolve: {text!r} is not GLOB=ADDR[:PORT], as in *.example.com=127.0.0.1:8080 ({error})") from error
    return Resolve(glob.lower().rstrip("."), address, port)


def is_address_literal(host: str) -> bool:
    """Return whether the host of a URL (normal form, without brackets) is an IP address.

    WHATWG URL section 3.5: a host that ends in a number is an IPv4 address, or the URL is none.
    """
    return ":" in host or host[-1:].isdigit()


def host_port(host: str, port: int) -> str:
    """Return `host:port`, the key of the allowed private addresses; `host` comes without brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


class Dns(Protocol):
    """Where addresses come from."""

    async def look_up(self, host: str) -> tuple[str, ...]:
        """Return the addresses of a name, each once, best first, at least one; raises socket.gaierror."""
        ...

    def close(self) -> None:
        """Give up what look-ups need."""
        ...


class SystemDns:
    """The system's look-up. `threads` bounds those under way.

    getaddrinfo blocks, and the loop's own few threads (four in uvloop) would make good hosts wait for dead ones.
    """

    def __init__(self, threads: int = 16) -> None:
        self._threads = ThreadPoolExecutor(threads, "dns")

    async def look_up(self, host: str) -> tuple[str, ...]:
        """Return the addresses of a name, in the system's order; raises socket.gaierror, OSError if files run out."""
        check_name(host)
        return await asyncio.get_running_loop().run_in_executor(self._threads, _ask_system, host)

    def close(self) -> None:
        """Give up the threads; a look-up under way ends on its own."""
        self._threads.shutdown(wait=False, cancel_futures=True)


def _ask_system(host: str) -> tuple[str, ...]:
    try:
        # Bytes, because a str would pass through Python's "idna" codec, which raises for names that DNS could answer.
        infos = socket.getaddrinfo(host.encode(), None, socket.AF_UNSPEC, socket.SOCK_STREAM)
    except OSError as error:
        # Where no more files can be opened, the C library says of any name that it does not exist: that must not be believed.
        os.close(os.open(os.devnull, os.O_RDONLY))
        if isinstance(error, socket.gaierror):
            raise
        raise socket.gaierror(socket.EAI_SYSTEM, str(error)) from error
    return tuple(dict.fromkeys(str(sockaddr[0]) for *_, sockaddr in infos))


def check_name(host: str) -> None:
    """Raise socket.gaierror for a name that DNS cannot hold (RFC 1035 section 2.3.4); TLS would raise on it too."""
    labels = host.removesuffix(".").split(".")
    if len(host) > 254 or not all(0 < len(label) < 64 for label in labels):
        raise socket.gaierror(socket.EAI_NONAME, "not a valid host name")


async def private_seed_addresses(
    seeds: Sequence[str], dns: Dns | None = None, *, rules: Sequence[Resolve] = ()
) -> dict[str, tuple[str, ...]]:
    """Return the private addresses that the hosts of `seeds` (URLs in normal form) have now, by `host:port`.

    Hosts without any, hosts that cannot be resolved, and names that `rules` lead elsewhere (they are not looked up) are not
    in it; nor is the address of a cloud's metadata service, but where a seed spells it out.
    """
    hosts = {
        host_port(host, port): host
        for _, host, port in map(Origin.of, seeds)
        if is_address_literal(host) or _rule_for(host, rules) is None
    }
    source = dns or SystemDns(threads=32)
    try:
        found = await asyncio.gather(*(_private_addresses(host, source) for host in hosts.values()))
    finally:
        source.close()
    return {key: addresses for key, addresses in zip(hosts, found, strict=True) if addresses}


def _rule_for(host: str, rules: Sequence[Resolve]) -> Resolve | None:
    name = host.removesuffix(".")
    return next((rule for rule in rules if fnmatch.fnmatchcase(name, rule.glob)), None)


async def _private_addresses(host: str, dns: Dns) -> tuple[str, ...]:
    try:
        if is_address_literal(host):
            return () if is_public(host) else (host,)
        return tuple(address for address in await dns.look_up(host) if not (is_public(address) or is_metadata(address)))
    except socket.gaierror:
        return ()


class GuardedResolver:
    """Where to connect: rules first, then a look-up, remembered for a minute, then the guard.

    `allowed` is what `private_seed_addresses` returned when the crawl was seeded. `networks` are open to all hosts.
    """

    def __init__(
        self,
        rules: Sequence[Resolve] = (),
        allowed: Mapping[str, Collection[str]] | None = None,
        networks: Sequence[Network] = (),
        *,
        dns: Dns | None = None,
    ) -> None:
        self._networks = tuple(networks)
        self._rules = tuple(rules)
        self._allowed = {key: frozenset(addresses) for key, addresses in (allowed or {}).items()}
        self._dns = dns or SystemDns()
        self._cache: OrderedDict[str, tuple[float, tuple[str, ...]]] = OrderedDict()

    async def addresses(self, host: str, port: int) -> list[tuple[str, int]]:
        """Return the addresses and ports to connect to for `host:port` (without brackets), best first, at least one.

        A host that is an address is itself: rules are for names. Raises socket.gaierror or AddressRefusedError.
        """
        if is_address_literal(host):
            if not self._may_connect(host, host, port):
                raise AddressRefusedError(f"{host} is a private address")
            return [(host, port)]
        check_name(host)
        rule = _rule_for(host, self._rules)
        if rule is not None:
            return [(rule.address, rule.port or port)]
        found = await self._look_up(host)
        allowed = [(address, port) for address in found if self._may_connect(address, host, port)]
        if not allowed:
            raise AddressRefusedError(f"{host} resolves to {', '.join(found)}: private")
        return allowed

    def has_rule(self, host: str) -> bool:
        """Return whether a rule says where `host` is."""
        return not is_address_literal(host) and _rule_for(host, self._rules) is not None

    async def unguarded(self, host: str, port: int) -> list[tuple[str, int]]:
        """Return where to connect to for a host that the user named for this very purpose; raises socket.gaierror."""
        if is_address_literal(host):
            return [(host, port)]
        check_name(host)
        return [(address, port) for address in await self._look_up(host)]

    def _may_connect(self, address: str, host: str, port: int) -> bool:
        if is_public(address) or address in self._allowed.get(host_port(host, port), ()):
            return True
        return is_in(address, self._networks) and not is_metadata(address)

    async def _look_up(self, host: str) -> tuple[str, ...]:
        now_s = asyncio.get_running_loop().time()
        cached = self._cache.get(host)
        if cached is not None and cached[0] > now_s:
            return cached[1]
        addresses = await self._dns.look_up(host)
        self._cache[host] = (now_s + _TTL_S, addresses)
        self._cache.move_to_end(host)
        if len(self._cache) > _CACHED_HOSTS:
            self._cache.popitem(last=False)
        return addresses

    def allow(self, allowed: Mapping[str, Collection[str]]) -> None:
        """Let seeds that are added keep the private addresses they have, like those before them."""
        for place, addresses in allowed.items():
            self._allowed[place] = self._allowed.get(place, frozenset()).union(addresses)

    def close(self) -> None:
        """Give up what look-ups need."""
        self._dns.close()
