"""Depth is graph distance: what is found on a shorter way late is propagated, over crashes too, until none is left."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from crawlkit.errors import StateDamaged
from crawlkit.model import MAX_HOPS, Kind, Reason, Source
from crawlkit.policy.edges import admitting_edges
from crawlkit.state import keys
from crawlkit.state.codec import Head, SeenEntry, UrlState
from crawlkit.state.crawl import CrawlState
from crawlkit.state.layout import DATABASE
from crawlkit.state.store import Store
from tests.state.making import begin_crawl, claim, host_of, meet, reopen, settle


@pytest.fixture
def state(directory: Path) -> Iterator[CrawlState]:
    with begin_crawl(directory) as made:
        yield made


def url(n: int) -> str:
    return f"http://a.test/{n}"


def crawl(state: CrawlState, links: dict[int, list[int]], redirects: dict[int, int] | None = None) -> None:
    """Settle all that is queued: each page leads to its `links`, each redirect to its target."""
    host = state.hosts.get("a.test")
    while (row := claim(state, host)) is not None:
        n = int(row.url.rsplit("/", 1)[1])
        target = None if redirects is None or n not in redirects else url(redirects[n])
        record = settle(state, row.url, tuple(url(link) for link in links.get(n, ())), target)
        for edge in admitting_edges(record):
            meet(state, *edge)


def propagate(state: CrawlState) -> int:
    """Do all that is owed; return how many records were walked."""
    walked = 0
    while (record := state.distances.next()) is not None:
        walked += 1
        for edge in admitting_edges(record):
            meet(state, *edge)
    return walked


def depths(state: CrawlState, count: int) -> list[int | None]:
    found = [state.pages.head(url(n)) for n in range(count)]
    return [None if head is None else head.depth for head in found]


def relax_rows(directory: Path) -> int:
    with Store(directory / DATABASE, create=False) as store:
        return sum(1 for _ in store.walk(keys.RELAX, keys.after(keys.RELAX)))


CHAIN = {0: [1], 1: [2], 2: [3]}


def test_a_shorter_way_to_a_settled_page_lowers_all_that_lies_behind_it(state: CrawlState) -> None:
    meet(state, url(0), 9)
    crawl(state, CHAIN)
    assert depths(state, 4) == [9, 10, 11, 12]
    assert propagate(state) == 0
    meet(state, url(0), 4)
    assert depths(state, 4) == [4, 10, 11, 12]
    assert state.distances.pending
    assert propagate(state) == 4
    assert depths(state, 4) == [4, 5, 6, 7]
    assert propagate(state) == 0
    assert state.seen.find(url(3), host_of(state, url(3)).id) == SeenEntry(UrlState.SETTLED, 7, 0, sources=Source.LINK)


def test_what_is_still_to_propagate_survives_crashes_at_any_point(directory: Path) -> None:
    with begin_crawl(directory) as state:
        meet(state, url(0), 9)
        crawl(state, CHAIN)
        meet(state, url(0), 0)
        state.checkpoint()
    assert relax_rows(directory) == 1
    for _ in range(4):
        with reopen(directory) as state:
            assert state.distances.pending
            propagate(state)  # lost
        with reopen(directory) as state:
            record = state.distances.next()
            assert record is not None
            for edge in admitting_edges(record):
                meet(state, *edge)
            state.checkpoint()
    assert relax_rows(directory) == 0
    with reopen(directory) as state:
        assert depths(state, 4) == [0, 1, 2, 3]
        assert not state.distances.pending


def test_a_walk_leaves_its_row_in_the_batch_that_holds_what_came_of_it(directory: Path) -> None:
    with begin_crawl(directory) as state:
        meet(state, url(0), 9)
        crawl(state, CHAIN)
        meet(state, url(0), 0)
        state.checkpoint()
        batch = state.freeze()
        propagate(state)
        batch.write()
        state.installed()
    assert relax_rows(directory) == 1
    with reopen(directory) as state:
        propagate(state)
        state.checkpoint()
    assert relax_rows(directory) == 0


def test_the_lowest_depth_is_propagated_first(state: CrawlState) -> None:
    meet(state, url(0), 50)
    crawl(state, {0: [1], 1: [2], 2: [3], 3: [4]})
    for n, depth in ((3, 40), (1, 20), (2, 5), (4, 30)):
        meet(state, url(n), depth)
    assert [record.url for record in iter(state.distances.next, None)] == [url(n) for n in (2, 1, 4, 3)]


def test_a_page_that_did_not_get_nearer_is_not_walked_again(state: CrawlState) -> None:
    meet(state, url(0), 3, 5)
    crawl(state, {0: [1]})
    meet(state, url(0), 3, 2)
    assert state.pages.head(url(0)) == (3, 2, 1)
    assert not state.distances.pending


def test_lowering_a_queued_page_owes_nothing(state: CrawlState) -> None:
    meet(state, url(0), 3)
    meet(state, url(0), 1)
    assert not state.distances.pending


def test_distances_never_rise(state: CrawlState) -> None:
    meet(state, url(0), 3, 3)
    crawl(state, {})
    for depth, hops in ((9, 9), (3, 3), (4, 3), (3, 4)):
        meet(state, url(0), depth, hops)
        assert state.pages.head(url(0)) == (3, 3, 1)
    meet(state, url(0), 9, 1)
    meet(state, url(0), 1, 9)
    assert state.pages.head(url(0)) == (1, 1, 1)


def test_a_cycle_comes_to_rest(state: CrawlState) -> None:
    meet(state, url(0), 9)
    crawl(state, {0: [1], 1: [2], 2: [0]})
    meet(state, url(1), 0)
    assert propagate(state) < 10
    assert depths(state, 3) == [2, 0, 1]


def test_a_long_queue_of_lowered_pages_loses_none(state: CrawlState) -> None:
    """More than the window on the range holds."""
    many = 3000
    for n in range(many):
        meet(state, url(n), 9 + n % 7)
    crawl(state, {})
    for n in range(many):
        meet(state, url(n), n % 5)
    assert propagate(state) == many
    assert depths(state, many) == [n % 5 for n in range(many)]


# Redirects ---------------------------------------------------------------------------------------------------------------


def kinds(state: CrawlState) -> tuple[int, int, int]:
    return state.counters.pages, state.counters.redirects, state.counters.failures


def test_a_redirect_whose_hops_fall_below_the_limit_becomes_one_without_a_fetch(directory: Path) -> None:
    with begin_crawl(directory) as state:
        meet(state, url(0), 0, MAX_HOPS)
        crawl(state, {}, {0: 1})
        assert kinds(state) == (0, 0, 1)
        assert state.pages.head(url(1)) is None
        assert state.counters.seen == 1  # its target was not admitted
        state.checkpoint()
        [record] = state.pages.walk()
        assert (record.kind, record.reason) == (Kind.FAILURE, Reason.TOO_MANY_REDIRECTS)

        meet(state, url(0), 3, MAX_HOPS - 1)
        assert kinds(state) == (0, 1, 0)
        propagate(state)
        crawl(state, {})
        assert kinds(state) == (1, 1, 0)
        assert state.pages.head(url(1)) == (0, MAX_HOPS, 1)
        state.checkpoint()
        first, second = state.pages.walk()
        assert (first.kind, first.reason, first.redirect_to) == (Kind.REDIRECT, None, url(1))
        assert second.kind is Kind.PAGE
    with reopen(directory) as state:
        assert kinds(state) == (1, 1, 0)


def test_a_redirect_that_stays_above_or_below_the_limit_is_counted_as_before(state: CrawlState) -> None:
    meet(state, url(0), 5, MAX_HOPS)
    crawl(state, {}, {0: 1})
    meet(state, url(0), 1, MAX_HOPS)
    assert kinds(state) == (0, 0, 1)
    meet(state, url(0), 1, 5)
    meet(state, url(0), 1, 0)
    assert kinds(state) == (0, 1, 0)


def test_a_redirect_whose_depth_falls_too_is_counted_anew(state: CrawlState) -> None:
    meet(state, url(0), 5, MAX_HOPS)
    crawl(state, {}, {0: 1})
    assert kinds(state) == (0, 0, 1)
    meet(state, url(0), 1, 5)
    assert kinds(state) == (0, 1, 0)


def test_lowered_hops_run_down_a_chain_of_redirects_and_open_its_end(state: CrawlState) -> None:
    """Twelve redirects in a row, met from outside: the chain breaks at the limit; a link to its middle opens the rest."""
    chain = {n: n + 1 for n in range(12)}
    meet(state, url(0), 0)
    crawl(state, {}, chain)
    assert kinds(state) == (0, 10, 1)
    meet(state, url(6), 4)
    propagate(state)
    crawl(state, {}, chain)
    propagate(state)
    assert kinds(state) == (1, 12, 0)
    assert [state.pages.head(url(n)) for n in (5, 6, 10, 12)] == [(0, 5, 1), (0, 0, 1), (0, 4, 1), (0, 6, 1)]


# Damage ------------------------------------------------------------------------------------------------------------------


def test_a_settled_url_without_a_record_is_damage(state: CrawlState) -> None:
    host = host_of(state, url(0))
    entry = SeenEntry(UrlState.SETTLED, 5, 0)
    state.seen.add(url(0), host.id, entry)
    with pytest.raises(StateDamaged, match=r"http://a\.test/0 settled but has no record.*verify --repair"):
        state.distances.lower(url(0), host, entry, Head(1, 0, Source.LINK))
