"""Sites for the tests of traps: spaces without end, honest sites of many shapes, and crawls of them driven by hand."""

import functools
import html
import random
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

from crawlkit.engine.ending import Ending
from crawlkit.engine.verify import Thoroughness, verify
from crawlkit.model import Facts, Record, Response
from crawlkit.policy.facts import read_answer
from crawlkit.policy.novelty import BREAK, sketch_of
from crawlkit.policy.urls import path_of
from crawlkit.state.counters import Counters
from crawlkit.testing.site import Reply, page
from tests.engine.driver import Driver

MOST_STEPS = 60_000
HOST = "http://h.example"
Answer = Callable[[str], Reply | Facts]


class Space(Mapping[str, Facts]):
    """A site without end, as the driver's table of answers: each path is answered by a function."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer

    def __getitem__(self, url: str) -> Facts:
        given = self._answer(path_of(url))
        if isinstance(given, Facts):
            return given
        headers = tuple((name.encode(), value.encode()) for name, value in given.headers)
        return read_answer(url, Response(given.status, headers, given.body))

    def __iter__(self) -> Iterator[str]:
        raise NotImplementedError

    def __len__(self) -> int:
        raise NotImplementedError


class Crawled(NamedTuple):
    """What a crawl came to: its counters, its records, and how many requests it made."""

    counters: Counters
    records: dict[str, Record]
    requests: int


def drive(answer: Answer, directory: Path, *seeds: str, **values: Any) -> Driver:
    """Return a crawl of a site of one host, by default settings but for manners."""
    settings = {"delay": 0, "robots": False, "max_pages": 15_000, **values}
    return Driver(directory, Space(answer), seeds=seeds or [f"{HOST}/"], **settings)


def drain(driver: Driver) -> Ending:
    """Fetch one after the other until nothing is left."""
    for _ in range(MOST_STEPS):
        if driver.coordinator.exhausted:
            return driver.end()
        if driver.coordinator.owes_work:
            driver.coordinator.work()
        elif (job := driver.claim()) is not None:
            driver.settle(job)
    raise AssertionError("the crawl does not end")


def crawl(answer: Answer, directory: Path, *seeds: str, **values: Any) -> Crawled:
    """Crawl a site to its end, and verify what is on disk then."""
    with drive(answer, directory, *seeds, **values) as driver:
        assert drain(driver) is Ending.FINISHED
        crawled = Crawled(driver.state.counters, driver.records(), len(driver.requests))
    assert verify(directory, Thoroughness.FULL).whole
    return crawled


@functools.cache
def words(seed: object, count: int, vocabulary: int = 1000) -> str:
    chosen = random.Random(str(seed))
    return " ".join(word(chosen.randrange(vocabulary)) for _ in range(count))


@functools.cache
def word(number: int) -> str:
    return "".join(random.Random(number).choices("abcdefghijklmnopqrstuvwxyz", k=2 + number % 8))


def parameters(target: str) -> dict[str, str]:
    return dict(parse_qsl(urlsplit(target).query))


def number_in(target: str) -> int:
    digits = "".join(filter(str.isdecimal, urlsplit(target).path))
    return int(digits or 0)


# Endless spaces -------------------------------------------------------------------------------------------------------

MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)


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
        others = [{**query, word(500 + f): word(600 + v)} for f in range(filters) for v in range(values)]
        links = [f"/shop?{urlencode(sorted(other.items()))}" for other in others if other != query]
        shelf = "".join(f'<li><a href="/thing/{thing}">{words(thing, 5)}</a> $ {thing}</li>' for thing in chosen)
        navigation = "".join(f'<a href="{html.escape(link)}">{link.partition("?")[2]}</a> ' for link in links)
        text = "You chose " + ", ".join(f"{name} {value}" for name, value in query.items())
        body = f"<title>Shop</title><ul>{shelf}</ul>{navigation}<p>{html.escape(text)}</p>"
        return Reply(200, (("content-type", "text/html"),), body.encode())

    return answer


def facets_as_folders(target: str) -> Reply:
    chosen = [segment for segment in target.split("/") if segment]
    others = [word(number) for number in range(10) if word(number) not in chosen]
    return page("Shop", [f"/{'/'.join([*chosen, value])}/" for value in others], text=f"{' '.join(chosen)} shoes and shirts")


def only_link(reference: str) -> Answer:
    return lambda _: page("Here", [reference], text="some page")


def relative_links(target: str) -> Reply:
    return page("Site", ["about/", "contact/", "news/", "help/"], text="not found but here you are anyway")


def growing_query(target: str) -> Reply:
    return page("List", [f"{target}{'&' if '?' in target else '?'}page={len(target)}"], text="a list of things")


def repeated_parameter(target: str) -> Reply:
    return page("List", [f"{target}{'&' if '?' in target else '?'}lang=en"], text="a list of things")


# Honest sites ---------------------------------------------------------------------------------------------------------

ITEMS = 5_000


def plain(url: str, title: str, links: Iterable[str], text: str = "") -> Facts:
    """Return what a page says, without the detour over its markup."""
    there = tuple(HOST + link for link in links)
    sketch = sketch_of(BREAK.join((title, "link", text)), HOST + url)
    return Facts(200, "text/html", links=there, sketch=sketch)


def item(target: str, links: Iterable[str], text: str | None = None) -> Facts:
    return plain(target, f"Item {target}", links, words(target, 40) if text is None else text)


def one_index(target: str) -> Facts:
    return plain(target, "All", [f"/item/{n}" for n in range(ITEMS)]) if target == "/" else item(target, ["/"])


def one_after_the_other(target: str) -> Facts:
    number = number_in(target)
    return item(target, [f"/item/{number + 1}"] if number + 1 < ITEMS else [])


def linked_to_each_other(target: str) -> Facts:
    number = int(parameters(target).get("id", 0))
    near = [(number * 10 + step) % ITEMS for step in range(10)]
    return item(target, [f"/item?id={n}" for n in near], f"{words('frame', 150)} {words(number, 15)}")


def pages_of_a_listing(target: str) -> Facts:
    """Listings with nothing but numbers on them, each leading to the next."""
    if target.startswith("/item/"):
        return item(target, ["/"], words(target, 6))
    number = number_in(target)
    last = (number + 1) * 20 >= ITEMS
    links = [f"/item/{n}" for n in range(number * 20, number * 20 + 20)]
    return plain(target, f"Page {number}", links if last else [*links, f"/list/{number + 1}"])


def listings_side_by_side(target: str) -> Facts:
    """Listings all linked from the front page: they are fetched, and found alike, before any item is."""
    if target == "/":
        return plain(target, "All", [f"/list/{n}" for n in range(ITEMS // 20)])
    if target.startswith("/item/"):
        return item(target, ["/"])
    number = number_in(target)
    return plain(target, f"Page {number}", [f"/item/{n}" for n in range(number * 20, number * 20 + 20)])


def with_traps_beside(target: str) -> Reply | Facts:
    """Each item leads to ten copies of itself and to a calendar."""
    if target.startswith("/cal"):
        return calendar(target)
    number = number_in(target.partition("?")[0])
    copies = [f"/item/{number}?replyto={number * 10 + n}" for n in range(10)]
    below = [f"/item/{n}" for n in (2 * number + 1, 2 * number + 2) if n < ITEMS]
    return item(target, [*copies, "/cal?year=2026&month=11", *below], words(number, 40))


LISTED = (one_index, pages_of_a_listing, listings_side_by_side)
