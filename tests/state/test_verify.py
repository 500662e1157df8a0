"""Each rule of `verify`, broken by hand in a database, is found by its name; crawls that nobody tampered with are whole."""

import itertools
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from crawlkit.engine.ending import Ending
from crawlkit.engine.verify import Thoroughness, verify
from crawlkit.errors import StateDamaged
from crawlkit.model import Content, Record
from crawlkit.policy.urls import host_of
from crawlkit.state import keys
from crawlkit.state.bloom import boot_id
from crawlkit.state.checkpoint import Run, read_summary, write_summary
from crawlkit.state.codec import Head, QueueRow, decode_row, decode_seen, encode_row, encode_seen
from crawlkit.state.content import Contents
from crawlkit.state.findings import MOST_EXAMPLES, Rule
from crawlkit.state.hosts import decode_host
from crawlkit.state.layout import BLOOM, DATABASE
from crawlkit.state.pages import Pages
from crawlkit.state.reading import CONFIG, COUNTERS, read_counters
from crawlkit.state.store import Store
from crawlkit.state.tally import slices
from crawlkit.state.verify import Verification
from tests.crash.fake_crawls import crawl, kill, resume

Break = Callable[[Store], object]


@pytest.fixture(scope="session")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A crawl that finished over two runs, and one that was killed, with rows left."""
    place = tmp_path_factory.mktemp("whole")
    kill(place / "finished", 30, crawl)
    assert resume(place / "finished").how is Ending.FINISHED
    kill(place / "killed", 40, crawl)
    return {name: place / name for name in ("finished", "killed")}


@contextmanager
def _opened(directory: Path) -> Iterator[Store]:
    with Store(directory / DATABASE, create=False) as store:
        yield store
        store.freeze().write()


def _first(store: Store, prefix: bytes) -> tuple[bytes, bytes]:
    return next(store.walk(prefix, keys.after(prefix)))


def _seen_key(url: str) -> bytes:
    return keys.seen_key(keys.host_id(url.split("/")[2]), url)


def _change_counters(store: Store, **changes: Any) -> None:
    store.stage(COUNTERS, msgspec.msgpack.encode(msgspec.structs.replace(read_counters(store), **changes)))


def _change_host(store: Store, **changes: Any) -> None:
    key, value = _first(store, keys.HOST)
    store.stage(key, msgspec.msgpack.encode(msgspec.structs.replace(decode_host(value), **changes)))


def _change_row(store: Store, **changes: Any) -> None:
    key, value = _first(store, keys.QUEUE)
    store.stage(key, encode_row(msgspec.structs.replace(decode_row(value), **changes)))


def _waiting_url(store: Store) -> str:
    return decode_row(_first(store, keys.QUEUE)[1]).url


def _a_record(store: Store) -> Record:
    """A record that another one links to."""
    targets = {link for record in Pages(store).walk() for link in record.links}
    return next(record for record in Pages(store).walk() if record.url in targets and record.depth > 0)


def _change_entry(store: Store, url: str, **changes: Any) -> None:
    value = store.get(_seen_key(url))
    assert value is not None
    store.stage(_seen_key(url), encode_seen(decode_seen(value)._replace(**changes)))


def _deepen(store: Store) -> None:
    record = _a_record(store)
    Pages(store).set_head(record.url, Head(record.depth + 5, record.hops, record.sources))
    _change_entry(store, record.url, depth=record.depth + 5)


def _link_elsewhere(store: Store) -> None:
    record = _a_record(store)
    Pages(store).put(msgspec.structs.replace(record, links=(*record.links, "http://h1.test/unseen")))


def _misplace_origin(store: Store) -> None:
    _, value = _first(store, keys.ORIGIN)
    store.stage(keys.origin_key("http://elsewhere.test"), value)


def _propagate(store: Store, url: str) -> None:
    store.stage(keys.relax_key(3, url), encode_row(QueueRow(url, "", 3, 0)))


def _swap_host(store: Store) -> None:
    key, value = _first(store, keys.HOST)
    store.stage(key, msgspec.msgpack.encode(msgspec.structs.replace(decode_host(value), name="elsewhere.test")))


BY_HAND: list[tuple[str, Rule, Break]] = [
    ("finished", Rule.KNOWN, lambda store: store.stage(b"zzz", b"")),
    ("finished", Rule.KNOWN, lambda store: store.stage(keys.HOST + b"short", b"")),
    ("finished", Rule.DECODES, lambda store: store.stage(keys.page_key(_a_record(store).url), b"\0\0\0\0\0junk")),
    ("finished", Rule.DECODES, lambda store: store.stage(_first(store, keys.SEEN)[0], b"\xc1")),
    ("killed", Rule.DECODES, lambda store: store.stage(_first(store, keys.QUEUE)[0], b"\xc1")),
    ("finished", Rule.SETTINGS, lambda store: store.stage(CONFIG, b'{"no_such_key": 1}')),
    ("finished", Rule.SETTINGS, lambda store: store.unstage(CONFIG)),
    ("finished", Rule.LEDGER, lambda store: store.stage(keys.numbered_key(keys.RUN, 9), msgspec.msgpack.encode(Run(9, 0.0)))),
    (
        "finished",
        Rule.LEDGER,
        lambda store: store.stage(keys.numbered_key(keys.RUN, 2), msgspec.msgpack.encode(Run(2, 5.0, 4.0))),
    ),
    ("finished", Rule.SEEDS, lambda store: store.stage(keys.numbered_key(keys.SEED, 3), b"http://h1.test/unseen")),
    ("finished", Rule.SEEDS, lambda store: store.unstage(keys.numbered_key(keys.SEED, 0))),
    ("killed", Rule.QUEUED_SEEN, lambda store: store.unstage(_seen_key(_waiting_url(store)))),
    ("killed", Rule.QUEUED_PLACED, lambda store: _change_row(store, depth=200)),
    ("killed", Rule.QUEUED_PLACED, lambda store: _change_row(store, host="elsewhere.test")),
    ("killed", Rule.QUEUED_PLACED, lambda store: _change_counters(store, sequence=1)),
    ("killed", Rule.SEEN_QUEUED, lambda store: store.unstage(_first(store, keys.QUEUE)[0])),
    ("finished", Rule.SEEN_SETTLED, lambda store: store.unstage(keys.page_key(_a_record(store).url))),
    ("finished", Rule.RECORDS_SEEN, lambda store: store.unstage(_seen_key(_a_record(store).url))),
    ("finished", Rule.RECORDS_DISTANCES, lambda store: _change_entry(store, _a_record(store).url, depth=77)),
    ("finished", Rule.RECORDS_DISTANCES, lambda store: _change_entry(store, _a_record(store).url, hops=3)),
    ("finished", Rule.HOSTS_KNOWN, lambda store: store.unstage(_first(store, keys.HOST)[0])),
    ("finished", Rule.HOSTS_KNOWN, _swap_host),
    ("finished", Rule.HOSTS_COUNTS, lambda store: _change_host(store, pages=1000)),
    ("killed", Rule.HOSTS_COUNTS, lambda store: _change_host(store, queued=1000)),
    ("killed", Rule.HOSTS_COUNTS, lambda store: _change_host(store, timed=1000)),
    ("killed", Rule.HOSTS_CURSOR, lambda store: _change_host(store, cursor=b"\xff" * 9)),
    ("finished", Rule.RELAX, lambda store: _propagate(store, "http://h1.test/unseen")),
    ("finished", Rule.FINISHED, lambda store: _propagate(store, _a_record(store).url)),
    ("killed", Rule.FINISHED, lambda store: _change_counters(store, finished=True)),
    ("finished", Rule.ORIGINS, _misplace_origin),
    ("finished", Rule.CONTENTS, lambda store: Contents(store).put("http://h1.test/unseen", Content("x"))),
    ("finished", Rule.DECODES, lambda store: store.stage(keys.content_key(_a_record(store).url), b"junk")),
    ("finished", Rule.ALIKE, lambda store: store.unstage(_first(store, keys.DIGEST)[0])),
    ("killed", Rule.ALIKE, lambda store: store.stage(keys.digest_key("sha256:00", "http://h1.test/unseen"), b"")),
    ("killed", Rule.ALIKE, lambda store: store.stage(keys.band_key(1, 7, _a_record(store).url), b"")),
    ("finished", Rule.EDGES_SEEN, _link_elsewhere),
    ("finished", Rule.EDGES_DISTANCES, _deepen),
    *[
        ("killed", Rule.COUNTERS, lambda store, name=name: _change_counters(store, **{name: 9999}))
        for name in ("seen", "queued", "hosts", "pages", "redirects", "failures", "excluded", "body_bytes", "held")
    ],
    ("killed", Rule.COUNTERS, lambda store: store.stage(COUNTERS, b"\xc1")),
    ("killed", Rule.CHECKPOINT, lambda store: _change_counters(store, requests=0)),
]


def _copy(directory: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(directory, tmp_path / "crawl"))


@pytest.mark.parametrize(("name", "rule", "break_it"), BY_HAND, ids=[f"{rule} {n}" for n, (_, rule, _) in enumerate(BY_HAND)])
def test_a_broken_rule_is_found_by_its_name(
    name: str, rule: Rule, break_it: Break, whole: dict[str, Path], tmp_path: Path
) -> None:
    directory = _copy(whole[name], tmp_path)
    with _opened(directory) as store:
        break_it(store)
    report = verify(directory, Thoroughness.FULL)
    assert rule in report.broken
    assert report.broken[rule].count >= len(report.broken[rule].examples) >= 1


def test_a_checkpoint_that_says_something_else_is_found(whole: dict[str, Path], tmp_path: Path) -> None:
    directory = _copy(whole["finished"], tmp_path)
    summary = read_summary(directory)
    summary.runs[0].requests += 1
    write_summary(directory, summary)
    assert verify(directory, Thoroughness.QUICK).broken.keys() == {Rule.CHECKPOINT}


def test_a_filter_that_lacks_a_key_is_found(whole: dict[str, Path], tmp_path: Path) -> None:
    if not boot_id():
        pytest.skip("no filter is reused where the system does not tell its boots apart")
    directory = _copy(whole["finished"], tmp_path)
    _forget_bits(directory)
    report = verify(directory, Thoroughness.FULL)
    assert report.broken.keys() == {Rule.FILTER}
    assert report.broken[Rule.FILTER].count > MOST_EXAMPLES == len(report.broken[Rule.FILTER].examples)


def _forget_bits(directory: Path) -> None:
    """Leave the head of the filter file as it is, and clear every bit."""
    path = directory / BLOOM
    data = path.read_bytes()
    path.write_bytes(data[:4096] + bytes(len(data) - 4096))


def test_a_table_that_cannot_be_read_is_found(whole: dict[str, Path], tmp_path: Path) -> None:
    found: set[Rule] = set()
    for number, tenth in enumerate(range(9)):
        directory = _copy(whole["finished"], tmp_path / str(number))
        table = max((directory / DATABASE).glob("*.ldb"), key=lambda path: path.stat().st_size)
        data = bytearray(table.read_bytes())
        data[len(data) * tenth // 10] ^= 1
        table.write_bytes(data)
        try:
            found |= verify(directory, Thoroughness.FULL).broken.keys()
        except StateDamaged:
            continue  # what is read on opening
    assert Rule.READABLE in found


@pytest.mark.parametrize("name", ["finished", "killed"])
def test_a_crawl_that_nobody_tampered_with_is_whole(name: str, whole: dict[str, Path], tmp_path: Path) -> None:
    directory = _copy(whole[name], tmp_path)
    for thoroughness in Thoroughness:
        report = verify(directory, thoroughness)
        assert report.whole
        assert report.checked["records"] > 0


def test_a_crawl_killed_again_and_again_is_whole_each_time(tmp_path: Path) -> None:
    for records, start in zip((1, 5, 20, 40, 60, 80), itertools.chain([crawl], itertools.repeat(resume)), strict=False):
        kill(tmp_path / "crawl", records, start)
        assert verify(tmp_path / "crawl", Thoroughness.FULL).whole
    assert resume(tmp_path / "crawl").how is Ending.FINISHED
    assert verify(tmp_path / "crawl", Thoroughness.FULL).whole


def test_what_a_filter_without_bits_leaves_is_no_damage(whole: dict[str, Path], tmp_path: Path) -> None:
    if not boot_id():
        pytest.skip("no filter is reused where the system does not tell its boots apart")
    directory = _copy(whole["killed"], tmp_path)
    second_rows = 0
    for records in (45, 50, 60, 70, 80):
        _forget_bits(directory)
        kill(directory, records, resume)
        report = verify(directory, Thoroughness.FULL)
        assert report.broken.keys() <= {Rule.FILTER}
        second_rows += report.checked.get("twins", 0) + report.checked.get("requeued", 0)
    assert second_rows > 0
    assert resume(directory).how is Ending.FINISHED
    assert verify(directory, Thoroughness.FULL).broken.keys() <= {Rule.FILTER}


@pytest.mark.parametrize("hosts", [1, 2, 3, 4])
def test_hosts_are_tallied_slice_by_slice(hosts: int, whole: dict[str, Path], tmp_path: Path) -> None:
    with Store(_copy(whole["finished"], tmp_path) / DATABASE, create=False) as store:
        found = list(slices(store, hosts))
        ids = [key[1:] for key, _ in store.walk(keys.HOST, keys.after(keys.HOST))]
        assert [sum(tally.covers(host) for tally in found) for host in ids] == [1] * len(ids)
        assert all(tally.counts(host) is not None for host in ids for tally in found if tally.covers(host))
        assert (found[0].first, found[-1].end) == (0, 1 << 64)


@pytest.mark.parametrize("name", ["finished", "killed"])
def test_what_is_found_does_not_depend_on_the_slices(name: str, whole: dict[str, Path], tmp_path: Path) -> None:
    directory = _copy(whole[name], tmp_path)
    with _opened(directory) as store:
        _change_host(store, pages=1000)
    with Store(directory / DATABASE, create=False) as store:
        reports = []
        for hosts in (1, 2, 1000):
            verification = Verification(store, read_summary(directory), host_of, hosts)
            verification.check_keys()
            verification.check_rows(None, lambda key, record: None)
            reports.append(verification.findings.report())
    assert reports[0].broken.keys() == {Rule.HOSTS_COUNTS}
    assert reports[0] == reports[1] == reports[2]
