"""Which partition a URL belongs to: one owner a domain, fair shares, and few nodes that move."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlkit.policy.partition import VIRTUAL_NODES, Owners, node_of


def test_all_hosts_of_a_domain_are_on_one_node() -> None:
    assert len({node_of(host) for host in ("example.co.uk", "www.example.co.uk", "a.b.example.co.uk")}) == 1


def test_the_node_of_a_host_is_the_same_in_every_version() -> None:
    assert [node_of(host) for host in ("example.com", "a.test", "127.0.0.1", "localhost")] == [348, 840, 140, 57]


def test_many_domains_are_dealt_out_evenly() -> None:
    owners = Owners.even(4)
    shares = Counter(owners.of(f"site{number}.test") for number in range(8_000))
    assert min(shares.values()) > 1_600


@pytest.mark.parametrize("partitions", [1, 2, 3, 7, 1_024])
def test_an_even_table_gives_each_its_share(partitions: int) -> None:
    shares = Counter(Owners.even(partitions).table)
    assert len(shares) == partitions
    assert max(shares.values()) - min(shares.values()) <= 1


@given(st.lists(st.sets(st.integers(0, 12), min_size=1), min_size=1, max_size=5))
def test_a_table_over_other_partitions_is_fair_and_moves_no_more_than_it_must(steps: list[set[int]]) -> None:
    owners = Owners.even(1)
    for step in steps:
        wanted = sorted(step)
        after = owners.spread(wanted)
        shares = Counter(after.table)
        assert sorted(shares) == wanted
        assert max(shares.values()) - min(shares.values()) <= 1
        before = Counter(owners.table)
        share = VIRTUAL_NODES // len(wanted)
        must = sum(max(0, count - (share + 1 if partition in wanted else 0)) for partition, count in before.items())
        moved = sum(a != b for a, b in zip(owners.table, after.table, strict=True))
        assert must <= moved <= must + sum(before[p] > share for p in wanted)
        owners = after
