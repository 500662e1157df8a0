"""A name leads to one of its addresses at a time."""

import asyncio

import pytest

from crawlkit.net.resolver import AddressRefusedError, parse_resolves
from crawlkit.net.steady import SteadyResolver
from tests.net.table_dns import TableDns

ONE, TWO, THREE = "93.184.216.1", "93.184.216.2", "93.184.216.3"


def ask(resolver: SteadyResolver, host: str = "a.example") -> tuple[str, int]:
    [place] = asyncio.run(resolver.addresses(host, 80))
    return place


def test_one_address_is_given_the_same_for_as_long_as_it_is_among_them() -> None:
    dns = TableDns({"a.example": (ONE, TWO)})
    resolver = SteadyResolver(dns=dns)
    assert ask(resolver) == (ONE, 80)
    for found, given in [((TWO, ONE), ONE), ((TWO, THREE), TWO), ((THREE, TWO), TWO)]:
        dns.table["a.example"] = found
        resolver._cache.clear()  # as after a minute
        assert ask(resolver) == (given, 80)


def test_after_a_failure_it_is_the_next_ones_turn() -> None:
    resolver = SteadyResolver(dns=TableDns({"a.example": (ONE, TWO)}))
    resolver.note_failure("never.asked.example")
    assert ask(resolver) == (ONE, 80)
    for given in (TWO, ONE):
        resolver.note_failure("a.example")
        assert ask(resolver) == (given, 80)
        assert ask(resolver) == (given, 80)


def test_the_guard_and_the_rules_stay_in_force() -> None:
    resolver = SteadyResolver(parse_resolves(["*.test=127.0.0.1:8080"]), dns=TableDns({"a.example": ("10.0.0.1", ONE)}))
    assert ask(resolver) == (ONE, 80)
    assert ask(resolver, "b.test") == ("127.0.0.1", 8080)
    with pytest.raises(AddressRefusedError):
        ask(resolver, "10.0.0.1")
