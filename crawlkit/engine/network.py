"""The network as the settings ask for it: whom names lead to, what may be connected to, what proves who a server is."""

from collections.abc import Collection, Mapping

from crawlkit.config import Config
from crawlkit.config_items import parse_networks
from crawlkit.net.resolver import GuardedResolver, parse_resolves
from crawlkit.net.transport import Transport, open_transport, unverified_tls

UNVERIFIED = "warning: certificates are not verified (insecure): anyone on the way can read and change what is sent"
"""What is said wherever `insecure` is in force."""


def open_network(config: Config, private: Mapping[str, Collection[str]], *, connections: int) -> Transport:
    """Open a transport, in a running loop; `aclose` it.

    `private` is what `private_seed_addresses` returned. `connections` is the most that will be in use at once.
    """
    resolver = GuardedResolver(parse_resolves(config.resolve), private, parse_networks(config.allow_private))
    return open_transport(resolver, connections=connections, tls=unverified_tls() if config.insecure else None)
