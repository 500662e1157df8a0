"""Words asked of an index: all must be there, nothing in them is an operator, the best page comes first."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from crawlkit.surfaces.search.index import Entry, Stamp, write_index
from crawlkit.surfaces.search.query import Found, find

PAGES = [
    Entry("http://a.test/1", "Brown bread", "How to bake it", "Take flour, water and salt. Bake for an hour."),
    Entry("http://a.test/2", "Foxes", None, "The quick brown fox jumps over the lazy dog. A fox is no dog."),
    Entry("http://a.test/3", None, None, "Crème brûlée NOT for dogs; title:fox"),
    Entry("http://a.test/4", "Twin", None, "same words"),
    Entry("http://a.test/5", "Twin", None, "same words"),
    Entry("http://a.test/6", None, None, "loaf loaf loaf"),
    Entry("http://a.test/7", None, "a loaf", "other"),
    Entry("http://a.test/8", "A loaf", None, "other"),
]


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[sqlite3.Connection]:
    path = tmp_path_factory.mktemp("index") / "search.sqlite"
    write_index(path, PAGES, Stamp(1, "x", 1))
    with closing(sqlite3.connect(path)) as connection:
        yield connection


def urls(database: sqlite3.Connection, *words: str, limit: int = 10) -> list[str]:
    return [found.url.removeprefix("http://a.test/") for found in find(database, words, limit)]


def test_all_words_must_be_there_in_any_of_a_page_s_parts(database: sqlite3.Connection) -> None:
    assert urls(database, "fox", "quick") == ["2"]
    assert urls(database, "bread", "salt") == ["1"]
    assert urls(database, "fox", "salt") == []


def test_case_and_accents_do_not_matter(database: sqlite3.Connection) -> None:
    assert urls(database, "creme", "BRULEE") == ["3"]
    assert urls(database, "Crème") == ["3"]


def test_a_word_counts_most_in_the_title_then_in_the_description(database: sqlite3.Connection) -> None:
    assert urls(database, "brown") == ["1", "2"]
    assert urls(database, "loaf") == ["8", "7", "6"]


def test_equal_pages_come_in_the_order_of_urls_and_no_more_than_asked_for(database: sqlite3.Connection) -> None:
    assert urls(database, "same") == ["4", "5"]
    assert urls(database, "same", limit=1) == ["4"]


def test_several_words_in_one_are_a_phrase(database: sqlite3.Connection) -> None:
    assert urls(database, "quick brown") == ["2"]
    assert urls(database, "brown quick") == []


def test_operators_are_words(database: sqlite3.Connection) -> None:
    assert urls(database, "NOT", "dogs") == ["3"]
    assert urls(database, "title:fox") == ["3"]
    assert urls(database, "dog", "OR", "salt") == []
    assert urls(database, "dog*") == ["2"]


@given(st.lists(st.text(max_size=8), min_size=1, max_size=4))
@example(["\0", '"', "\udcff", "*", "-", "(", "NEAR", "^a", "a:"])
def test_no_word_is_an_error(database: sqlite3.Connection, words: list[str]) -> None:
    assert all(isinstance(found, Found) for found in find(database, words, 3))


def test_a_snippet_has_its_matches_as_ranges(database: sqlite3.Connection) -> None:
    (found,) = find(database, ["fox", "quick"], 10)
    assert found.title == "Foxes"
    assert found.snippet == "The quick brown fox jumps over the lazy dog. A fox is no dog."
    assert [found.snippet[begin:end] for begin, end in found.matches] == ["quick", "fox", "fox"]
    assert found.score > 0
