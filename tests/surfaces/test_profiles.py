"""Each profile of config/, tried: a crawl of a loopback site by it, and on a manual clock what it is meant to do."""

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from crawlkit.config import to_values
from crawlkit.engine.ending import Ending
from crawlkit.surfaces.settings import read_file
from crawlkit.testing.server import SiteServer
from crawlkit.testing.site import Site, robots
from crawlkit.testing.site import page as served
from tests.engine.driver import SEED, A, Driver, Web, page
from tests.surfaces.conftest import Cli

PROFILES = Path(__file__).resolve().parents[2] / "config"
NAMES = ("default", "polite", "own-site", "archive", "broad")
WEB: Web = {SEED: page(*(f"{A}/{n}" for n in range(20)), "http://www.b.test/"), **{f"{A}/{n}": page() for n in range(20)}}


@pytest.fixture
def server() -> Iterator[SiteServer]:
    site = {"/": served("Home", ["/a", "/b"]), "/a": served("A", ["/"]), "/b": served("B"), "/robots.txt": robots("")}
    with SiteServer(Site(site)) as running:
        yield running


def started(directory: Path, name: str, web: Web = WEB) -> list[tuple[float, str]]:
    """Return when what was asked for in a crawl by a profile, robots.txt apart."""
    settings = to_values(read_file(PROFILES / f"{name}.toml"))
    with Driver(directory, web, **settings) as driver:
        assert driver.drain() is Ending.FINISHED
        return [(at_s, url) for at_s, url in driver.requests if not url.endswith("/robots.txt")]


def gaps_s(requests: list[tuple[float, str]]) -> list[float]:
    return [later - earlier for (earlier, _), (later, _) in pairwise(requests)]


@pytest.mark.parametrize("name", NAMES)
def test_a_site_is_crawled_by_each_profile(cli: Cli, server: SiteServer, tmp_path: Path, name: str) -> None:
    said = cli("run", f"{server.url}/", "-d", "x.crawl", "--config", PROFILES / f"{name}.toml", "--delay", "0")

    assert (said.status, "3 pages, 0 redirects, 0 failures, 0 excluded, 0 left" in said.err) == (0, True)
    assert any((tmp_path / "x.crawl").glob("warc/*.warc.gz")) is (name == "archive")
    assert cli("verify", "x.crawl").status == 0


@pytest.mark.parametrize(("name", "least_s"), [("default", 1.0), ("polite", 2.0), ("archive", 1.0), ("broad", 1.0)])
def test_the_profiles_for_sites_of_others_leave_a_gap(tmp_path: Path, name: str, least_s: float) -> None:
    of_a = [(at_s, url) for at_s, url in started(tmp_path / "crawl", name) if url.startswith(A)]

    assert len(of_a) == 21
    assert min(gaps_s(of_a)) >= least_s


def test_one_s_own_site_is_asked_eight_things_at_once_and_without_a_gap(tmp_path: Path) -> None:
    settings = to_values(read_file(PROFILES / "own-site.toml"))
    with Driver(tmp_path / "crawl", WEB, **settings) as driver:
        for url in (f"{A}/robots.txt", SEED):
            job = driver.next_job()
            assert job.url == url
            driver.settle(job)
        assert len(driver.claim_all()) == 8
    assert max(gaps_s(started(tmp_path / "again", "own-site"))) < 1.0


def test_broad_goes_where_links_lead_and_the_others_stay(tmp_path: Path) -> None:
    def left(name: str) -> bool:
        return any("b.test" in url for _, url in started(tmp_path / name, name))

    assert [name for name in NAMES if left(name)] == ["broad"]


def test_archive_takes_the_hosts_of_the_domain(tmp_path: Path) -> None:
    web: Web = {SEED: page("http://www.a.test/", "http://b.test/"), "http://www.a.test/": page()}

    assert [url for _, url in started(tmp_path / "crawl", "archive", web)] == [SEED, "http://www.a.test/"]
