"""Endless spaces end within 2,000 fetches by the default settings, and honest sites lose nothing, whatever their shape."""

import asyncio
import html
import random
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, quote, urlencode, urljoin, urlsplit

import pytest

from crawlkit.config import Config
from crawlkit.engine.budget import Budget
from crawlkit.engine.ending import Ending
from crawlkit.engine.session import Hooks, Surroundings, begin, go_on
from crawlkit.engine.verify import Thoroughness, verify
from crawlkit.model import Kind, OrderReason, Record, Refusal
from crawlkit.policy.novelty import sketch_of
from crawlkit.state.counters import Counters
from crawlkit.state.crawl import CrawlState
from crawlkit.testing.fakeweb import FakeWeb
from crawlkit.testing.site import Reply, Site, page
from tests.shared_cases import bugs

MOST_FETCHES = 2_000
HOST = "http://h.example"
Answer = Callable[[str], Reply]


class Crawled(NamedTuple):
    """What a crawl came to: its counters, its records, and the paths that were asked for, in order."""

    counters: Counters
    records: dict[str, Record]
    asked: list[str]


def crawl(answer: Answer, directory: Path, *seeds: str, **values: Any) -> Crawled:
    """Crawl a site of one host to its end, by default settings but for manners."""
    web = FakeWeb(Site(otherwise=lambda _, target: answer(target)))
    config = Config(**{"delay": 0, "robots": False, "max_pages": 15_000, **values})
    surroundings = Surroundings(transport=web)
    outcome = asyncio.run(begin(seeds or [f"{HOST}/"], directory, config, Hooks(), surroundings))
    assert outcome.how is Ending.FINISHED
    assert verify(directory, Thoroughness.FULL).whole
    with CrawlState.open(directory) as state:
        records = {record.url: record for record in state.pages.walk()}
    return Crawled(outcome.counters, records, [request.target for request in web.log])


def words(seed: object, count: int, vocabulary: int = 1000) -> str:
    chosen = random.Random(str(seed))
    return " ".join(_word(chosen.randrange(vocabulary)) for _ in range(count))


def _word(number: int) -> str:
    return "".join(random.Random(number).choices("abcdefghijklmnopqrstuvwxyz", k=2 + number % 8))


def parameters(target: str) -> dict[str, str]:
    return dict(parse_qsl(urlsplit(target).query))


def number_in(target: str) -> int:
    digits = "".join(filter(str.isdecimal, urlsplit(target).path))
    return int(digits or 0)


# Endless spaces -------------------------------------------------------------------------------------------------------

MONTHS = "January February March April May June July August September October November December".split()


def months_beside(year: int, month: int) -> list[tuple[int, int]]:
    return [(year + month // 12, month % 12 + 1), (year - (month == 1), month - 1 or 12)]


def calendar(target: str) -> Reply:
    query = parameters(target)
    year, month = int(query.get("year", 2026)), int(query.get("month", 11))
    links = [f"/cal?year={y}&month={m}" for y, m in months_beside(year, month)]
    name = f"{MONTHS[month - 1]} {year}"
    return page(name, links, text=f"No events in {name}. Mon Tue Wed " + " ".join(map(str, range(1, 31))))


def calendar_of_three_views(target: str) -> Reply:
    parts = urlsplit(target).path.strip("/").split("/")
    if parts[0] == "month":
        year, month = int(parts[1]), int(parts[2])
        links = [f"/month/{y}/{m}" for y, m in months_beside(year, month)] + [f"/day/{year}/{month}/{d}" for d in range(1, 29)]
        return page(f"{MONTHS[month - 1]} {year}", links, text=f"All days of {MONTHS[month - 1]} {year}")
    if parts[0] == "day":
        year, month, day = map(int, parts[1:])
        links = [f"/day/{year}/{month}/{day % 28 + 1}", f"/day/{year + 1}/{month}/{day}", f"/month/{year}/{month}"]
        return page(f"{day} {MONTHS[month - 1]} {year}", links, text=f"Nothing on {day} {MONTHS[month - 1]}. Add an event")
    week = number_in(target)
    return page(f"Week {week}", [f"/week/{week + 1}", "/month/2026/11"], text=f"Week {week} has no events at all")


def sessions(alphabet: str, url: str) -> Answer:
    """Thirty pages; each link carries a new session id, which the page prints."""
    chosen = random.Random(alphabet)

    def answer(target: str) -> Reply:
        number = number_in(target.rpartition("/")[2]) % 30
        links = [url.format(number=(number + step) % 30, sid="".join(chosen.choices(alphabet, k=16))) for step in range(1, 6)]
        return page(f"Page {number}", links, text=f"{words(number, 60)} session {parameters(target).get('sid')} bye")

    return answer


def escaped_again(target: str) -> Reply:
    again = target.replace("%", "%25") if "%" in target else "/s?q=a%20b"
    return page("Search", [again], text="results of your search")


def address_in_address(target: str) -> Reply:
    return page("Login", [f"/login?next={quote(HOST + target, safe='')}"], text="please log in first")


def ampersands(target: str) -> Reply:
    return page("List", [target.replace("&", "&amp;") if "&" in target else "/list?a=1&b=2"], text="a list of things")


def facets(filters: int, values: int, things: int, shown: int) -> Answer:
    """A shop: each page changes or adds any one filter, and shows some of a catalogue in an order of its own."""

    def answer(target: str) -> Reply:
        if target.startswith("/thing/"):
            return page(words(number_in(target), 5), ["/shop"], text=words(f"about {number_in(target)}", 40))
        query = parameters(target)
        chosen = random.Random(repr(sorted(query.items()))).sample(range(things), shown)
        others = [{**query, _word(500 + f): _word(600 + v)} for f in range(filters) for v in range(values)]
        links = [f"/shop?{urlencode(sorted(other.items()))}" for other in others if other != query]
        shelf = "".join(f'<li><a href="/thing/{thing}">{words(thing, 5)}</a> $ {thing}</li>' for thing in chosen)
        navigation = "".join(f'<a href="{html.escape(link)}">{link.partition("?")[2]}</a> ' for link in links)
        text = "You chose " + ", ".join(f"{name} {value}" for name, value in query.items())
        body = f"<title>Shop</title><ul>{shelf}</ul>{navigation}<p>{html.escape(text)}</p>"
        return Reply(200, (("content-type", "text/html"),), body.encode())

    return answer


def facets_as_folders(target: str) -> Reply:
    chosen = [segment for segment in target.split("/") if segment]
    others = [value for value in "red blue green large small cotton wool silk cheap new".split() if value not in chosen]
    return page("Shop", [f"/{'/'.join([*chosen, value])}/" for value in others], text=f"{' '.join(chosen)} shoes and shirts")


def relative_links(target: str) -> Reply:
    return page("Site", ["about/", "contact/", "news/", "help/"], text="not found but here you are anyway")


def growing_query(target: str) -> Reply:
    return page("List", [f"{target}{'&' if '?' in target else '?'}page={len(target)}"], text="a list of things")


def repeated_parameter(target: str) -> Reply:
    return page("List", [f"{target}{'&' if '?' in target else '?'}lang=en"], text="a list of things")


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
        pytest.param(facets(10, 10, 200, 20), Refusal.TRAP_TEMPLATE, id="many facets"),
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
    assert len(crawled.asked) <= MOST_FETCHES
    assert crawled.counters.refused[refusal]
    assert (OrderReason.TRAP in crawled.counters.reasons) is (Refusal.TRAP_TEMPLATE in crawled.counters.refused)
    assert crawled.counters.held == 0


def _relative(reference: str) -> Answer:
    return lambda _: page("Here", [reference], text="some page")


TRAP_SITES: dict[str, Answer] = {
    "trap-01": _relative("infra/www/"),
    "trap-03": _relative("sitemap/"),
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
    assert len(crawled.asked) <= (MOST_FETCHES if case["id"] == "trap-05" else expected["max_fetches_default"])
    assert any(code.startswith("trap.") for code in crawled.counters.refused)
    assert f"{HOST}/about" in crawled.records or "other_pages_of_host_crawled" not in expected


# Honest sites ---------------------------------------------------------------------------------------------------------

ITEMS = 5_000


def item(number: int, links: Iterable[str], text: str | None = None) -> Reply:
    return page(f"Item {number}", links, text=words(number, 40) if text is None else text)


def one_index(target: str) -> Reply:
    return item(number_in(target), ["/"]) if target != "/" else page("All", [f"/item/{n}" for n in range(ITEMS)])


def one_after_the_other(target: str) -> Reply:
    number = number_in(target)
    return item(number, [f"/item/{number + 1}"] if number + 1 < ITEMS else [])


def linked_to_each_other(target: str) -> Reply:
    number = number_in(target)
    near = [(number * 10 + step) % ITEMS for step in range(1, 11)]
    return item(number, [f"/item?id={n}" for n in near], text=f"{words('frame', 150)} {words(number, 15)}")


def linked_by_query(target: str) -> Reply:
    number = int(parameters(target).get("id", 0))
    near = [(number * 10 + step) % ITEMS for step in range(1, 11)]
    return item(number, [f"/item?id={n}" for n in near], text=f"{words('frame', 150)} {words(number, 15)}")


def pages_of_a_listing(target: str) -> Reply:
    """Listings with nothing but numbers on them, each leading to the next."""
    if target.startswith("/item/"):
        return item(number_in(target), ["/"], text=f"{words(number_in(target), 6)}")
    number = number_in(target)
    last = (number + 1) * 20 >= ITEMS
    links = [f"/item/{n}" for n in range(number * 20, number * 20 + 20)] + ([] if last else [f"/list/{number + 1}"])
    return page(f"Page {number}", links)


def listings_side_by_side(target: str) -> Reply:
    """Listings all linked from the front page: they are fetched, and found alike, before any item is."""
    if target == "/":
        return page("All", [f"/list/{n}" for n in range(ITEMS // 20)])
    if target.startswith("/item/"):
        return item(number_in(target), ["/"])
    number = number_in(target)
    return page(f"Page {number}", [f"/item/{n}" for n in range(number * 20, number * 20 + 20)])


def with_a_trap_beside(target: str) -> Reply:
    """Each item leads to ten copies of itself and to a calendar."""
    if target.startswith("/cal"):
        return calendar(target)
    number = number_in(target.partition("?")[0])
    copies = [f"/item/{number}?replyto={number * 10 + n}" for n in range(10)]
    below = [f"/item/{n}" for n in (2 * number + 1, 2 * number + 2) if n < ITEMS]
    return item(number, [*copies, "/cal?year=2026&month=11", *below])


@pytest.mark.slow
@pytest.mark.parametrize(
    "answer",
    [one_index, one_after_the_other, linked_by_query, pages_of_a_listing, listings_side_by_side, with_a_trap_beside],
)
def test_an_honest_site_loses_nothing(answer: Answer, tmp_path: Path) -> None:
    crawled = crawl(answer, tmp_path / "crawl", f"{HOST}/item/0" if answer is with_a_trap_beside else f"{HOST}/")
    items = {url for url in crawled.records if url.startswith(f"{HOST}/item") and "replyto" not in url}
    assert len(items) >= ITEMS - (answer is one_after_the_other)
    if answer is not with_a_trap_beside:
        assert not crawled.counters.refused
        assert crawled.counters.reasons == set()


def test_what_leads_no_further_is_not_taken_for_a_trap(tmp_path: Path) -> None:
    documents = (("content-type", "application/pdf"),)

    def answer(target: str) -> Reply:
        if target.endswith(".pdf"):
            return Reply(200, documents, b"%PDF" + target.encode())
        if target.startswith("/gone"):
            return Reply(404)
        number = number_in(target)
        links = [f"/{kind}{number * 50 + n}{end}" for n in range(50) for kind, end in (("doc/", ".pdf"), ("gone/", ""))]
        return page(f"Page {number}", links + ([f"/list/{number + 1}"] if number < 29 else []))

    crawled = crawl(answer, tmp_path / "crawl", retries=0)
    assert crawled.counters.failures == 1500
    assert crawled.counters.pages == 1500 + 30
    assert not crawled.counters.refused


# Rules ----------------------------------------------------------------------------------------------------------------


def test_seeds_are_exempt_what_they_lead_to_is_not(tmp_path: Path) -> None:
    seed = f"{HOST}/a/a/a/a/a/"
    crawled = crawl(_relative("a/"), tmp_path / "crawl", seed)
    assert list(crawled.records) == [seed]
    assert crawled.counters.refused == {Refusal.TRAP_PATH_REPEAT: 1}
    assert crawled.counters.reasons == set()


def test_a_budget_of_nothing_is_no_limit(tmp_path: Path) -> None:
    web = FakeWeb(Site(otherwise=lambda _, target: calendar(target)))
    config = Config(delay=0, robots=False, template_budget=0, max_pages=1500)
    outcome = asyncio.run(begin([f"{HOST}/"], tmp_path / "crawl", config, Hooks(), Surroundings(transport=web)))
    assert outcome.how is Ending.LIMIT_PAGES
    assert outcome.counters.pages == 1500


def test_a_smaller_budget_ends_sooner(tmp_path: Path) -> None:
    assert len(crawl(calendar, tmp_path / "crawl", template_budget=100).asked) < 200


def test_links_that_wait_survive_a_stop(tmp_path: Path) -> None:
    """A listing of 3,000 like items does not fit the budget at once; the crawl is stopped and resumed on the way."""

    def answer(target: str) -> Reply:
        return item(number_in(target), ["/"]) if target != "/" else page("All", [f"/item/{n}" for n in range(3_000)])

    web = FakeWeb(Site(otherwise=lambda _, target: answer(target)))
    config = Config(delay=0, robots=False, max_pages=700)
    surroundings = Surroundings(transport=web)
    directory = tmp_path / "crawl"
    outcome = asyncio.run(begin([f"{HOST}/"], directory, config, Hooks(), surroundings))
    assert outcome.counters.held == 1
    for limit in (1500, None):
        assert verify(directory, Thoroughness.FULL).whole
        outcome = asyncio.run(go_on(directory, {"max_pages": limit}, Hooks(), surroundings))
    assert outcome.how is Ending.FINISHED
    assert outcome.counters.pages == 3_001
    assert len(web.log) == 3_001
    assert outcome.counters.held == 0


# The budget -----------------------------------------------------------------------------------------------------------


def budget(state: CrawlState, most: int) -> Budget:
    return Budget(state.templates, most)


@pytest.fixture
def state(tmp_path: Path) -> Iterable[CrawlState]:
    with CrawlState.create(tmp_path / "state", Config()) as opened:
        yield opened


def settled(path: str, via: str | None = None) -> Record:
    return Record(url=HOST + path, kind=Kind.PAGE, depth=1, via=None if via is None else HOST + via)


def paid(some: Budget, path: str, times: int) -> int:
    return sum(some.pay(f"{HOST}{path}{number}") for number in range(times))


def test_a_template_draws_three_of_four_that_its_host_can_spare_then_the_next(state: CrawlState) -> None:
    some = budget(state, 30)
    assert paid(some, "/a/", 100) == 30
    assert paid(some, "/b/", 100) == 8
    assert some.pay("http://other.example/a/1")


def test_a_fresh_page_earns_for_its_template_its_host_and_its_leader(state: CrawlState) -> None:
    some = budget(state, 3)
    paid(some, "/a/", 100)
    paid(some, "/list/", 100)
    spare = some.host(HOST + "/").credit
    assert some.earn(settled("/a/1", via="/list/1"), sketch_of(words(1, 30), HOST + "/a/1"))
    assert some.host(HOST + "/").credit == spare + 1
    assert paid(some, "/list/", 100) == 1
    assert paid(some, "/a/", 100) == 4
    assert not some.earn(settled("/a/2", via="/list/1"), sketch_of(words(1, 30), HOST + "/a/2"))
    assert paid(some, "/a/", 100) == 0


def test_a_new_shape_without_new_text_is_no_news(state: CrawlState) -> None:
    some = budget(state, 100)
    fresh = [some.earn(settled(f"/{_word(n)}/x"), sketch_of(words("same", 30), HOST)) for n in range(20)]
    assert fresh == [True] + [False] * 19


def test_what_leads_no_further_earns_its_price_back(state: CrawlState) -> None:
    some = budget(state, 3)
    assert paid(some, "/a/", 100) == 3
    some.earn(settled("/a/1"), None)
    assert paid(some, "/a/", 100) == 1
