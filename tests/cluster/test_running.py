"""Before a run of a crawl in partitions: which of them have to run, and whether all is done already."""

from pathlib import Path

import pytest

from crawlkit.cluster.founding import Founding
from crawlkit.cluster.running import Members, has_finished, replace_settings
from crawlkit.config import Config, changed_config
from crawlkit.policy.partition import Owners
from crawlkit.state import layout
from crawlkit.state.checkpoint import read_summary
from crawlkit.state.crawl import CrawlState
from crawlkit.state.letters import Letter, LetterKind
from crawlkit.state.partitions import Table, member_directory, read_table
from crawlkit.testing.clock import ManualClock

SEED = "http://a.test/"
CONFIG = Config(max_depth=1)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A crawl whose two partitions say that they have finished; the second owns nothing."""
    directory = tmp_path / "crawl"
    founding = Founding([SEED], CONFIG, Owners.even(1), {}, ManualClock())
    founding.make_all(directory, 2)
    for number in (0, 1):
        with CrawlState.open(member_directory(directory, number)) as state:
            state.counters.finished = True
            state.checkpoint()
    return directory


def test_all_have_finished_under_the_settings_of_the_table_only(directory: Path) -> None:
    table = read_table(directory)
    assert has_finished(directory, table, [0, 1])
    deeper = replace_settings(directory, table, changed_config(CONFIG, {"max_depth": 2}))
    assert deeper.epoch == table.epoch + 1
    assert not has_finished(directory, deeper, [0, 1])  # a kill came before they were told


def test_a_partition_that_is_not_gone_yet_has_not_finished(directory: Path) -> None:
    with CrawlState.open(member_directory(directory, 0)):
        assert not has_finished(directory, read_table(directory), [0, 1])


def test_a_partition_that_went_on_has_not_finished_whatever_its_last_checkpoint_file_says(directory: Path) -> None:
    member = member_directory(directory, 0)
    before = (member / layout.CHECKPOINT).read_bytes()
    with CrawlState.open(member) as state:
        state.counters.finished = False
        state.checkpoint()
    (member / layout.CHECKPOINT).write_bytes(before)  # a kill came between the batch and this file

    assert read_summary(member).counters.finished
    assert not has_finished(directory, read_table(directory), [0, 1])


def members(directory: Path) -> Members:
    table: Table = read_table(directory)
    return Members.of(directory, table)


def test_who_owns_nothing_runs_as_long_as_its_letters_wait_and_what_it_posted_is_known_after_that(directory: Path) -> None:
    assert members(directory) == Members([0], 0)
    with CrawlState.open(member_directory(directory, 1)) as state:
        for _ in range(3):
            state.letters.post(7, Letter(LetterKind.LINK, SEED))
        state.checkpoint()
    assert members(directory) == Members([0, 1], 0)
    with CrawlState.open(member_directory(directory, 1)) as state:
        state.letters.acknowledge(7, 3)
        state.checkpoint()
    assert members(directory) == Members([0], 3)


def test_who_owns_nothing_runs_once_more_where_a_kill_kept_it_from_saying_that_it_has_finished(directory: Path) -> None:
    with CrawlState.open(member_directory(directory, 1)) as state:
        state.counters.finished = False
        state.checkpoint()

    assert members(directory) == Members([0, 1], 0)
