"""The suite's command line: which benches, at which sizes, how often.

scripts/bench [--smoke] [--repeat N] [--large] BENCH...
"""

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.crawl_state import Prepared, preparing
from benchmarks.fetch import FetchOptions, bench_fetch
from benchmarks.figures import emit_machine, note
from benchmarks.frontier import bench_frontier, bench_memory
from benchmarks.live_loop import INTERVALS_S, bench_checkpoint, bench_durability
from benchmarks.peers import default_cache
from benchmarks.processes import BenchError
from benchmarks.resuming import bench_resume
from benchmarks.scaling import bench_scaling
from benchmarks.searching import bench_search
from benchmarks.seen_set import bench_seen
from benchmarks.static_site import Kind

Size = tuple[int, int]

SMALL: Size = (10_000, 1_000)
SIZES: tuple[Size, ...] = (
    (10_000, 1),
    (10_000, 1_000),
    (1_000_000, 1),
    (1_000_000, 1_000),
    (1_000_000, 10_000),
    (1_000_000, 1_000_000),
)
LARGE_SIZES: tuple[Size, ...] = ((10_000_000, 10_000), (10_000_000, 1_000_000))
SMOKE: Size = (2_000, 20)


def _sizes(options: argparse.Namespace, default: Sequence[Size], large: Sequence[Size] = ()) -> list[Size]:
    if options.size:
        return [(int(urls), int(hosts)) for urls, _, hosts in (text.partition("x") for text in options.size)]
    if options.smoke:
        return [SMOKE]
    return [*default, *(large if options.large else ())]


def _fetch(options: argparse.Namespace, _: Prepared) -> None:
    bench_fetch(
        FetchOptions(
            kinds=tuple(options.site or ((Kind.REPEATING,) if options.smoke else Kind)),
            only=frozenset(options.peer or ()),
            pages=options.pages or (60 if options.smoke else 5_000),
            connections=options.connections,
            repeat=options.repeat,
            seed=options.seed,
            cache=options.cache,
            install=not options.smoke,
            timeout_s=300,
        )
    )


def _frontier(options: argparse.Namespace, prepared: Prepared) -> None:
    pages = options.pages or (200 if options.smoke else 10_000)
    bench_frontier(prepared, _sizes(options, SIZES, LARGE_SIZES), pages, options.repeat)


def _memory(options: argparse.Namespace, prepared: Prepared) -> None:
    pages = options.pages or (200 if options.smoke else 40_000)
    sizes = _sizes(options, ((1_000_000, 1_000), (1_000_000, 1_000_000)), LARGE_SIZES)
    bench_memory(prepared, sizes, pages, min(options.repeat, 1))


def _seen(options: argparse.Namespace, _: Prepared) -> None:
    sizes = _sizes(options, ((100_000, 100), (1_000_000, 1_000)), ((10_000_000, 10_000),))
    bench_seen(sizes, 2_000 if options.smoke else 100_000, options.repeat)


def _resume(options: argparse.Namespace, prepared: Prepared) -> None:
    bench_resume(prepared, _sizes(options, ((1_000_000, 1_000), (1_000_000, 1_000_000))), options.repeat)


def _checkpoint(options: argparse.Namespace, prepared: Prepared) -> None:
    seconds = options.seconds or (0.5 if options.smoke else 15.0)
    bench_checkpoint(prepared, _sizes(options, (SMALL, (1_000_000, 1_000))), seconds, options.repeat)


def _durability(options: argparse.Namespace, prepared: Prepared) -> None:
    seconds = options.seconds or (0.3 if options.smoke else 10.0)
    intervals_s = (None, 1.0) if options.smoke else INTERVALS_S
    bench_durability(prepared, _sizes(options, (SMALL,))[0], seconds, options.repeat, intervals_s)


def _search(options: argparse.Namespace, _: Prepared) -> None:
    bench_search(options.pages or (200 if options.smoke else 100_000), 300, options.repeat)


def _scaling(options: argparse.Namespace, _: Prepared) -> None:
    bench_scaling(20 if options.smoke else 400, options.seconds or (0.5 if options.smoke else 15.0), options.repeat)


BENCHES: dict[str, Callable[[argparse.Namespace, Prepared], None]] = {
    "fetch": _fetch,
    "frontier": _frontier,
    "seen": _seen,
    "resume": _resume,
    "memory": _memory,
    "checkpoint": _checkpoint,
    "durability": _durability,
    "search": _search,
    "scaling": _scaling,
}


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="scripts/bench",
        description="Measure crawlkit and its peers: one line of JSON a figure on standard output.",
    )
    parser.add_argument("benches", nargs="*", metavar="BENCH", help=f"{', '.join(BENCHES)} or all")
    parser.add_argument("--smoke", action="store_true", help="tiny sizes, once: whether each bench works (installs nothing)")
    parser.add_argument("--repeat", type=int, help="runs of each measurement; medians are printed (default 3)")
    parser.add_argument(
        "--size", action="append", metavar="URLSxHOSTS", help="size of the crawl, for all but fetch; repeatable"
    )
    parser.add_argument("--large", action="store_true", help="10^7 URLs too: needs 20 minutes and 10 GB of disk")
    parser.add_argument(
        "--pages", type=int, help="pages: of the site (fetch, 5,000), driven (frontier, memory), or searched (100,000)"
    )
    parser.add_argument("--seconds", type=float, help="how long the loop runs (checkpoint and scaling 15, durability 10)")
    parser.add_argument("--connections", type=int, default=64, help="connections of each crawler (fetch, 64)")
    parser.add_argument("--site", action="append", type=Kind, choices=list(Kind), help="which site (fetch, both)")
    parser.add_argument("--peer", action="append", metavar="NAME", help="only this crawler (fetch); repeatable")
    parser.add_argument("--seed", type=int, default=1, help="seed of the static site")
    parser.add_argument("--cache", type=Path, default=default_cache(), help="where the peers are installed (%(default)s)")
    options = parser.parse_args(arguments)
    unknown = [name for name in options.benches if name not in (*BENCHES, "all")]
    if unknown:
        parser.error(f"no bench is called {unknown[0]!r}: there are {', '.join(BENCHES)} and all")
    if not options.benches and not options.smoke:
        parser.error("name a bench, or all")
    if not options.benches or "all" in options.benches:
        options.benches = list(BENCHES)
    options.repeat = options.repeat or (1 if options.smoke else 3)
    return options


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benches that were asked for; return the exit status."""
    options = _parse(arguments)
    emit_machine()
    try:
        with preparing() as prepared:
            for name in options.benches:
                note(name)
                BENCHES[name](options, prepared)
    except BenchError as error:
        note(str(error))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
