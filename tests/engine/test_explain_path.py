"""Ways from a seed: every step is a link of the page before, and where none shorter is told there is none."""

import random
from pathlib import Path

import msgspec
import pytest

from crawlkit.engine.explain.answer import Explanation
from crawlkit.engine.explain.path import leads_to
from crawlkit.model import Job, Record
from crawlkit.testing.graph import Features, Graph, make_graph
from tests.engine.driver import GONE, SEED, A, Answer, Driver, moved, page
from tests.engine.explained import explain


def steps(said: Explanation) -> list[tuple[str, str]]:
    assert said.path is not None
    return [(step.how, step.url.removeprefix(A)) for step in said.path.steps]


WEB: dict[str, Answer] = {
    SEED: page(f"{A}/long", f"{A}/late"),
    f"{A}/long": page(f"{A}/long/2"),
    f"{A}/long/2": page(f"{A}/end"),
    f"{A}/late": page(f"{A}/end"),
    f"{A}/end": page(f"{A}/beyond"),
    f"{A}/beyond": page(),
}


def met_on_the_long_way(directory: Path, web: dict[str, Answer]) -> Driver:
    """A crawl in which `/late` answers last."""
    driver = Driver(directory, web, robots=False, delay=0, host_concurrency=2)
    driver.settle(driver.next_job())
    jobs = {job.url: job for job in (driver.next_job(), driver.next_job())}
    driver.settle(jobs[f"{A}/long"])
    driver.settle(driver.next_job())
    driver.settle(driver.next_job())
    late = explain(driver, f"{A}/end")
    assert steps(late) == [("seed", "/"), ("link", "/long"), ("link", "/long/2"), ("link", "/end")]
    driver.settle(jobs[f"{A}/late"])
    driver.drain()
    return driver


def test_a_shorter_way_that_was_found_late_is_told(tmp_path: Path) -> None:
    with met_on_the_long_way(tmp_path / "crawl", WEB) as driver:
        said = explain(driver, f"{A}/beyond")
        assert steps(said) == [("seed", "/"), ("link", "/late"), ("link", "/end"), ("link", "/beyond")]
        assert said.path is not None
        assert (said.path.shortest, said.path.complete) == (True, True)
        assert said.depth == 3


@pytest.mark.parametrize("most", [0, 2])
def test_who_may_not_search_is_told_how_it_was_first_met_and_that_a_shorter_way_may_be(tmp_path: Path, most: int) -> None:
    with met_on_the_long_way(tmp_path / "crawl", WEB) as driver:
        said = explain(driver, f"{A}/end", most)
        assert steps(said) == [("seed", "/"), ("link", "/long"), ("link", "/long/2"), ("link", "/end")]
        assert said.path is not None
        assert (said.path.shortest, said.path.complete) == (False, True)


def test_a_way_past_redirects_in_a_circle_ends(tmp_path: Path) -> None:
    web: dict[str, Answer] = {
        SEED: page(f"{A}/a"),
        f"{A}/a": moved(f"{A}/b"),
        f"{A}/b": moved(f"{A}/c"),
        f"{A}/c": moved(f"{A}/a"),
    }
    with Driver(tmp_path / "crawl", web, robots=False, delay=0) as driver:
        driver.drain()
        said = explain(driver, f"{A}/c")
        assert steps(said) == [("seed", "/"), ("link", "/a"), ("redirect", "/b"), ("redirect", "/c")]
        assert said.depth == 1


def test_a_circle_of_redirects_on_the_way_back_leads_to_the_way_it_was_first_met(tmp_path: Path) -> None:
    """The late answer redirects to the end of the long way, and so does, by its address first, what that redirects to."""
    web: dict[str, Answer] = {
        SEED: page(f"{A}/long", f"{A}/late"),
        f"{A}/long": page(f"{A}/long/2"),
        f"{A}/long/2": page(f"{A}/end"),
        f"{A}/late": moved(f"{A}/end"),
        f"{A}/end": moved(f"{A}/back"),
        f"{A}/back": moved(f"{A}/end"),
    }
    with met_on_the_long_way(tmp_path / "crawl", web) as driver:
        said = explain(driver, f"{A}/end")
        assert said.depth == 1
        assert steps(said) == [("seed", "/"), ("link", "/long"), ("link", "/long/2"), ("link", "/end")]
        assert said.path is not None
        assert (said.path.shortest, said.path.complete) == (False, True)


@pytest.mark.parametrize(("most", "shortest"), [(9, False), (14, True)])
def test_one_bound_holds_for_all_searches_of_a_way(tmp_path: Path, most: int, shortest: bool) -> None:
    """Two shorter ways were found late, and the page that has the later one is the last of nine records by its address."""
    web: dict[str, Answer] = {
        SEED: page(f"{A}/long", f"{A}/late"),
        f"{A}/long": page(f"{A}/long/2"),
        f"{A}/long/2": page(f"{A}/end"),
        f"{A}/late": page(f"{A}/end"),
        f"{A}/end": page(f"{A}/m", f"{A}/z"),
        f"{A}/m": page(f"{A}/m/2"),
        f"{A}/m/2": page(f"{A}/q"),
        f"{A}/z": page(f"{A}/q"),
    }
    with met_on_the_long_way(tmp_path / "crawl", web) as driver:
        record = driver.state.pages.get(f"{A}/q")
        assert record is not None
        driver.state.pages.put(msgspec.structs.replace(record, via=f"{A}/m/2"))  # as if /z had answered last
        driver.checkpoint()
        path = explain(driver, f"{A}/q", most).path
        assert path is not None
        assert path.shortest is shortest


@pytest.mark.parametrize(
    ("link", "how"),
    [(page(f"{A}/deep"), "link"), (page(f"{A}/deep", nofollow=(0,)), "nofollow"), (moved(f"{A}/deep"), "redirect")],
)
def test_a_url_that_was_not_admitted_has_the_way_that_would_lead_to_it(tmp_path: Path, link: Answer, how: str) -> None:
    web: dict[str, Answer] = {SEED: page(f"{A}/m"), f"{A}/m": page(f"{A}/n"), f"{A}/n": link}
    with Driver(tmp_path / "crawl", web, robots=False, exclude=("deep",)) as driver:
        driver.drain()
        said = explain(driver, f"{A}/deep")
        assert steps(said) == [("seed", "/"), ("link", "/m"), ("link", "/n"), (how, "/deep")]
        assert said.path is not None
        assert (said.path.shortest, said.path.complete) == (True, True)
        assert explain(driver, f"{A}/other").path is None


def test_a_seed_is_its_own_way(tmp_path: Path) -> None:
    with Driver(tmp_path / "crawl", {SEED: page(f"{A}/b"), f"{A}/b": page(SEED)}) as driver:
        driver.drain()
        assert steps(explain(driver, SEED)) == [("seed", "/")]


def answers(graph: Graph) -> dict[str, Answer]:
    web: dict[str, Answer] = {}
    for url, node in graph.nodes.items():
        if node.location is not None:
            web[url] = moved(node.location)
        elif node.status == 200:
            links = graph.links(url)
            kept_out = tuple(index for index, link in enumerate(links) if link not in node.links)
            web[url] = page(*links, nofollow=kept_out, canonical=node.canonical)
        else:
            web[url] = GONE
    return web


@pytest.mark.parametrize("seed", range(6))
def test_in_random_webs_answered_in_random_order_every_way_is_a_shortest_one(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    features = Features(redirects=8, chain=3, canonicals=4, missing=3, nofollow=4)
    graph = make_graph(60, seed, links_per_page=2, features=features)
    with Driver(tmp_path / "crawl", answers(graph), seeds=graph.seeds, robots=False, delay=0, host_concurrency=6) as driver:
        flying: list[Job] = []
        for _ in range(2_000):
            while len(flying) < 6 and (job := driver.claim()) is not None:
                flying.append(job)
            if flying:
                driver.settle(flying.pop(rng.randrange(len(flying))))
            elif driver.coordinator.owes_work:
                driver.coordinator.work()
            else:
                break
        driver.drain()
        records = driver.records()
        assert len(records) > 40
        for url in records:
            assert_shortest(explain(driver, url), records, driver)


def assert_shortest(said: Explanation, records: dict[str, Record], driver: Driver) -> None:
    path = said.path
    assert path is not None
    assert (path.shortest, path.complete, path.steps[0].how, path.steps[-1].url) == (True, True, "seed", said.url)
    for before, after in zip(path.steps, path.steps[1:], strict=False):
        stored = driver.state.pages.get(before.url)
        assert stored is not None
        assert after.how in leads_to(stored, after.url)
    links = [step for step in path.steps if step.how in ("link", "canonical")]
    assert len(links) == said.depth == records[path.steps[-1].url].depth
