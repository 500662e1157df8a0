"""Which IP addresses belong to the public internet.

The rest are what a link must not make the crawler connect to: the machine itself, its network, a cloud's metadata
service. Judged by the IANA special-purpose registries (RFC 6890) as Python's `ipaddress` holds them, made stricter
where an IPv6 address carries an IPv4 one: then the inner address decides.
"""

import ipaddress
from collections.abc import Sequence
from typing import Final

from crawlkit.config_items import Network

_GLOBAL_UNICAST: Final = ipaddress.IPv6Network("2000::/3")  # the only IPv6 space handed out so far (RFC 4291 section 2.4)
_NAT64: Final = ipaddress.IPv6Network("64:ff9b::/96")  # RFC 6052; its local twin 64:ff9b:1::/48 is outside of 2000::/3
_TEREDO: Final = ipaddress.IPv6Network("2001::/32")  # RFC 4380: the inner address is a client's, no server lives there
_METADATA: Final = frozenset(
    map(
        ipaddress.ip_address,
        (
            *("169.254.169.254", "fd00:ec2::254", "fd20:ce::254"),  # most clouds; Amazon; Google
            *("169.254.170.2", "169.254.170.23", "fd00:ec2::23"),  # Amazon's containers
            *("100.100.100.200", "192.0.0.192"),  # Alibaba; Oracle
        ),
    )
)


def is_public(address: str) -> bool:
    """Return whether `address`, an IPv4 or IPv6 literal without brackets, is globally reachable unicast.

    Raises ValueError if it is no address.
    """
    ip = ipaddress.ip_address(address)
    if isinstance(ip, ipaddress.IPv4Address):
        return _is_public_v4(ip)
    inner = _inner_v4(ip)
    if inner is not None:
        return _is_public_v4(inner)
    return ip in _GLOBAL_UNICAST and ip not in _TEREDO and ip.is_global


def _is_public_v4(ip: ipaddress.IPv4Address) -> bool:
    return ip.is_global and not (ip.is_multicast or ip.is_reserved)


def _inner_v4(ip: ipaddress.IPv6Address) -> ipaddress.IPv4Address | None:
    """Return the IPv4 address inside of a mapped (RFC 4291), NAT64 or 6to4 (RFC 3056) one."""
    if ip in _NAT64:
        return ipaddress.IPv4Address(int(ip) & 0xFFFF_FFFF)
    return ip.ipv4_mapped or ip.sixtofour


def is_metadata(address: str) -> bool:
    """Return whether `address` is where a cloud tells its machines their secrets. Raises ValueError if it is none."""
    return not _METADATA.isdisjoint(_spellings(address))


def is_in(address: str, networks: Sequence[Network]) -> bool:
    """Return whether `address`, or the IPv4 one inside of it, is in one of `networks`. Raises ValueError if it is none."""
    return any(ip in network for ip in _spellings(address) for network in networks)


def _spellings(address: str) -> tuple[ipaddress.IPv4Address | ipaddress.IPv6Address, ...]:
    ip = ipaddress.ip_address(address.partition("%")[0])  # a zone is of this machine, not of the address
    inner = None if isinstance(ip, ipaddress.IPv4Address) else _inner_v4(ip)
    return (ip,) if inner is None else (ip, inner)
