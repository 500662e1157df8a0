"""SIGKILL at any moment: nothing is lost, little is asked again, and the report is the undisturbed one's, byte for byte."""

import itertools
import json
import random
import time
import zlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from crawlkit import Kind, report
from crawlkit.errors import ExitStatus, StateError
from crawlkit.state.checkpoint import read_summary
from crawlkit.state.directory import holder, is_begun
from crawlkit.surfaces.cli import run_cli
from crawlkit.testing.aftermath import copy_crawl
from crawlkit.testing.graph import Features, Graph, make_graph
from crawlkit.testing.log import Request
from crawlkit.testing.server import SiteServer
from crawlkit.testing.site import Route, Site, in_turn, page, redirect, robots, status
from tests.processes import command, ended, started, wait_until, wait_while_running

pytestmark = pytest.mark.slow

WORKERS = 16
INTERVAL_S = 0.1
FAST = (
    *("--delay", "0", "--host-concurrency", f"{WORKERS}", "--workers", f"{WORKERS}", "--retries", "0"),
    *("--checkpoint-interval", f"{INTERVAL_S}s"),
)
PAGE_BYTES = 2_000
LEAST_START_S = 0.1  # an interpreter takes longer from its start to its first request


@dataclass(frozen=True, slots=True)
class Killed:
    """A kill: what had been asked for by then, what had settled on disk, what `CHECKPOINT` said had."""

    requested: frozenset[str]
    settled: frozenset[str]
    acknowledged: int

    @property
    def lost(self) -> int:
        """How many URLs had been asked for and had no record yet: in flight, or settled since the last checkpoint."""
        return len(self.requested) - self.acknowledged


@pytest.fixture
def rng(seed: int) -> random.Random:
    return random.Random(seed)


def records(directory: Path) -> bytes:
    """Return the report as JSON lines, by the command line in this process."""
    output = directory.with_suffix(".jsonl")
    assert run_cli(["report", str(directory), "--format", "jsonl", "-o", str(output)]) == 0
    return output.read_bytes()


def undisturbed(server: SiteServer, directory: Path, *options: str) -> bytes:
    assert run_cli(["run", f"{server.url}/", "--dir", str(directory), "-q", *FAST, *options]) in (0, 1)
    return records(directory)


def finish(directory: Path) -> int:
    return run_cli(["resume", str(directory), "-q"])


def pages_of(requests: list[Request], base: str) -> list[str]:
    return [base + request.target for request in requests if request.target != "/robots.txt"]


def settled_urls(directory: Path, scratch: Path) -> frozenset[str]:
    """Return what has a record, read from a copy: the crawl itself is to be opened by the resume, as the kill left it."""
    copy_crawl(directory, scratch)
    return frozenset(record.url for record in report(scratch))


def kill_after(server: SiteServer, arguments: list[str], requests: int, cwd: Path) -> bool:
    """Run crawlkit until it made `requests` more requests, then kill it; False if it ended before."""
    enough = len(server.log) + requests
    with started(command(*arguments), cwd) as process:
        wait_until(lambda: len(server.log) >= enough or process.poll() is not None)
        process.kill()
        return ended(process).status == -9


def look(server: SiteServer, since: int, directory: Path, scratch: Path) -> Killed:
    """Look at a crawl that was just killed. A request that was on its way may still be arriving: it was made before."""
    now_s = time.monotonic()
    settled = settled_urls(directory, scratch)
    acknowledged = read_summary(directory).counters.records
    asked = [request for request in server.log[since:] if request.at_s < now_s + LEAST_START_S]
    return Killed(frozenset(pages_of(asked, server.url)), settled, acknowledged)


def repeated(requests: list[Request], base: str) -> int:
    asked = Counter(pages_of(requests, base))
    return asked.total() - len(asked)


def test_a_crawl_killed_four_times_reports_the_same_and_asks_little_twice(tmp_path: Path, rng: random.Random) -> None:
    graph = make_graph(
        1200, rng.randrange(1000), features=Features(redirects=20, chain=4, canonicals=20, missing=8, nofollow=9)
    )
    crawl = tmp_path / "killed.crawl"
    with SiteServer(graph.site(page_bytes=PAGE_BYTES)) as server:
        expected = undisturbed(server, tmp_path / "whole.crawl")
        began = len(server.log)
        arguments = ["run", f"{server.url}/", "--dir", str(crawl), *FAST]
        kills: list[Killed] = []
        later: list[int] = []
        for _ in range(4):
            assert kill_after(server, arguments, rng.randint(40, 250), tmp_path)
            kills.append(look(server, began, crawl, tmp_path / "copy"))
            later.append(len(server.log))
            arguments = ["resume", str(crawl)]
        assert finish(crawl) == ExitStatus.PAGES_FAILED
        assert records(crawl) == expected
        for kill, after in zip(kills, later, strict=True):
            assert kill.acknowledged <= len(kill.settled)
            assert not kill.settled & set(pages_of(server.log[after:], server.url)), "a settled page was asked for again"
        assert repeated(server.log[began:], server.url) <= sum(kill.lost for kill in kills)
        before = len(server.log)
        assert finish(crawl) == ExitStatus.PAGES_FAILED
        assert len(server.log) == before, "a finished crawl made a request"
        assert records(crawl) == expected


def test_checkpoints_are_made_while_the_crawl_goes_on(tmp_path: Path) -> None:
    crawl = tmp_path / "killed.crawl"
    slow = ("--delay", "0", "--workers", "4", "--host-concurrency", "4", "--checkpoint-interval", "100ms")
    with SiteServer(make_graph(600, 3).site(delay_s=0.05)) as server:
        with started(command("run", f"{server.url}/", "--dir", crawl, *slow), tmp_path) as process:
            wait_while_running(process, lambda: settled_requests(crawl) >= 100)
            process.kill()
            assert ended(process).status == -9
        assert 99 <= len(list(report(crawl))) < 600


def test_a_gap_is_kept_across_a_kill(tmp_path: Path) -> None:
    graph = make_graph(14, 3, links_per_page=4)
    crawl = tmp_path / "killed.crawl"
    gap_s = 0.05
    with SiteServer(graph.site()) as server:
        polite = ("--delay", f"{gap_s}s", "--host-concurrency", "1", "--checkpoint-interval", "20ms")
        assert kill_after(server, ["run", f"{server.url}/", "--dir", str(crawl), *polite], 4, tmp_path)
        for _ in range(2):
            assert kill_after(server, ["resume", str(crawl)], 3, tmp_path)
        assert finish(crawl) == ExitStatus.DONE
        assert len(list(report(crawl))) == 14
        starts = [request.at_s for request in server.log]
    assert min(after - before for before, after in itertools.pairwise(starts)) >= gap_s - 0.001


def test_gaps_hold_across_kills_for_robots_txt_and_retries_too(tmp_path: Path, rng: random.Random) -> None:
    own_s, asked_s = 0.3, 0.6
    slow = robots(f"User-agent: *\nCrawl-delay: {asked_s}")
    hosts: dict[str, dict[str, Route]] = {
        "asks.test": {"/robots.txt": slow},
        "fails.test": {"/robots.txt": in_turn(status(500), robots("")), "/1": in_turn(status(500), page("1"))},
        "complains.test": {"/1": in_turn(status(503), page("1")), "/2": in_turn(status(502), page("2"))},
        "moves.test": {"/": redirect("/1"), "/robots.txt": redirect("/rules"), "/rules": robots("")},
    }
    routes = {f"{host}/{n}": page(f"{n}") for host in hosts for n in range(1, 4)}
    homes = {f"{host}/": page("home", ["/1", "/2", "/3"]) for host in hosts}
    own = {host + path: route for host, paths in hosts.items() for path, route in paths.items()}
    crawl = tmp_path / "killed.crawl"
    with SiteServer(Site({**routes, **homes, **own})) as server:
        options = ("--delay", f"{own_s}s", "--checkpoint-interval", "20ms", "--resolve", f"*.test=127.0.0.1:{server.port}")
        arguments = ["run", *(f"http://{host}/" for host in hosts), "--dir", str(crawl), *options]
        for _ in range(3):
            assert kill_after(server, arguments, rng.randint(2, 7), tmp_path)
            arguments = ["resume", str(crawl)]
        assert finish(crawl) == ExitStatus.DONE
        requests = server.log[:]
    for host in hosts:
        for before, after in itertools.pairwise(request for request in requests if request.host == host):
            # A robots.txt that is asked for is not known: a kill came before the checkpoint that would have held it.
            least_s = asked_s if host == "asks.test" and after.target != "/robots.txt" else own_s
            assert after.at_s - (before.ended_s or before.at_s) >= least_s - 0.01, (before, after)


def test_gaps_per_address_hold_over_all_its_host_names_and_across_kills_and_stops(tmp_path: Path, rng: random.Random) -> None:
    gap_s = 0.06
    hosts = [f"h{number}.test" for number in range(5)]
    homes: dict[str, Route] = {f"{host}/": page("home", ["/1"]) for host in hosts}
    crawl = tmp_path / "killed.crawl"
    with SiteServer(Site({**homes, **{f"{host}/1": page("1") for host in hosts}})) as server:
        options = ("--delay", f"{gap_s}s", "--checkpoint-interval", "20ms", "--resolve", f"*.test=127.0.0.1:{server.port}")
        limits = ("--group-by", "address", "--max-pages", "6")
        arguments = ["run", *(f"http://{host}/" for host in hosts), "--dir", str(crawl), *options, *limits]
        for _ in range(2):
            assert kill_after(server, arguments, rng.randint(1, 3), tmp_path)
            arguments = ["resume", str(crawl)]
        assert finish(crawl) == ExitStatus.DONE, "a limit, which is a clean end"
        with started(command("resume", crawl, "--set", "max_pages=none"), tmp_path) as process:
            assert ended(process).status == ExitStatus.DONE
        requests = server.log[:]
    assert {(request.host, request.target) for request in requests} >= {(host, "/1") for host in hosts}
    spans = [(request.at_s, request.ended_s or request.at_s) for request in requests]
    gaps = [start - end for (_, end), (start, _) in itertools.pairwise(spans)]
    assert min(gaps) >= gap_s - 0.01, gaps


def test_a_host_waits_one_gap_after_a_kill_whatever_was_written(tmp_path: Path) -> None:
    crawl = tmp_path / "killed.crawl"
    gap_s = 2.0
    with SiteServer(make_graph(8, 3).site()) as server:
        # No checkpoint comes in time: on disk the host was never asked.
        late = ("--delay", f"{gap_s}s", "--checkpoint-interval", "1h", "--no-robots")
        assert kill_after(server, ["run", f"{server.url}/", "--dir", str(crawl), *late], 1, tmp_path)
        began_s = time.monotonic()
        assert kill_after(server, ["resume", str(crawl)], 1, tmp_path)
        assert [request.target for request in server.log] == ["/", "/"]
        assert server.log[1].at_s - began_s >= gap_s


def settled_requests(directory: Path) -> int:
    """Return how many requests the last checkpoint knows the outcome of; robots.txt is one of them."""
    try:
        summary = read_summary(directory)
    except StateError:
        return 0
    return summary.counters.requests - summary.in_flight


def test_what_a_host_asked_for_holds_across_a_kill(tmp_path: Path) -> None:
    crawl = tmp_path / "killed.crawl"
    wait_s = 3
    busy = status(429, (("retry-after", str(wait_s)),))
    with SiteServer(Site({"/": in_turn(busy, page("home", ["/a"])), "/a": page("a")})) as server:
        options = ("--dir", str(crawl), "--delay", "0", "--checkpoint-interval", "10ms")
        with started(command("run", f"{server.url}/", *options), tmp_path) as process:
            wait_while_running(process, lambda: settled_requests(crawl) == 2)
            process.kill()
            ended(process)
        assert finish(crawl) == ExitStatus.DONE
        # robots.txt is not asked for again either: its verdict was written.
        assert [request.target for request in server.log] == ["/robots.txt", "/", "/", "/a"]
        assert server.log[2].at_s - server.log[1].at_s >= wait_s - 0.01


def test_attempts_are_counted_across_kills(tmp_path: Path) -> None:
    crawl = tmp_path / "killed.crawl"
    with SiteServer(Site({"/": page("home", ["/bad"]), "/bad": status(500)})) as server:
        options = ("--dir", str(crawl), "--delay", "0", "--checkpoint-interval", "10ms", "--retries", "2")
        arguments = ["run", f"{server.url}/", *options]
        for requests in (3, 4):
            with started(command(*arguments), tmp_path) as process:
                wait_while_running(process, lambda: settled_requests(crawl) == requests)  # noqa: B023  (called before the next turn)
                process.kill()
                ended(process)
            arguments = ["resume", str(crawl)]
        assert finish(crawl) == ExitStatus.PAGES_FAILED
        assert Counter(pages_of(server.log[:], "")) == {"/": 1, "/bad": 3}
        assert [record.attempts for record in report(crawl)] == [1, 3]


def test_a_limit_is_exact_over_kills(tmp_path: Path, rng: random.Random) -> None:
    crawl = tmp_path / "killed.crawl"
    with SiteServer(make_graph(90, 3, features=Features(redirects=20, missing=10)).site()) as server:
        arguments = ["run", f"{server.url}/", "--dir", str(crawl), *FAST, "--max-pages", "37"]
        for _ in range(2):
            kill_after(server, arguments, rng.randint(5, 20), tmp_path)
            arguments = ["resume", str(crawl)]
        assert finish(crawl) in (ExitStatus.DONE, ExitStatus.PAGES_FAILED)
    assert [record.kind for record in report(crawl)].count(Kind.PAGE) == 37


@pytest.fixture(scope="module")
def small() -> Iterator[tuple[Graph, SiteServer]]:
    graph = make_graph(60, 5, features=Features(redirects=4, chain=2, canonicals=3, missing=2))
    with SiteServer(graph.site()) as server:
        yield graph, server


def test_a_kill_while_a_crawl_is_made_leaves_a_crawl_or_nothing(
    tmp_path: Path, small: tuple[Graph, SiteServer], rng: random.Random, capfd: pytest.CaptureFixture[str]
) -> None:
    server = small[1]
    expected = undisturbed(server, tmp_path / "whole.crawl")
    for number in range(4):
        crawl = tmp_path / f"killed{number}.crawl"
        arguments = ["run", f"{server.url}/", "--dir", str(crawl), *FAST]
        with started(command(*arguments), tmp_path) as process:
            wait_while_running(process, crawl.exists)
            until_s = time.monotonic() + rng.uniform(0, 0.05)
            wait_until(lambda: time.monotonic() >= until_s)  # noqa: B023  (called before the next turn)
            process.kill()
            ended(process)
        capfd.readouterr()
        begun = is_begun(crawl)
        status = finish(crawl)
        if not begun:
            assert status == ExitStatus.STATE
            assert f"crawlkit run SEED --dir {crawl}" in capfd.readouterr().err
            status = run_cli([*arguments, "-q"])
        assert status == ExitStatus.PAGES_FAILED
        assert records(crawl) == expected


def test_kills_while_a_crawl_is_being_resumed_lose_nothing(
    tmp_path: Path, small: tuple[Graph, SiteServer], rng: random.Random
) -> None:
    graph, server = small
    expected = undisturbed(server, tmp_path / "whole.crawl")
    crawl = tmp_path / "killed.crawl"
    assert kill_after(server, ["run", f"{server.url}/", "--dir", str(crawl), *FAST], 20, tmp_path)
    for _ in range(3):
        with started(command("resume", crawl), tmp_path) as process:
            wait_until(lambda: holder(crawl) == process.pid or process.poll() is not None)
            until_s = time.monotonic() + rng.uniform(0, 0.04)
            wait_until(lambda: time.monotonic() >= until_s)  # noqa: B023
            process.kill()
            ended(process)
    assert finish(crawl) == ExitStatus.PAGES_FAILED
    assert records(crawl) == expected
    assert len(expected.splitlines()) == len(graph.answers())


def out_of_order(graph: Graph) -> Site:
    """Return a site of which every third page is slow, so that what it links to is often settled on longer ways first."""
    site = graph.site()

    def delay_s(target: str) -> float:
        number = zlib.crc32(target.encode())
        return 0.4 if number % 3 == 0 else 0.0

    return Site({}, lambda host, target: replace(site.reply(host, target), delay_s=delay_s(target)))


@pytest.mark.parametrize("number", range(3))
def test_depths_are_graph_distances_whenever_the_crawl_is_killed(tmp_path: Path, rng: random.Random, number: int) -> None:
    depth = 4 + 2 * number
    features = Features(redirects=40, chain=1 + 5 * number, canonicals=25, missing=6, nofollow=12, unreachable=9)
    graph = make_graph(200, rng.randrange(10_000), links_per_page=2, features=features)
    crawl = tmp_path / "killed.crawl"
    with SiteServer(out_of_order(graph)) as server:
        here = graph.at(server.url)
        answers = here.answers(max_depth=depth)
        arguments = ["run", f"{server.url}/", "--dir", str(crawl), "--max-depth", f"{depth}", *FAST]
        for _ in range(2):
            if not kill_after(server, arguments, rng.randint(1, max(1, len(answers) // 4)), tmp_path):
                break
            arguments = ["resume", str(crawl)]
        failed = any(answer.kind is Kind.FAILURE for answer in answers.values())
        assert finish(crawl) == (ExitStatus.PAGES_FAILED if failed else ExitStatus.DONE)
        lines = [json.loads(line) for line in records(crawl).splitlines()]
    assert {line["url"]: (line["kind"], line["status"], line["depth"]) for line in lines} == {
        url: (answer.kind, answer.status, answer.depth) for url, answer in answers.items()
    }
    assert all(tuple(line["links"]) == here.links(line["url"]) for line in lines if line["kind"] == "page")
    assert [line["url"] for line in lines] == sorted(line["url"] for line in lines)
