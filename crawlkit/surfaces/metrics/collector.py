"""The metrics by name: what `prometheus_client` asks for when somebody asks us."""

import math
from collections.abc import Iterator, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import TypeVar

from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from crawlkit.engine.figures import HostState
from crawlkit.engine.session import Running
from crawlkit.engine.watcher import JobName
from crawlkit.model import Kind, Reason, Refusal
from crawlkit.state.space import free_bytes
from crawlkit.surfaces.metrics.hosts import HostCounts
from crawlkit.surfaces.metrics.tally import CLASSES, Histogram, Tally

Label = TypeVar("Label", bound=str)


class CrawlCollector(Collector):
    """Tells of one run: what was counted since it began, and how the crawl stands. Only on the loop, between two turns.

    Counters are the run's, not the crawl's: over a kill the crawl's own go back to the last checkpoint, which
    Prometheus would take for a restart from zero. What the crawl holds over all runs are gauges.
    """

    def __init__(self, running: Running, tally: Tally, hosts: HostCounts) -> None:
        self._coordinator = running.coordinator
        self._tally = tally
        self._hosts = hosts
        counters = running.coordinator.state.counters
        self._requests_before = counters.requests
        self._refused_before = dict(counters.refused)

    def collect(self) -> Iterator[Metric]:
        """Yield every metric, each label with all of its values: a series that is not there yet cannot be alerted on."""
        yield from self._counters()
        yield from self._gauges()
        yield from self._histograms()

    def _counters(self) -> Iterator[Metric]:
        tally, counters = self._tally, self._coordinator.state.counters
        refused = {code: counters.refused.get(code, 0) - self._refused_before.get(code, 0) for code in Refusal}
        yield _counter("requests", "Requests that started.", counters.requests - self._requests_before)
        yield _counter("retries", "Requests that ended and were not the first for their URL.", tally.retries)
        yield _counter("body_bytes", "Decoded bytes of all bodies received.", tally.body_bytes)
        yield _counter("checkpoints", "Checkpoints written.", tally.checkpoints.count)
        yield _counters("answers", "Answers by class of status.", "class", dict.fromkeys(CLASSES, 0) | tally.answers)
        unanswered = dict.fromkeys((reason for reason in Reason if reason.startswith("net.")), 0) | tally.unanswered
        yield _counters("unanswered", "Requests that got no answer.", "reason", unanswered)
        yield _counters("records", "URLs that settled.", "kind", dict.fromkeys(Kind, 0) | tally.records)
        failed = dict.fromkeys((reason for reason in Reason if not reason.startswith("robots.")), 0) | tally.failures
        yield _counters("failures", "URLs that ended as failure.", "reason", failed)
        excluded = dict.fromkeys((reason for reason in Reason if reason.startswith("robots.")), 0) | tally.exclusions
        yield _counters("exclusions", "URLs that robots.txt excluded.", "reason", excluded)
        yield _counters("refusals", "Links that were not admitted.", "code", refused)

    def _gauges(self) -> Iterator[Metric]:
        coordinator = self._coordinator
        state, counters, in_flight = coordinator.state, coordinator.state.counters, coordinator.in_flight
        yield _gauge("urls_queued", "URLs that wait, without those in flight.", counters.queued - in_flight)
        yield _gauge("urls_seen", "URLs that were ever admitted.", counters.seen)
        yield _gauge("fetches_in_flight", "Requests under way.", in_flight)
        yield _gauge("paused", "1 while the crawl is paused.", int(coordinator.paused))
        yield _gauge("hosts_known", "Hosts of admitted URLs.", counters.hosts)
        hosts = dict.fromkeys(HostState, 0) | self._hosts.states
        yield _gauges("hosts", "Hosts by why they wait, as last counted.", "state", hosts)
        yield _gauge("hosts_counted_timestamp_seconds", "When hosts were last counted.", self._hosts.counted_at_s)
        all_runs = {Kind.PAGE: counters.pages, Kind.REDIRECT: counters.redirects, Kind.FAILURE: counters.failures}
        all_runs[Kind.EXCLUDED] = counters.excluded
        yield _gauges("crawl_records", "URLs settled, over all runs.", "kind", all_runs)
        yield _gauge("archive_bytes", "Bytes of the archive on disk.", sum(state.extents.sizes.values()))
        yield _gauge("disk_free_bytes", "Bytes free where the crawl lies.", _free_bytes(state.directory))
        yield _gauge("checkpoint_timestamp_seconds", "When the last checkpoint was on disk.", self._tally.checkpoint_at_s)
        yield _gauges("build_info", "The version that runs.", "version", {version("crawlkit"): 1})

    def _histograms(self) -> Iterator[Metric]:
        fetches = HistogramMetricFamily(
            "crawlkit_fetch_seconds", "Connect to last byte, by what was asked for.", labels=["job"]
        )
        for job in JobName:
            _add(fetches, [job], self._tally.fetches[job])
        yield fetches
        checkpoints = HistogramMetricFamily("crawlkit_checkpoint_seconds", "Writing a checkpoint, beside the loop.", labels=[])
        _add(checkpoints, [], self._tally.checkpoints)
        yield checkpoints
        stalls = HistogramMetricFamily("crawlkit_loop_stall_seconds", "How late timers of the loop came.", labels=[])
        _add(stalls, [], self._tally.stalls)
        yield stalls


def _free_bytes(directory: Path) -> float:
    try:
        return free_bytes(directory)
    except OSError:
        return math.nan


def _counter(name: str, text: str, value: float) -> Metric:
    return CounterMetricFamily(f"crawlkit_{name}", text, value=value)


def _counters(name: str, text: str, label: str, values: Mapping[Label, float]) -> Metric:
    family = CounterMetricFamily(f"crawlkit_{name}", text, labels=[label])
    for value, count in values.items():
        family.add_metric([value], count)
    return family


def _gauge(name: str, text: str, value: float) -> Metric:
    return GaugeMetricFamily(f"crawlkit_{name}", text, value=value)


def _gauges(name: str, text: str, label: str, values: Mapping[Label, float]) -> Metric:
    family = GaugeMetricFamily(f"crawlkit_{name}", text, labels=[label])
    for value, amount in values.items():
        family.add_metric([value], amount)
    return family


def _add(family: HistogramMetricFamily, labels: list[str], histogram: Histogram) -> None:
    family.add_metric(labels, list(histogram.buckets()), histogram.sum_s)
