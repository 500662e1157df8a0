"""Sixty good sites and all hostile servers in one crawl, by the command line: the good ones lose nothing by the others."""

import itertools
import json
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest

from crawlkit.config import USER_AGENT
from crawlkit.errors import ExitStatus
from crawlkit.testing.server import SiteServer
from crawlkit.testing.site import Reply, Site, page, redirect, robots
from tests.hostile_servers import HOSTILE, TLS, Hostile, HostileServers, hostile_servers
from tests.processes import Ended, command, crawlkit, run

pytestmark = pytest.mark.slow

GOOD_HOSTS = [f"good{number}.test" for number in range(60)]
GOOD_PAGES = [f"/page{number}" for number in range(6)]
DELAY_S = 0.1
LATE_S = 0.02  # how much later than it happened our server may note that an answer was sent, or a request came
MOST_S = 60.0
BUDGET = 20
CONTACT = "crawls@crowd.test"
OPTIONS = (
    *("--delay", f"{DELAY_S}s", "--timeout", "2s", "--retries", "1", "--max-retry-after", "500ms", "--workers", "64"),
    *("--max-body", "1MiB", "--max-links", "200", "--template-budget", f"{BUDGET}", "--max-url-length", "200"),
    *("--contact", CONTACT),
)

MOST_MIB = 150.0  # measured: 71 to 76
MEASURING = """
import pathlib, resource, subprocess, sys
status = subprocess.call(sys.argv[1:])
pathlib.Path("peak").write_text(str(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss))
sys.exit(status)
"""


def good_site() -> Site:
    home = page("Home", [*GOOD_PAGES, "/moved", "/closed/x"], text="A good site")
    routes: dict[str, Reply] = {path: page(path, ["/"], text=f"Some text of its own about {path}") for path in GOOD_PAGES}
    routes["/page1"] = replace(routes["/page1"], headers=(*routes["/page1"].headers, ("refresh", "9; url=/refreshed")))
    routes["/refreshed"] = page("/refreshed")
    return Site({"/": home, **routes, "/moved": redirect("/page0"), "/robots.txt": robots("User-agent: *\nDisallow: /closed")})


@dataclass(frozen=True)
class Crowd:
    """What the crawl came to, and what both kinds of servers saw of it."""

    ended: Ended
    took_s: float
    peak_mib: float
    records: dict[str, dict[str, Any]]
    good: SiteServer
    hostile: HostileServers


@pytest.fixture(scope="module")
def crowd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crowd]:
    place = tmp_path_factory.mktemp("crowd")
    roots = b"".join((TLS / f"{name}.pem").read_bytes() for name in ("localhost", "expired"))
    (place / "roots.pem").write_bytes(roots)
    with SiteServer(good_site()) as good, hostile_servers() as hostile:
        seeds = [f"http://{host}/" for host in GOOD_HOSTS] + [kind.seed for kind in HOSTILE]
        (place / "seeds.txt").write_text("\n".join(seeds))
        ports = {"good*.test": good.port, **hostile.ports}
        resolves = [word for glob, port in ports.items() for word in ("--resolve", f"{glob}=127.0.0.1:{port}")]
        began_s = time.monotonic()
        environment = {"SSL_CERT_FILE": str(place / "roots.pem")}
        crawl = command("run", "-i", "seeds.txt", "-d", "x.crawl", *OPTIONS, *resolves)
        ended = run([sys.executable, "-c", MEASURING, *crawl], cwd=place, env=environment, timeout_s=100)
        took_s = time.monotonic() - began_s
        report = crawlkit("report", "x.crawl", "--format", "jsonl", cwd=place)
        records = {record["url"]: record for record in map(json.loads, report.out.splitlines())}
        yield Crowd(ended, took_s, int((place / "peak").read_text()) / 1024, records, good, hostile)


def test_the_crawl_ends_in_time_and_in_little_memory_with_status_1(crowd: Crowd) -> None:
    assert crowd.ended.status == ExitStatus.PAGES_FAILED, crowd.ended.err
    assert crowd.took_s < MOST_S
    assert crowd.peak_mib < MOST_MIB


@pytest.mark.parametrize("kind", HOSTILE, ids=lambda kind: kind.name)
def test_each_hostile_server_ends_as_the_contract_says(crowd: Crowd, kind: Hostile) -> None:
    record = crowd.records[kind.seed]
    expected = (kind.kind, kind.reason, kind.truncated or None)
    assert (record["kind"], record["reason"], record["truncated"] or None) == expected


def test_there_are_at_least_forty_of_them() -> None:
    assert len({kind.name for kind in HOSTILE}) == len(HOSTILE) >= 40


def test_each_good_site_is_fetched_whole_and_once(crowd: Crowd) -> None:
    asked: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for request in crowd.good.log:
        asked[request.host][request.target] += 1
    once = dict.fromkeys(["/robots.txt", "/", "/moved", "/refreshed", *GOOD_PAGES], 1)
    assert asked == dict.fromkeys(GOOD_HOSTS, once)
    for host in GOOD_HOSTS:
        kinds = Counter(record["kind"] for url, record in crowd.records.items() if url.startswith(f"http://{host}/"))
        assert kinds == {"page": 2 + len(GOOD_PAGES), "redirect": 1, "excluded": 1}


def test_no_gap_is_broken_at_any_host_good_or_hostile(crowd: Crowd) -> None:
    spans: defaultdict[str, list[tuple[float, float]]] = defaultdict(list)
    for request in crowd.good.log:
        assert request.ended_s is not None
        spans[request.host].append((request.at_s, request.ended_s))
    for asked in crowd.hostile.asked:
        spans[asked.host].append((asked.at_s, asked.at_s))  # the client may leave before such an answer ends
    for host, times in spans.items():
        gaps = [start - end for (_, end), (start, _) in itertools.pairwise(sorted(times))]
        assert min(gaps, default=DELAY_S) >= DELAY_S - LATE_S, host


def test_a_trap_costs_no_more_than_its_budget(crowd: Crowd) -> None:
    asked = Counter(request.host for request in crowd.hostile.asked)
    assert max(asked.values()) <= BUDGET + 10, asked.most_common(5)


def test_every_request_says_who_asks_and_what_can_be_decoded_and_brings_no_cookie_back(crowd: Crowd) -> None:
    heads = [asked.head.decode("latin-1").split("\r\n")[1:-2] for asked in crowd.hostile.asked if asked.head]
    sent = [dict(line.split(": ", 1) for line in head) for head in heads]
    assert {frozenset(headers) for headers in sent} == {frozenset({"Host", "User-Agent", "From", "Accept", "Accept-Encoding"})}
    assert {headers["From"] for headers in sent} == {CONTACT}
    assert {headers["User-Agent"] for headers in sent} == {f"{USER_AGENT.removesuffix(')')}; {CONTACT})"}
    assert {headers["Accept-Encoding"] for headers in sent} == {"gzip, deflate, br, zstd"}
    assert [asked.target for asked in crowd.hostile.asked if asked.host.startswith("many-cookies")][-1] == "/again"
