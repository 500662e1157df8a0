"""Pages alike are found by look-ups as a comparison of all with all finds them, whatever order they came in."""

import random
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from crawlkit.model import Kind, Record
from crawlkit.state import keys
from crawlkit.state.crawl import CrawlState
from crawlkit.state.duplicates import MOST_BITS
from crawlkit.state.reading import open_crawl_for_reading
from tests.state.making import begin_crawl

Alike = dict[str, tuple[str | None, str | None]]


def page(path: str, digest: str | None = None, simhash: int | None = None, **facts: object) -> Record:
    values: dict[str, object] = {"body_bytes": 9, "truncated": False, **facts}
    return Record(url=f"http://a.test/{path}", kind=Kind.PAGE, depth=0, digest=digest, simhash=simhash, **values)  # type: ignore[arg-type]


def put(directory: Path, records: Iterable[Record]) -> None:
    with begin_crawl(directory) as state:
        for count, record in enumerate(records):
            state.pages.put(record)
            if count % 700 == 0:
                state.checkpoint()
        state.checkpoint()


def alike(directory: Path) -> Alike:
    with open_crawl_for_reading(directory) as crawl:
        return {
            r.url.rpartition("/")[2]: (_name(r.duplicate_of), _name(r.near_duplicate_of)) for r in crawl.pages.walk_marked()
        }


def _name(url: str | None) -> str | None:
    return None if url is None else url.rpartition("/")[2]


def compared(records: Iterable[Record]) -> Alike:
    """Compare all with all."""
    whole = [r for r in records if not r.truncated and r.body_bytes]

    def first(record: Record, urls: Iterator[str]) -> str | None:
        smallest = min(urls, key=str.encode, default=record.url)
        return None if smallest == record.url else _name(smallest)

    return {
        str(_name(one.url)): (
            first(one, (r.url for r in whole if r.digest == one.digest is not None)),
            first(one, (r.url for r in whole if _near(one, r))),
        )
        for one in whole
    }


def _near(one: Record, other: Record) -> bool:
    if one.simhash is None or other.simhash is None:
        return False
    return (one.simhash ^ other.simhash).bit_count() <= MOST_BITS


def generated(count: int, seed: int) -> list[Record]:
    """Return pages of which many are equal, many near one another in chains, and the rest alone."""
    rng = random.Random(seed)
    hashes = [rng.getrandbits(64) for _ in range(count // 8)]
    records = []
    for n in range(count):
        simhash = rng.choice(hashes)
        for _ in range(rng.randrange(7)):
            simhash ^= 1 << rng.randrange(64)
        if rng.random() < 0.3:
            hashes.append(simhash)
        records.append(page(f"{rng.randrange(10**6)}é{n}", f"sha256:{rng.randrange(count)}", simhash))
    return records


def test_look_ups_find_what_a_comparison_of_all_2000_finds(tmp_path: Path) -> None:
    records = generated(2_000, 5)
    put(tmp_path / "a", records)
    expected = compared(records)
    assert alike(tmp_path / "a") == expected
    assert sum(near is not None for _, near in expected.values()) > 400
    assert sum(equal is not None for equal, _ in expected.values()) > 400


def test_the_order_of_arrival_makes_no_difference(tmp_path: Path) -> None:
    records = generated(300, 6)
    put(tmp_path / "a", records)
    put(tmp_path / "b", reversed(records))
    assert alike(tmp_path / "a") == alike(tmp_path / "b")


@pytest.mark.parametrize("bits", range(5))
@pytest.mark.parametrize("where", [0, 15, 16, 31, 40, 60, 63])
def test_up_to_three_bits_anywhere_are_near(bits: int, where: int, tmp_path: Path) -> None:
    other = 0x0123456789ABCDEF
    for n in range(bits):
        other ^= 1 << (where + 17 * n) % 64
    put(tmp_path / "a", [page("1", simhash=0x0123456789ABCDEF), page("2", simhash=other)])
    assert alike(tmp_path / "a")["2"] == (None, "1" if bits <= MOST_BITS else None)


def test_the_smallest_near_is_no_closure(tmp_path: Path) -> None:
    put(tmp_path / "a", [page("1", simhash=0b111), page("2", simhash=0), page("3", simhash=0b111 << 60)])
    assert alike(tmp_path / "a") == {"1": (None, None), "2": (None, "1"), "3": (None, "2")}


def test_pages_that_are_cut_or_empty_and_what_is_no_page_are_like_nothing(tmp_path: Path) -> None:
    failure = Record(url="http://a.test/0", kind=Kind.FAILURE, depth=0, status=404, body_bytes=9, digest="sha256:1", simhash=1)
    cut = page("1", "sha256:1", 1, truncated=True)
    put(
        tmp_path / "a",
        [failure, cut, page("2", "sha256:1", 1, body_bytes=0), page("3", "sha256:1", 1), page("4", "sha256:1", 1)],
    )
    nothing = (None, None)
    assert alike(tmp_path / "a") == {"0": nothing, "1": nothing, "2": nothing, "3": nothing, "4": ("3", "3")}


def test_a_page_that_is_removed_is_no_longer_the_first(tmp_path: Path) -> None:
    put(tmp_path / "a", [page(name, "sha256:1", 5) for name in "123"])
    with CrawlState.open(tmp_path / "a") as state:
        state.begin_run(0.0)
        state.pages.remove("http://a.test/1")
        state.checkpoint()
    assert alike(tmp_path / "a") == {"2": (None, None), "3": ("2", "2")}


def test_a_crawl_begun_without_these_rows_keeps_none(tmp_path: Path) -> None:
    put(tmp_path / "a", [page("1", "sha256:1")])
    with CrawlState.open(tmp_path / "a") as state:
        state.begin_run(0.0)
        state._store.unstage(keys.INDEXED)
        state.checkpoint()
    with CrawlState.open(tmp_path / "a") as state:
        state.begin_run(0.0)
        state.pages.put(page("2", "sha256:1"))
        state.checkpoint()
    assert alike(tmp_path / "a") == {"1": (None, None), "2": (None, None)}


def test_ten_thousand_equal_pages_are_found_as_fast_as_two(tmp_path: Path) -> None:
    put(tmp_path / "a", (page(f"{n:05}", "sha256:1", 5) for n in range(10_000)))
    with open_crawl_for_reading(tmp_path / "a") as crawl:
        walked = 0
        cursor = crawl._store.cursor()
        firsts = cursor.firsts

        def counted(prefix: bytes, length: int) -> Iterator[bytes]:
            nonlocal walked
            for key in firsts(prefix, length):
                walked += 1
                yield key

        cursor.firsts = counted  # type: ignore[method-assign]
        crawl._store.cursor = lambda: cursor  # type: ignore[method-assign]
        found = [record.duplicate_of for record in crawl.pages.walk_marked()]
    assert found == [None, *["http://a.test/00000"] * 9_999]
    assert walked == 10_000 * keys.BANDS
