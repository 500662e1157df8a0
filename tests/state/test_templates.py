"""Accounts of templates and hosts, and the pages that wait: they survive, in order, and each waits once."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from crawlkit.errors import StateDamaged
from crawlkit.state import keys
from crawlkit.state.store import Store
from crawlkit.state.templates import ROWS_A_LOOK, UNSAVED_PAGES, HeldRow, Templates


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(tmp_path / "db", create=True) as opened:
        yield opened


def write(store: Store, templates: Templates) -> None:
    templates.stage_changed()
    store.freeze().write()
    store.install()


def test_an_account_is_as_it_was_left(store: Store) -> None:
    templates = Templates(store)
    account = templates.get("h.test/item/.?", 7)
    account.credit -= 2
    account.drawn, account.pages = 3, 4
    templates.changed(account)
    write(store, templates)

    found = Templates(store).get("h.test/item/.?", 7)
    assert (found.credit, found.drawn, found.pages) == (5, 3, 4)
    assert found.memory is None
    assert Templates(store).get("h.test/list/.?").credit == 0


def test_what_is_remembered_is_written_now_and_then_and_before_an_end(store: Store) -> None:
    templates = Templates(store)
    account = templates.get("h.test/item/.?", 7)
    account.before, account.memory = (1, 2**32 - 1), bytearray(b"\1\2\3")
    account.unsaved_pages = UNSAVED_PAGES - 1
    templates.changed(account)
    write(store, templates)
    assert Templates(store).get("h.test/item/.?").memory is None

    account.unsaved_pages += 1
    templates.changed(account)
    write(store, templates)
    found = Templates(store).get("h.test/item/.?")
    assert (found.memory, found.before) == (bytearray(b"\1\2\3"), (1, 2**32 - 1))

    account.memory[0] = 9
    account.unsaved_pages = 1
    templates.stage_memories()
    write(store, templates)
    assert Templates(store).get("h.test/item/.?").memory == bytearray(b"\x09\2\3")


def test_what_was_only_looked_at_leaves_no_row(store: Store) -> None:
    templates = Templates(store)
    templates.get("h.test", 100)
    templates.stage_changed()
    assert store.staged_rows == 0


def test_accounts_beyond_the_window_are_kept_in_the_store(store: Store) -> None:
    templates = Templates(store)
    for number in range(20):
        account = templates.get(f"h.test/{number}")
        account.credit = number
        templates.changed(account)
    templates.trim(5)
    assert [templates.get(f"h.test/{number}").credit for number in range(20)] == list(range(20))
    write(store, templates)
    assert [Templates(store).get(f"h.test/{number}").credit for number in range(20)] == list(range(20))


def test_pages_wait_in_the_order_of_depth_and_each_once(store: Store) -> None:
    templates = Templates(store)
    host = templates.get("h.test")
    for depth, url in ((2, "http://h.test/c"), (0, "http://h.test/a"), (1, "http://h.test/b"), (300, "http://h.test/d")):
        assert templates.hold(host, depth, HeldRow(url, 5))
    assert not templates.hold(host, 1, HeldRow("http://h.test/b", 6))
    write(store, templates)

    templates = Templates(store)
    host = templates.get("h.test")
    assert host.held == 4
    taken = [templates.release(host) for _ in range(4)]
    assert [row.url[-1] for row in taken] == ["a", "b", "c", "d"]
    assert taken[1].position == 6
    assert host.held == 0


def test_pages_that_are_held_again_wait_for_their_next_turn(store: Store) -> None:
    templates = Templates(store)
    host = templates.get("h.test")
    for depth in range(3):
        templates.hold(host, depth, HeldRow(f"http://h.test/{depth}", 0))
    order = []
    for _ in range(6):
        row = templates.release(host)
        order.append(int(row.url[-1]))
        templates.hold(host, order[-1], row)
    assert order == [0, 1, 2, 0, 1, 2]


def test_pages_that_are_held_again_wait_until_all_others_had_their_turn(store: Store) -> None:
    templates = Templates(store)
    host = templates.get("h.test")
    for number in range(2 * ROWS_A_LOOK + 5):
        templates.hold(host, 0, HeldRow(f"http://h.test/{number}", 0))
    rounds: list[list[str]] = []
    for _ in range(2):
        rounds.append([])
        for _ in range(2 * ROWS_A_LOOK + 5):
            row = templates.release(host)
            rounds[-1].append(row.url)
            templates.hold(host, 0, row)
    assert rounds[0] == rounds[1]
    assert len(set(rounds[0])) == len(rounds[0])


def test_every_host_with_pages_that_wait_is_found(store: Store) -> None:
    templates = Templates(store)
    for name in ("a.test", "b.test", "c.test"):
        templates.hold(templates.get(name), 0, HeldRow(f"http://{name}/", 0))
    write(store, templates)
    templates = Templates(store)
    assert {templates.release(templates.holder()).url for _ in range(3)} == {f"http://{name}.test/" for name in "abc"}


def test_more_pages_wait_than_are_read_at_once(store: Store) -> None:
    templates = Templates(store)
    host, other = templates.get("h.test"), templates.get("i.test")
    for number in range(3 * ROWS_A_LOOK):
        templates.hold(host, 0, HeldRow(f"http://h.test/{number}", 0))
        templates.hold(other, 0, HeldRow(f"http://i.test/{number}", 0))
    assert len({templates.release(host).url for _ in range(3 * ROWS_A_LOOK)}) == 3 * ROWS_A_LOOK
    assert (host.held, other.held) == (0, 3 * ROWS_A_LOOK)
    assert templates.holder() is other


def test_what_cannot_be_read_is_damage(store: Store) -> None:
    templates = Templates(store)
    with pytest.raises(StateDamaged):
        templates.holder()
    with pytest.raises(StateDamaged):
        templates.release(templates.get("h.test"))
    store.stage(keys.template_key("h.test/x"), b"no account")
    with pytest.raises(StateDamaged):
        templates.get("h.test/x")
    templates.changed(templates.get("h.test/y"))
    templates.stage_changed()
    store.stage(keys.memory_key(keys.template_key("h.test/y")), b"no memory")
    with pytest.raises(StateDamaged):
        Templates(store).get("h.test/y")
    host = templates.get("h.test")
    store.stage(keys.held_key(host.key, 0, "http://h.test/"), b"no row")
    with pytest.raises(StateDamaged):
        templates.release(host)
