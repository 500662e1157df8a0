"""What is posted to other partitions: each shorter way once, and what counts for nothing does not pass for one."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from crawlkit.engine.abroad import Abroad
from crawlkit.engine.admission import Admission
from crawlkit.engine.budget import Budget
from crawlkit.engine.hook import Callers
from crawlkit.model import Source
from crawlkit.policy.edges import Edge
from crawlkit.policy.partition import Owners, node_of
from crawlkit.policy.scope import Scope
from crawlkit.sitemap import SitemapEntry
from crawlkit.state.letters import LetterKind, decode_letter
from tests.engine.driver import SEED, A, Driver

HERE = Owners.even(2).of("a.test")
FOREIGN = next(f"http://{name}.test/" for name in "bcdef" if Owners.even(2).of(f"{name}.test") != HERE)
HOST = FOREIGN[len("http://") : -1]
VIA = f"{A}/via"


class Posting:
    """An admission whose foreign URLs are posted."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        state, config = driver.state, driver.config
        self.abroad = Abroad(state.letters, Owners.even(2), HERE)
        scope = Scope.of([SEED, FOREIGN], config)
        budget = Budget(state.templates, config.template_budget, self.abroad)
        self.admission = Admission(state, scope, config, budget, lambda _: None, Callers(abroad=self.abroad))

    def meet(self, depth: int, hops: int = 0) -> None:
        assert self.admission.meet(Edge(FOREIGN, depth, hops), VIA)

    def posted(self) -> list[tuple[int, int]]:
        self._driver.checkpoint()
        letters = [decode_letter(value) for value in self._driver.state.letters.after(node_of(HOST), 0, 100)]
        assert all(letter.kind is LetterKind.LINK and letter.url == FOREIGN for letter in letters)
        return [(letter.depth, letter.hops) for letter in letters]


@pytest.fixture
def posting(tmp_path: Path) -> Iterator[Posting]:
    with Driver(tmp_path / "crawl", {}, max_depth=2) as driver:
        yield Posting(driver)


def test_a_way_is_posted_once_and_each_that_is_shorter_in_either_measure(posting: Posting) -> None:
    for depth, hops in ((2, 1), (2, 1), (1, 3), (1, 1), (2, 0), (1, 0), (0, 0)):
        posting.meet(depth, hops)
    assert posting.posted() == [(2, 1), (1, 3), (2, 0), (0, 0)]


def test_a_way_that_is_too_deep_does_not_hide_one_that_is_not(posting: Posting) -> None:
    for depth, hops in ((1, 1), (3, 0), (2, 0)):
        posting.meet(depth, hops)
    assert posting.posted() == [(1, 1), (2, 0)]


def test_what_is_only_met_too_deep_is_posted_once_for_its_owner_to_know_why(posting: Posting) -> None:
    for depth in (4, 3, 3, 2):
        posting.meet(depth)
    assert posting.posted() == [(4, 0), (2, 0)]


def test_what_a_sitemap_says_of_a_url_goes_with_it_and_counts_as_a_source(posting: Posting) -> None:
    posting.meet(0)
    posting.admission.meet_entry(SitemapEntry(FOREIGN, None, None))
    posting.admission.meet_entry(SitemapEntry(FOREIGN, None, None))
    posting.admission.meet_entry(SitemapEntry(FOREIGN, "2024-01-01T00:00:00Z", None))
    assert posting.posted() == [(0, 0), (0, 0), (0, 0)]


def test_sources_are_ways_too(posting: Posting) -> None:
    posting.meet(1)
    posting.admission.meet(Edge(FOREIGN, 1, 0), None, Source.SITEMAP)
    posting.meet(1)
    assert posting.posted() == [(1, 0), (1, 0)]
