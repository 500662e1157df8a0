"""The seen-set: layers agree with the database, whatever was rebuilt, forgotten or lost."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crawlkit.errors import StateDamaged
from crawlkit.model import Source
from crawlkit.state import keys
from crawlkit.state import seen as seen_set
from crawlkit.state.bloom import MappedBloom
from crawlkit.state.codec import SeenEntry, UrlState
from crawlkit.state.seen import RECENT_URLS, SeenSet
from crawlkit.state.store import Store

HOST = keys.host_id("a.test")
SETTLED = SeenEntry(UrlState.SETTLED, 1, 0)
CRAWL, BOOT = b"c" * 16, b"b" * 36


def url(n: int) -> str:
    return f"http://a.test/{n}"


class Parts:
    """A store, a filter and the seen-set over them; `restart` forgets what is in memory, and the filter if asked to."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.store = Store(directory / "db", create=True)
        self.bloom = MappedBloom.create(directory / "seen.bloom", CRAWL, BOOT)
        self.bloom.mark_complete()
        self.seen = SeenSet(self.store, self.bloom)

    def write(self) -> None:
        self.store.freeze().write()
        self.store.install()

    def restart(self) -> None:
        self.close()
        self.store = Store(self.directory / "db", create=False)
        reused = MappedBloom.reuse(self.directory / "seen.bloom", CRAWL, BOOT)
        assert reused is not None
        self.bloom = reused
        self.seen = SeenSet(self.store, self.bloom)

    def restart_with_an_empty_filter(self) -> None:
        self.restart()
        self.bloom.close()
        self.bloom = MappedBloom.create(self.directory / "seen.bloom", CRAWL, BOOT)
        self.seen = SeenSet(self.store, self.bloom)

    def close(self) -> None:
        self.seen.close()
        self.store.close()


@pytest.fixture
def parts(tmp_path: Path) -> Iterator[Parts]:
    made = Parts(tmp_path)
    yield made
    made.close()


# Rebuilding --------------------------------------------------------------------------------------------------------------


def test_a_filter_that_is_rebuilt_in_steps_answers_maybe_meanwhile(parts: Parts) -> None:
    for n in range(300):
        parts.seen.add(url(n), HOST, SeenEntry(UrlState.SETTLED, n, 0))
    parts.write()
    parts.restart_with_an_empty_filter()
    steps = 0
    while parts.seen.rebuilding:
        n = steps * 37 % 300  # known to the database alone, or to both
        assert parts.seen.find(url(n), HOST) == SeenEntry(UrlState.SETTLED, n, 0)
        assert parts.seen.find(url(1000 + steps), HOST) is None
        parts.seen.add(url(2000 + steps), HOST, SETTLED)
        if steps == 3:
            parts.write()  # the walk is of the moment when it began; this one is in the filter by its own add
        parts.seen.rebuild(20)
        steps += 1
    assert steps == 16
    parts.write()
    parts.restart()
    for n in range(300):
        assert parts.seen.find(url(n), HOST) == SeenEntry(UrlState.SETTLED, n, 0)
    for n in range(2000, 2000 + steps):
        assert parts.seen.find(url(n), HOST) == SETTLED


def test_a_rebuilt_filter_denies_again_and_a_complete_one_is_not_rebuilt(parts: Parts) -> None:
    parts.seen.add(url(1), HOST, SETTLED)
    parts.write()
    parts.restart_with_an_empty_filter()
    parts.seen.rebuild(100)
    assert not parts.seen.rebuilding
    assert keys.seen_key(HOST, url(1)) in parts.bloom
    assert keys.seen_key(HOST, url(2)) not in parts.bloom
    parts.seen.rebuild(100)
    assert not parts.seen.rebuilding


def test_a_rebuild_of_an_empty_database_is_over_at_once(parts: Parts) -> None:
    parts.restart_with_an_empty_filter()
    assert parts.seen.rebuilding
    parts.seen.rebuild(1)
    assert not parts.seen.rebuilding


def test_a_rebuild_that_was_cut_off_is_begun_again(parts: Parts) -> None:
    for n in range(50):
        parts.seen.add(url(n), HOST, SETTLED)
    parts.write()
    parts.restart_with_an_empty_filter()
    parts.seen.rebuild(10)
    parts.close()
    assert MappedBloom.reuse(parts.directory / "seen.bloom", CRAWL, BOOT) is None
    parts.store = Store(parts.directory / "db", create=False)
    parts.bloom = MappedBloom.create(parts.directory / "seen.bloom", CRAWL, BOOT)
    parts.seen = SeenSet(parts.store, parts.bloom)
    parts.seen.rebuild(1000)
    assert all(parts.seen.find(url(n), HOST) == SETTLED for n in range(50))


# The filter ----------------------------------------------------------------------------------------------------------------


def test_bits_are_set_before_the_batch_is_written_and_then_cost_a_look_up_only(parts: Parts) -> None:
    parts.seen.add(url(1), HOST, SETTLED)
    assert keys.seen_key(HOST, url(1)) in parts.bloom
    parts.restart()  # a kill: the bits stay, the batch was never written
    assert keys.seen_key(HOST, url(1)) in parts.bloom
    assert parts.seen.find(url(1), HOST) is None


def test_lost_bits_deny_a_url_but_not_one_that_has_a_row(parts: Parts) -> None:
    parts.seen.add(url(1), HOST, SETTLED)
    parts.write()
    parts.restart_with_an_empty_filter()
    parts.bloom.mark_complete()
    assert parts.seen.find(url(1), HOST) is None
    assert parts.seen.known(url(1), HOST) == SETTLED
    assert parts.seen.entry(url(1), HOST) == SETTLED


def test_a_url_that_must_have_an_entry_and_has_none_is_damage(parts: Parts) -> None:
    with pytest.raises(StateDamaged, match=r"http://a\.test/7 is queued but was never seen.*verify --repair"):
        parts.seen.entry(url(7), HOST)


def test_the_same_path_of_two_hosts_is_two_urls(parts: Parts) -> None:
    parts.seen.add("http://a.test/", HOST, SETTLED)
    assert parts.seen.find("http://b.test/", keys.host_id("b.test")) is None


# The recently seen ---------------------------------------------------------------------------------------------------------


def test_the_recently_seen_are_never_older_than_the_database(parts: Parts) -> None:
    """Over both generations of the cache: one URL is changed now and then while many others pass by."""
    half = RECENT_URLS // 2
    parts.seen.add(url(0), HOST, SeenEntry(UrlState.SETTLED, 9, 0))
    for n in range(1, half + 10):
        parts.seen.add(url(n), HOST, SETTLED)
    assert parts.seen.recent(url(0)) == SeenEntry(UrlState.SETTLED, 9, 0)  # from the old generation
    parts.seen.put(url(0), HOST, SeenEntry(UrlState.SETTLED, 5, 0))
    assert parts.seen.recent(url(0)) == SeenEntry(UrlState.SETTLED, 5, 0)
    parts.write()
    for n in range(half + 10, 3 * half + 20):
        parts.seen.add(url(n), HOST, SETTLED)
    assert parts.seen.recent(url(0)) is None
    assert parts.seen.recent(url(3 * half)) == SETTLED
    assert parts.seen.find(url(0), HOST) == SeenEntry(UrlState.SETTLED, 5, 0)
    assert parts.seen.recent(url(0)) == SeenEntry(UrlState.SETTLED, 5, 0)


ENTRIES = st.builds(
    SeenEntry,
    st.sampled_from(UrlState),
    st.integers(0, 300),
    st.integers(0, 10),
    st.just(b"") | st.just(bytes(9)),
    st.integers(0, 7),
)
STEPS = st.lists(
    st.tuples(st.just("set"), st.integers(0, 5), ENTRIES)
    | st.tuples(
        st.sampled_from(["write", "restart", "restart_with_an_empty_filter", "rebuild", "expect"]), st.just(0), st.just(SETTLED)
    ),
    max_size=30,
)


@given(STEPS)
@settings(max_examples=50)
def test_look_ups_agree_with_a_dict_over_writes_kills_and_rebuilds(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, int, SeenEntry]]
) -> None:
    parts = Parts(tmp_path_factory.mktemp("seen"))
    now: dict[int, SeenEntry] = {}
    on_disk: dict[int, SeenEntry] = {}
    for step, n, entry in steps:
        match step:
            case "set":
                (parts.seen.put if n in now else parts.seen.add)(url(n), HOST, entry)
                now[n] = entry
            case "write":
                parts.write()
                on_disk = dict(now)
            case "rebuild":
                parts.seen.rebuild(2)
            case "expect":
                parts.seen.expect(HOST)
                parts.seen.expect(HOST)
            case _ if not parts.seen.rebuilding or step == "restart_with_an_empty_filter":
                parts.seen.rebuild(100)
                getattr(parts, step)()
                now = dict(on_disk)
        assert {n: parts.seen.find(url(n), HOST) for n in range(6)} == {n: now.get(n) for n in range(6)}
    parts.close()


@pytest.mark.parametrize(
    ("entry", "doubtful"),
    [
        (None, True),
        (SeenEntry(UrlState.QUEUED, 1, 0, b"tail", Source.LINK), True),  # nearer now
        (SeenEntry(UrlState.SETTLED, 0, 0, b"", Source.LINK), False),
        (SeenEntry(UrlState.SETTLED, 0, 1, b"", Source.LINK), True),  # without a redirect now
        (SeenEntry(UrlState.SETTLED, 0, 0, b"", Source.SEED), True),  # by a link now
        (SeenEntry(UrlState.SETTLED, 0, 0, b"", Source.SEED | Source.LINK), False),
    ],
)
def test_a_link_is_passed_over_only_if_it_is_no_news(parts: Parts, entry: SeenEntry | None, doubtful: bool) -> None:
    if entry is not None:
        parts.seen.add(url(1), HOST, entry)
    parts.seen.add(url(2), HOST, SeenEntry(UrlState.SETTLED, 0, 0, b"", Source.LINK))
    for _ in range(2):  # the second time by memory
        assert parts.seen.doubtful([url(2), url(1)], 0) == ([1] if doubtful else [])
        assert parts.seen.doubtful([url(2), url(1)], 1) == ([1] if doubtful and (entry is None or entry.depth < 1) else [])


def test_a_link_that_is_no_news_at_one_depth_may_be_at_a_lesser_one(parts: Parts) -> None:
    parts.seen.add(url(1), HOST, SeenEntry(UrlState.QUEUED, 2, 0, b"tail", Source.LINK))
    parts.seen.add(url(2), HOST, SeenEntry(UrlState.QUEUED, 1, 0, b"tail", Source.LINK))
    assert [parts.seen.doubtful([url(1), url(2)], depth) for depth in (3, 2, 1, 0, 3)] == [[], [], [0], [0, 1], []]


@given(st.lists(ENTRIES, max_size=8), st.integers(0, 4), st.lists(st.booleans(), min_size=8, max_size=8))
@settings(max_examples=30)
def test_links_that_an_active_host_tells_to_be_no_news_are_those_that_were_met_would_be(
    tmp_path_factory: pytest.TempPathFactory, entries: list[SeenEntry], depth: int, written: list[bool]
) -> None:
    parts = Parts(tmp_path_factory.mktemp("seen"))
    for n, entry in enumerate(entries):
        parts.seen.add(url(n), HOST, entry)
        if written[n]:
            parts.write()
    urls = [*map(url, range(9)), "http://b.test/0", "https://a.test/0"]
    parts.seen = SeenSet(parts.store, parts.bloom)  # nothing was met lately
    places = list(range(len(urls)))
    assert parts.seen.doubtful_of(HOST, "http://a.test/", urls, places, depth) == places
    for _ in range(2):
        parts.seen.expect(HOST)
    told = parts.seen.doubtful_of(HOST, "http://a.test/", urls, places, depth)
    assert parts.seen.recent(url(0)) is None
    assert parts.seen.doubtful(urls, depth) == told  # those that are not doubtful are remembered
    news = [n for n, entry in enumerate(entries) if entry.depth > depth or entry.hops or not entry.sources & Source.LINK]
    assert told == [*news, *range(len(entries), len(urls))]
    parts.close()


def test_a_filter_that_is_asked_in_vain_is_passed_over_until_new_urls_come_again(
    parts: Parts, monkeypatch: pytest.MonkeyPatch
) -> None:
    for n in range(300):
        parts.seen.add(url(n), HOST, SETTLED)
    parts.write()
    parts.seen = SeenSet(parts.store, parts.bloom)  # nothing was met lately
    asked: list[bytes] = []
    known = {keys.seen_key(HOST, url(n)) for n in range(300)}

    def maybe(_: MappedBloom, key: bytes) -> bool:
        asked.append(key)
        return key in known

    monkeypatch.setattr(MappedBloom, "__contains__", maybe)
    assert all(parts.seen.find(url(n), HOST) == SETTLED for n in range(200))
    assert len(asked) == seen_set.MOST_IN_VAIN
    for n in range(1000, 1050):
        assert parts.seen.find(url(n), HOST) is None
    assert len(asked) == seen_set.MOST_IN_VAIN + 49
    assert all(parts.seen.find(url(n), HOST) == SETTLED for n in range(200, 300))


def test_links_that_are_no_news_are_remembered_within_bounds(parts: Parts, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seen_set, "MOST_NEAR_URLS", 10)
    urls = [url(n) for n in range(100)]
    for each in urls:
        parts.seen.add(each, HOST, SeenEntry(UrlState.SETTLED, 0, 0, b"", Source.LINK))
    for depth in range(20):
        for start in range(0, 100, 5):
            assert parts.seen.doubtful([*urls[start : start + 5], "http://a.test/unseen"], depth) == [5]
            assert sum(map(len, parts.seen._near.values())) <= 10


def test_links_that_are_no_news_are_remembered_for_few_depths(parts: Parts) -> None:
    parts.seen.add(url(1), HOST, SeenEntry(UrlState.SETTLED, 0, 0, b"", Source.LINK))
    for depth in range(100):
        assert parts.seen.doubtful([url(1)], depth) == []
        assert len(parts.seen._near) <= seen_set.MOST_NEAR_DEPTHS
