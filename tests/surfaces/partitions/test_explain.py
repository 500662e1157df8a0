"""A URL of a crawl in partitions is explained as it is where the crawl is one, at rest and by partitions that run."""

import json
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from crawlkit.model import Reason
from crawlkit.policy.urls import host_of
from crawlkit.state.directory import DirectoryLock, read_manifest
from crawlkit.state.partitions import member_directory
from tests.processes import started, wait_until
from tests.state.making import NOW, begin_crawl
from tests.surfaces.conftest import Cli
from tests.surfaces.partitions.conftest import Pair
from tests.surfaces.partitions.dividing import A, B, C, E, W, archived_apart, divided, seal_over

URLS = [
    *(f"{A}/", f"{A}/1", f"{A}/farther", f"{A}/gone", f"{A}/mapped", f"{A}/no", f"{A}/out?x=1&x=1&x=1&x=1&x=1"),
    *(f"{B}/", f"{B}/moved", f"{B}/too-far", f"{B}/2?page=2", f"{B}/robots.txt", f"{A}/robots.txt", f"{A}/sitemap.xml"),
    *(f"{C}/there", f"{C}/c", f"{C}/shut", f"{C}/dead", f"{E}/deep", f"{E}/farthest", f"{E}/unfollowed", f"{E}/never"),
    *(f"{W}/w", "http://elsewhere.test/", "http://unheard.of/", "mailto:a@b", "not a url", f"{A}/1#x"),
]


def explained(cli: Cli, directory: Path, url: str) -> dict[str, Any]:
    """What is said of a URL but for what the moment decides: when the host may be asked next."""
    ended = cli("explain", directory, url, "--json")
    assert ended.status == 0, ended.err
    said: dict[str, Any] = json.loads(ended.out.replace(str(directory), "DIR"))
    if said["host"] is not None:
        del said["host"]["next_start"]
    return said


@pytest.mark.parametrize("url", URLS)
@pytest.mark.parametrize("name", ["finished", "stopped"])
def test_the_verdict_is_that_of_the_crawl_as_one(cli: Cli, request: pytest.FixtureRequest, name: str, url: str) -> None:
    pair: Pair = request.getfixturevalue(name)
    assert explained(cli, pair.parts, url) == explained(cli, pair.whole, url)


def test_the_cases_differ(cli: Cli, finished: Pair, stopped: Pair) -> None:
    codes = {explained(cli, pair.parts, url)["code"] for pair in (finished, stopped) for url in URLS}
    assert codes >= {
        *("done.page", "done.redirect", "done.robots", "done.sitemap", "pending.queued", "never.linked", "url.invalid"),
        *(
            "scope.outside",
            "depth.limit",
            "nofollow",
            "robots.disallow",
            "http.client_error",
            "net.protocol",
            "trap.param_repeat",
        ),
    }


def test_a_way_passes_through_partitions(cli: Cli, finished: Pair) -> None:
    path = explained(cli, finished.parts, f"{E}/farthest")["path"]
    assert [step["url"] for step in path["steps"]] == [f"{A}/", f"{E}/far", f"{A}/farther", f"{E}/farthest"]
    assert (path["shortest"], path["complete"]) == (True, True)


def test_an_archived_page_is_found_in_its_partition(cli: Cli, tmp_path: Path) -> None:
    directory = archived_apart(tmp_path / "apart.crawl", {A: 0, E: 1})
    [place] = explained(cli, directory, f"{E}/")["archive"]
    assert place["file"].startswith("partitions/001/warc/crawlkit-")
    assert (directory / place["file"]).is_file()


def test_a_retry_is_that_of_the_owner_though_another_one_has_the_same_number(cli: Cli, tmp_path: Path) -> None:
    directory = tmp_path / "x.crawl"
    for number, url in enumerate((f"{A}/", f"{E}/")):
        member = member_directory(directory, number)
        member.parent.mkdir(parents=True, exist_ok=True)
        with begin_crawl(member) as state:
            host = state.hosts.get(host_of(url))
            state.frontier.add(url, host, 0, 0, None)
            state.frontier.postpone(url, host, number + 1, NOW, 1.0, Reason.CONNECT)
            state.checkpoint()
    seal_over(directory, [read_manifest(member_directory(directory, number)).crawl_id for number in (0, 1)], [f"{A}/"])
    assert [explained(cli, directory, url)["attempts"]["made"] for url in (f"{A}/", f"{E}/")] == [1, 2]


# While partitions run -----------------------------------------------------------------------------------------------------

GO_ON = """
import sys
from pathlib import Path
from crawlkit.engine.runner import run_async
from crawlkit.engine.session import Hooks, Surroundings, go_on
from crawlkit.surfaces.control.server import serving
run_async(go_on(Path(sys.argv[1]), {"delay": 3600.0}, Hooks(beside=serving), Surroundings()))
"""
"""A partition that waits for an hour, as every host has just been asked."""


@pytest.fixture(scope="module")
def running(stopped: Pair, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The crawl that was stopped, in two partitions that are processes."""
    directory = divided(stopped.whole, tmp_path_factory.mktemp("running") / "x.crawl", 2)
    members = [member_directory(directory, number) for number in (0, 1)]
    with ExitStack() as stack:
        for member in members:
            stack.enter_context(started([sys.executable, "-X", "dev", "-c", GO_ON, str(member)], directory.parent))
        wait_until(lambda: all((member / "control.sock").exists() for member in members))
        yield directory


@pytest.mark.parametrize("url", URLS)
def test_partitions_that_run_say_the_same_together(cli: Cli, stopped: Pair, running: Path, url: str) -> None:
    whole, parts = explained(cli, stopped.whole, url), explained(cli, running, url)
    for key in ("typed", "url", "code", "standing", "depth", "hops", "sources", "path", "linked_from", "attempts", "summary"):
        assert parts[key] == whole[key], key
    assert (parts["record"] is None) == (whole["record"] is None)
    assert parts["remedy"] == whole["remedy"] or whole["remedy"] == "to go on: crawlkit resume DIR"


def test_a_partition_that_does_not_answer_is_not_waited_for_in_vain(cli: Cli, parts: Path) -> None:
    """Who holds the directory says nothing, so the partition that is needed cannot be read."""
    with DirectoryLock(member_directory(parts, 0)):
        refused = cli("explain", parts, f"{A}/1")
    assert (refused.status, refused.err.count("\n")) == (3, 1)
    assert "partitions/000 is in use by another crawlkit" in refused.err
