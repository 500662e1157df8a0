"""When links that wait for credit are followed: the nearest first, as many as can be paid, and at a price that has bounds."""

import itertools
from pathlib import Path

import pytest

from crawlkit.engine.ending import Ending
from crawlkit.engine.growth import FRESH_PAGES_A_ROUND, LINKS_A_FRESH_PAGE, PAGES_A_STEP, PATIENCE
from crawlkit.model import Facts, Record
from tests.engine.driver import Driver
from tests.engine.trap_sites import HOST, ITEMS, drain, drive, item, number_in, one_index, plain

SITE_PAGES = 5_000
LINKS = 60


def with_many_links(target: str) -> Facts:
    """Page n links to pages 60 n + 1 to 60 n + 60: within three links of the first page to all, by many longer ways too."""
    first = number_in(target) * LINKS + 1
    return item(target, [f"/{(first + n) % SITE_PAGES}" for n in range(LINKS)])


def settle_next(driver: Driver) -> int:
    """Settle the next page and do what is owed; return in how many steps that was done."""
    driver.settle(driver.next_job())
    steps = 0
    while driver.coordinator.owes_work:
        driver.coordinator.work()
        steps += 1
    return steps


def test_the_nearest_links_that_wait_are_paid_first(tmp_path: Path) -> None:
    """So that few pages are found on a longer way, and have to be told the shorter one, with all that they lead to."""
    at_first: dict[str, int] = {}

    def note(record: Record) -> None:
        at_first[record.url] = record.depth

    with drive(with_many_links, tmp_path / "crawl", f"{HOST}/0", template_budget=300, on_page=note) as driver:
        assert drain(driver) is Ending.FINISHED
        records = driver.records()
    assert len(records) == SITE_PAGES
    assert {record.depth for record in records.values()} == {0, 1, 2, 3}
    assert sum(record.depth != at_first[url] for url, record in records.items()) < SITE_PAGES // 100


def test_a_page_is_paid_to_its_end_before_the_next_one(tmp_path: Path) -> None:
    vias: list[str | None] = []

    def note(record: Record) -> None:
        vias.append(record.via)

    def answer(target: str) -> Facts:
        if target.startswith("/list/"):
            return plain(target, "A listing", [f"/item/{number_in(target)}{n}" for n in range(100, 200)])
        return item(target, [])

    seeds = [f"{HOST}/list/{n}" for n in range(9)]
    with drive(
        answer, tmp_path / "crawl", *seeds, template_budget=100, on_page=lambda record: vias.append(record.via)
    ) as driver:
        assert drain(driver) is Ending.FINISHED
    led = [via for via in vias if via is not None]
    assert len(led) == 9 * 100
    assert len(list(itertools.groupby(led))) == 9


def test_held_pages_are_not_all_walked_where_the_first_lead_to_nothing(tmp_path: Path) -> None:
    def answer(target: str) -> Facts:
        if target.startswith("/list/"):
            return plain(target, "A listing", [f"/trap/{number_in(target)}{n}" for n in range(10, 30)])
        return item(target, []) if target.startswith("/item/") else plain(target, "Nothing", [])

    seeds = [*(f"{HOST}/list/{n}" for n in range(80)), *(f"{HOST}/item/{n}" for n in range(300))]
    with drive(answer, tmp_path / "crawl", *seeds, template_budget=200) as driver:
        while driver.state.counters.held < 70:
            settle_next(driver)
        steps = [settle_next(driver) for _ in range(10 * FRESH_PAGES_A_ROUND)]
    assert sum(steps) >= 4, "some are walked"
    assert max(steps) == 1, f"and no more than {PAGES_A_STEP} of them in a row"


def test_a_long_page_is_walked_when_there_is_credit_for_some_of_it(tmp_path: Path) -> None:
    with drive(one_index, tmp_path / "crawl") as driver:
        settle_next(driver)
        walked_at, seen = [], driver.state.counters.seen
        for number in range(600):
            settle_next(driver)
            if driver.state.counters.seen > seen:
                walked_at.append(number)
                seen = driver.state.counters.seen
    between = [after - before for before, after in itertools.pairwise(walked_at)]
    assert len(between) > 3
    assert min(between) >= ITEMS // LINKS_A_FRESH_PAGE > FRESH_PAGES_A_ROUND


@pytest.mark.parametrize(("unpaid", "in_turn"), [(PATIENCE - 50, True), (PATIENCE + 50, False)])
def test_a_walk_that_finds_no_credit_for_long_ends_until_all_else_is_done(unpaid: int, in_turn: bool, tmp_path: Path) -> None:
    """The links at its end have credit again, those before them have none."""
    budget = 30

    def answer(target: str) -> Facts:
        if target == "/":
            return plain(target, "All", [f"/{kind}/{n}" for kind in ("stale", "good") for n in range(budget + unpaid)])
        return item(target, []) if target.startswith("/good/") else plain(target, "Nothing", [])

    seeds = [f"{HOST}/", *(f"{HOST}/good/{n}" for n in range(60))]
    with drive(answer, tmp_path / "crawl", *seeds, template_budget=budget) as driver:
        settle_next(driver)
        before = driver.state.counters.seen
        for _ in range(40):
            settle_next(driver)
        assert driver.state.counters.queued
        assert (driver.state.counters.seen > before) is in_turn
        assert drain(driver) is Ending.FINISHED
        assert driver.state.counters.seen > before
