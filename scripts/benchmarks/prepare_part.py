"""Make a crawl of so many queued URLs on so many hosts: what the other parts copy and open.

    python -m benchmarks.prepare_part --urls 1000000 --hosts 1000 --end clean --directory DIR

`--end kill` ends it by SIGKILL after its last checkpoint, as a crash would. `--paced yes` gives each host the gap of
the page mix, as a Crawl-delay that it is supposed to have asked for, and spreads the last requests over it.
"""

import argparse
import json
import os
import random
import signal
import time
from pathlib import Path

from benchmarks.page_mix import PageMix
from crawlkit.config import Config, ScopeMode
from crawlkit.engine.admission import Admission
from crawlkit.engine.budget import Budget
from crawlkit.engine.coordinator import Coordinator
from crawlkit.engine.ending import Ending
from crawlkit.model import Source
from crawlkit.policy.edges import Edge
from crawlkit.policy.scope import Scope
from crawlkit.state.crawl import CrawlState

URLS_A_BATCH = 20_000


def prepare(options: argparse.Namespace) -> dict[str, float]:
    """Make the crawl; return what making it took."""
    mix = PageMix(options.urls, options.hosts)
    config = Config(
        workers=64,
        delay=0.0,
        scope=ScopeMode.ANY,
        resolve=(f"*.bench.test=127.0.0.1:{options.port}",) if options.port else (),
    )
    began_s, began_cpu_s = time.monotonic(), time.process_time()
    with CrawlState.create(options.directory, config) as state:
        now = time.time()
        scope = Scope.of([], config)
        coordinator = Coordinator(state, config, scope, now)
        state.add_seed(0, mix.url(0, 0))
        # Met by links, as most URLs of a crawl are: a seed that is met by a link later is noted to be.
        schedule, budget = coordinator.schedule, Budget(state.templates, 0)
        admission = Admission(state, scope, config, budget, lambda host: schedule.offer(host, now))
        _admit(coordinator, admission, mix, paced=options.paced == "yes", now=now)
        state.seal()
        if options.end == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        coordinator.end(Ending.SIGTERM, now).write()
        state.installed()
    took_s, cpu_s = time.monotonic() - began_s, time.process_time() - began_cpu_s
    return {"urls": options.urls, "admit_us": cpu_s / options.urls * 1e6, "took_s": took_s}


def _admit(coordinator: Coordinator, admission: Admission, mix: PageMix, *, paced: bool, now: float) -> None:
    state = coordinator.state
    rng = random.Random(7)
    batch: list[str] = []
    for host in range(mix.hosts):
        batch += [mix.url(host, n) for n in range(mix.size(host))]
        if paced:
            known = state.hosts.get(mix.host(host))
            known.record.crawl_delay_s = mix.crawl_delay_s(host)
            known.record.last_start_s = known.record.last_end_s = now - rng.random() * known.record.crawl_delay_s
            state.hosts.changed(known)
        while len(batch) >= URLS_A_BATCH or (batch and host == mix.hosts - 1):
            for url in batch[:URLS_A_BATCH]:
                state.hosts.trim()
                admission.meet(Edge(url, 0, 0), None, Source.LINK)
            del batch[:URLS_A_BATCH]
            coordinator.freeze(now).write()
            state.installed()
            state.hosts.trim()


def main() -> None:
    """Prepare a crawl and print what it took."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--urls", type=int, required=True)
    parser.add_argument("--hosts", type=int, required=True)
    parser.add_argument("--end", choices=("clean", "kill"), default="clean")
    parser.add_argument("--paced", choices=("yes", "no"), default="no")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--directory", type=Path, required=True)
    print(json.dumps(prepare(parser.parse_args())))


if __name__ == "__main__":
    main()
