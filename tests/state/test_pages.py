"""A record that is begun is encoded when its links have been followed, or when somebody asks for it: the same either way."""

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from crawlkit.model import Kind, Record, Source
from crawlkit.state.codec import Head
from crawlkit.state.crawl import CrawlState
from tests.state.making import begin_crawl, host_of, meet

URL = "http://a.test/"
PAGE = Record(url=URL, kind=Kind.PAGE, depth=1, hops=1, sources=int(Source.SEED), links=(URL,))


@pytest.fixture
def state(tmp_path: Path) -> Iterator[CrawlState]:
    with begin_crawl(tmp_path / "a") as made:
        yield made


def held(record: Record) -> Record:
    return msgspec.structs.replace(record, held=True)


def test_a_record_that_was_begun_is_there_for_who_asks_and_once_it_is_ended(state: CrawlState) -> None:
    state.pages.begin(PAGE, None)
    assert state.pages.head("http://a.test/other") is None
    assert state.pages.get(URL) == PAGE
    state.pages.end()
    assert state.pages.get(URL) == PAGE


def test_a_record_is_held_whether_it_was_asked_for_before_or_not(state: CrawlState) -> None:
    state.pages.begin(PAGE, None)
    state.pages.put_held(PAGE)
    state.pages.end()
    assert state.pages.get(URL) == held(PAGE)


def test_a_record_that_led_to_itself_keeps_the_head_it_got_when_it_is_held(state: CrawlState) -> None:
    nearer = Head(1, 0, int(Source.SEED | Source.LINK))
    state.pages.begin(PAGE, None)
    state.pages.set_head(URL, nearer)
    state.pages.put_held(PAGE)
    state.pages.end()
    assert state.pages.head(URL) == nearer
    assert state.pages.get(URL) == held(msgspec.structs.replace(PAGE, hops=0, sources=nearer.sources))


def test_a_url_is_known_to_be_new_only_where_all_entries_of_its_host_are_in_memory(state: CrawlState) -> None:
    meet(state, "http://a.test/1", 0)
    assert not state.frontier.is_new("http://a.test/1")
    host = host_of(state, "http://a.test/1")
    for _ in range(2):
        state.seen.expect(host.id)
    meet(state, "http://a.test/2", 0)
    assert state.frontier.is_new("http://a.test/2")
    state.frontier.add("http://a.test/1", host, 0, 0, None)  # as a filter's wrong "no" does
    assert not state.frontier.is_new("http://a.test/1")
