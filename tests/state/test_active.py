"""Hosts whose seen entries are in memory as a whole: the same answers as the store's, within bounds."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlkit.state import keys
from crawlkit.state.active import HOSTS_REMEMBERED, ActiveHosts
from crawlkit.state.store import Store

A, B, C = (keys.host_id(f"{name}.test") for name in "abc")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(tmp_path / "db", create=True) as made:
        yield made


def put(store: Store, hosts: ActiveHosts, host: bytes, number: int, value: bytes = b"v") -> None:
    url = keys.url_id(str(number))
    store.stage(keys.SEEN + host + url, value)
    hosts.put(host, url, value)


def write(store: Store) -> None:
    store.freeze().write()
    store.install()


def test_a_host_is_taken_in_when_it_asks_again_with_what_is_not_written_yet(store: Store) -> None:
    hosts = ActiveHosts(store)
    for number in range(3):
        put(store, hosts, A, number)
    write(store)
    put(store, hosts, A, 1, b"newer")
    put(store, hosts, A, 3)
    put(store, hosts, B, 4)
    hosts.ask(A)
    assert hosts.entries(A) is None
    hosts.ask(A)
    assert hosts.entries(A) == {keys.url_id(str(n)): b"newer" if n == 1 else b"v" for n in range(4)}
    assert hosts.entries(B) is None
    put(store, hosts, A, 5)
    assert len(hosts) == len(hosts.entries(A) or ()) == 5


def test_those_that_asked_longest_ago_make_room_and_have_to_ask_twice_again(store: Store) -> None:
    hosts = ActiveHosts(store, most_entries=25)
    for host in (A, B, C):
        for number in range(10):
            put(store, hosts, host, number)
    for host in (A, A, B, B, A, C, C):
        hosts.ask(host)
    assert [hosts.entries(host) is not None for host in (A, B, C)] == [True, False, True]
    assert len(hosts) == 20
    hosts.ask(B)
    assert hosts.entries(B) is None


def test_hosts_that_ask_seldom_do_not_take_the_place_of_each_other(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """One host asks every other time, twenty others in turn: there is room for two more."""
    hosts = ActiveHosts(store, most_entries=35)
    others = [keys.host_id(f"{n}.test") for n in range(20)]
    for host in (A, *others):
        for number in range(10):
            put(store, hosts, host, number)
    loads: list[bytes] = []
    scan = store.scan

    def counted(bucket: bytes, start: bytes, limit: int) -> list[tuple[bytes, bytes]]:
        loads.append(bucket)
        return scan(bucket, start, limit)

    monkeypatch.setattr(store, "scan", counted)
    for _ in range(10):
        for host in others:
            hosts.ask(A)
            hosts.ask(host)
    assert hosts.entries(A) is not None
    assert len(loads) < 10  # of some 200


def test_entries_that_come_one_by_one_take_the_place_of_others_too(store: Store) -> None:
    hosts = ActiveHosts(store, most_entries=25)
    for host in (A, A, B, B):
        hosts.ask(host)
    for number in range(20):
        put(store, hosts, A, number)
        put(store, hosts, B, number)
        assert len(hosts) <= 25
    assert hosts.entries(A) is None
    assert len(hosts.entries(B) or ()) == 20


def test_a_host_with_too_many_entries_is_left_to_the_store_and_read_once(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    hosts = ActiveHosts(store, most_of_a_host=10)
    for number in range(11):
        put(store, hosts, A, number)
    for number in range(10):
        put(store, hosts, B, number)
    for host in (A, A, B, B):
        hosts.ask(host)
    assert hosts.entries(A) is None
    assert hosts.entries(B) is not None
    put(store, hosts, B, 10)  # one too many
    assert hosts.entries(B) is None
    assert len(hosts) == 0
    monkeypatch.setattr(store, "scan", None)  # would be noticed
    hosts.ask(A)
    hosts.ask(B)


def test_hosts_that_asked_once_are_forgotten_in_the_end(store: Store) -> None:
    hosts = ActiveHosts(store)
    hosts.ask(A)
    for number in range(HOSTS_REMEMBERED):
        hosts.ask(keys.host_id(str(number)))
    hosts.ask(A)
    assert hosts.entries(A) is None


@given(st.lists(st.tuples(st.sampled_from(["put", "ask", "write"]), st.integers(0, 3), st.integers(0, 8))))
def test_what_is_in_memory_is_what_the_store_holds(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, int, int]]
) -> None:
    with Store(tmp_path_factory.mktemp("active") / "db", create=True) as store:
        hosts = ActiveHosts(store, most_entries=12, most_of_a_host=7)
        ids = [keys.host_id(str(number)) for number in range(4)]
        for step, (what, host, number) in enumerate(steps):
            match what:
                case "put":
                    put(store, hosts, ids[host], number, b"%d" % step)
                case "ask":
                    hosts.ask(ids[host])
                case _:
                    write(store)
            for each in ids:
                entries = hosts.entries(each)
                prefix = keys.SEEN + each
                assert entries is None or sorted(entries.items()) == [
                    (key[len(prefix) :], value) for key, value in store.scan(prefix, prefix, 100)
                ]
            assert len(hosts) == sum(len(hosts.entries(each) or ()) for each in ids) <= 12 + 1
