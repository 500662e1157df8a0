"""Rules, look-ups and the address guard."""

import asyncio
import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlkit.config_items import parse_networks
from crawlkit.errors import ConfigError
from crawlkit.net.resolver import (
    AddressRefusedError,
    GuardedResolver,
    Resolve,
    SystemDns,
    is_address_literal,
    parse_resolves,
    private_seed_addresses,
)
from tests.net.table_dns import TableDns

WEB = {
    "public.example": ("93.184.216.34", "2606:2800:220:1::1"),
    "inside.example": ("10.0.0.7", "::1"),
    "mixed.example": ("10.0.0.7", "93.184.216.34", "fe80::1%eth0"),
}


def addresses(resolver: GuardedResolver, host: str, port: int = 80) -> list[tuple[str, int]]:
    return asyncio.run(resolver.addresses(host, port))


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("a.example=127.0.0.1", Resolve("a.example", "127.0.0.1", None)),
        ("*.Example.com=127.0.0.1:8080", Resolve("*.example.com", "127.0.0.1", 8080)),
        (" *=93.184.216.34:65535 ", Resolve("*", "93.184.216.34", 65535)),
        ("a.example.=[::1]:80", Resolve("a.example", "::1", 80)),
        ("a.example=[::1]", Resolve("a.example", "::1", None)),
        ("a.example=2001:DB8::0:1", Resolve("a.example", "2001:db8::1", None)),
    ],
)
def test_a_rule_is_a_glob_an_address_and_perhaps_a_port(text: str, rule: Resolve) -> None:
    assert parse_resolves([text]) == (rule,)


@pytest.mark.parametrize(
    "text",
    [
        "", "a.example", "=127.0.0.1", "a.example=", "a.example=localhost", "a.example=127.0.0.1:", "a b=127.0.0.1",
        "a.example=127.0.0.1:0", "a.example=127.0.0.1:65536", "a.example=127.0.0.1:http", "a.example=127.1",
        "a.example=[::1", "a.example=[::1]80", "a.example=[127.0.0.1:80", "bücher.example=127.0.0.1",
        "a.example=127.0.0.1:٣",
    ],
)  # fmt: skip
def test_a_wrong_rule_is_a_config_error_of_one_line_that_shows_it(text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_resolves(["ok.example=127.0.0.1", text])
    assert text.strip()[:9] in str(caught.value)
    assert "\n" not in str(caught.value)


def test_rules_are_taken_in_order_and_the_first_that_matches_holds() -> None:
    rules = parse_resolves(["a.example=127.0.0.1:1", "*.example=127.0.0.2", "*=127.0.0.3:3"])
    resolver = GuardedResolver(rules, dns=TableDns({}))
    assert addresses(resolver, "a.example") == [("127.0.0.1", 1)]
    assert addresses(resolver, "b.example", 8080) == [("127.0.0.2", 8080)]
    assert addresses(resolver, "b.example.") == [("127.0.0.2", 80)]
    assert addresses(resolver, "c.test") == [("127.0.0.3", 3)]


def test_a_rule_allows_its_address_for_its_names_only() -> None:
    dns = TableDns({"b.example": ("127.0.0.1",)})
    resolver = GuardedResolver(parse_resolves(["a.example=127.0.0.1"]), dns=dns)
    assert addresses(resolver, "a.example") == [("127.0.0.1", 80)]
    with pytest.raises(AddressRefusedError):
        addresses(resolver, "b.example")


def test_a_name_leads_to_all_its_public_addresses() -> None:
    resolver = GuardedResolver(dns=TableDns(WEB))
    assert addresses(resolver, "public.example") == [("93.184.216.34", 80), ("2606:2800:220:1::1", 80)]


def test_a_name_that_points_inward_is_refused() -> None:
    with pytest.raises(AddressRefusedError, match=r"inside\.example"):
        addresses(GuardedResolver(dns=TableDns(WEB)), "inside.example")


def test_of_public_and_private_addresses_only_the_public_ones_are_used() -> None:
    assert addresses(GuardedResolver(dns=TableDns(WEB)), "mixed.example") == [("93.184.216.34", 80)]


def test_an_unknown_name_is_a_look_up_failure() -> None:
    with pytest.raises(socket.gaierror):
        addresses(GuardedResolver(dns=TableDns(WEB)), "unknown.example")


def test_a_seed_keeps_the_private_addresses_it_had_at_its_port_and_no_others() -> None:
    dns = TableDns(WEB)
    allowed = asyncio.run(private_seed_addresses(["http://inside.example:8080/a", "https://inside.example/"], dns))
    assert allowed == {"inside.example:8080": ("10.0.0.7", "::1"), "inside.example:443": ("10.0.0.7", "::1")}
    dns.table["inside.example"] = ("10.0.0.7", "10.0.0.8")
    resolver = GuardedResolver((), allowed, dns=dns)
    assert addresses(resolver, "inside.example", 8080) == [("10.0.0.7", 8080)]
    with pytest.raises(AddressRefusedError):
        addresses(resolver, "inside.example", 80)


def test_a_seed_that_turns_inward_later_is_refused() -> None:
    dns = TableDns(WEB)
    allowed = asyncio.run(private_seed_addresses(["http://public.example/"], dns))
    dns.table["public.example"] = ("127.0.0.1",)
    with pytest.raises(AddressRefusedError):
        addresses(GuardedResolver((), allowed, dns=dns), "public.example")


def test_seeds_without_private_addresses_are_not_listed() -> None:
    dns = TableDns(WEB)
    seeds = ["http://public.example/", "http://unknown.example/", "http://8.8.8.8/", "http://mixed.example/"]
    assert asyncio.run(private_seed_addresses(seeds, dns)) == {"mixed.example:80": ("10.0.0.7", "fe80::1%eth0")}
    assert dns.closed


def test_seeds_that_are_addresses_are_not_looked_up() -> None:
    seeds = ["http://127.0.0.1:8000/x", "https://[::1]/", "http://[fd00::1]:81/"]
    assert asyncio.run(private_seed_addresses(seeds, TableDns({}))) == {
        "127.0.0.1:8000": ("127.0.0.1",),
        "[::1]:443": ("::1",),
        "[fd00::1]:81": ("fd00::1",),
    }


def test_localhost_as_a_seed_may_be_reached() -> None:
    allowed = asyncio.run(private_seed_addresses(["http://localhost:8000/"]))
    assert "127.0.0.1" in allowed["localhost:8000"]
    assert ("127.0.0.1", 8000) in addresses(GuardedResolver((), allowed), "localhost", 8000)
    with pytest.raises(AddressRefusedError):
        addresses(GuardedResolver((), allowed), "localhost", 8001)


def test_addresses_in_an_allowed_network_may_be_reached_by_any_host_and_no_others() -> None:
    dns = TableDns({"in.example": ("10.0.0.7", "192.168.0.1", "::1"), "out.example": ("192.168.0.1",)})
    resolver = GuardedResolver((), {}, parse_networks(("10.0.0.0/8",)), dns=dns)
    assert addresses(resolver, "in.example") == [("10.0.0.7", 80)]
    assert addresses(resolver, "10.9.9.9", 81) == [("10.9.9.9", 81)]
    for host in ("out.example", "192.168.0.1", "::1"):
        with pytest.raises(AddressRefusedError):
            addresses(resolver, host)


@pytest.mark.parametrize("address", ["127.0.0.1", "10.0.0.7", "169.254.0.1", "100.64.0.1", "::1", "fe80::1", "::ffff:10.0.0.7"])
def test_every_private_address_may_be_reached_where_all_are_allowed(address: str) -> None:
    resolver = GuardedResolver((), {}, parse_networks(("all",)), dns=TableDns({"a.example": (address,)}))
    assert addresses(resolver, "a.example") == [(address, 80)]


METADATA = ["169.254.169.254", "fd00:ec2::254", "::ffff:169.254.169.254", "64:ff9b::a9fe:a9fe"]


@pytest.mark.parametrize("address", METADATA)
def test_a_metadata_service_is_closed_to_links_and_to_names_whatever_network_is_allowed(address: str) -> None:
    dns = TableDns({"a.example": (address,)})
    resolver = GuardedResolver((), {}, parse_networks(("all", "169.254.0.0/16")), dns=dns)
    for host in (address, "a.example"):
        with pytest.raises(AddressRefusedError):
            addresses(resolver, host)


@pytest.mark.parametrize("address", METADATA)
def test_a_metadata_service_is_open_to_a_seed_that_spells_it_out_and_to_no_seed_s_name(address: str) -> None:
    host = f"[{address}]" if ":" in address else address
    dns = TableDns({"a.example": (address, "10.0.0.7")})
    allowed = asyncio.run(private_seed_addresses([f"http://{host}/", "http://a.example/"], dns))
    assert allowed == {f"{host}:80": (address,), "a.example:80": ("10.0.0.7",)}
    assert addresses(GuardedResolver((), allowed, dns=dns), address) == [(address, 80)]


@pytest.mark.parametrize("host", ["127.0.0.1", "10.0.0.1", "::1", "::ffff:7f00:1", "fe80::1", "0.0.0.0"])
def test_a_private_address_as_host_is_refused(host: str) -> None:
    with pytest.raises(AddressRefusedError):
        addresses(GuardedResolver(parse_resolves(["*=127.0.0.1"]), dns=TableDns({})), host)


def test_an_address_as_host_is_allowed_at_the_seeds_port_only() -> None:
    resolver = GuardedResolver((), {"127.0.0.1:80": ("127.0.0.1",), "[::1]:80": ("::1",)}, dns=TableDns({}))
    for host in ("127.0.0.1", "::1", "93.184.216.34"):
        assert addresses(resolver, host) == [(host, 80)]
    for host in ("127.0.0.1", "::1"):
        with pytest.raises(AddressRefusedError):
            addresses(resolver, host, 81)


def test_answers_are_remembered_and_failures_are_not() -> None:
    dns = TableDns(WEB)

    async def ask_twice() -> None:
        resolver = GuardedResolver(dns=dns)
        for _ in range(2):
            await resolver.addresses("public.example", 80)
            await resolver.addresses("public.example", 443)
            with pytest.raises(socket.gaierror):
                await resolver.addresses("unknown.example", 80)

    asyncio.run(ask_twice())
    assert dns.asked == ["public.example", "unknown.example", "unknown.example"]


def test_the_memory_of_answers_is_bounded() -> None:
    names = [f"h{n}.example" for n in range(5000)]
    dns = TableDns(dict.fromkeys(names, ("93.184.216.34",)))

    async def ask_all() -> None:
        resolver = GuardedResolver(dns=dns)
        for name in [*names, names[-1], names[0]]:
            await resolver.addresses(name, 80)

    asyncio.run(ask_all())
    assert dns.asked == [*names, names[0]]  # the last is remembered, the first was let go


@pytest.mark.parametrize("host", ["a" * 64 + ".example", "a..example", ".", "", ".".join(["abcdefgh"] * 29)])
def test_a_name_that_dns_cannot_hold_is_a_look_up_failure(host: str) -> None:
    dns = SystemDns()
    with pytest.raises(socket.gaierror):
        asyncio.run(dns.look_up(host))
    dns.close()


@given(st.ip_addresses().map(str))
def test_every_address_is_known_as_one(address: str) -> None:
    assert is_address_literal(address)


@pytest.mark.parametrize("host", ["a.example", "1.example", "0x7f.example", "localhost", "1.1.1.1.example", "a1.b", ""])
def test_names_are_not_taken_for_addresses(host: str) -> None:
    assert not is_address_literal(host)
