"""The frontier, case by case: the order of claims, twins that a wrong "no" made, due times, hosts that come and go."""

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from crawlkit.model import Source
from crawlkit.state import keys
from crawlkit.state.codec import QueueRow, SeenEntry, UrlState, decode_row
from crawlkit.state.counters import Counters
from crawlkit.state.crawl import CrawlState
from crawlkit.state.hosts import HostRecord, decode_host
from crawlkit.state.layout import DATABASE
from crawlkit.state.reading import read_counters
from crawlkit.state.store import Store
from tests.state.making import NOW, begin_crawl, claim, host_of, meet, reopen, settle

A, B, C = "http://a.test/a", "http://a.test/b", "http://a.test/c"


@pytest.fixture
def state(directory: Path) -> Iterator[CrawlState]:
    with begin_crawl(directory) as made:
        yield made


def claimed(state: CrawlState, host: str = "a.test") -> str | None:
    row = claim(state, state.hosts.get(host))
    return None if row is None else row.url


def postpone(state: CrawlState, url: str, wait_s: float, attempts: int = 1) -> None:
    host = host_of(state, url)
    state.frontier.postpone(url, host, attempts, NOW + wait_s, wait_s)
    host.in_flight -= 1


def promote(state: CrawlState, wait_s: float) -> None:
    state.frontier.promote(NOW + wait_s, 64, state.distances.lower)


def rows_on_disk(state: CrawlState) -> tuple[list[QueueRow], list[QueueRow], dict[str, HostRecord], Counters]:
    """Checkpoint and close; return the queued rows, the timed ones, the hosts and the counters."""
    state.checkpoint()
    state.close()
    with Store(state.directory / DATABASE, create=False) as store:
        queued, timed = ([decode_row(value) for _, value in store.walk(p, keys.after(p))] for p in (keys.QUEUE, keys.TIMED))
        hosts = [decode_host(value) for _, value in store.walk(keys.HOST, keys.after(keys.HOST))]
        return queued, timed, {host.name: host for host in hosts}, read_counters(store)


# Order -------------------------------------------------------------------------------------------------------------------


def test_urls_are_claimed_by_depth_then_in_the_order_they_were_met(state: CrawlState) -> None:
    for url, depth in (("http://a.test/1", 2), ("http://a.test/2", 0), ("http://a.test/3", 2), ("http://a.test/4", 1)):
        meet(state, url, depth)
    assert [claimed(state) for _ in range(5)] == [*(f"http://a.test/{n}" for n in (2, 4, 1, 3)), None]


def test_a_url_met_on_a_shorter_way_moves_ahead_but_keeps_its_turn(state: CrawlState) -> None:
    for url, depth in ((A, 3), (B, 1), (C, 3)):
        meet(state, url, depth)
    meet(state, C, 1)
    meet(state, A, 1)
    assert [claimed(state) for _ in range(3)] == [A, B, C]


def test_a_claim_voided_by_a_crash_is_queued_again_with_its_attempts(directory: Path) -> None:
    with begin_crawl(directory) as state:
        meet(state, A, 0)
        claimed(state)
        postpone(state, A, 1.0, attempts=3)
        promote(state, 1.0)
        state.checkpoint()
        assert claimed(state) == A
        state.checkpoint()
    with reopen(directory) as state:
        row = claim(state, state.hosts.get("a.test"))
        assert row is not None
        assert (row.url, row.attempts) == (A, 3)


def test_a_released_claim_is_taken_again_in_its_old_place(state: CrawlState) -> None:
    for url in (A, B):
        meet(state, url, 0)
    assert claimed(state) == A
    state.frontier.release(A, host_of(state, A))
    assert [claimed(state) for _ in range(3)] == [A, B, None]


def test_a_lowered_url_goes_on_being_claimed(state: CrawlState) -> None:
    meet(state, A, 5)
    assert claimed(state) == A
    meet(state, A, 1)
    assert claimed(state) is None
    assert settle(state, A).depth == 1
    queued, timed, hosts, counters = rows_on_disk(state)
    assert (queued, timed, hosts["a.test"].queued, counters.queued) == ([], [], 0, 0)


def test_a_queue_longer_than_its_window_comes_out_whole_over_a_crash(directory: Path) -> None:
    with begin_crawl(directory) as state:
        state.frontier.window_rows = 3
        for n in range(20):
            meet(state, f"http://a.test/{n}", n % 4)
        for _ in range(5):
            settle(state, claimed(state) or "")
        state.checkpoint()
    with reopen(directory) as state:
        state.frontier.window_rows = 3
        rest = [claimed(state) for _ in range(16)]
    assert rest == [*(f"http://a.test/{n}" for depth in (1, 2, 3) for n in range(depth, 20, 4)), None]


def test_the_window_is_shared_by_hosts_within_bounds(state: CrawlState) -> None:
    shares = []
    for hosts in (0, 1, 64, 128, 10_000):
        state.frontier.share_window(hosts)
        shares.append(state.frontier.window_rows)
    assert shares == [1024, 1024, 1024, 512, 16]


# Later -------------------------------------------------------------------------------------------------------------------


def test_a_postponed_url_waits_for_its_time_over_a_crash(directory: Path) -> None:
    with begin_crawl(directory) as state:
        meet(state, A, 0)
        claimed(state)
        postpone(state, A, 5.0)
        assert claimed(state) is None
        state.checkpoint()
    with reopen(directory) as state:
        assert state.frontier.next_due() == NOW + 5.0
        promote(state, 4.9)
        assert claimed(state) is None
        promote(state, 5.0)
        assert state.frontier.next_due() is None
        assert claimed(state) == A


def test_promotion_stops_at_its_limit(state: CrawlState) -> None:
    for url in (A, B, C):
        meet(state, url, 0)
        claimed(state)
        postpone(state, url, 1.0)
    assert len(state.frontier.promote(NOW + 9, 2, state.distances.lower)) == 2
    assert len(state.frontier.promote(NOW + 9, 2, state.distances.lower)) == 1


def test_a_timed_url_met_on_a_shorter_way_comes_back_with_it(state: CrawlState) -> None:
    meet(state, A, 5, 3)
    claimed(state)
    postpone(state, A, 1.0, attempts=2)
    assert state.frontier.next_due() == NOW + 1.0  # from now on it is in memory
    meet(state, A, 2, 1)
    promote(state, 1.0)
    queued, timed, hosts, _ = rows_on_disk(state)
    assert queued == [QueueRow(A, "a.test", 2, 1, 2, 1.0, sources=Source.LINK)]
    assert timed == []
    assert (hosts["a.test"].queued, hosts["a.test"].timed) == (1, 0)


def test_a_clock_that_jumped_back_does_not_make_a_url_wait_longer_than_was_asked(directory: Path) -> None:
    with begin_crawl(directory) as state:
        for url, wait_s in ((A, 5.0), (B, 100.0)):
            meet(state, url, 0)
            claimed(state)
            postpone(state, url, wait_s)
        state.checkpoint()
    with reopen(directory) as state:
        state.frontier.restrain(NOW - 1_000_000)
        assert state.frontier.next_due() == NOW - 1_000_000 + 5
        promote(state, -1_000_000 + 5)
        assert claimed(state) == A
        promote(state, -1_000_000 + 100)
        assert claimed(state) == B


def test_a_clock_that_did_not_jump_leaves_due_times_alone(directory: Path) -> None:
    with begin_crawl(directory) as state:
        meet(state, A, 0)
        claimed(state)
        postpone(state, A, 5.0)
        state.checkpoint()
    with reopen(directory) as state:
        state.frontier.restrain(NOW + 3)
        assert state.frontier.next_due() == NOW + 5
        assert not state.changed


# Twins: URLs that were added although they were seen ---------------------------------------------------------------------


def add_again(state: CrawlState, url: str, depth: int, hops: int = 0) -> None:
    state.frontier.add(url, host_of(state, url), depth, hops, None)


def test_a_queued_url_that_is_added_again_is_claimed_once_at_its_least_distances(state: CrawlState) -> None:
    meet(state, A, 1, 5)
    add_again(state, A, 4, 2)
    row = claim(state, host_of(state, A))
    assert row is not None
    assert (row.depth, row.hops) == (1, 2)
    assert claimed(state) is None
    settle(state, A)
    queued, _, hosts, counters = rows_on_disk(state)
    assert (queued, hosts["a.test"].queued, counters.queued, counters.seen) == ([], 0, 0, 1)


def test_a_claimed_url_that_is_added_again_is_known_and_lowered(state: CrawlState) -> None:
    meet(state, A, 3, 3)
    row = claim(state, host_of(state, A))
    assert row is not None
    add_again(state, A, 5, 1)
    assert state.counters.seen == 1
    postpone(state, A, 1.0, attempts=row.attempts + 1)
    queued, timed, hosts, counters = rows_on_disk(state)
    assert queued == []
    assert timed == [QueueRow(A, "a.test", 3, 1, 1, 1.0, sources=Source.LINK)]
    assert (hosts["a.test"].queued, hosts["a.test"].timed, counters.queued, counters.seen) == (0, 1, 1, 1)


def test_the_older_row_of_a_claimed_url_is_dropped_and_not_skipped(state: CrawlState) -> None:
    meet(state, A, 9)
    add_again(state, A, 2)  # now the younger row comes first
    assert claimed(state) == A
    assert claimed(state) is None  # passes the older one
    settle(state, A)
    queued, _, hosts, counters = rows_on_disk(state)
    assert (queued, hosts["a.test"].queued, counters.queued) == ([], 0, 0)


def test_a_settled_url_that_is_added_again_keeps_its_record_and_is_lowered(state: CrawlState) -> None:
    meet(state, A, 5)
    claimed(state)
    settle(state, A)
    add_again(state, A, 2)
    assert claimed(state) is None
    assert state.pages.head(A) == (2, 0, 1)
    queued, _, hosts, counters = rows_on_disk(state)
    assert (queued, hosts["a.test"].queued, counters.queued, counters.seen, counters.records) == ([], 0, 0, 1, 1)


def test_a_timed_url_that_is_added_again_is_claimed_once_and_keeps_its_least_distance(state: CrawlState) -> None:
    meet(state, A, 1)
    claimed(state)
    postpone(state, A, 1.0)
    add_again(state, A, 4)
    assert claimed(state) == A
    settle(state, A)
    promote(state, 1.0)
    assert claimed(state) is None
    assert state.pages.head(A) == (1, 0, 1)
    assert state.seen.known(A, host_of(state, A).id) == SeenEntry(UrlState.SETTLED, 1, 0, sources=Source.LINK)
    queued, timed, hosts, counters = rows_on_disk(state)
    assert (queued, timed, hosts["a.test"].timed, counters.queued, counters.seen) == ([], [], 0, 0, 1)


def test_a_timed_row_that_is_dropped_is_taken_off_its_hosts_record(directory: Path) -> None:
    with begin_crawl(directory) as state:
        meet(state, A, 1)
        claimed(state)
        postpone(state, A, 1.0)
        add_again(state, A, 4)
        claimed(state)
        settle(state, A)
        state.checkpoint()
    state = reopen(directory)
    promote(state, 1.0)
    _, timed, hosts, counters = rows_on_disk(state)
    assert (timed, hosts["a.test"].timed, counters.queued) == ([], 0, 0)


# Hosts -------------------------------------------------------------------------------------------------------------------


def test_a_wrong_cursor_costs_a_second_look_and_no_url(directory: Path) -> None:
    with begin_crawl(directory) as state:
        meet(state, A, 0)
        state.checkpoint()
    with Store(directory / DATABASE, create=False) as store:
        [(key, value)] = store.walk(keys.HOST, keys.after(keys.HOST))
        record = decode_host(value)
        record.cursor = keys.queued_tail(9, 9)
        store.stage(key, msgspec.msgpack.encode(record))
        store.freeze().write()
    with reopen(directory) as state:
        assert claimed(state) == A


def test_idle_hosts_beyond_the_bound_are_let_go_and_come_back_as_they_were(state: CrawlState) -> None:
    names = [f"h{n}.test" for n in range(10)]
    for name in names:
        meet(state, f"http://{name}/", 0)
        meet(state, f"http://{name}/2", 1)
    busy = state.hosts.get("h0.test")
    assert claim(state, busy) is not None
    idle = state.hosts.get("h5.test")
    state.hosts.trim(2)
    assert state.hosts.get("h0.test") is busy
    back = state.hosts.get("h5.test")
    assert back is not idle
    assert back.record == idle.record
    assert [claimed(state, "h5.test") for _ in range(3)] == ["http://h5.test/", "http://h5.test/2", None]


def test_a_host_is_not_let_go_of_while_more_are_loaded_than_fit(state: CrawlState) -> None:
    """Whoever settles a page holds its host while the page's links load others."""
    held = state.hosts.get("a.test")
    for n in range(20_000):
        state.hosts.get(f"h{n}.test")
    assert state.hosts.get("a.test") is held
    state.hosts.trim()
    assert state.hosts.get("a.test") is not held


def test_each_host_is_counted_once_however_often_it_runs_empty(directory: Path) -> None:
    with begin_crawl(directory) as state:
        for n in range(3):
            meet(state, f"http://a.test/{n}", 0)
            claimed(state)
            host = host_of(state, A)
            state.frontier.finish(f"http://a.test/{n}", host)  # as a failure: the host has no page
        robots_target = state.hosts.get("b.test")
        state.hosts.changed(robots_target)  # known for its gaps only
        assert state.counters.hosts == 1
        state.checkpoint()
    with reopen(directory) as state:
        meet(state, "http://a.test/9", 0)
        assert state.counters.hosts == 1
        meet(state, "http://b.test/", 0)
        assert state.counters.hosts == 2
