"""`scaling`: a crawl in 1, 2, 4, ... partitions, as far as there are cores, over the page mix."""

import os
import statistics
import tempfile
from collections import defaultdict
from pathlib import Path

from benchmarks.figures import Unit, emit, emit_medians
from benchmarks.processes import run_part

SCALING = {
    "pages_per_s": Unit("pages a second of all partitions", "1/s"),
    "cpu_ms": Unit("cpu a page, of all partitions", "ms"),
    "driver_cpu_ms": Unit("cpu a page, of the driver", "ms"),
    "letters_per_page": Unit("letters a page", "1"),
    "peak_mib": Unit("memory of the largest partition, with its code", "MiB"),
}
PARTITIONS = (1, 2, 4, 8)


def bench_scaling(hosts: int, seconds: float, repeat: int) -> None:
    """Print what each number of partitions does, in turn within each repeat, and its ratio to one partition."""
    cores = len(os.sched_getaffinity(0))
    numbers = [number for number in PARTITIONS if number <= max(2, cores)]
    runs: dict[int, list[dict[str, float]]] = defaultdict(list)
    for _ in range(repeat):
        for number in numbers:
            with tempfile.TemporaryDirectory() as directory:
                options = {"hosts": hosts, "partitions": number, "seconds": seconds, "directory": Path(directory) / "crawl"}
                runs[number].append(run_part("scaling_part", options))
    one = statistics.median(run["pages_per_s"] for run in runs[1])
    for number in numbers:
        emit_medians("scaling", SCALING, runs[number], partitions=number, hosts=hosts, seconds=seconds)
        rate = statistics.median(run["pages_per_s"] for run in runs[number])
        emit("scaling", "pages a second, against one partition", rate / one, "1", partitions=number, hosts=hosts)
