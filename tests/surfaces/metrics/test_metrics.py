"""`--metrics`: a crawl that runs is asked for them, and what each of them says."""

import json
import re
import signal
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from crawlkit.config import Config
from crawlkit.engine.figures import HostState
from crawlkit.engine.runner import run_async
from crawlkit.engine.session import Hooks, Outcome, Running, Surroundings, begin, go_on
from crawlkit.engine.watcher import JobName
from crawlkit.model import Fetched, FetchFailure, Found, Job, Kind, PageJob, Reason, Record, Refusal, RobotsJob
from crawlkit.net.http_server import listen_at
from crawlkit.surfaces.metrics.collector import CrawlCollector
from crawlkit.surfaces.metrics.exporter import PROBE_EVERY_S, Exporter
from crawlkit.surfaces.metrics.hosts import HostCounts
from crawlkit.surfaces.metrics.tally import Histogram, Tally
from crawlkit.testing.fakeweb import FakeWeb
from crawlkit.testing.server import SiteServer
from crawlkit.testing.site import Fault, Reply, Site, page, redirect, robots
from tests.processes import PATIENCE_S, command, ended, started, wait_while_running
from tests.surfaces.conftest import Cli
from tests.surfaces.control.crawls import SITE as SLOW_SITE
from tests.surfaces.control.crawls import running

ROOT = Path(__file__).resolve().parent.parent.parent.parent
README = (ROOT / "README.md").read_text()
DASHBOARD = json.loads((ROOT / "config" / "grafana.json").read_text())

Samples = dict[str, float]

SITE = Site(
    {
        "/": page("Home", ["/a", "/gone", "/moved", "/no", "/broken", "http://b.test/", "http://b.test/2", "/d1"]),
        "/a": page("A"),
        "/moved": redirect("/a"),
        "/broken": Reply(fault=Fault.RESET),
        "/d1": page("One", ["/d2"]),
        "/d2": page("Two"),
        "/robots.txt": robots("User-agent: *\nDisallow: /no"),
    }
)


def samples_of(text: str) -> Samples:
    """Return every sample by name and labels, as Prometheus writes them."""
    return {
        sample.name + "".join(f"{{{name}={value}}}" for name, value in sample.labels.items()): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def get(url: str) -> str:
    with urllib.request.urlopen(url, timeout=PATIENCE_S) as answer:
        assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
        text: str = answer.read().decode()
    return text


def url_said_by(process: Any) -> str:
    """Return where the metrics are, which is the first line that a crawl says."""
    assert process.stderr is not None
    found = re.fullmatch(r"crawlkit: metrics at (http://127\.0\.0\.1:\d+/metrics)\n", process.stderr.readline().decode())
    assert found is not None
    return found[1]


# A crawl as a process ----------------------------------------------------------------------------------------------------


def test_a_running_crawl_is_asked_for_its_metrics(tmp_path: Path) -> None:
    with SiteServer(SLOW_SITE) as server, running(tmp_path, server, "--metrics", ":0", "--no-progress") as process:
        url = url_said_by(process)
        wait_while_running(process, lambda: samples_of(get(url))["crawlkit_hosts{state=gap}"] == 1)
        found = samples_of(get(url))
        expected = {
            "crawlkit_requests_total": 1,
            "crawlkit_answers_total{class=2xx}": 1,
            "crawlkit_records_total{kind=page}": 1,
            "crawlkit_crawl_records{kind=page}": 1,
            "crawlkit_urls_queued": 3,
            "crawlkit_urls_seen": 4,
            "crawlkit_fetches_in_flight": 0,
            "crawlkit_hosts_known": 1,
            "crawlkit_fetch_seconds_count{job=page}": 1,
            "crawlkit_paused": 0,
        }
        assert {name: found[name] for name in expected} == expected
        assert found["crawlkit_body_bytes_total"] > 0
        assert found["crawlkit_checkpoints_total"] >= 1
        assert found["crawlkit_checkpoint_timestamp_seconds"] > 1.7e9
        assert found["crawlkit_disk_free_bytes"] > 0
        assert found["crawlkit_loop_stall_seconds_count"] > 0
        assert found["crawlkit_process_resident_memory_bytes"] > 2**20
        assert not [name for name in found if "a.test" in name]
        with pytest.raises(urllib.error.HTTPError, match="404"):
            get(url.removesuffix("metrics"))
        with urllib.request.urlopen(urllib.request.Request(url, method="HEAD")) as head:
            assert (head.status, head.headers["Cache-Control"], head.read()) == (200, "no-store", b"")
        with pytest.raises(urllib.error.HTTPError, match="405") as refused:
            urllib.request.urlopen(urllib.request.Request(url, method="POST"))
        assert refused.value.headers["Allow"] == "GET, HEAD"
        refused.value.close()
        process.send_signal(signal.SIGINT)
        assert ended(process).status == 130


def test_a_resumed_crawl_counts_from_zero_and_tells_of_all_runs(tmp_path: Path) -> None:
    with SiteServer(SLOW_SITE) as server, running(tmp_path, server) as process:
        process.send_signal(signal.SIGINT)
        ended(process)
        arguments = command("resume", "x.crawl", "--metrics", "127.0.0.1:0", "--no-progress")
        with started(arguments, tmp_path) as resumed:
            found = samples_of(get(url_said_by(resumed)))
            assert (found["crawlkit_requests_total"], found["crawlkit_records_total{kind=page}"]) == (0, 0)
            assert (found["crawlkit_crawl_records{kind=page}"], found["crawlkit_urls_queued"]) == (1, 3)


def test_where_they_are_is_said_as_the_log_says_things_and_not_when_quiet(cli: Cli) -> None:
    with SiteServer(Site({"/": page("A")})) as server:
        run = ["run", f"{server.url}/", "--delay", "0", "--metrics", "0"]
        said = [json.loads(line) for line in cli(*run, "-d", "x", "--log-format", "json").err.splitlines()]
        assert [(line["what"], line["url"][:17]) for line in said if line["event"] == "serving"] == [
            ("metrics", "http://127.0.0.1:")
        ]
        assert cli(*run, "-d", "y", "-q").err == ""


# What is asked for wrongly -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("arguments", [["run", "http://nobody.test/", "-d", "x.crawl"], ["resume", "x.crawl"]])
def test_a_port_that_is_taken_is_status_2_before_anything_is_begun(cli: Cli, tmp_path: Path, arguments: list[str]) -> None:
    with listen_at("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        result = cli(*arguments, "--metrics", f"127.0.0.1:{port}")
    assert (result.status, result.out) == (2, "")
    assert result.err == f"crawlkit: --metrics 127.0.0.1:{port}: cannot listen there: Address already in use\n"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "address", ["", "here", "127.0.0.1", "127.0.0.1:", "127.0.0.1:65536", "::1:9464", "[::1]", "a b:1", "-1"]
)
def test_an_address_that_is_none_is_status_2(cli: Cli, tmp_path: Path, address: str) -> None:
    result = cli("run", "http://nobody.test/", f"--metrics={address}")
    assert (result.status, result.out, result.err.count("\n")) == (2, "", 1)
    assert "--metrics 127.0.0.1:9464, or a port alone" in result.err
    assert list(tmp_path.iterdir()) == []


def test_without_prometheus_client_it_is_status_2_and_names_the_extra(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "prometheus_client", None)  # how Python marks what cannot be imported
    result = cli("run", "http://nobody.test/", "--metrics", "0")
    assert result.status == 2
    assert result.err == (
        "crawlkit: --metrics needs prometheus-client, which is not installed: pip install 'crawlkit[metrics]'\n"
    )
    assert list(tmp_path.iterdir()) == []


# What they say -----------------------------------------------------------------------------------------------------------


class Watched:
    """Crawls in this process, of which all metrics are taken when a run has ended."""

    def __init__(self, directory: Path, web: FakeWeb) -> None:
        self._directory = directory
        self._web = web
        self.samples: Samples = {}

    def hooks(self, on_page: Callable[[Record], object] | None = None) -> Hooks:
        tally = Tally()

        @asynccontextmanager
        async def beside(running: Running) -> AsyncIterator[None]:
            registry = CollectorRegistry()
            registry.register(CrawlCollector(running, tally, HostCounts()))
            yield
            self.samples = samples_of(generate_latest(registry).decode())

        return Hooks(on_page=on_page, beside=beside, watchers=(tally,))

    def begin(self, **settings: Any) -> Outcome:
        config = Config(**{"delay": 0, "retries": 0, **settings})
        surroundings = Surroundings(transport=self._web)
        return run_async(begin(["http://a.test/"], self._directory, config, self.hooks(), surroundings))

    def resume(self, **changes: Any) -> Outcome:
        return run_async(go_on(self._directory, changes, self.hooks(), Surroundings(transport=self._web)))

    def some(self, prefix: str) -> Samples:
        """Return the samples of a metric that are not 0, by their label."""
        return {
            name.removeprefix(prefix): value
            for name, value in self.samples.items()
            if name.startswith(f"{prefix}{{") and "}{" not in name and value
        }


def test_each_metric_counts_what_it_says(tmp_path: Path) -> None:
    crawl = Watched(tmp_path / "x", FakeWeb(SITE))
    outcome = crawl.begin(max_depth=1)

    assert crawl.samples["crawlkit_requests_total"] == outcome.counters.requests == 7
    assert crawl.some("crawlkit_answers_total") == {"{class=2xx}": 4, "{class=3xx}": 1, "{class=4xx}": 1}
    assert crawl.some("crawlkit_unanswered_total") == {"{reason=net.reset}": 1}
    assert crawl.some("crawlkit_records_total") == {
        "{kind=page}": 3,
        "{kind=redirect}": 1,
        "{kind=failure}": 2,
        "{kind=excluded}": 1,
    }
    assert crawl.some("crawlkit_crawl_records") == crawl.some("crawlkit_records_total")
    assert crawl.some("crawlkit_failures_total") == {"{reason=net.reset}": 1, "{reason=http.client_error}": 1}
    assert crawl.some("crawlkit_exclusions_total") == {"{reason=robots.disallow}": 1}
    assert crawl.some("crawlkit_refusals_total") == {"{code=scope.outside}": 2, "{code=depth.limit}": 1}
    assert crawl.some("crawlkit_fetch_seconds_count") == {"{job=page}": 6, "{job=robots}": 1}
    assert crawl.samples["crawlkit_body_bytes_total"] > outcome.counters.body_bytes > 0  # robots.txt has no record
    assert crawl.samples["crawlkit_checkpoint_seconds_count"] == crawl.samples["crawlkit_checkpoints_total"] >= 1
    assert crawl.samples["crawlkit_archive_bytes"] == 0


def test_a_run_is_counted_from_zero(tmp_path: Path) -> None:
    crawl = Watched(tmp_path / "x", FakeWeb(SITE))
    crawl.begin(max_depth=1)
    crawl.resume(max_depth=2)

    assert crawl.samples["crawlkit_requests_total"] == 1
    assert crawl.some("crawlkit_records_total") == {"{kind=page}": 1}
    assert crawl.some("crawlkit_crawl_records") == {
        "{kind=page}": 4,
        "{kind=redirect}": 1,
        "{kind=failure}": 2,
        "{kind=excluded}": 1,
    }
    assert crawl.some("crawlkit_refusals_total") == {}


def test_what_is_tried_again_is_counted() -> None:
    tally = Tally()
    jobs: list[Job] = [PageJob("http://a.test/", "a.test", attempts=attempts) for attempts in (0, 1, 2)]
    jobs += [RobotsJob("http://a.test", "http://a.test/robots.txt", "a.test", attempts=attempts) for attempts in (0, 1)]
    for job in jobs:
        tally.fetched(Fetched(job, 1.0, 1.5, FetchFailure(Reason.TIMEOUT, "")))
    tally.fetched(Fetched(jobs[-1], 1.0, 1.5, Found("192.0.2.1")))  # nothing was asked
    assert tally.retries == 3
    assert tally.unanswered == {Reason.TIMEOUT: 5}
    assert [histogram.count for histogram in tally.fetches.values()] == [3, 2, 0]
    assert tally.fetches[JobName.PAGE].sum_s == 1.5


def test_the_archive_is_counted_in_bytes(tmp_path: Path) -> None:
    crawl = Watched(tmp_path / "x", FakeWeb(SITE))
    crawl.begin(warc=True)
    on_disk = sum(path.stat().st_size for path in (tmp_path / "x" / "warc").iterdir())
    assert crawl.samples["crawlkit_archive_bytes"] == on_disk > 0


def test_a_loop_that_is_held_is_seen(tmp_path: Path) -> None:
    with listen_at("127.0.0.1", 0) as listening:
        exporter = Exporter(listening)
        hold_s = 3 * PROBE_EVERY_S
        hooks = Hooks(on_page=lambda _: threading.Event().wait(hold_s), beside=exporter.beside, watchers=(exporter.tally,))
        run_async(
            begin(
                ["http://a.test/"],
                tmp_path / "x",
                Config(delay=0, robots=False),
                hooks,
                Surroundings(transport=FakeWeb(Site({"/": page("A", ["/2"]), "/2": page("B")}))),
            )
        )
    assert exporter.tally.stalls.sum_s > hold_s - PROBE_EVERY_S


def test_a_histogram_counts_up_to_each_bound() -> None:
    histogram = Histogram((0.1, 1.0))
    for seconds in (0.05, 0.1, 0.11, 1.0, 2.0):
        histogram.observe(seconds)
    assert list(histogram.buckets()) == [("0.1", 2), ("1.0", 4), ("+Inf", 5)]
    assert (histogram.count, round(histogram.sum_s, 2)) == (5, 3.26)


# Their names -------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> Samples:
    crawl = Watched(tmp_path_factory.mktemp("metrics") / "x", FakeWeb(Site({"/": page("A")})))
    crawl.begin()
    return crawl.samples


def names_in(samples: Samples) -> set[str]:
    return {name.partition("{")[0] for name in samples}


def test_labels_are_closed_sets_whose_values_are_all_there(samples: Samples) -> None:
    def values(metric: str) -> set[str]:
        return {name.partition("=")[2].rstrip("}") for name in samples if name.startswith(f"{metric}{{")}

    assert values("crawlkit_records_total") == set(Kind) == values("crawlkit_crawl_records")
    assert values("crawlkit_failures_total") | values("crawlkit_exclusions_total") == set(Reason)
    assert values("crawlkit_refusals_total") == set(Refusal)
    assert values("crawlkit_hosts") == set(HostState)
    assert len(samples) < 250


def test_the_readme_names_every_metric(samples: Samples) -> None:
    families = {re.sub(r"_(bucket|count|sum)$", "", name) for name in names_in(samples)}
    assert [name for name in sorted(families) if not re.search(rf"`{name}(\{{\w+\}})?`", README)] == []


def test_the_readme_names_no_metric_that_is_not_there(samples: Samples) -> None:
    families = {re.sub(r"_(bucket|count|sum)$", "", name) for name in names_in(samples)}
    assert set(re.findall(r"`(crawlkit_\w+?)(?:\{\w+\})?`", README)) - families == set()


def queries() -> Iterator[str]:
    for panel in DASHBOARD["panels"]:
        yield from (target["expr"] for target in panel["targets"])
    yield from (variable["query"]["query"] for variable in DASHBOARD["templating"]["list"] if variable["type"] == "query")


def test_every_metric_and_label_that_the_dashboard_asks_for_exists(samples: Samples) -> None:
    process = {"crawlkit_process_resident_memory_bytes", "crawlkit_process_cpu_seconds_total"}  # of prometheus_client itself
    known = names_in(samples) | process
    labels = {label for name in samples for label in re.findall(r"\{(\w+)=", name)} | {"instance"}
    for query in queries():
        assert query.count("(") == query.count(")")
        assert query.count("{") == query.count("}")
        used = re.findall(r"crawlkit_\w+", query)
        assert used
        assert set(used) <= known, query
        by = {label for names in re.findall(r"by \(([^)]*)\)", query) for label in names.split(", ")}
        assert by | set(re.findall(r'(\w+)=~?"', query)) <= labels, query


def test_every_closed_value_that_the_dashboard_asks_for_exists(samples: Samples) -> None:
    asked = {found for query in queries() for found in re.findall(r'(\w+)="(\w+)"', query)}
    assert asked
    assert {value for value in asked if not any(f"{{{value[0]}={value[1]}}}" in name for name in samples)} == set()


def test_the_panels_of_the_dashboard_are_apart(samples: Samples) -> None:
    ids = [panel["id"] for panel in DASHBOARD["panels"]]
    assert len(ids) == len(set(ids)) == len({panel["title"] for panel in DASHBOARD["panels"]})
    cells: list[tuple[int, int]] = []
    for place in (panel["gridPos"] for panel in DASHBOARD["panels"]):
        assert place["x"] + place["w"] <= 24
        cells += [(place["x"] + x, place["y"] + y) for x in range(place["w"]) for y in range(place["h"])]
    assert len(cells) == len(set(cells))
