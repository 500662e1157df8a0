"""What counts as a public address."""

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlkit.net.addresses import is_in, is_metadata, is_public

PUBLIC = ["93.184.216.34", "8.8.8.8", "100.63.255.255", "100.128.0.0", "172.32.0.1", "2606:2800:220:1::1", "2a00::1"]
PRIVATE = [
    "127.0.0.1", "127.255.255.254", "0.0.0.0", "10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1",
    "169.254.169.254", "100.64.0.1", "100.127.255.255", "224.0.0.1", "239.1.1.1", "240.0.0.1", "255.255.255.255",
    "192.0.2.1", "198.18.0.1", "198.51.100.1", "203.0.113.1",
    "::", "::1", "fe80::1", "fe80::1%eth0", "fc00::1", "fd12:3456::1", "ff02::1", "fec0::1", "2001:db8::1",
]  # fmt: skip
WRAPPERS = ["::ffff:{}", "64:ff9b::{}", "2002:{hex}::1"]


def wrapped(template: str, inner: str) -> str:
    packed = ipaddress.IPv4Address(inner).packed.hex()
    return template.format(inner, hex=f"{packed[:4]}:{packed[4:]}")


@pytest.mark.parametrize("address", PUBLIC)
def test_addresses_of_the_internet_are_public(address: str) -> None:
    assert is_public(address)


@pytest.mark.parametrize("address", PRIVATE)
def test_loopback_private_shared_link_local_multicast_reserved_and_documentation_are_not(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize("template", WRAPPERS)
@pytest.mark.parametrize("inner", [a for a in PRIVATE if "." in a])
def test_a_private_ipv4_address_inside_of_an_ipv6_one_stays_private(template: str, inner: str) -> None:
    assert not is_public(wrapped(template, inner))


@pytest.mark.parametrize("template", WRAPPERS)
def test_a_public_ipv4_address_inside_of_an_ipv6_one_stays_public(template: str) -> None:
    assert is_public(wrapped(template, "93.184.216.34"))


@pytest.mark.parametrize("address", ["::127.0.0.1", "64:ff9b:1::7f00:1", "2001:0:7f00:1::1", "4000::1", "100::1"])
def test_ipv6_space_that_is_not_handed_out_for_servers_is_private(address: str) -> None:
    assert not is_public(address)


@given(st.ip_addresses(v=4))
def test_wrapping_never_changes_the_judgement(inner: ipaddress.IPv4Address) -> None:
    assert {is_public(wrapped(template, str(inner))) for template in WRAPPERS} == {is_public(str(inner))}


@given(st.ip_addresses(v=6))
def test_what_python_calls_private_is_never_public(address: ipaddress.IPv6Address) -> None:
    carries_v4 = address.sixtofour or address.ipv4_mapped or address in ipaddress.ip_network("64:ff9b::/96")
    if is_public(str(address)) and not carries_v4:
        assert address.is_global
        assert not address.is_multicast
        assert not address.is_reserved


def test_what_is_no_address_is_an_error() -> None:
    with pytest.raises(ValueError, match="does not appear to be"):
        is_public("localhost")


@pytest.mark.parametrize("address", ["169.254.169.254", "100.100.100.200", "192.0.0.192"])
@pytest.mark.parametrize("template", ["{}", *WRAPPERS])
def test_metadata_services_are_known_in_every_form(template: str, address: str) -> None:
    assert is_metadata(wrapped(template, address))


@pytest.mark.parametrize("address", ["fd00:ec2::254", "fd00:0ec2:0::254", "fd00:ec2::254%eth0", "fd20:ce::254"])
def test_metadata_services_have_ipv6_addresses_too(address: str) -> None:
    assert is_metadata(address)


@pytest.mark.parametrize("address", [*PUBLIC, "169.254.169.253", "10.0.0.1", "fd00:ec2::255", "::1"])
def test_other_addresses_are_no_metadata_services(address: str) -> None:
    assert not is_metadata(address)


@pytest.mark.parametrize("template", ["{}", *WRAPPERS])
def test_an_address_is_in_a_network_in_every_form(template: str) -> None:
    networks = (ipaddress.ip_network("fd00::/8"), ipaddress.ip_network("10.0.0.0/8"))
    assert is_in(wrapped(template, "10.1.2.3"), networks)
    assert not is_in(wrapped(template, "11.1.2.3"), networks)
    assert not is_in(wrapped(template, "10.1.2.3"), ())
    assert is_in("fd00::1%eth0", networks)
