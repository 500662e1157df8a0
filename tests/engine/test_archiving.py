"""A crawl that archives: every exchange once, with its checkpoint; what is lost of the files is fetched again."""

import itertools
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from crawlkit.archive.files import FOLDER
from crawlkit.config import Config
from crawlkit.engine import coordinator as coordinating
from crawlkit.engine import limits
from crawlkit.engine import loop as looping
from crawlkit.engine.archiving import status_of
from crawlkit.engine.runner import run_async
from crawlkit.engine.session import Hooks, Outcome, Surroundings, begin, go_on
from crawlkit.engine.verify import Thoroughness, verify
from crawlkit.errors import StateDamaged
from crawlkit.exchange import Extent, Role
from crawlkit.model import Record
from crawlkit.state.checkpoint import read_summary
from crawlkit.state.crawl import CrawlState
from crawlkit.testing.fakeweb import FakeWeb
from crawlkit.testing.site import Fault, Reply, Site, in_turn, page, redirect, robots, status
from tests.archive.readers import Seen, agreed

A = "http://a.test"
SITE = Site(
    {
        "/": page("Home", ["/a", "/gone", "/old", "/late", "/twin", "/no", "/dead", "/half"]),
        "/a": page("A", ["/", "/deep"]),
        "/twin": page("A", ["/", "/deep"]),
        "/deep": page("Deep"),
        "/old": redirect("/a"),
        "/late": page("Late"),
        "/dead": Reply(fault=Fault.DROP),
        "/half": Reply(body=b"half of it", fault=Fault.CUT),
        "/robots.txt": robots("User-agent: *\nDisallow: /no"),
    }
)


def surroundings(site: Site) -> Surroundings:
    return Surroundings(transport=FakeWeb(site))


def start(directory: Path, site: Site = SITE, hooks: Hooks | None = None, **values: Any) -> Outcome:
    config = Config(**{"delay": 0, "retries": 0, "warc": True, **values})
    return run_async(begin([f"{A}/"], directory, config, hooks or Hooks(), surroundings(site)))


def resume(directory: Path, site: Site = SITE, **changes: object) -> tuple[Outcome, list[str], list[str]]:
    """The outcome, what was asked for again, and the warnings."""
    warnings: list[str] = []
    web = FakeWeb(site)
    outcome = run_async(go_on(directory, changes, Hooks(on_warning=warnings.append), Surroundings(transport=web)))
    return outcome, sorted(request.target for request in web.log), warnings


def extents(directory: Path) -> list[Extent]:
    with CrawlState.open(directory) as state:
        return list(state.extents.walk())


def records(directory: Path) -> list[Record]:
    with CrawlState.open(directory) as state:
        return list(state.pages.walk())


def files(directory: Path) -> list[Path]:
    return sorted((directory / FOLDER).iterdir()) if (directory / FOLDER).exists() else []


def answers(directory: Path) -> list[Seen]:
    """Responses and revisits as two readers find them, with nothing between them that the rows do not know of."""
    seen = [s for path in files(directory) for s in agreed(path)]
    found = [s for s in seen if s.kind in ("response", "revisit")]
    known = extents(directory)
    assert [(s.offset, s.uri) for s in found] == [(e.offset, e.url) for e in known]
    assert [s.kind for s in seen if s.kind != "warcinfo"] == [k for s in found for k in (s.kind, "request", "metadata")]
    with CrawlState.open(directory) as state:
        sizes = state.extents.sizes
        assert [sizes[number] for number in sorted(sizes)] == [path.stat().st_size for path in files(directory)]
    return found


def see_one_answer_a_record(directory: Path) -> None:
    found = answers(directory)
    kept = Counter(e.url for e in extents(directory) if e.role is Role.RECORD)
    assert kept == Counter(r.url for r in records(directory) if r.status is not None)
    assert len(found) == len(extents(directory))
    assert verify(directory, Thoroughness.FULL).whole


def test_every_exchange_is_archived_and_nothing_else(tmp_path: Path) -> None:
    start(tmp_path / "c")
    see_one_answer_a_record(tmp_path / "c")
    roles = {e.url.removeprefix(A): e.role for e in extents(tmp_path / "c")}
    assert roles == {"/robots.txt": Role.ROBOTS, **dict.fromkeys(
        ["/", "/a", "/gone", "/old", "/late", "/twin", "/deep", "/half"], Role.RECORD
    )}  # fmt: skip


def test_what_is_archived_is_what_was_received(tmp_path: Path) -> None:
    start(tmp_path / "c")
    found = {s.uri: s for s in answers(tmp_path / "c")}
    assert found[f"{A}/deep"].content == SITE.reply("a.test:80", "/deep").body
    assert (found[f"{A}/old"].status or "").startswith("302")
    assert ("location", "/a") in found[f"{A}/old"].http
    assert found[f"{A}/half"].head["WARC-Truncated"] == "disconnect"
    kinds = {found[f"{A}/a"].kind, found[f"{A}/twin"].kind}
    assert kinds == {"response", "revisit"}


def test_extents_tell_what_an_index_needs(tmp_path: Path) -> None:
    start(tmp_path / "c")
    with CrawlState.open(tmp_path / "c") as state:
        [home] = state.extents.of_url(f"{A}/")
        assert (home.status, home.content_type, home.role) == (200, "text/html", Role.RECORD)
        assert state.extents.of_url(f"{A}/dead") == []
        assert state.extents.at(home.file, home.offset) == home


def test_answers_that_lead_to_another_try_are_archived_too(tmp_path: Path) -> None:
    site = SITE | {"/late": in_turn(status(503), page("Late"))}
    start(tmp_path / "c", site, retries=1)
    see_one_answer_a_record(tmp_path / "c")
    late = [(e.status, e.role) for e in extents(tmp_path / "c") if e.url == f"{A}/late"]
    assert late == [(503, Role.ATTEMPT), (200, Role.RECORD)]


def test_a_header_value_given_by_reference_is_not_archived(tmp_path: Path) -> None:
    config = Config(delay=0, warc=True, header=("X-Pass: env:PASS", "X-Plain: told"))
    web = FakeWeb(SITE)
    run_async(begin([f"{A}/deep"], tmp_path / "c", config, Hooks(), Surroundings(web, environ={"PASS": "s3cret"})))
    assert dict(next(iter(web.log)).headers)["x-pass"] == "s3cret"
    [_, asked] = [dict(s.http) for path in files(tmp_path / "c") for s in agreed(path) if s.kind == "request"]
    assert (asked["X-Pass"], asked["X-Plain"]) == ("(not archived)", "told")


def test_without_the_setting_there_is_no_archive(tmp_path: Path) -> None:
    start(tmp_path / "c", warc=False)
    assert not (tmp_path / "c" / FOLDER).exists()
    assert not extents(tmp_path / "c")


def test_what_a_hook_refused_is_not_archived(tmp_path: Path) -> None:
    def refuse(record: Record) -> None:
        if record.url.endswith("/late"):
            raise ValueError(record.url)

    with pytest.raises(ValueError, match="late"):
        start(tmp_path / "c", hooks=Hooks(on_page=refuse))
    assert f"{A}/late" not in {s.uri for s in answers(tmp_path / "c")}
    resume(tmp_path / "c")
    see_one_answer_a_record(tmp_path / "c")


def test_the_checkpoint_tells_how_large_the_archive_is(tmp_path: Path) -> None:
    start(tmp_path / "c", warc_size=2_000)
    summary = read_summary(tmp_path / "c")
    sizes = [path.stat().st_size for path in files(tmp_path / "c")]
    assert len(sizes) > 2
    assert (summary.archive_files, summary.archive_bytes) == (len(sizes), sum(sizes))


def test_a_directory_whose_crawl_is_lost_but_not_its_archive_is_not_begun_anew(tmp_path: Path) -> None:
    start(tmp_path / "c")
    for path in (tmp_path / "c").iterdir():
        if path.is_file():
            path.unlink()
    shutil.rmtree(tmp_path / "c" / "db")
    with pytest.raises(StateDamaged):
        start(tmp_path / "c")
    assert files(tmp_path / "c")


# Bounds ---------------------------------------------------------------------------------------------------------------


def test_bytes_that_wait_bring_a_checkpoint_on_and_keep_fetches_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "ARCHIVED_BYTES_A_CHECKPOINT", 3_000)
    monkeypatch.setattr(looping, "MOST_UNARCHIVED_BYTES", 4_000)
    site = Site({"/": page("Home", [f"/{n}" for n in range(60)]), **{f"/{n}": page(f"{n}", ["/"] * 30) for n in range(60)}})
    most = 0

    def look(coordinator: Any) -> None:
        nonlocal most
        most = max(most, coordinator.state.outbox.size)

    hooks = Hooks(on_turn=look)
    start(tmp_path / "c", site, hooks, checkpoint_interval=60, host_concurrency=4)
    assert read_summary(tmp_path / "c").runs[0].checkpoints > 10
    assert 3_000 < most < 4_000 + 16 * 2_000
    see_one_answer_a_record(tmp_path / "c")


# What is lost ---------------------------------------------------------------------------------------------------------


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def remove(path: Path) -> None:
    path.unlink()


def empty(path: Path) -> None:
    path.write_bytes(b"")


@pytest.mark.parametrize("damage", [cut, remove, empty])
@pytest.mark.parametrize("which", [0, 1, -1])
def test_pages_whose_bytes_are_gone_are_fetched_again(tmp_path: Path, damage: Callable[[Path], None], which: int) -> None:
    directory = tmp_path / "c"
    start(directory, warc_size=2_000)
    before = records(directory)
    known = extents(directory)
    number = sorted({e.file for e in known})[which]
    damage(files(directory)[which])
    left = files(directory)[which].stat().st_size if damage is not remove else 0
    gone = {e.url for e in known if e.file == number and e.end > left}

    outcome, asked, [warning] = resume(directory)

    assert outcome.counters.finished
    assert "lost bytes of crawlkit-" in warning
    assert gone <= {A + target for target in asked} | {f"{A}/robots.txt"}
    assert [(r.url, r.kind, r.depth, r.links) for r in records(directory)] == [
        (r.url, r.kind, r.depth, r.links) for r in before
    ]
    see_one_answer_a_record(directory)
    assert resume(directory)[1:] == ([], [])


def test_a_revisit_whose_original_is_gone_is_fetched_again(tmp_path: Path) -> None:
    directory = tmp_path / "c"
    start(directory, warc_size=1)
    revisit = next(e for e in extents(directory) if e.original)
    assert revisit.original is not None
    files(directory)[revisit.original[0] - 1].unlink()
    _, asked, _ = resume(directory)
    assert revisit.url.removeprefix(A) in asked
    see_one_answer_a_record(directory)
    assert [e.role for e in extents(directory) if e.url == revisit.url] == [Role.SUPERSEDED, Role.RECORD]


def test_a_sitemap_whose_bytes_are_gone_is_read_again(tmp_path: Path) -> None:
    directory = tmp_path / "c"
    named = Reply(200, (), b"<urlset><url><loc>/a</loc></url></urlset>")
    site = Site({"/robots.txt": robots("Sitemap: /map.xml"), "/": page("Home"), "/map.xml": named, "/a": page("A")})
    start(directory, site, sitemaps=True, warc_size=1)
    assert {extent.role for extent in extents(directory) if extent.url == f"{A}/map.xml"} == {Role.SITEMAP}
    for path in files(directory):
        path.unlink()
    _, asked, _ = resume(directory, site)
    assert "/map.xml" in asked
    assert {extent.role for extent in extents(directory) if extent.url == f"{A}/map.xml"} == {Role.SITEMAP}
    assert [record.url for record in records(directory)] == [f"{A}/", f"{A}/a"]


def test_a_kill_while_lost_pages_are_taken_back_loses_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("crawlkit.engine.lost.EXTENTS_A_BATCH", 1)
    site = Site({"/": page("Home", ["/a", "/b"]), "/a": page("A"), "/b": page("A")})
    start(tmp_path / "c", site, warc_size=1)
    urls = [r.url for r in records(tmp_path / "c")]
    for path in files(tmp_path / "c"):
        path.unlink()
    for batches in itertools.count():
        directory = tmp_path / f"{batches}"
        shutil.copytree(tmp_path / "c", directory)
        with pytest.MonkeyPatch.context() as patch:
            kill_after(patch, batches)
            killed = is_killed(directory, site)
        resume(directory, site)
        assert [r.url for r in records(directory)] == urls
        see_one_answer_a_record(directory)
        if not killed:
            break
    assert batches > 4


def is_killed(directory: Path, site: Site) -> bool:
    try:
        resume(directory, site)
    except InterruptedError:
        return True
    return False


def kill_after(patch: pytest.MonkeyPatch, batches: int) -> None:
    freeze = coordinating.Coordinator.freeze
    left = batches

    def frozen(self: Any, now: float) -> Any:
        nonlocal left
        if left == 0:
            raise InterruptedError
        left -= 1
        return freeze(self, now)

    patch.setattr(coordinating.Coordinator, "freeze", frozen)


def test_a_page_whose_links_wait_is_fetched_again(tmp_path: Path) -> None:
    """It waits for the template budget, has no record now, and is met no more before it has one again."""
    links = [f"/p?{n}" for n in range(40)]
    site = Site({"/": page("Home", links), **{link: page("same", links) for link in links}})
    whole, directory = tmp_path / "whole", tmp_path / "c"
    start(directory, site, template_budget=12, max_pages=6)
    with CrawlState.open(directory) as state:
        assert state.counters.held
    shutil.copytree(directory, whole)
    for path in files(directory):
        path.unlink()
    resume(whole, site, max_pages=None)
    resume(directory, site, max_pages=None)
    assert [r.url for r in records(directory)] == [r.url for r in records(whole)]
    see_one_answer_a_record(directory)


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (b"HTTP/1.1 200 OK\r\n\r\n", 200),
        (b"HTTP/1.0 404\r\n\r\n", 404),
        (b"HTTP/1.1  301 Moved\r\n\r\n", 301),
        (b"HTTP/1.1 99 Odd\r\n\r\n", 99),
        (b"HTTP/1.1 OK\r\n\r\n", 0),
        (b"HTTP/1.1\r\n\r\n", 0),
    ],
)
def test_a_status_is_read_of_any_head(head: bytes, status: int) -> None:
    assert status_of(head) == status
