"""`checkpoint` and `durability`: the real loop under load, without sockets."""

import statistics
from collections import defaultdict
from collections.abc import Sequence

from benchmarks.crawl_state import Prepared, Shape
from benchmarks.figures import Unit, emit, emit_medians
from benchmarks.processes import run_part

CHECKPOINT = {
    "stall_p99_ms": Unit("stall of the loop, 99th percentile", "ms"),
    "stall_ms": Unit("stall of the loop, longest", "ms"),
    "busy_p99_ms": Unit("stall of the loop by its own CPU, 99th percentile", "ms"),
    "busy_ms": Unit("stall of the loop by its own CPU, longest", "ms"),
    "stall_p50_ms": Unit("stall of the loop, median", "ms"),
    "pages_per_s": Unit("pages a second meanwhile", "1/s"),
}
DURABILITY = {"pages_per_s": Unit("pages a second", "1/s"), "cpu_ms": Unit("cpu a page, all threads", "ms")}
INTERVALS_S: tuple[float | None, ...] = (None, 5.0, 1.0, 0.2)


def bench_checkpoint(prepared: Prepared, sizes: list[tuple[int, int]], seconds: float, repeat: int) -> None:
    """Print how long the loop is away from its timers, for each (URLs, hosts), with a checkpoint a second."""
    for urls, hosts in sizes:
        runs = [_live(prepared, Shape(urls, hosts), seconds, 1.0) for _ in range(repeat)]
        emit_medians("checkpoint", CHECKPOINT, runs, urls=urls, hosts=hosts, seconds=seconds)


def bench_durability(
    prepared: Prepared, size: tuple[int, int], seconds: float, repeat: int, intervals_s: Sequence[float | None] = INTERVALS_S
) -> None:
    """Print what checkpoints cost: each interval, and none (the first), in turn within each repeat."""
    runs: dict[float | None, list[dict[str, float]]] = defaultdict(list)
    for _ in range(repeat):
        for interval_s in intervals_s:
            runs[interval_s].append(_live(prepared, Shape(*size), seconds, interval_s))
    free = statistics.median(run["pages_per_s"] for run in runs[None])
    free_cpu = statistics.median(run["cpu_ms"] for run in runs[None])
    for interval_s in intervals_s:
        context = {"interval": "none" if interval_s is None else f"{interval_s:g}s", "urls": size[0], "hosts": size[1]}
        emit_medians("durability", DURABILITY, runs[interval_s], **context)
        tax = 1 - statistics.median(run["pages_per_s"] for run in runs[interval_s]) / free
        emit("durability", "tax in pages a second", tax * 100, "%", **context)
        cpu_tax = statistics.median(run["cpu_ms"] for run in runs[interval_s]) / free_cpu - 1
        emit("durability", "tax in CPU", cpu_tax * 100, "%", **context)


def _live(prepared: Prepared, shape: Shape, seconds: float, interval_s: float | None) -> dict[str, float]:
    interval = {"checkpoints": "no"} if interval_s is None else {"interval": interval_s}
    with prepared.copy(shape) as directory:
        options = {"urls": shape.urls, "hosts": shape.hosts, "seconds": seconds, "directory": directory, **interval}
        return run_part("live_part", options)
