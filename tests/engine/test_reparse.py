"""`reparse`: fields picked anew from the archive, as if the crawl had been begun with these rules; nothing is fetched."""

import gzip
import shutil
from pathlib import Path
from typing import Any

import msgspec
import pytest

from crawlkit.config import to_values
from crawlkit.engine.reparse import Reparsed, reparse
from crawlkit.engine.verify import Thoroughness, verify
from crawlkit.errors import ConfigError, StateDamaged, UsageError
from crawlkit.model import Record
from crawlkit.state.crawl import CrawlState
from crawlkit.state.reading import open_crawl_for_reading
from crawlkit.surfaces.report import json_line
from crawlkit.testing.site import Reply, Site, page, redirect
from tests.engine.test_archiving import A, files, resume, start

RULES = ("head=h1", "items[]=li", "to=a@href")
HTML = "<html><title>{0}</title><h1>{0}</h1><ul><li>one {0}<li>two</ul><a href='/twin'>twin</a><a href='/latin'>l</a>"


def html(name: str, **headers: str) -> Reply:
    body = HTML.format(name).encode()
    told = tuple((key.replace("_", "-"), value) for key, value in headers.items())
    return Reply(200, (("content-type", "text/html"), *told), gzip.compress(body) if "content_encoding" in headers else body)


SITE = Site(
    {
        "/": page("Home", ["/a", "/twin", "/zipped", "/gone", "/old", "/latin", "/data", "/later"]),
        "/a": html("A"),
        "/twin": html("A"),
        "/zipped": html("Zipped", content_encoding="gzip"),
        "/latin": Reply(200, (("content-type", "text/html; charset=iso-8859-1"),), "<h1>\u00e9</h1>".encode("latin-1")),
        "/data": Reply(200, (("content-type", "text/plain"),), b"<h1>no</h1>"),
        "/old": redirect("/a"),
        "/later": html("Later"),
    }
)


def lines(directory: Path) -> list[bytes]:
    with open_crawl_for_reading(directory) as crawl:
        return [json_line(record) for record in crawl.pages.walk()]


def fields(directory: Path) -> dict[str, Any]:
    with open_crawl_for_reading(directory) as crawl:
        return {record.url.removeprefix(A): record.fields for record in crawl.pages.walk()}


@pytest.fixture(scope="module")
def archived(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("archived") / "c"
    start(directory, SITE, warc_size=2_500)
    return directory


@pytest.fixture
def directory(archived: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(archived, tmp_path / "c"))


def test_the_report_is_that_of_a_crawl_begun_with_these_rules(directory: Path, tmp_path: Path) -> None:
    start(tmp_path / "other", SITE, extract=RULES)
    assert lines(directory) != lines(tmp_path / "other")
    assert reparse(directory, RULES, 0.0) == Reparsed(pages=7, changed=6)
    assert lines(directory) == lines(tmp_path / "other")
    assert fields(directory)["/twin"] == {"head": "A", "items": ("one A", "two"), "to": f"{A}/twin"}
    assert fields(directory)["/latin"]["head"] == "\u00e9"
    assert verify(directory, Thoroughness.DEEP).whole


def test_settings_and_ledger_tell_of_it(directory: Path) -> None:
    reparse(directory, RULES, 5.0)
    with CrawlState.open(directory) as state:
        assert state.config().extract == RULES
        assert (state.runs[-1].how, state.runs[-1].changes) == ("reparsed", {"extract": list(RULES), "extract_before": []})
        assert state.counters.finished
    assert resume(directory, SITE)[1:] == ([], [])


def test_done_again_it_changes_nothing(directory: Path) -> None:
    reparse(directory, RULES, 0.0)
    before = lines(directory)
    assert reparse(directory, (), 1.0) == Reparsed(pages=7, changed=0)
    assert lines(directory) == before


def test_pages_still_to_come_are_read_by_the_new_rules(tmp_path: Path) -> None:
    start(tmp_path / "c", SITE, max_pages=2)
    reparse(tmp_path / "c", ("head=h1",), 0.0)
    resume(tmp_path / "c", SITE, max_pages=None)
    start(tmp_path / "other", SITE, extract=("head=h1",))
    assert lines(tmp_path / "c") == lines(tmp_path / "other")


@pytest.mark.parametrize("batches", range(4))
def test_after_a_kill_the_same_command_ends_it(directory: Path, tmp_path: Path, batches: int) -> None:
    left = batches

    def checkpoint(state: CrawlState) -> None:
        nonlocal left
        if left == 0:
            raise InterruptedError
        left -= 1
        state.freeze().write()
        state.installed()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(CrawlState, "checkpoint", checkpoint)
        patch.setattr("crawlkit.engine.reparse.EXTENTS_A_BATCH", 3)
        with pytest.raises(InterruptedError):
            reparse(directory, RULES, 0.0)
    assert verify(directory, Thoroughness.FULL).whole
    reparse(directory, RULES if batches == 0 else (), 1.0)
    start(tmp_path / "other", SITE, extract=RULES)
    assert lines(directory) == lines(tmp_path / "other")


def test_fields_of_the_rules_before_go_and_those_of_plugins_stay(directory: Path) -> None:
    reparse(directory, ("old=h1", "head=h1"), 0.0)
    with CrawlState.open(directory) as state:
        record = state.pages.get(f"{A}/a")
        assert record is not None
        state.begin_run(1.0)
        state.pages.put(msgspec.structs.replace(record, fields={**record.fields, "mine": 7}))
        state.end_run(1.0, "changed")
        state.checkpoint()
    reparse(directory, ("head=title",), 2.0)
    assert fields(directory)["/a"] == {"head": "A", "mine": 7}
    assert fields(directory)["/zipped"] == {"head": "Zipped"}


def test_a_crawl_without_an_archive_is_refused(tmp_path: Path) -> None:
    start(tmp_path / "c", SITE, warc=False)
    with pytest.raises(UsageError, match="keeps no archive"):
        reparse(tmp_path / "c", RULES, 0.0)


def test_a_rule_that_cannot_be_is_refused_and_nothing_changed(directory: Path) -> None:
    before = to_values(_config(directory))
    with pytest.raises(ConfigError):
        reparse(directory, ("x=a[",), 0.0)
    assert to_values(_config(directory)) == before


def _config(directory: Path) -> Any:
    with open_crawl_for_reading(directory) as crawl:
        return crawl.config()


def test_an_archive_that_cannot_be_read_says_where(directory: Path) -> None:
    path = files(directory)[1]
    path.write_bytes(path.read_bytes()[:-900])
    with pytest.raises(StateDamaged, match=r"cannot be read at http://a\.test/.*crawlkit resume"):
        reparse(directory, RULES, 0.0)


def test_what_is_not_a_page_stays_as_it_is(directory: Path) -> None:
    def others() -> list[Record]:
        with open_crawl_for_reading(directory) as crawl:
            return [r for r in crawl.pages.walk() if r.url in (f"{A}/old", f"{A}/gone", f"{A}/data")]

    before = others()
    reparse(directory, RULES, 0.0)
    assert others() == before
