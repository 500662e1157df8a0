"""Why URLs were refused is kept for the first ones of each host, in bounded space, over kills and reopenings."""

from pathlib import Path

import pytest

from crawlkit.engine.verify import Thoroughness, verify
from crawlkit.errors import StateDamaged
from crawlkit.model import Refusal
from crawlkit.state import keys, refusals
from crawlkit.state.crawl import CrawlState
from crawlkit.state.findings import Rule
from crawlkit.state.refusals import MOST_A_HOST, RefusalRow, Refusals, decode_refusal
from tests.state.making import begin_crawl, reopen, write_all

HOST = keys.host_id("a.test")


def row(n: int, refusal: Refusal = Refusal.DEPTH) -> RefusalRow:
    return RefusalRow(f"http://a.test/{n}", refusal, 3, "http://a.test/")


def kept(state: CrawlState, count: int = 3 * MOST_A_HOST) -> list[int]:
    return [n for n in range(count) if state.refusals.get(HOST, f"http://a.test/{n}") is not None]


def test_what_was_kept_is_there_after_a_reopening(directory: Path) -> None:
    with begin_crawl(directory) as state:
        state.refusals.note(HOST, row(1))
        state.checkpoint()
        state.refusals.note(HOST, row(2))  # lost: not checkpointed
    with reopen(directory) as state:
        assert state.refusals.get(HOST, "http://a.test/1") == row(1)
        assert kept(state) == [1]
        assert state.counters.noted == 1


def test_the_first_ones_of_a_host_are_kept_whatever_was_staged_or_on_disk(directory: Path) -> None:
    with begin_crawl(directory) as state:
        for n in range(40):
            state.refusals.note(HOST, row(n))
        state.checkpoint()
    with reopen(directory) as state:
        for n in range(40, 50):
            state.refusals.note(HOST, row(n))
        fresh = Refusals(state._store, state.counters)  # as after its counts were let go
        for n in range(30, 2 * MOST_A_HOST):
            fresh.note(HOST, row(n))
        assert kept(state) == list(range(MOST_A_HOST))
        assert state.counters.noted == MOST_A_HOST
        state.refusals.note(keys.host_id("b.test"), RefusalRow("http://b.test/", Refusal.DEPTH, 1))
        assert state.counters.noted == MOST_A_HOST + 1


def test_the_first_reason_stays(directory: Path) -> None:
    with begin_crawl(directory) as state:
        state.refusals.note(HOST, row(1))
        state.refusals.note(HOST, row(1, Refusal.TRAP_TEMPLATE))
        assert state.refusals.get(HOST, "http://a.test/1") == row(1)
        assert state.counters.noted == 1


def test_all_of_a_crawl_are_bounded(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refusals, "MOST_REFUSALS", 5)
    monkeypatch.setattr(refusals, "HOSTS_IN_MEMORY", 2)
    with begin_crawl(directory) as state:
        for n in range(20):
            name = f"h{n}.test"
            state.refusals.note(keys.host_id(name), RefusalRow(f"http://{name}/", Refusal.DEPTH, 1))
        assert state.counters.noted == 5
        assert len(state.refusals._counts) <= 2
        state.checkpoint()
        assert len(list(state._store.walk_keys(keys.REFUSAL, keys.after(keys.REFUSAL)))) == 5


@pytest.mark.parametrize(
    ("key", "value", "rule"),
    [
        (keys.refusal_key(HOST, "http://a.test/1"), b"\xc1", Rule.DECODES),
        (keys.refusal_key(keys.host_id("b.test"), "http://a.test/1"), None, Rule.REFUSALS),
        (keys.refusal_key(HOST, "http://a.test/2"), None, Rule.REFUSALS),
        (keys.refusal_key(HOST, "http://a.test/1"), None, Rule.COUNTERS),
    ],
)
def test_verify_finds_a_row_that_is_wrong(directory: Path, key: bytes, value: bytes | None, rule: Rule) -> None:
    with begin_crawl(directory) as state:
        state.refusals.note(HOST, row(1))
        good = state._store.get(keys.refusal_key(HOST, "http://a.test/1"))
        assert good is not None
        state._store.unstage(keys.refusal_key(HOST, "http://a.test/1"))
        if rule is Rule.COUNTERS:
            state.counters.noted += 1
        state._store.stage(key, good if value is None else value)
        state.checkpoint()
    broken = verify(directory, Thoroughness.FULL).broken
    assert broken.keys() - {Rule.SEEDS} == {rule}


def test_verify_finds_a_host_with_too_many(directory: Path) -> None:
    with begin_crawl(directory) as state:
        for n in range(MOST_A_HOST + 1):
            state.refusals.note(HOST, row(n))
            state.refusals._counts.clear()
            state.refusals._counts[HOST] = 0
        write_all(state._store)
        state.checkpoint()
    broken = verify(directory, Thoroughness.FULL).broken
    assert broken[Rule.REFUSALS].count == 1


def test_a_row_that_cannot_be_read_is_damage() -> None:
    with pytest.raises(StateDamaged, match="why a URL was refused cannot be read"):
        decode_refusal(b"\xc1")
