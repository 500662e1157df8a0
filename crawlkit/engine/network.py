"""The network as the settings ask for it: whom names lead to, what may be connected to, what proves who a server is."""

import importlib.util
import os
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Final

from crawlkit.config import Config
from crawlkit.config_items import ALL_NETWORKS, parse_networks
from crawlkit.errors import ConfigError
from crawlkit.model import GroupBy
from crawlkit.net.proxy import Proxy
from crawlkit.net.request import Origin
from crawlkit.net.resolver import GuardedResolver, is_address_literal, parse_resolves, private_seed_addresses
from crawlkit.net.steady import SteadyResolver
from crawlkit.net.transport import Transport, open_transport, unverified_tls, verified_tls

_CERTIFICATE: Final = b"CERTIFICATE-----"
UNVERIFIED = "warning: certificates are not verified (insecure): anyone on the way can read and change what is sent"
"""What is said wherever `insecure` is in force."""


def open_resolver(config: Config, private: Mapping[str, Collection[str]]) -> GuardedResolver:
    """Return what finds and checks addresses. `private` is what `seeds_private_addresses` returned."""
    kind = SteadyResolver if config.group_by is GroupBy.ADDRESS else GuardedResolver
    return kind(parse_resolves(config.resolve), private, parse_networks(config.allow_private))


def open_network(config: Config, resolver: GuardedResolver, *, connections: int, proxy_proof: bytes | None = None) -> Transport:
    """Open a transport, in a running loop; `aclose` it.

    It owns `resolver` from now on. `connections` is the most that will be in use at once. `proxy_proof`
    is what the proxy is told, if there is one.
    """
    tls = unverified_tls() if config.insecure else None
    ours = open_transport(resolver, connections=connections, tls=tls, proxy=_proxy_of(config, proxy_proof))
    if not config.http2:
        return ours
    from crawlkit.net.http2 import Http2Transport  # noqa: PLC0415  (its packages are an extra)

    return Http2Transport(ours, resolver, tls or verified_tls(), connections=connections)


def check_network(config: Config) -> None:
    """Raise ConfigError for settings that there is no network for."""
    if not config.insecure:
        _check_roots()
    if config.proxy is not None and config.group_by is GroupBy.ADDRESS:
        raise ConfigError("group_by: what is behind a proxy has no address; leave out one of group_by and proxy")
    if not config.http2:
        return
    if config.proxy is not None:
        raise ConfigError("http2: not through a proxy; leave out one of http2 and proxy")
    if importlib.util.find_spec("h2") is None:
        raise ConfigError("http2: the package h2 is not installed; install it with pip install 'crawlkit[http2]'")


def _check_roots() -> None:
    """Look into the file of roots that the environment names, if any; all of it is read for https alone (30 ms)."""
    named = os.environ.get("SSL_CERT_FILE")
    if not named:
        return
    try:
        held = Path(named).read_bytes()
    except OSError as error:
        raise ConfigError(f"SSL_CERT_FILE: {named} cannot be read: {error.strerror}") from error
    if _CERTIFICATE not in held:
        raise ConfigError(f"SSL_CERT_FILE: there is no certificate in {named}")


def _proxy_of(config: Config, proof: bytes | None) -> Proxy | None:
    if config.proxy is None:
        return None
    return Proxy(Origin.of(config.proxy), proof, names_are_its_own=_names_are_the_proxys(config))


def _names_are_the_proxys(config: Config) -> bool:
    return config.proxy is not None and ALL_NETWORKS in config.allow_private


async def seeds_private_addresses(seeds: Sequence[str], config: Config) -> dict[str, tuple[str, ...]]:
    """Return what `private_seed_addresses` does for `seeds`, whose names are not looked up where that is the proxy's to do."""
    if _names_are_the_proxys(config):
        seeds = [seed for seed in seeds if is_address_literal(Origin.of(seed).host)]
    return await private_seed_addresses(seeds, rules=parse_resolves(config.resolve))
