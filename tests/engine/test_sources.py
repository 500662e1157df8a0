"""Of each URL all its sources are known in the end, in whatever order they were met."""

import itertools
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from crawlkit.engine.ending import Ending
from crawlkit.engine.verify import Thoroughness, verify
from crawlkit.model import Facts, Source
from crawlkit.policy.edges import Edge
from crawlkit.state.findings import Rule
from crawlkit.surfaces.lines import as_line
from tests.engine.driver import SEED, A, Driver, moved, page

LINK, BOTH = Source.LINK, Source.SEED | Source.LINK

WEB = {
    SEED: page(f"{A}/a", f"{A}/self"),
    f"{A}/seed": page(),
    f"{A}/a": page(f"{A}/seed", f"{A}/b"),
    f"{A}/b": page(SEED),
    f"{A}/self": page(f"{A}/self"),
}
SEEDS = (SEED, f"{A}/seed")


@pytest.fixture
def directories(tmp_path: Path) -> Iterator[Path]:
    return (tmp_path / str(number) for number in itertools.count())


def sources(driver: Driver) -> dict[str, int]:
    return {url: record.sources for url, record in driver.records().items()}


def test_a_seed_that_is_linked_to_as_well_has_both_sources_before_and_after_it_settles(directories: Iterator[Path]) -> None:
    expected = {SEED: BOTH, f"{A}/seed": BOTH, f"{A}/a": LINK, f"{A}/b": LINK, f"{A}/self": LINK}
    for seeds in (SEEDS, SEEDS[::-1]):
        with Driver(next(directories), WEB, seeds=seeds, delay=0) as driver:
            assert driver.drain() is Ending.FINISHED
            assert sources(driver) == expected


def test_a_link_that_is_too_deep_counts_for_nothing_until_the_limit_is_raised(tmp_path: Path) -> None:
    with Driver(tmp_path / "crawl", WEB, seeds=SEEDS, delay=0, max_depth=2) as driver:
        driver.drain()
        assert sources(driver) == {
            SEED: Source.SEED, f"{A}/seed": BOTH, f"{A}/a": LINK, f"{A}/b": LINK, f"{A}/self": LINK
        }  # fmt: skip
        driver.reopen(max_depth=3)
        driver.drain()
        assert sources(driver)[SEED] == BOTH


def test_redirects_and_canonicals_are_links(tmp_path: Path) -> None:
    web: dict[str, Facts] = {SEED: moved(f"{A}/to"), f"{A}/to": page(canonical=f"{A}/as"), f"{A}/as": page()}
    with Driver(tmp_path / "crawl", web, delay=0) as driver:
        driver.drain()
        assert sources(driver) == {SEED: Source.SEED, f"{A}/to": LINK, f"{A}/as": LINK}


def test_a_source_that_was_not_checkpointed_is_found_again(tmp_path: Path) -> None:
    with Driver(tmp_path / "crawl", WEB, seeds=SEEDS, delay=0) as driver:
        while f"{A}/seed" not in driver.records():
            driver.settle(driver.next_job())
            driver.checkpoint()
        driver.reopen()
        while driver.state.seen.entry(f"{A}/seed", driver.state.hosts.get("a.test").id).sources != BOTH:
            driver.settle(driver.next_job())
        driver.reopen()  # without what was settled last
        assert sources(driver)[f"{A}/seed"] == Source.SEED
        driver.drain()
        assert sources(driver)[f"{A}/seed"] == BOTH


def test_verify_misses_a_link_among_the_sources(tmp_path: Path) -> None:
    with Driver(tmp_path / "crawl", WEB, seeds=SEEDS, delay=0) as driver:
        driver.drain()
        host = driver.state.hosts.get("a.test")
        for url, wrong in ((f"{A}/b", Source.SITEMAP), (SEED, LINK)):
            entry = driver.state.seen.entry(url, host.id)
            driver.state.seen.put(url, host.id, entry._replace(sources=wrong))
            driver.state.pages.set_head(url, entry.head._replace(sources=wrong))
        driver.checkpoint()
    broken = verify(tmp_path / "crawl", Thoroughness.FULL).broken
    assert set(broken) == {Rule.EDGES_DISTANCES, Rule.SEEDS}


def test_the_report_names_them_in_one_order(tmp_path: Path) -> None:
    with Driver(tmp_path / "crawl", WEB, seeds=SEEDS, delay=0) as driver:
        driver.drain()
        record = driver.records()[SEED]
    assert as_line(record).sources == ("seed", "link")
    assert as_line(msgspec.structs.replace(record, sources=7)).sources == ("seed", "sitemap", "link")
    assert as_line(msgspec.structs.replace(record, sources=0)).sources == ()


def test_a_page_that_links_to_itself_and_waits_for_credit_keeps_that_it_is_linked_to(tmp_path: Path) -> None:
    with Driver(tmp_path / "crawl", {SEED: page(SEED, *(f"{A}/{n}" for n in range(9)))}, template_budget=1) as driver:
        driver.drain()
        assert driver.records()[SEED].sources == Source.SEED | Source.LINK
    assert not verify(tmp_path / "crawl", Thoroughness.FULL).broken


def test_what_a_page_that_waits_for_credit_leads_to_may_be_known_by_another_way_only(tmp_path: Path) -> None:
    web = {SEED: page(f"{A}/1", f"{A}/2", f"{A}/3")}
    with Driver(tmp_path / "crawl", web, template_budget=1, robots=False) as driver:
        driver.settle(driver.next_job())
        assert driver.state.counters.held == 1
        driver.coordinator.admission.meet(Edge(f"{A}/3", 0, 0), None, Source.SITEMAP)
        driver.checkpoint()
    assert not verify(tmp_path / "crawl", Thoroughness.FULL).broken
