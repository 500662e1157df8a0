"""`resume --retry-failed`: failures go back into the queue, once, with their places and distances."""

from pathlib import Path

import pytest

from crawlkit.config import Config
from crawlkit.engine.ending import Ending
from crawlkit.engine.revival import read_reasons
from crawlkit.engine.runner import run_async
from crawlkit.engine.session import Hooks, Outcome, Surroundings, begin, go_on
from crawlkit.engine.verify import Thoroughness, verify
from crawlkit.errors import UsageError
from crawlkit.model import Kind, OrderReason, Reason
from crawlkit.state.reading import open_crawl_for_reading
from crawlkit.testing.fakeweb import FakeWeb
from crawlkit.testing.site import Fault, Reply, Site, page, status

HOST = "http://h.test"
GOOD = Site(
    {
        "*/": page("front", ["/a", "/b", "/gone"]),
        "*/a": page("a", ["/a/below"]),
        "*/a/below": page("below"),
        "*/b": page("b"),
        "*/gone": status(404),
    }
)
BAD = GOOD | {"*/a": status(500), "*/b": Reply(fault=Fault.RESET)}


def crawl(directory: Path, site: Site) -> tuple[Outcome, FakeWeb]:
    web = FakeWeb(site)
    config = Config(delay=0, retries=0)
    return run_async(begin([f"{HOST}/"], directory, config, Hooks(), Surroundings(transport=web))), web


def retry(directory: Path, site: Site, reasons: str = "") -> tuple[Outcome, list[str]]:
    web = FakeWeb(site)
    outcome = run_async(go_on(directory, {}, Hooks(), Surroundings(transport=web), read_reasons(reasons)))
    return outcome, [request.target for request in web.log]


def records(directory: Path) -> list[tuple[str, Kind, int]]:
    with open_crawl_for_reading(directory) as crawl:
        return [(record.url, record.kind, record.depth) for record in crawl.pages.walk()]


def test_failures_are_tried_again_and_end_as_if_they_had_never_failed(tmp_path: Path) -> None:
    crawl(tmp_path / "whole", GOOD)
    crawl(tmp_path / "crawl", BAD)

    outcome, asked = retry(tmp_path / "crawl", GOOD)

    assert sorted(asked) == ["/a", "/a/below", "/b", "/gone"]
    assert records(tmp_path / "crawl") == records(tmp_path / "whole")
    assert outcome.how is Ending.FINISHED
    assert outcome.counters.failures == 1
    assert not outcome.counters.reasons, "no record is left that ended in what may pass"
    assert verify(tmp_path / "crawl", Thoroughness.FULL).whole


def test_only_the_reasons_named_are_tried_again(tmp_path: Path) -> None:
    crawl(tmp_path / "crawl", BAD)

    outcome, asked = retry(tmp_path / "crawl", GOOD, "http.server_error")

    assert sorted(asked) == ["/a", "/a/below"]
    assert outcome.counters.failures == 2
    assert OrderReason.TRANSIENT in outcome.counters.reasons, "one that broke off is left"


def test_a_resume_without_it_asks_nothing(tmp_path: Path) -> None:
    crawl(tmp_path / "crawl", BAD)
    web = FakeWeb(GOOD)

    run_async(go_on(tmp_path / "crawl", {}, Hooks(), Surroundings(transport=web)))

    assert len(web.log) == 0


def test_an_unreachable_robots_file_is_asked_for_again(tmp_path: Path) -> None:
    crawl(tmp_path / "crawl", GOOD | {"*/robots.txt": Reply(fault=Fault.DROP)})
    assert records(tmp_path / "crawl") == [(f"{HOST}/", Kind.FAILURE, 0)]

    outcome, asked = retry(tmp_path / "crawl", GOOD, "host.unreachable")

    assert asked[0] == "/robots.txt"
    assert outcome.counters.pages == 4


def test_an_unknown_reason_is_refused_naming_the_nearest() -> None:
    assert read_reasons("net.timeout, http.server_error") == {Reason.TIMEOUT, Reason.SERVER_ERROR}
    assert read_reasons("") == set(Reason)
    with pytest.raises(UsageError, match=r"net\.timeout"):
        read_reasons("net.timeot")
