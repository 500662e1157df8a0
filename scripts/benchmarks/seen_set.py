"""`seen`: the seen-set alone, by layers."""

import tempfile
from pathlib import Path

from benchmarks.figures import Unit, emit_medians
from benchmarks.processes import run_part

UNITS = {
    "recent_per_s": Unit("checks a second: recently seen", "1/s"),
    "unseen_per_s": Unit("checks a second: unseen, by the filter", "1/s"),
    "one_host_per_s": Unit("checks a second: seen long ago, one host at a time, LevelDB", "1/s"),
    "spread_per_s": Unit("checks a second: seen long ago, over all hosts, LevelDB", "1/s"),
    "adds_per_s": Unit("adds a second, written and synced", "1/s"),
    "wrong_maybe": Unit("filter's wrong maybes", "1"),
    "disk_bytes": Unit("bytes on disk a URL, LevelDB", "B"),
    "bloom_bytes": Unit("bytes on disk a URL, filter", "B"),
    "written_bytes": Unit("bytes written a URL", "B"),
}


def bench_seen(sizes: list[tuple[int, int]], checks: int, repeat: int) -> None:
    """Print the figures for each (URLs, hosts)."""
    for urls, hosts in sizes:
        runs = []
        for _ in range(repeat):
            with tempfile.TemporaryDirectory(prefix="bench-seen-") as folder:
                options = {"urls": urls, "hosts": hosts, "checks": checks, "directory": Path(folder) / "seen"}
                runs.append(run_part("seen_part", options))
        emit_medians("seen", UNITS, runs, urls=urls, hosts=hosts)
