"""What becomes of each kind of row, and of what a partition says of itself, when virtual nodes change hands."""

from pathlib import Path

import msgspec
import pytest

from crawlkit.cluster.moves import finish_moves, repartition
from crawlkit.config import Config
from crawlkit.errors import StateDamaged, UsageError
from crawlkit.model import OrderReason
from crawlkit.policy.novelty import template_of
from crawlkit.policy.partition import Owners, node_of
from crawlkit.state import keys
from crawlkit.state.checkpoint import MADE, Run
from crawlkit.state.crawl import CrawlState
from crawlkit.state.layout import CRAWL
from crawlkit.state.letters import Letter, LetterKind
from crawlkit.state.partitions import member_directory, read_table, write_table
from crawlkit.state.reading import open_crawl_for_reading
from tests.cluster.furnished import HOSTS, NOW, changed, empty, furnish, know_from_afar, stored, waiting_in_order
from tests.cluster.rows import ACCOUNTS, broken, everything, owned, sums

LATER = NOW + 1_000


def last_runs(directory: Path) -> list[Run]:
    runs = []
    for number in range(len(read_table(directory).members)):
        with open_crawl_for_reading(member_directory(directory, number)) as crawl:
            runs.append(crawl.runs[-1])
    return runs


def next_run(directory: Path, number: int) -> Run:
    """The run that a partition would begin."""
    with CrawlState.open(member_directory(directory, number)) as state:
        return state.begin_run(LATER)


@pytest.mark.parametrize(("partitions", "to"), [(1, 2), (1, 5), (3, 2), (2, 3)])
def test_rows_of_every_kind_move_as_they_are(tmp_path: Path, partitions: int, to: int) -> None:
    furnish(tmp_path, partitions)
    table = read_table(tmp_path)
    assert not broken(tmp_path, table)
    before, order = (everything(tmp_path, table), sums(tmp_path, table)), waiting_in_order(tmp_path, table)
    table = repartition(tmp_path, to, LATER)
    found = everything(tmp_path, table)
    assert (found, sums(tmp_path, table)) == before
    assert {key[:1] for key, _ in found} == keys.KINDS.keys() - {
        *(keys.META, keys.RECENT, keys.RUN, keys.LETTER, keys.NEXT_LETTER),
        *(keys.ARCHIVE_FILE, keys.EXTENT, keys.ARCHIVED, keys.PAYLOAD),
    }
    assert not broken(tmp_path, table)
    assert owned(tmp_path, table) == {row: count for row, count in found.items() if row[0][:1] not in ACCOUNTS}
    assert waiting_in_order(tmp_path, table) == order


def test_accounts_go_where_their_host_goes(tmp_path: Path) -> None:
    furnish(tmp_path, 1)
    owners = Owners(tuple(repartition(tmp_path, 3, LATER).owners))
    for number in range(3):
        with stored(tmp_path, number) as store:
            for name in HOSTS:
                has = owners.of(name) == number
                template = keys.template_key(template_of(f"http://{name}/folder/p1"))
                granted = keys.template_key(template_of(f"http://{name}/unmet/y"))
                of_records = keys.template_key(template_of(f"http://{name}/"))
                for key in (keys.template_key(name), template, keys.memory_key(template), granted, of_records):
                    assert (store.get(key) is not None) is has, (number, name)


def test_seeds_are_numbered_without_gaps(tmp_path: Path) -> None:
    furnish(tmp_path, 2)
    for partitions in (3, 2, 1):
        table = repartition(tmp_path, partitions, LATER)
        for number in range(len(table.members)):
            with stored(tmp_path, number) as store:
                found = list(store.walk_keys(keys.SEED, keys.after(keys.SEED)))
            assert found == [keys.numbered_key(keys.SEED, place) for place in range(len(found))]


def test_numbers_of_rows_that_wait_are_not_given_twice(tmp_path: Path) -> None:
    furnish(tmp_path, 2)
    table = repartition(tmp_path, 1, LATER)
    with CrawlState.open(member_directory(tmp_path, table.owners[0])) as state:
        for name in HOSTS:
            state.frontier.add(f"http://{name}/later", state.hosts.get(name), 1, 0, None)
        state.checkpoint()
    with stored(tmp_path, table.owners[0]) as store:
        found = [key[-8:] for prefix in (keys.QUEUE, keys.TIMED) for key in store.walk_keys(prefix, keys.after(prefix))]
    assert len(found) == len(set(found))
    assert not broken(tmp_path, table)


def test_a_host_that_was_known_from_afar_is_asked_no_sooner_for_that(tmp_path: Path) -> None:
    owners = furnish(tmp_path, 2)
    name = next(name for name in HOSTS if owners.of(name) == 1)
    know_from_afar(tmp_path, 0, name, last_start_s=NOW + 500)
    table = repartition(tmp_path, 1, LATER)
    assert table.owners[0] == 0
    assert not broken(tmp_path, table)
    with CrawlState.open(member_directory(tmp_path, 0)) as state:
        record = state.hosts.get(name).record
        assert record.last_start_s == NOW + 500
        assert record.last_end_s < NOW + 100
        assert record.queued > 0


def test_the_private_addresses_that_seeds_may_keep_are_known_where_they_go(tmp_path: Path) -> None:
    furnish(tmp_path, 2)
    with changed(tmp_path, 0) as state:
        state.allow_private({"a.test:80": ["10.0.0.1"]})
    with changed(tmp_path, 1) as state:
        state.allow_private({"a.test:80": ["10.0.0.2"], "b.test:80": ["10.0.0.3"]})
    repartition(tmp_path, 1, LATER)
    repartition(tmp_path, 3, LATER)
    for number in (0, 2):
        with CrawlState.open(member_directory(tmp_path, number)) as state:
            allowed = state.private_addresses()
        assert allowed == {"a.test:80": {"10.0.0.1", "10.0.0.2"}, "b.test:80": {"10.0.0.3"}}


# Runs ----------------------------------------------------------------------------------------------------------------


def test_after_an_unclean_end_hosts_wait_a_gap_at_their_new_owner_too(tmp_path: Path) -> None:
    furnish(tmp_path, 2)
    with changed(tmp_path, 1) as state:
        state.begin_run(NOW + 100)  # it was killed
    table = repartition(tmp_path, 1, NOW + 200)
    assert next_run(tmp_path, 0).quiet_from_s == NOW + 200
    assert table.owners[0] == 0
    repartition(tmp_path, 3, NOW + 300)
    assert [next_run(tmp_path, number).quiet_from_s is not None for number in range(3)] == [True, True, True]


def test_what_a_killed_run_handed_on_is_handed_on_once_more(tmp_path: Path) -> None:
    furnish(tmp_path, 1)
    with changed(tmp_path, 0) as state:
        state.begin_run(NOW + 100)
    with changed(tmp_path, 0) as state:
        assert state.begin_run(NOW + 150).quiet_from_s == NOW + 150
        state.end_run(NOW + 151, "sigint")
    repartition(tmp_path, 2, LATER)
    assert next_run(tmp_path, 1).quiet_from_s == NOW + 150


def test_a_partition_that_was_only_made_is_quiet_for_hosts_of_a_killed_one(tmp_path: Path) -> None:
    furnish(tmp_path, 2)
    with changed(tmp_path, 0) as state:
        state.end_run(NOW + 60, MADE)
    with changed(tmp_path, 1) as state:
        state.begin_run(NOW + 100)
    repartition(tmp_path, 1, NOW + 200)
    assert next_run(tmp_path, 0).quiet_from_s == NOW + 200


def test_after_a_clean_end_no_host_waits(tmp_path: Path) -> None:
    furnish(tmp_path, 2)
    repartition(tmp_path, 3, LATER)
    assert [next_run(tmp_path, number).quiet_from_s for number in range(3)] == [None, None, None]


def test_the_ledger_of_a_new_partition_has_the_runs_before_it(tmp_path: Path) -> None:
    furnish(tmp_path, 1)
    with changed(tmp_path, 0) as state:
        state.begin_run(NOW + 100).pages = 5
        state.end_run(NOW + 110, "sigterm")
    repartition(tmp_path, 2, LATER)
    old, new = last_runs(tmp_path)
    assert (new.number, new.started_s, new.ended_s, new.how) == (old.number, old.started_s, old.ended_s, "sigterm")
    assert (old.pages, new.pages) == (5, 0)


def test_a_partition_that_owns_nothing_any_more_is_over_and_its_reasons_stay(tmp_path: Path) -> None:
    furnish(tmp_path, 2)
    with changed(tmp_path, 1) as state:
        state.counters.reasons |= {OrderReason.TRANSIENT, OrderReason.LIMIT_HOST}
        state.counters.requests = 17
    repartition(tmp_path, 1, LATER)
    with CrawlState.open(member_directory(tmp_path, 1)) as state:
        counters = state.counters
        assert (counters.finished, counters.reasons, counters.requests) == (True, {OrderReason.TRANSIENT}, 17)
        assert (counters.seen, counters.queued, counters.hosts, counters.held, counters.noted) == (0, 0, 0, 0, 0)
    with CrawlState.open(member_directory(tmp_path, 0)) as state:
        assert not state.counters.finished


def test_letters_stay_with_their_sender_which_is_not_over_until_they_are_sent(tmp_path: Path) -> None:
    furnish(tmp_path, 2)
    with changed(tmp_path, 1) as state:
        state.letters.post(5, Letter(LetterKind.LINK, "http://elsewhere.test/"))
    repartition(tmp_path, 1, LATER)
    with CrawlState.open(member_directory(tmp_path, 1)) as state:
        assert state.letters.waiting_nodes() == [5]
        assert not state.counters.finished


@pytest.mark.parametrize("finished", [[True, True], [True, False], [False, True]])
def test_a_partition_has_finished_if_it_had_and_what_came_in_had(tmp_path: Path, finished: list[bool]) -> None:
    empty(tmp_path, 2)
    for number, each in enumerate(finished):
        with changed(tmp_path, number) as state:
            state.counters.finished = each
    repartition(tmp_path, 1, LATER)
    with CrawlState.open(member_directory(tmp_path, 0)) as state:
        assert state.counters.finished is all(finished)


# Refusals, and what is left over -------------------------------------------------------------------------------------


def test_the_partitions_of_an_archive_stay_as_they_are(tmp_path: Path) -> None:
    empty(tmp_path, 2)
    table = msgspec.structs.replace(read_table(tmp_path), settings={"warc": True})
    write_table(tmp_path, table)
    with pytest.raises(UsageError, match="archive"):
        repartition(tmp_path, 3, LATER)
    assert read_table(tmp_path) == table
    assert repartition(tmp_path, 2, LATER) == table


def test_as_many_partitions_as_there_are_move_nothing(tmp_path: Path) -> None:
    furnish(tmp_path, 3)
    before = read_table(tmp_path)
    assert repartition(tmp_path, 3, LATER) == before


def test_partitions_that_own_nothing_are_used_again(tmp_path: Path) -> None:
    furnish(tmp_path, 3)
    repartition(tmp_path, 1, LATER)
    table = repartition(tmp_path, 2, LATER)
    assert set(table.owners) == {0, 1}
    assert len(table.members) == 3
    assert repartition(tmp_path, 5, LATER).members[:3] == table.members
    assert not broken(tmp_path, read_table(tmp_path))


def test_partitions_that_never_came_into_the_table_are_made_anew(tmp_path: Path) -> None:
    furnish(tmp_path, 1)
    with CrawlState.create(member_directory(tmp_path, 1), Config(max_depth=9)) as state:
        state.begin_run(NOW)
        state.checkpoint()
        state.seal()
    finish_moves(tmp_path, LATER)
    assert not member_directory(tmp_path, 1).exists()
    repartition(tmp_path, 2, LATER)
    with CrawlState.open(member_directory(tmp_path, 1)) as state:
        assert state.config().max_depth is None


def test_a_partition_that_made_requests_is_never_removed(tmp_path: Path) -> None:
    furnish(tmp_path, 2)
    table = read_table(tmp_path)
    write_table(tmp_path, msgspec.structs.replace(table, members=table.members[:1], owners=[0] * len(table.owners)))
    finish_moves(tmp_path, LATER)
    assert (member_directory(tmp_path, 1) / CRAWL).exists()


def test_rows_that_are_missing_are_noticed_before_owners_change(tmp_path: Path) -> None:
    furnish(tmp_path, 1)
    gone = next(name for name in HOSTS if node_of(name) in _leaving(tmp_path))
    with stored(tmp_path, 0) as store:
        store.unstage(next(store.walk_keys(keys.queue_range(keys.host_id(gone)), keys.after(keys.QUEUE))))
        store.freeze().write()
    before = read_table(tmp_path).owners
    with pytest.raises(StateDamaged, match=r"partition 0 of .* lacks rows"):
        repartition(tmp_path, 2, LATER)
    assert read_table(tmp_path).owners == before


def _leaving(directory: Path) -> set[int]:
    """The nodes that would move from one partition to two."""
    owners = Owners(tuple(read_table(directory).owners))
    return {node for node, owner in enumerate(owners.spread((0, 1)).table) if owner == 1}
