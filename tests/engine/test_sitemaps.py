"""Sitemaps in a crawl: where they come from, what they admit, what a kill in the middle of one leaves, what hosts feel."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from crawlkit.engine import sitemaps as reading
from crawlkit.engine.ending import Ending
from crawlkit.engine.verify import Thoroughness, verify
from crawlkit.model import Facts, FetchFailure, Kind, OrderReason, Reason, Refusal, SitemapJob, Source
from crawlkit.sitemap import Sitemap, SitemapEntry, SitemapForm
from crawlkit.state import keys
from crawlkit.state.sitemaps import SitemapState
from tests.engine.driver import GONE, SEED, A, Answer, Driver, answer, file, moved, page

B = "http://b.test"
MAP = f"{A}/sitemap.xml"
ROBOTS = f"{A}/robots.txt"
LINK, BOTH = Source.LINK, Source.SITEMAP | Source.LINK


def urlset(*urls: str | SitemapEntry, cut: bool = False) -> Sitemap:
    return Sitemap(SitemapForm.URLSET, tuple(SitemapEntry(url) if isinstance(url, str) else url for url in urls), cut)


def index(*urls: str) -> Sitemap:
    return Sitemap(SitemapForm.INDEX, tuple(map(SitemapEntry, urls)))


def listing(*urls: str, rules: tuple[str, ...] = ()) -> Answer:
    return file(*rules, *(f"Sitemap: {url}" for url in urls))


class Crawl(Driver):
    """A crawl with sitemaps; the web may hold them."""

    def __init__(self, directory: Path, web: Mapping[str, Any], **settings: Any) -> None:
        self.sitemaps = {url: found for url, found in web.items() if isinstance(found, Sitemap)}
        answers = {url: found for url, found in web.items() if not isinstance(found, Sitemap)}
        for url in self.sitemaps:
            answers.setdefault(url, Facts(200, content_type="application/xml"))
        super().__init__(directory, answers, **{"sitemaps": True, "delay": 0, **settings})

    def sitemap_of(self, url: str) -> Sitemap | None:
        return self.sitemaps.get(url)

    def outcome(self, url: str) -> tuple[SitemapState, Reason | None]:
        row = self.state.sitemaps.get(url)
        assert row is not None
        return row.state, row.reason

    def sources(self) -> dict[str, int]:
        return {url: record.sources for url, record in self.records().items()}


def test_a_sitemap_that_robots_txt_names_admits_at_depth_0(tmp_path: Path) -> None:
    web = {
        ROBOTS: listing(MAP),
        SEED: page(f"{A}/linked", f"{A}/both"),
        MAP: urlset(f"{A}/only", f"{A}/both", "http://elsewhere.test/", SEED),
        f"{A}/only": page(),
        f"{A}/both": page(),
        f"{A}/linked": page(),
    }
    with Crawl(tmp_path / "crawl", web) as crawl:
        assert crawl.drain() is Ending.FINISHED
        assert crawl.sources() == {
            SEED: Source.SEED | Source.SITEMAP, f"{A}/only": Source.SITEMAP, f"{A}/both": BOTH, f"{A}/linked": LINK
        }  # fmt: skip
        assert {url: record.depth for url, record in crawl.records().items()} == {
            SEED: 0, f"{A}/only": 0, f"{A}/both": 0, f"{A}/linked": 1
        }  # fmt: skip
        counters = crawl.state.counters
        assert (counters.sitemaps, counters.sitemaps_read, counters.sitemaps_failed, counters.sitemap_urls) == (0, 1, 0, 4)
        assert counters.refused == {Refusal.SCOPE: 1}
        assert crawl.asked(MAP) == 1
    assert verify(tmp_path / "crawl", Thoroughness.FULL).whole


def test_without_the_setting_nothing_is_asked(tmp_path: Path) -> None:
    with Crawl(tmp_path / "crawl", {ROBOTS: listing(MAP), SEED: page(), MAP: urlset(f"{A}/x")}, sitemaps=False) as crawl:
        crawl.drain()
        assert set(crawl.records()) == {SEED}
        assert not crawl.asked(MAP)


def test_include_exclude_traps_and_depth_hold_for_what_sitemaps_name_and_the_template_budget_does_not(tmp_path: Path) -> None:
    many = [f"{A}/item/{number}" for number in range(30)]
    named = urlset(*many, f"{A}/secret", f"{A}/loop/loop/loop/loop/loop", f"{A}/other")
    web = {ROBOTS: listing(MAP), SEED: page(), MAP: named}
    settings = {"include": ("item|loop|secret",), "exclude": ("secret",), "max_depth": 0, "template_budget": 4}
    with Crawl(tmp_path / "crawl", web, **settings) as crawl:
        crawl.drain()
        assert set(crawl.records()) == {SEED, *many}
        refused = {Refusal.INCLUDE: 1, Refusal.EXCLUDE: 1, Refusal.TRAP_PATH_REPEAT: 1}
        assert crawl.state.counters.refused == refused
        assert OrderReason.TRAP not in crawl.state.counters.reasons


def test_an_index_leads_to_others_once_each_even_in_a_circle(tmp_path: Path) -> None:
    """By bugs.json smap-09: an index that lists itself was fetched for ever."""
    inner, leaf = f"{A}/inner.xml", f"{A}/leaf.xml"
    web = {
        ROBOTS: listing(MAP, inner), SEED: page(), MAP: index(MAP, inner, leaf), inner: index(MAP, leaf), leaf: urlset(f"{A}/x")
    }  # fmt: skip
    with Crawl(tmp_path / "crawl", web) as crawl:
        assert crawl.drain() is Ending.FINISHED
        assert set(crawl.records()) == {SEED, f"{A}/x"}
        assert [crawl.asked(url) for url in (MAP, inner, leaf)] == [1, 1, 1]


def test_nesting_is_bounded_and_a_shorter_way_counts(tmp_path: Path) -> None:
    chain = [f"{A}/{number}.xml" for number in range(reading.MAX_LEVEL + 2)]
    web: dict[str, Any] = {f"{A}/{n}.xml": index(chain[n + 1]) for n in range(len(chain) - 1)}
    web |= {chain[-1]: urlset(f"{A}/deep"), SEED: page()}
    with Crawl(tmp_path / "long", {**web, ROBOTS: listing(chain[0])}) as crawl:
        crawl.drain()
        assert set(crawl.records()) == {SEED}
        assert not crawl.asked(chain[-1])
        assert crawl.state.counters.refused == {Refusal.TRAP_SITEMAP: 1}
        assert crawl.state.counters.reasons == set()
    for way in ((chain[0], chain[1]), (chain[1], chain[0])):
        with Crawl(tmp_path / way[0].rpartition("/")[2], {**web, ROBOTS: listing(*way)}) as crawl:
            assert crawl.drain() is Ending.FINISHED
            assert set(crawl.records()) == {SEED, f"{A}/deep"}


@pytest.mark.parametrize("moment", ["in flight", "being met", "read"])
def test_a_shorter_way_to_an_index_that_is_found_late_is_followed(tmp_path: Path, moment: str) -> None:
    chain = [f"{A}/{number}.xml" for number in range(reading.MAX_LEVEL + 1)]
    web: dict[str, Any] = {f"{A}/{n}.xml": index(chain[n + 1]) for n in range(len(chain) - 1)}
    web |= {chain[-1]: index(f"{A}/last.xml"), f"{A}/last.xml": urlset(f"{A}/deep"), SEED: page(), ROBOTS: listing(chain[0])}
    with Crawl(tmp_path / "crawl", web) as crawl:
        while (job := crawl.next_job()).url != chain[-1]:
            crawl.settle(job)
        if moment != "in flight":
            crawl.settle(job)
        if moment == "read":
            crawl.coordinator.work()
        crawl.coordinator._sitemaps.meet_listed(A, [chain[-1]])
        if moment == "in flight":
            crawl.settle(job)
        assert crawl.drain() is Ending.FINISHED
        assert f"{A}/deep" in crawl.records()
    assert verify(tmp_path / "crawl", Thoroughness.FULL).whole


def test_other_hosts_are_asked_only_if_robots_txt_names_them_and_then_their_own_robots_txt_holds(tmp_path: Path) -> None:
    web = {
        ROBOTS: listing(f"{B}/map.xml", f"{B}/hidden.xml"),
        f"{B}/robots.txt": listing(f"{B}/more.xml", rules=("Disallow: /hidden",)),
        SEED: page(),
        f"{B}/map.xml": index(f"{B}/second.xml", "http://c.test/third.xml", MAP),
        f"{B}/second.xml": urlset(f"{A}/second", f"{B}/page"),
        "http://c.test/third.xml": urlset(f"{A}/third"),
        f"{B}/more.xml": urlset(f"{A}/more"),
        MAP: urlset(f"{A}/first"),
    }
    with Crawl(tmp_path / "crawl", web) as crawl:
        assert crawl.drain() is Ending.FINISHED
        assert set(crawl.records()) == {SEED, f"{A}/second", f"{A}/first"}
        assert {url for _, url in crawl.requests if "b.test" in url or "c.test" in url} == {
            f"{B}/robots.txt", f"{B}/map.xml", f"{B}/second.xml"
        }  # fmt: skip
        assert crawl.outcome(f"{B}/hidden.xml") == (SitemapState.FAILED, Reason.ROBOTS_DISALLOW)
        assert crawl.state.counters.hosts == 1
    assert verify(tmp_path / "crawl", Thoroughness.FULL).whole


def test_a_seed_is_read_as_what_it_is(tmp_path: Path) -> None:
    web = {MAP: urlset(f"{A}/x", f"{A}/y"), SEED: page(), f"{A}/x": page()}
    with Crawl(tmp_path / "crawl", web, seeds=(SEED, MAP)) as crawl:
        assert crawl.drain() is Ending.FINISHED
        assert crawl.sources() == {
            SEED: Source.SEED, MAP: Source.SEED, f"{A}/x": Source.SITEMAP, f"{A}/y": Source.SITEMAP
        }  # fmt: skip
        assert crawl.asked(MAP) == 1
        assert crawl.records()[MAP].kind is Kind.PAGE


def test_a_seed_that_redirects_to_a_sitemap_leads_there(tmp_path: Path) -> None:
    web = {f"{A}/map": moved(MAP), MAP: urlset(f"{A}/x")}
    with Crawl(tmp_path / "crawl", web, seeds=(f"{A}/map",)) as crawl:
        crawl.drain()
        assert crawl.sources() == {f"{A}/map": Source.SEED, MAP: LINK, f"{A}/x": Source.SITEMAP}


def test_redirects_are_followed_in_scope(tmp_path: Path) -> None:
    out = f"{A}/out.xml"
    web = {
        ROBOTS: listing(MAP, out), SEED: page(), MAP: moved(f"{A}/new.xml"), f"{A}/new.xml": urlset(f"{A}/x"),
        out: moved(f"{B}/map.xml"), f"{B}/map.xml": urlset(f"{A}/y"),
    }  # fmt: skip
    with Crawl(tmp_path / "crawl", web) as crawl:
        crawl.drain()
        assert set(crawl.records()) == {SEED, f"{A}/x"}


def test_failures_are_tried_again_with_the_host_at_rest_then_counted_and_told_apart(tmp_path: Path) -> None:
    busy, gone, html, broken = (f"{A}/{name}.xml" for name in ("busy", "gone", "html", "broken"))
    web: dict[str, Any] = {
        ROBOTS: listing(busy, gone, html, broken),
        SEED: page(),
        busy: [Facts(503, retry_after="30"), Facts(200)],
        gone: GONE,
        html: page(),
        broken: FetchFailure(Reason.TIMEOUT, "10 s"),
        f"{A}/x": page(),
    }
    with Crawl(tmp_path / "crawl", web, retries=1) as crawl:
        crawl.sitemaps[busy] = urlset(f"{A}/x")
        assert crawl.drain() is Ending.FINISHED
        assert [crawl.asked(url) for url in (busy, gone, html, broken)] == [2, 1, 1, 2]
        first, second = crawl.starts_s(busy)
        assert second - first >= 30
        assert not [at for at, _ in crawl.requests if first < at < first + 30]
        first, second = crawl.starts_s(broken)
        assert not [at for at, _ in crawl.requests if first < at < second]
        assert second - first >= 0.5
        assert crawl.outcome(busy) == (SitemapState.READ, None)
        assert crawl.outcome(gone) == (SitemapState.FAILED, Reason.CLIENT_ERROR)
        assert crawl.outcome(html) == (SitemapState.FAILED, None)
        assert crawl.outcome(broken) == (SitemapState.FAILED, Reason.TIMEOUT)
        assert crawl.state.counters.sitemaps_failed == 3
        assert OrderReason.TRANSIENT in crawl.state.counters.reasons
        assert crawl.state.counters.failures == 0


def test_a_kill_in_the_middle_of_a_large_one_loses_nothing(tmp_path: Path) -> None:
    named = [f"{A}/{number}" for number in range(3 * reading.ENTRIES_A_STEP + 5)]
    web = {ROBOTS: listing(MAP), SEED: page(), MAP: urlset(*named)}
    with Crawl(tmp_path / "crawl", web, max_pages=1) as crawl:
        while not crawl.asked(MAP):
            crawl.settle(crawl.next_job())
        crawl.coordinator.work()
        crawl.coordinator.work()
        crawl.checkpoint()
        assert crawl.state.counters.seen == 1 + 2 * reading.ENTRIES_A_STEP
        crawl.coordinator.work()
        crawl.reopen()
        assert (crawl.state.counters.sitemaps, crawl.state.counters.sitemaps_read) == (1, 0)
        while crawl.asked(MAP) < 2:
            crawl.settle(crawl.next_job())
        while crawl.coordinator.owes_work:
            crawl.coordinator.work()
        assert crawl.state.counters.seen == 1 + len(named)
        assert (crawl.state.counters.sitemaps, crawl.state.counters.sitemaps_read) == (0, 1)
        assert crawl.state.counters.sitemap_urls == len(named)
        crawl.checkpoint()
    assert verify(tmp_path / "crawl", Thoroughness.FULL).whole


def test_a_step_meets_a_bounded_number(tmp_path: Path) -> None:
    named = [f"{A}/{number}" for number in range(1000)]
    with Crawl(tmp_path / "crawl", {ROBOTS: listing(MAP), SEED: page(), MAP: urlset(*named)}) as crawl:
        while not crawl.asked(MAP):
            crawl.settle(crawl.next_job())
        before = crawl.state.counters.seen
        crawl.coordinator.work()
        assert crawl.state.counters.seen - before == reading.ENTRIES_A_STEP


def test_the_urls_that_a_host_may_name_are_bounded_and_it_is_said(tmp_path: Path) -> None:
    second = f"{A}/second.xml"
    web = {
        ROBOTS: listing(MAP, second),
        SEED: page(),
        MAP: urlset(*(f"{A}/a{number}" for number in range(6))),
        second: urlset(*(f"{A}/b{number}" for number in range(6))),
    }
    with Crawl(tmp_path / "crawl", web, max_sitemap_urls=10) as crawl:
        crawl.drain()
        assert len(crawl.records()) == 11
        assert crawl.state.counters.refused == {Refusal.TRAP_SITEMAP: 2}
        assert crawl.state.counters.reasons == {OrderReason.TRAP}
        assert crawl.state.counters.sitemaps_cut == 1


def test_only_a_few_are_read_at_once_and_one_of_a_host(tmp_path: Path) -> None:
    hosts = [f"http://h{number}.test" for number in range(reading.MOST_AT_ONCE + 3)]
    web: dict[str, Any] = {}
    for host in hosts:
        maps = (f"{host}/1.xml", f"{host}/2.xml")
        web |= {f"{host}/robots.txt": listing(*maps), f"{host}/": page(), **{each: urlset(f"{each}.page") for each in maps}}
    with Crawl(tmp_path / "crawl", web, seeds=[f"{host}/" for host in hosts], host_concurrency=4) as crawl:
        for job in crawl.claim_all():
            crawl.settle(job)
        jobs = crawl.claim_all()
        flying = [job for job in jobs if isinstance(job, SitemapJob)]
        assert len(flying) == len({job.host for job in flying}) == reading.MOST_AT_ONCE
        assert {job.url for job in jobs} >= {f"{host}/" for host in hosts if host not in {j.url[: len(host)] for j in flying}}
        for job in jobs:
            crawl.settle(job)
        assert crawl.drain() is Ending.FINISHED
        assert crawl.state.counters.sitemaps_read == 2 * len(hosts)
        assert len(crawl.records()) == 3 * len(hosts)


def test_pages_take_turns_with_many_sitemaps(tmp_path: Path) -> None:
    maps = [f"{A}/{number}.xml" for number in range(5)]
    web: dict[str, Any] = {ROBOTS: listing(*maps), SEED: page(*(f"{A}/p{n}" for n in range(5)))}
    web |= {each: urlset() for each in maps}
    with Crawl(tmp_path / "crawl", web, delay=1) as crawl:
        crawl.drain()
        kinds = ["map" if url.endswith(".xml") else "page" for _, url in crawl.requests[1:]]
        assert kinds[:6] == ["map", "page"] * 3


def test_what_several_say_of_a_url_is_joined_whatever_their_order(tmp_path: Path) -> None:
    second, x = f"{A}/second.xml", f"{A}/x"
    said = (
        urlset(SitemapEntry(x, "2024-01-02T00:00:00Z", 0.1), f"{A}/y"),
        urlset(SitemapEntry(x, "2023-01-01T00:00:00Z", 0.9), SitemapEntry("http://out.test/", "2023-01-01T00:00:00Z")),
    )
    for number, maps in enumerate((said, said[::-1])):
        web = {ROBOTS: listing(MAP, second), SEED: page(x), MAP: maps[0], second: maps[1], x: page()}
        with Crawl(tmp_path / str(number), web) as crawl:
            crawl.drain()
            records = crawl.records()
            assert (records[x].lastmod, records[x].priority) == ("2024-01-02T00:00:00Z", 0.9)
            assert (records[f"{A}/y"].lastmod, records[f"{A}/y"].priority) == (None, None)
        assert verify(tmp_path / str(number), Thoroughness.FULL).whole


def test_a_limit_on_pages_leaves_sitemaps_for_the_resume(tmp_path: Path) -> None:
    second = f"{A}/second.xml"
    web = {ROBOTS: listing(MAP, second), SEED: page(), MAP: urlset(), second: urlset(), f"{A}/x": page()}
    with Crawl(tmp_path / "crawl", web, max_pages_per_host=1) as crawl:
        assert crawl.drain() is Ending.LIMIT_HOST
        assert (crawl.state.counters.queued, crawl.state.counters.sitemaps) == (0, 1)
        crawl.sitemaps[MAP] = crawl.sitemaps[second] = urlset(f"{A}/x")
        crawl.reopen(max_pages_per_host=None)
        assert crawl.drain() is Ending.FINISHED
        assert set(crawl.records()) == {SEED, f"{A}/x"}


def test_held_links_are_not_refused_while_a_sitemap_waits(tmp_path: Path) -> None:
    """A URL that no budget pays for may still be one that a sitemap names, which is late here."""
    alike, late = [f"{A}/list?page={number}" for number in range(40)], f"{B}/map.xml"
    web: dict[str, Any] = {
        ROBOTS: listing(late), SEED: page(*alike), late: [Facts(503, retry_after="1000"), Facts(200)]
    }  # fmt: skip
    web |= dict.fromkeys(alike, Facts(200, content_type="text/html", sketch=()))  # they earn nothing
    with Crawl(tmp_path / "crawl", web, template_budget=2, retries=1) as crawl:
        crawl.sitemaps[late] = urlset(*alike)
        assert crawl.drain() is Ending.FINISHED
        assert set(crawl.records()) == {SEED, *alike}
        assert Refusal.TRAP_TEMPLATE not in crawl.state.counters.refused


def test_a_host_that_is_given_up_gives_up_its_sitemaps(tmp_path: Path) -> None:
    web = {ROBOTS: listing(MAP), SEED: page(), MAP: urlset(f"{A}/x")}
    with Crawl(tmp_path / "crawl", web) as crawl:
        crawl.settle(crawl.next_job())
        host = crawl.state.hosts.get("a.test")
        host.record.health = type(host.record.health)(given_up=True)
        assert crawl.drain() is Ending.FINISHED
        assert crawl.outcome(MAP) == (SitemapState.FAILED, Reason.HOST_GIVEN_UP)


@pytest.mark.parametrize("broken", ["waiting row", "known row", "counter"])
def test_verify_finds_sitemaps_out_of_place(tmp_path: Path, broken: str) -> None:
    with Crawl(tmp_path / "crawl", {ROBOTS: listing(MAP), SEED: page(), MAP: urlset()}) as crawl:
        crawl.settle(crawl.next_job())
        row = crawl.state.sitemaps.get(MAP)
        assert row is not None
        assert row.state is SitemapState.WAITING
        store = crawl.state.sitemaps._store
        match broken:
            case "waiting row":
                store.unstage(keys.waiting_sitemap_key(keys.host_id("a.test"), MAP))
            case "known row":
                store.stage(keys.SITEMAP + bytes(16), b"\x93\xa0\xa0\x00")
            case _:
                crawl.state.counters.sitemaps += 1
        crawl.checkpoint()
    assert not verify(tmp_path / "crawl", Thoroughness.FULL).whole


def test_robots_answers_that_fail_name_nothing(tmp_path: Path) -> None:
    with Crawl(tmp_path / "crawl", {ROBOTS: answer(404), SEED: page(), MAP: urlset(f"{A}/x")}) as crawl:
        crawl.drain()
        assert set(crawl.records()) == {SEED}


def test_an_address_is_found_first_where_hosts_are_grouped_by_it(tmp_path: Path) -> None:
    web = {ROBOTS: listing(f"{B}/map.xml"), SEED: page(), f"{B}/map.xml": urlset(f"{A}/x"), f"{A}/x": page()}
    with Crawl(tmp_path / "crawl", web, group_by="address") as crawl:
        assert crawl.drain() is Ending.FINISHED
        assert set(crawl.records()) == {SEED, f"{A}/x"}
