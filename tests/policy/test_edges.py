"""What a record admits, and at what distance."""

from typing import Any

import pytest

from crawlkit.model import MAX_HOPS, Kind, Record
from crawlkit.policy.edges import Edge, admitting_edges

A, B, C = "http://a.test/a", "http://a.test/b", "http://a.test/c"


def record(kind: Kind = Kind.PAGE, **values: Any) -> Record:
    return Record(url="http://a.test/", kind=kind, **{"depth": 3, **values})


def edges(kind: Kind = Kind.PAGE, **values: Any) -> list[Edge]:
    return list(admitting_edges(record(kind, **values)))


def test_links_lead_one_deeper_and_start_at_no_hops() -> None:
    assert edges(links=(A, B), hops=7) == [Edge(A, 4, 0), Edge(B, 4, 0)]


@pytest.mark.parametrize(("nofollow", "left"), [((0,), [B, C]), ((1,), [A, C]), ((0, 2), [B]), ((0, 1, 2), [])])
def test_nofollow_links_do_not_admit(nofollow: tuple[int, ...], left: list[str]) -> None:
    assert [edge.url for edge in edges(links=(A, B, C), nofollow=nofollow)] == left


def test_the_canonical_one_is_admitted_like_a_link_unless_it_may_not() -> None:
    assert edges(links=(A,), canonical=B) == [Edge(A, 4, 0), Edge(B, 4, 0)]
    assert edges(links=(A,), canonical=B, admits_canonical=False) == [Edge(A, 4, 0)]
    assert edges(canonical=B, hops=9) == [Edge(B, 4, 0)]


@pytest.mark.parametrize("hops", [0, 1, 9])
def test_a_redirects_target_has_its_depth_and_one_hop_more(hops: int) -> None:
    assert edges(Kind.REDIRECT, redirect_to=A, hops=hops) == [Edge(A, 3, hops + 1)]


@pytest.mark.parametrize("hops", [MAX_HOPS, MAX_HOPS + 1])
def test_a_redirect_at_ten_hops_admits_nothing(hops: int) -> None:
    assert edges(Kind.REDIRECT, redirect_to=A, hops=hops) == []


@pytest.mark.parametrize("kind", [Kind.FAILURE, Kind.EXCLUDED])
def test_what_has_nothing_to_tell_leads_nowhere(kind: Kind) -> None:
    assert edges(kind) == []
