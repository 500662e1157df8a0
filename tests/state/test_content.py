"""Texts and anchors are kept with their page, through kills and repairs, and go with it."""

from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from crawlkit.engine.ending import Ending
from crawlkit.engine.repair import repair
from crawlkit.engine.verify import Thoroughness, verify
from crawlkit.errors import StateDamaged
from crawlkit.model import Content, Kind, Record
from crawlkit.state import keys
from crawlkit.state.crawl import CrawlState
from crawlkit.state.reading import open_crawl_for_reading
from tests.crash.fake_crawls import CONFIG, crawl, dump, kill, resume
from tests.state.making import NOW, begin_crawl, reopen

URL = "http://a.test/é"
PAGE = Record(url=URL, kind=Kind.PAGE, depth=0)
CONTENT = Content("Text «of» it", (("one", "nofollow"), ("", "")))


def settled(directory: Path) -> CrawlState:
    with begin_crawl(directory) as state:
        state.pages.put(PAGE, CONTENT)
        state.checkpoint()
    return reopen(directory)


def test_content_is_read_back(tmp_path: Path) -> None:
    with settled(tmp_path / "a") as state:
        assert state.pages.content(URL) == CONTENT
        assert state.pages.content("http://a.test/") is None
        assert state.pages.get(URL) == PAGE


def test_content_stays_when_its_record_is_put_again_and_goes_when_it_is_removed(tmp_path: Path) -> None:
    with settled(tmp_path / "a") as state:
        state.pages.put(PAGE)
        assert state.pages.content(URL) == CONTENT
        state.pages.remove(URL)
        assert state.pages.content(URL) is None
        state.checkpoint()
        assert state.pages.content(URL) is None


def test_content_that_was_not_checkpointed_is_gone_with_its_record(tmp_path: Path) -> None:
    with begin_crawl(tmp_path / "a") as state:
        state.pages.put(PAGE, CONTENT)
    with reopen(tmp_path / "a") as state:
        assert (state.pages.get(URL), state.pages.content(URL)) == (None, None)


def test_content_that_cannot_be_read_is_damage(tmp_path: Path) -> None:
    with settled(tmp_path / "a") as state:
        state._store.stage(keys.content_key(URL), b"junk")
        with pytest.raises(StateDamaged, match="content"):
            state.pages.content(URL)


ALL = replace(CONFIG, text=True, anchors=True, near_duplicates=True, extract=("title=title", "links[]=a@href"))


def contents(directory: Path) -> dict[str, Content | None]:
    with open_crawl_for_reading(directory) as reader:
        return {record.url: reader.pages.content(record.url) for record in reader.pages.walk()}


def test_a_crawl_that_was_killed_ends_with_the_same_texts_fields_and_duplicates(tmp_path: Path) -> None:
    assert crawl(tmp_path / "whole", config=ALL).how is Ending.FINISHED
    kill(tmp_path / "killed", 30, partial(crawl, config=ALL))
    kill(tmp_path / "killed", 60, resume)
    assert verify(tmp_path / "killed", Thoroughness.FULL).whole
    assert resume(tmp_path / "killed").how is Ending.FINISHED
    assert dump(tmp_path / "killed") == dump(tmp_path / "whole")
    expected = contents(tmp_path / "whole")
    assert contents(tmp_path / "killed") == expected
    assert sum(content is not None and bool(content.text) and bool(content.anchors) for content in expected.values()) > 40


def test_a_repaired_crawl_keeps_texts_and_tells_duplicates_as_before(tmp_path: Path) -> None:
    crawl(tmp_path / "a", config=ALL)
    repaired = repair(tmp_path / "a", NOW).directory
    assert contents(repaired) == contents(tmp_path / "a")
    assert dump(repaired) == dump(tmp_path / "a")
    assert verify(repaired, Thoroughness.FULL).whole
