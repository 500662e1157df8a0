"""One crawl of a fake web, archived, and what is told of forty URLs whose fates are known."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from crawlkit.config import Config
from crawlkit.engine.ending import Ending
from crawlkit.engine.explain.answer import Explanation
from crawlkit.engine.explain.explainer import Explainer
from crawlkit.engine.session import Hooks, Surroundings, begin
from crawlkit.state.looking import look_at_crawl
from crawlkit.testing.fakeweb import FakeWeb
from crawlkit.testing.site import Fault, Reply, Site, page, redirect, robots, status

A = "http://a.test"
LONG = f"{A}/{'l' * 200}"
ROBOTS = "User-agent: other\nDisallow: /\n\nUser-agent: *\nDisallow: /private\nAllow: /private/open # yes\n"
LINKS = [
    *("/one", "/private/x", "/private/open", "/gone", "/error", "/moved", "/nowhere-to", "/no/way", "http://out.test/"),
    *("/b/b/b/b/", "/a.test/a.test/", "/?x=1&x=1&x=1&x=1", "/?1&2&3&4&5&6", "/%25252520", LONG, "/r0", "/same1", "/same2"),
    *("/ü?q=ä", "/Case", "/notes.txt", "/reset", "/garbage", "/drop", "/canonical", "mailto:x@a.test", "http://b.test:8080/x"),
]
CHAIN = {f"a.test/r{n}": redirect(f"/r{n + 1}") for n in range(12)}
SITE = Site(
    {
        "a.test/robots.txt": robots(ROBOTS),
        "b.test/robots.txt": status(503),
        "b.test:8080/robots.txt": robots("User-agent: *\nAllow: /\n"),
        "down.test/robots.txt": Reply(fault=Fault.RESET),
        "lazy.test/robots.txt": robots("User-agent: *\nCrawl-delay: 120\n"),
        "a.test/": page("Home", LINKS, nofollow=["/unfollowed", "/one"]),
        "a.test/one": page("One", ["/two"]),
        "a.test/two": page("Two", ["/three", "/"]),
        "a.test/three": page("Three", ["/four"]),
        "a.test/private/open": page("Open"),
        "a.test/gone": status(410),
        "a.test/error": status(500),
        "a.test/moved": redirect("/arrived", 301),
        "a.test/arrived": page("Arrived"),
        "a.test/nowhere-to": status(302),
        "a.test/same1": page("Same", text="these words are the same"),
        "a.test/same2": page("Same", text="these words are the same"),
        "a.test/%C3%BC?q=%C3%A4": page("Umlauts"),
        "a.test/Case": page("Case"),
        "a.test/notes.txt": Reply(200, (("content-type", "text/plain"),), b"http://a.test/in-text"),
        "a.test/reset": Reply(fault=Fault.RESET),
        "a.test/garbage": Reply(fault=Fault.GARBAGE),
        "a.test/drop": Reply(fault=Fault.DROP),
        "a.test/canonical": page("C", canonical="/proper"),
        "a.test/proper": page("Proper"),
        **CHAIN,
    }
)
SEEDS = [f"{A}/", "http://b.test/start", "http://down.test/", "http://lazy.test/"]
CONFIG = Config(
    delay=0.0, retries=0, max_depth=3, exclude=("/no/",), max_params=5, max_url_length=100, warc=True, checkpoint_interval=0.01
)

# What is typed, the code that is told, the depth.
FATES: list[tuple[str, str, int | None]] = [
    (f"{A}/", "done.page", 0),
    ("HTTP://A.test:80/./#top", "done.page", 0),
    (f"{A}/one", "done.page", 1),
    (f"{A}/two", "done.page", 2),
    (f"{A}/three", "done.page", 3),
    (f"{A}/four", "depth.limit", 4),
    (f"{A}/private/x", "robots.disallow", 1),
    (f"{A}/private/open", "done.page", 1),
    (f"{A}/gone", "http.client_error", 1),
    (f"{A}/error", "http.server_error", 1),
    (f"{A}/moved", "done.redirect", 1),
    (f"{A}/arrived", "done.page", 1),
    (f"{A}/nowhere-to", "redirect.no_location", 1),
    (f"{A}/no/way", "scope.exclude", 1),
    ("http://out.test/", "scope.outside", 1),
    ("http://elsewhere.test/", "scope.outside", None),
    (f"{A}/b/b/b/b/", "trap.path_repeat", 1),
    (f"{A}/a.test/a.test/", "trap.host_in_path", 1),
    (f"{A}/?x=1&x=1&x=1&x=1", "trap.param_repeat", 1),
    (f"{A}/?1&2&3&4&5&6", "trap.param_count", 1),
    (f"{A}/%25252520", "trap.escape", 1),
    (LONG, "trap.length", 1),
    (f"{A}/r0", "done.redirect", 1),
    (f"{A}/r9", "done.redirect", 1),
    (f"{A}/r10", "redirect.too_many", 1),
    (f"{A}/r11", "redirect.too_many", None),
    (f"{A}/same1", "done.page", 1),
    (f"{A}/same2", "done.page", 1),
    (f"{A}/ü?q=ä", "done.page", 1),
    (f"{A}/Case", "done.page", 1),
    (f"{A}/case", "never.linked", None),
    (f"{A}/notes.txt", "done.page", 1),
    (f"{A}/in-text", "never.linked", None),
    (f"{A}/reset", "net.reset", 1),
    (f"{A}/garbage", "net.protocol", 1),
    (f"{A}/canonical", "done.page", 1),
    (f"{A}/proper", "done.page", 2),
    (f"{A}/unfollowed", "nofollow", None),
    ("http://b.test/start", "robots.unreachable", 0),
    ("http://b.test:8080/x", "http.client_error", 1),
    ("http://down.test/", "host.unreachable", 0),
    ("http://lazy.test/", "robots.delay_too_long", 0),
    (f"{A}/robots.txt", "done.robots", None),
    ("mailto:x@a.test", "url.scheme", None),
    ("/one", "url.invalid", None),
]

Ask = Callable[[str], Explanation]


@pytest.fixture(scope="module")
def crawl(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("matrix") / "x.crawl"
    outcome = asyncio.run(begin(SEEDS, directory, CONFIG, Hooks(), Surroundings(FakeWeb(SITE))))
    assert outcome.how is Ending.FINISHED
    return directory


@pytest.fixture(scope="module")
def ask(crawl: Path) -> Ask:
    def explain(url: str) -> Explanation:
        with look_at_crawl(crawl) as looking:
            return Explainer(looking).explain(url, 2e9)

    return explain


def test_there_are_forty_fates_and_more() -> None:
    assert len({url for url, *_ in FATES}) == len(FATES) > 40


@pytest.mark.parametrize(("url", "code", "depth"), FATES, ids=[url for url, *_ in FATES])
def test_fate(ask: Ask, url: str, code: str, depth: int | None) -> None:
    said = ask(url)
    assert (said.code, said.depth) == (code, depth)
    assert said.summary
    failed = {ruling.code for ruling in said.rules if not ruling.passed}
    if said.standing == "refused" and code != "nofollow":
        assert code in failed
    if code.startswith("robots."):
        assert failed == {code}
    if code.startswith("done."):
        assert failed == set()
    assert msgspec.json.decode(msgspec.json.encode(said), type=Explanation) == said


def test_the_path_leads_from_a_seed(ask: Ask) -> None:
    path = ask(f"{A}/three").path
    assert path is not None
    assert [(step.how, step.url) for step in path.steps] == [
        ("seed", f"{A}/"), ("link", f"{A}/one"), ("link", f"{A}/two"), ("link", f"{A}/three")
    ]  # fmt: skip
    assert (path.shortest, path.complete) == (True, True)
    for url, how in ((f"{A}/arrived", "redirect"), (f"{A}/proper", "canonical")):
        path = ask(url).path
        assert path is not None
        assert (path.steps[-1].how, path.shortest) == (how, True)


def test_the_line_of_robots_txt_that_decided(ask: Ask) -> None:
    said = ask(f"{A}/private/x")
    assert said.summary == "excluded by robots.txt line 5: Disallow: /private"
    assert said.robots is not None
    assert (said.robots.line, said.robots.rule, said.robots.group) == (5, "Disallow: /private", "*")
    assert (said.robots.state, said.robots.allowed) == ("rules", False)
    assert said.robots.digest is not None
    opened = ask(f"{A}/private/open").robots
    assert opened is not None
    assert (opened.line, opened.rule, opened.allowed) == (6, "Allow: /private/open", True)
    assert [(state.state, state.allowed) for url in SEEDS if (state := ask(url).robots)] == [
        ("rules", True), ("unreachable", False), ("no_host", False), ("rules", False)
    ]  # fmt: skip


def test_the_settings_that_kept_a_url_out_are_named_by_their_line(ask: Ask, crawl: Path) -> None:
    lines = (crawl / "config.toml").read_text().splitlines()
    for url, key in (
        (f"{A}/no/way", "exclude"),
        (f"{A}/four", "max_depth"),
        (LONG, "max_url_length"),
        ("http://o.test/", "scope"),
    ):
        setting = next(ruling.setting for ruling in ask(url).rules if not ruling.passed)
        assert setting is not None
        place, _, text = setting.partition(": ")
        assert place.startswith("config.toml line ")
        assert text == lines[int(place.rpartition(" ")[2]) - 1]
        assert text.startswith(f"{key} = ")


def test_what_leads_to_a_url_that_was_not_admitted(ask: Ask, crawl: Path) -> None:
    linked = ask(f"{A}/unfollowed").linked_from
    assert linked is not None
    assert [(linker.how, linker.url, linker.depth) for linker in linked.found] == [("nofollow", f"{A}/", 0)]
    assert linked.complete
    with look_at_crawl(crawl) as looking:
        assert linked.searched == looking.counters.records
    redirected = ask(f"{A}/r11").linked_from
    assert redirected is not None
    assert [(linker.how, linker.url) for linker in redirected.found] == [("redirect", f"{A}/r10")]


def test_a_page_with_the_bytes_of_another_says_so(ask: Ask) -> None:
    first, second = ask(f"{A}/same1"), ask(f"{A}/same2")
    assert first.record is not None
    assert second.record is not None
    assert (first.record.duplicate_of, second.record.duplicate_of) == (None, f"{A}/same1")
    assert second.summary == f"fetched: status 200, the same bytes as {A}/same1"


def test_where_its_exchanges_lie(ask: Ask, crawl: Path) -> None:
    [place] = ask(f"{A}/one").archive
    assert (place.role, place.status) == ("record", 200)
    with (crawl / place.file).open("rb") as file:
        file.seek(place.offset)
        member = file.read(place.length)
    assert member[:2] == b"\x1f\x8b"  # a gzip member begins there
    assert ask(f"{A}/reset").archive == ()
    assert [place.role for place in ask(f"{A}/robots.txt").archive] == ["robots"]


def test_tries_sources_and_the_host(ask: Ask) -> None:
    said = ask(f"{A}/error")
    assert said.attempts is not None
    assert (said.attempts.made, said.attempts.failed, said.attempts.last_reason) == (1, 1, "http.server_error")
    assert said.sources == ("link",)
    assert ask(f"{A}/").sources == ("seed", "link")
    assert said.host is not None
    assert (said.host.name, said.host.queued, said.host.breaker, said.host.gap_s) == ("a.test", 0, "closed", 0.0)
    assert ask("http://elsewhere.test/").host is None
    budget = said.budget
    assert budget is not None
    assert (budget.limit, budget.pays) == (1250, True)
