"""A crawl that is not running, read; and what is kept as single values."""

from pathlib import Path

import pytest

from crawlkit.config import Config
from crawlkit.errors import StateDamaged, StateError, StateLocked
from crawlkit.model import Kind, Record
from crawlkit.state.crawl import CrawlState
from crawlkit.state.reading import CONFIG, COUNTERS, RESCAN, open_crawl_for_reading, read_config, read_counters, read_rescan
from crawlkit.state.store import Store
from tests.state.making import NOW, begin_crawl, host_of, reopen


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    directory = tmp_path / "crawl"
    with begin_crawl(directory) as state:
        state.add_seed(0, "http://a.test/")
        for url in ("http://a.test/b", "http://a.test/"):
            state.frontier.add(url, host_of(state, url), 0, 0, None)
            state.frontier.finish(url, host_of(state, url))
            state.pages.put(Record(url=url, kind=Kind.PAGE, depth=0))
            state.counters.settled(Kind.PAGE)
        state.end_run(NOW, "finished")
        state.checkpoint()
    return directory


def test_a_reader_shows_records_sorted_counters_settings_seeds_and_runs(directory: Path) -> None:
    with open_crawl_for_reading(directory) as reader:
        assert [record.url for record in reader.pages.walk()] == ["http://a.test/", "http://a.test/b"]
        assert reader.counters.seen == 2
        assert reader.config() == Config()
        assert list(reader.seeds()) == ["http://a.test/"]
        assert [run.how for run in reader.runs] == ["finished"]
        assert reader.manifest.format == 1


def test_a_crawl_that_runs_cannot_be_read(directory: Path) -> None:
    with reopen(directory), pytest.raises(StateLocked), open_crawl_for_reading(directory):
        pass


def test_what_is_no_crawl_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(StateError, match="crawlkit run"), open_crawl_for_reading(tmp_path / "none"):
        pass


@pytest.mark.parametrize(
    ("key", "value"),
    [(CONFIG, b"{"), (CONFIG, b'{"\xff": 1}'), (CONFIG, b'{"workers": -1}'), (COUNTERS, b"\xc1"), (RESCAN, b"\0")],
)
def test_values_that_cannot_be_read_are_damage(key: bytes, value: bytes, tmp_path: Path) -> None:
    with Store(tmp_path / "db", create=True) as store:
        store.stage(key, value)
        read = {CONFIG: read_config, COUNTERS: read_counters, RESCAN: read_rescan}[key]
        with pytest.raises(StateDamaged, match="crawlkit verify --repair"):
            read(store)


def test_a_crawl_whose_counters_are_damaged_is_refused_and_let_go(directory: Path) -> None:
    with Store(directory / "db", create=False) as store:
        store.stage(COUNTERS, b"\xc1")
        store.freeze().write()
    for _ in range(2):  # the second time it would be locked if the first had not let go
        with pytest.raises(StateDamaged):
            CrawlState.open(directory)


def test_a_limit_raised_again_before_the_first_was_told_is_told_for_both(tmp_path: Path) -> None:
    directory = tmp_path / "crawl"
    with CrawlState.create(directory, Config(max_depth=1)) as state:
        state.begin_run(NOW)
        state.counters.finished = True
        state.checkpoint()
        state.seal()
    for limit in (3, 5):
        with reopen(directory) as state:
            state.change_settings(Config(max_depth=limit), {"max_depth": limit})
            state.checkpoint()  # and a kill
    with open_crawl_for_reading(directory) as reader:
        assert not reader.counters.finished
    with Store(directory / "db", create=False) as store:
        rescan = read_rescan(store)
        assert rescan is not None
        assert list(rescan.depths) == [1, 2, 3]
        assert rescan.cursor == b""
