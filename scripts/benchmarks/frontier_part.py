"""Drive the coordinator of a prepared crawl on the page mix, without a network, by a clock of its own.

    python -m benchmarks.frontier_part --urls N --hosts N --pages N --directory DIR

Each page is claimed, answered at once and settled; each `PAGES_A_CHECKPOINT` a checkpoint is written. Times are CPU of the
one thread that a crawl's loop would be; writing, which a crawl does on another thread, is counted apart.
"""

import argparse
import json
import time
from collections import deque
from pathlib import Path

from benchmarks.memory_of import anonymous_mib, written_bytes
from benchmarks.page_mix import ACTIVE_HOSTS, LINKS, PageMix
from crawlkit.config import Config, ScopeMode
from crawlkit.engine.coordinator import Coordinator
from crawlkit.model import Facts, Fetched, PageJob
from crawlkit.policy.scope import Scope
from crawlkit.state.crawl import CrawlState
from crawlkit.surfaces.garbage import begin_collecting

PAGES_A_CHECKPOINT = 1_000
IN_FLIGHT = 64
FETCH_S = 0.05


class Drive:
    """One run: what it took is added up in the attributes, in seconds."""

    def __init__(self, state: CrawlState, mix: PageMix) -> None:
        self.config = Config(workers=IN_FLIGHT, delay=0.0, scope=ScopeMode.ANY, robots=False)
        self.mix = mix
        self.state = state
        # As if the crawl had been resumed at once: later, every host's gap would have passed.
        self.now = (state.runs[-1].ended_s or time.time()) + 1
        began_s = time.thread_time()
        self.coordinator = Coordinator(state, self.config, Scope.of([], self.config), self.now)
        self.open_s = time.thread_time() - began_s
        self.claim_s = self.settle_s = self.freeze_s = self.write_s = self.work_s = 0.0
        self.pages = self.active = self.since_checkpoint = 0
        self.highest_mib = 0.0
        self._flying: deque[tuple[float, PageJob]] = deque()

    def run(self, pages: int) -> None:
        """Crawl `pages` pages, and write a checkpoint."""
        until = self.pages + pages
        while self.pages < until:
            job = self._claim() if len(self._flying) < IN_FLIGHT else None
            if job is not None:
                self._flying.append((self.now, job))
                continue
            if self.coordinator.owes_work:
                self._work()
            if self._flying:
                self._settle(*self._flying.popleft())
            else:
                self.now = max(self.now, self.coordinator.next_time() or self.now)
        self._checkpoint()

    def _claim(self) -> PageJob | None:
        began_s = time.thread_time()
        job = self.coordinator.claim(self.now)
        self.claim_s += time.thread_time() - began_s
        assert job is None or isinstance(job, PageJob)
        return job

    def _work(self) -> None:
        began_s = time.thread_time()
        self.coordinator.work()
        self.work_s += time.thread_time() - began_s

    def _settle(self, started_s: float, job: PageJob) -> None:
        number = self.mix.number_of(job.host)
        self.active += number < ACTIVE_HOSTS
        links = tuple(self.mix.links_of(number))
        facts = Facts(
            200, "text/html", "utf-8", 18_432, title="A page of the mix", digest=f"sha256:{hash(job.url):064x}", links=links
        )
        self.now = max(self.now, started_s + FETCH_S)
        began_s = time.thread_time()
        self.coordinator.settle(Fetched(job, started_s, started_s + FETCH_S, facts), self.now)
        self.settle_s += time.thread_time() - began_s
        self.pages += 1
        self.since_checkpoint += 1
        if self.since_checkpoint >= PAGES_A_CHECKPOINT or self.coordinator.checkpoint_urgent:
            self._checkpoint()

    def _checkpoint(self) -> None:
        self.highest_mib = max(self.highest_mib, anonymous_mib())
        began_s = time.thread_time()
        checkpoint = self.coordinator.freeze(self.now)
        self.freeze_s += time.thread_time() - began_s
        began_s = time.process_time()
        checkpoint.write()
        self.write_s += time.process_time() - began_s
        self.state.installed()
        self.since_checkpoint = 0


def drive(options: argparse.Namespace) -> dict[str, float]:
    """Warm up, measure, and return the figures."""
    mix = PageMix(options.urls, options.hosts)
    bare_mib = anonymous_mib()
    with CrawlState.open(options.directory) as state:
        opened = Drive(state, mix)
        opened.run(options.pages // 4)
        early_mib = opened.highest_mib
        claim, settle, freeze, write, work = opened.claim_s, opened.settle_s, opened.freeze_s, opened.write_s, opened.work_s
        active, written = opened.active, written_bytes()
        opened.run(options.pages)
        pages = options.pages
        claim_s, settle_s = opened.claim_s - claim, opened.settle_s - settle
        freeze_s, write_s, work_s = opened.freeze_s - freeze, opened.write_s - write, opened.work_s - work
        return {
            "pages_per_s": pages / (claim_s + settle_s + freeze_s + work_s),
            "claims_per_s": pages / (claim_s + work_s),
            "checks_per_s": pages * LINKS / settle_s,
            "claim_us": claim_s / pages * 1e6,
            "work_us": work_s / pages * 1e6,
            "settle_us": settle_s / pages * 1e6,
            "freeze_us": freeze_s / pages * 1e6,
            "write_us": write_s / pages * 1e6,
            "written_bytes": (written_bytes() - written) / pages,
            "active_share": (opened.active - active) / pages,
            "bare_mib": bare_mib,
            "early_mib": early_mib,
            "anonymous_mib": opened.highest_mib,
        }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--urls", type=int, required=True)
    parser.add_argument("--hosts", type=int, required=True)
    parser.add_argument("--pages", type=int, required=True)
    parser.add_argument("--directory", type=Path, required=True)
    options = parser.parse_args()
    begin_collecting()  # as a crawl does: as Python has it, collecting took pauses of 70 ms with 10^7 URLs
    print(json.dumps(drive(options)))


if __name__ == "__main__":
    main()
