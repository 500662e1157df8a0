"""`frontier` and `memory`: the coordinator on prepared crawls of several sizes, and what it holds in memory."""

from collections.abc import Iterable

from benchmarks.crawl_state import Prepared, Shape
from benchmarks.figures import Unit, emit_medians
from benchmarks.processes import run_part

FRONTIER = {
    "pages_per_s": Unit("pages a second of one core: claim, settle, freeze", "1/s"),
    "checks_per_s": Unit("URLs checked a second, records included", "1/s"),
    "claims_per_s": Unit("claims a second", "1/s"),
    "claim_us": Unit("claim, CPU a page", "us"),
    "work_us": Unit("work owed besides, CPU a page", "us"),
    "settle_us": Unit("settle, CPU a page", "us"),
    "freeze_us": Unit("freeze, CPU a page", "us"),
    "write_us": Unit("write on its own thread and LevelDB's, CPU a page", "us"),
    "written_bytes": Unit("bytes written a page", "B"),
    "active_share": Unit("share of pages from the active hosts", "1"),
}
MEMORY = {
    "anonymous_mib": Unit("anonymous memory", "MiB"),
    "early_mib": Unit("anonymous memory after a fifth of the pages", "MiB"),
    "bare_mib": Unit("anonymous memory before the crawl is opened", "MiB"),
}


def bench_frontier(prepared: Prepared, sizes: Iterable[tuple[int, int]], pages: int, repeat: int) -> None:
    """Print the figures of the coordinator for each (URLs, hosts)."""
    _drive("frontier", FRONTIER, prepared, sizes, (pages, repeat))


def bench_memory(prepared: Prepared, sizes: Iterable[tuple[int, int]], pages: int, repeat: int) -> None:
    """Print what is in memory for each (URLs, hosts): all of it, the interpreter, LevelDB's buffers and the bench included."""
    _drive("memory", MEMORY, prepared, sizes, (pages, repeat))


def _drive(
    bench: str, units: dict[str, Unit], prepared: Prepared, sizes: Iterable[tuple[int, int]], extent: tuple[int, int]
) -> None:
    pages, repeat = extent
    for urls, hosts in sizes:
        runs = []
        for _ in range(repeat):
            with prepared.copy(Shape(urls, hosts, paced=True)) as directory:
                runs.append(run_part("frontier_part", {"urls": urls, "hosts": hosts, "pages": pages, "directory": directory}))
        emit_medians(bench, units, runs, urls=urls, hosts=hosts, pages=pages)
