"""What a repair keeps of what had been decided on traps: the repaired crawl of an endless space ends as the first one did."""

from collections import Counter
from pathlib import Path

import pytest

from crawlkit.engine.ending import Ending
from crawlkit.engine.repair import repair
from crawlkit.engine.verify import Thoroughness, verify
from crawlkit.model import OrderReason, Refusal
from crawlkit.state import keys
from crawlkit.state.layout import DATABASE
from crawlkit.state.store import Store
from tests.engine.driver import Driver
from tests.engine.trap_sites import HOST, Answer, calendar, drain, drive, one_after_the_other, sessions

BUDGET = 100
SESSIONS = sessions("0123456789abcdef", "/p{number}?sid={sid}")


def remove(directory: Path, *prefixes: bytes, share: int = 1) -> int:
    """Take every `share`-th row of these kinds out of a database, as damage does; return how many."""
    with Store(directory / DATABASE, create=False) as store:
        found = [key for prefix in prefixes for key in store.walk_keys(prefix, keys.after(prefix))][::share]
        for key in found:
            store.unstage(key)
        store.freeze().write()
    return len(found)


def repaired(driver: Driver) -> int:
    """Go on in the repaired copy of the crawl, to its end; return how many requests that took."""
    driver.state.close()
    driver.directory = repair(driver.directory, driver.clock.now()).directory
    before = len(driver.requests)
    driver.reopen()
    assert drain(driver) is Ending.FINISHED
    return len(driver.requests) - before


@pytest.mark.parametrize("answer", [calendar, SESSIONS], ids=["calendar", "session ids"])
def test_a_repaired_crawl_of_an_endless_space_asks_for_no_more_of_it(answer: Answer, tmp_path: Path) -> None:
    with drive(answer, tmp_path / "crawl", template_budget=BUDGET) as driver:
        assert drain(driver) is Ending.FINISHED
        refused = driver.state.counters.refused[Refusal.TRAP_TEMPLATE]
        assert repaired(driver) == 0
        assert driver.state.counters.refused[Refusal.TRAP_TEMPLATE] == refused
        assert {OrderReason.TRAP, OrderReason.DEGRADED} <= driver.state.counters.reasons
    assert verify(driver.directory, Thoroughness.FULL).whole


@pytest.mark.parametrize("lost", [(keys.TEMPLATE,), (keys.MEMORY,), (keys.TEMPLATE, keys.MEMORY, keys.HELD)])
def test_without_the_accounts_of_its_templates_it_ends_within_another_budget(lost: tuple[bytes, ...], tmp_path: Path) -> None:
    with drive(calendar, tmp_path / "crawl", template_budget=BUDGET) as driver:
        assert drain(driver) is Ending.FINISHED
        first = len(driver.requests)
        driver.state.close()
        assert remove(driver.directory, *lost)
        assert repaired(driver) <= first + BUDGET
        assert driver.state.counters.held == 0


def test_pages_that_wait_for_credit_wait_on_in_a_repaired_crawl(tmp_path: Path) -> None:
    with drive(calendar, tmp_path / "whole", template_budget=BUDGET) as driver:
        drain(driver)
        expected = len(driver.requests)
    with drive(calendar, tmp_path / "crawl", template_budget=BUDGET) as driver:
        for _ in range(expected // 2):
            driver.settle(driver.next_job())
        driver.checkpoint()
        assert repaired(driver) + expected // 2 <= expected + BUDGET // 10


def test_a_lost_record_of_a_space_without_credit_is_fetched_again(tmp_path: Path) -> None:
    with drive(SESSIONS, tmp_path / "crawl", template_budget=BUDGET) as driver:
        assert drain(driver) is Ending.FINISHED
        before = set(driver.records())
        driver.state.close()
        lost = remove(driver.directory, keys.PAGE, share=7)
        assert lost > 5
        asked_before = Counter(url for _, url in driver.requests)
        assert repaired(driver) <= lost
        after = set(driver.records())
        assert after <= before
        assert len(before - after) < lost, "those that a link names are found again"
        assert {url for _, url in driver.requests} == set(asked_before)


def test_an_honest_site_is_repaired_whole(tmp_path: Path) -> None:
    with drive(one_after_the_other, tmp_path / "crawl", f"{HOST}/item/0", template_budget=BUDGET) as driver:
        for _ in range(300):
            driver.settle(driver.next_job())
        driver.checkpoint()
        driver.state.close()
        remove(driver.directory, keys.SEEN)
        driver.directory = repair(driver.directory, driver.clock.now()).directory
        driver.reopen()
        for _ in range(300):
            driver.settle(driver.next_job())
        assert not driver.state.counters.refused
