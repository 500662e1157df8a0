"""Who watches a run is told of each request, each record and each checkpoint, once."""

import asyncio
from pathlib import Path

import pytest

from crawlkit.config import Config
from crawlkit.engine.session import Hooks, Surroundings, begin
from crawlkit.engine.watcher import JobName, Received, job_name, received
from crawlkit.model import (
    Facts,
    Fetched,
    FetchFailure,
    Found,
    Job,
    Kind,
    PageJob,
    Reason,
    Record,
    Response,
    RobotsJob,
    SitemapJob,
)
from crawlkit.state.checkpoint import read_summary
from crawlkit.testing.fakeweb import FakeWeb
from crawlkit.testing.site import Fault, Reply, Site, page, redirect, robots

SITE = Site(
    {
        "/": page("Home", ["/a", "/gone", "/moved", "/no", "/broken"]),
        "/a": page("A"),
        "/moved": redirect("/a"),
        "/broken": Reply(fault=Fault.DROP),
        "/robots.txt": robots("User-agent: *\nDisallow: /no"),
    }
)
PAGE = PageJob("http://a.test/", "a.test")


class Notes:
    """A watcher that keeps what it is told."""

    def __init__(self) -> None:
        self.told: list[Fetched | Record | tuple[float, float]] = []

    def fetched(self, fetched: Fetched) -> None:
        self.told.append(fetched)

    def settled(self, record: Record) -> None:
        self.told.append(record)

    def written(self, at_s: float, took_s: float) -> None:
        self.told.append((at_s, took_s))


def test_watchers_are_told_of_all_that_happens_in_its_order(tmp_path: Path) -> None:
    notes, others = Notes(), Notes()
    hooks = Hooks(watchers=(notes, others))
    config = Config(delay=0, retries=0)
    outcome = asyncio.run(begin(["http://a.test/"], tmp_path / "x", config, hooks, Surroundings(transport=FakeWeb(SITE))))

    assert notes.told == others.told
    fetched = [told for told in notes.told if isinstance(told, Fetched)]
    records = [told for told in notes.told if isinstance(told, Record)]
    written = [told for told in notes.told if isinstance(told, tuple)]
    assert len(fetched) == outcome.counters.requests == 6
    assert sorted((record.url[13:], record.kind) for record in records) == [
        ("/", Kind.PAGE),
        ("/a", Kind.PAGE),
        ("/broken", Kind.FAILURE),
        ("/gone", Kind.FAILURE),
        ("/moved", Kind.REDIRECT),
        ("/no", Kind.EXCLUDED),
    ]
    run = read_summary(tmp_path / "x").runs[-1]
    assert len(written) == run.checkpoints - 1  # the first one made the crawl, before it ran
    assert all(run.started_s <= at_s <= at_s + took_s and 0 < took_s < 60 for at_s, took_s in written)
    for record in records:  # a record is told after the request that it came of
        asked = [told.job.url for told in notes.told[: notes.told.index(record)] if isinstance(told, Fetched)]
        assert (record.url in asked) == (record.kind is not Kind.EXCLUDED)


@pytest.mark.parametrize(
    ("answer", "not_modified", "came"),
    [
        (Facts(200, body_bytes=7), False, Received(200, 7)),
        (Facts(200, body_bytes=7), True, Received(304)),
        (Response(404, (), b"no"), False, Received(404, 2)),
        (FetchFailure(Reason.TIMEOUT, "10 s"), False, Received(failure=Reason.TIMEOUT)),
        (Found("192.0.2.1"), False, None),
    ],
)
def test_what_came_over_the_wire(
    answer: Facts | Response | FetchFailure | Found, not_modified: bool, came: Received | None
) -> None:
    assert received(Fetched(PAGE, 1.0, 2.0, answer, not_modified=not_modified)) == came


@pytest.mark.parametrize(
    ("job", "name"),
    [
        (PAGE, JobName.PAGE),
        (RobotsJob("http://a.test", "http://a.test/robots.txt", "a.test"), JobName.ROBOTS),
        (SitemapJob("http://a.test/sitemap.xml", "a.test"), JobName.SITEMAP),
    ],
)
def test_what_a_request_is_for(job: Job, name: JobName) -> None:
    assert job_name(job) is name
