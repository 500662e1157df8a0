"""The long torture: random crawls, killed at random moments again and again, finished, and compared with undisturbed ones.

    scripts/crash --minutes 2 --seed 1

Each round makes a web graph, crawls it once undisturbed and once with kills (while the crawl is made, within 50 ms of the
start, during resumes), half of them with an archive, and sees what the contract promises: the same report, no URL fetched
again whose record was durable, no request sooner than its host's gap by the server's own log, a sound state, a clean archive,
no litter, nothing left to ask. One JSON line a round, one for all; the first violation ends it with status 1 and tells how
to replay it.
"""

import argparse
import importlib.util
import itertools
import json
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from crawlkit.state.layout import CRAWL
from crawlkit.state.reading import open_crawl_for_reading
from crawlkit.testing.aftermath import copy_crawl
from crawlkit.testing.forks import Ended, Nursery
from crawlkit.testing.graph import Features, Graph, make_graph
from crawlkit.testing.log import Request
from crawlkit.testing.server import SiteServer
from crawlkit.testing.sitemaps import SitemapPlan, make_sitemaps

WORKERS = (1, 8, 64)
MOST_KILLS = 12
EARLY_S = 0.05
SLACK_S = 0.03  # the server notes the end of an answer some time after the client may have read it
SIMULATIONS = (("crawlkit.testing.simulation", 50), ("crawlkit.testing.partitioned_simulation", 15))
"""Which, and how many seeds at a time: about as long each."""

SIMULATION_SHARE = 0.25


class Violation(Exception):
    """A promise that was not kept; says which, and by what it is seen."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What one round does, all of it drawn from its seed."""

    seed: int
    graph: Graph
    workers: int
    delay_s: float
    answer_delay_s: float
    host_concurrency: int
    checkpoint_ms: int
    archives: bool
    sitemaps: SitemapPlan

    @classmethod
    def of(cls, seed: int) -> "Plan":
        """Draw the plan of a round."""
        rng = random.Random(seed)
        manners = rng.random() < 0.2
        hosts = rng.randint(1, 4)
        pages = hosts * rng.randint(2, 5) if manners else rng.randint(30, 250)
        features = Features(
            redirects=rng.randint(0, pages // 8), chain=rng.randint(1, 3), canonicals=rng.randint(0, pages // 8),
            missing=rng.randint(0, 5), outside=rng.randint(0, 5), nofollow=rng.randint(0, 5),
        )  # fmt: skip
        graph = make_graph(pages, seed, hosts=hosts, links_per_page=rng.randint(2, 12), features=features)
        return cls(
            seed=seed,
            graph=graph,
            sitemaps=make_sitemaps(seed, graph, 0),
            workers=rng.choice(WORKERS),
            delay_s=0.5 if manners else 0.0,
            answer_delay_s=rng.choice((0.0, 0.001, 0.01)),
            host_concurrency=1 if manners else rng.choice((1, 4, 32)),
            checkpoint_ms=rng.choice((50, 1000) if manners else (5, 50, 250)),
            archives=rng.random() < 0.5,
        )

    def options(self, port: int) -> list[str]:
        """Return the arguments of `crawlkit run`, but for the directory."""
        return [
            *self.graph.seeds, "--resolve", f"*.test=127.0.0.1:{port}", "--delay", f"{self.delay_s}s", "--quiet",
            "--workers", f"{self.workers}", "--host-concurrency", f"{self.host_concurrency}",
            "--checkpoint-interval", f"{self.checkpoint_ms}ms",
            *(["--sitemaps"] if self.sitemaps.listed else []),
            *(["--warc", "--warc-size", "50KiB"] if self.archives else []),
        ]  # fmt: skip


@dataclass(slots=True)
class Figures:
    """What was done."""

    crawls: int = 0
    kills: int = 0
    kills_in_the_making: int = 0
    refetches: int = 0
    simulated: int = 0
    began_s: float = field(default_factory=time.monotonic)

    def line(self) -> str:
        """Return all of it as one JSON line."""
        minutes = (time.monotonic() - self.began_s) / 60
        return json.dumps({
            "crawls": self.crawls, "kills": self.kills, "kills_in_the_making": self.kills_in_the_making,
            "refetches": self.refetches, "refetches_per_kill": round(self.refetches / max(1, self.kills), 2),
            "kills_per_minute": round(self.kills / minutes, 1), "simulated": self.simulated, "minutes": round(minutes, 2),
        })  # fmt: skip


class Round:
    """One graph, crawled twice in `place`."""

    def __init__(self, plan: Plan, place: Path, nursery: Nursery, figures: Figures) -> None:
        self._plan = plan
        self._place = place
        self._nursery = nursery
        self._figures = figures
        self._rng = random.Random(plan.seed + 1)
        sitemaps = plan.sitemaps.routes(plan.graph.bases)
        self._server = SiteServer(plan.graph.site(delay_s=plan.answer_delay_s) | sitemaps)

    def run(self) -> None:
        """Do all of it; Violation if a promise was not kept."""
        with self._server as server:
            options = self._plan.options(server.port)
            began_s = time.monotonic()
            undisturbed = self._place / "undisturbed.crawl"
            ended = self._nursery.run("run", *options, "-d", str(undisturbed))
            seconds = time.monotonic() - began_s
            _require(ended.status in (0, 1), f"an undisturbed crawl ended with {ended}")
            first = len(server.log)
            disturbed = self._place / "disturbed.crawl"
            self._kill_again_and_again(disturbed, options, seconds)
            self._finish(disturbed, options, ended)
            self._see_manners(server.log[:first])
            self._see_manners(server.log[first:])
            self._see_state(disturbed, self._report(undisturbed), ended)
            self._figures.crawls += 2
            self._figures.refetches += _repeats(server.log[first:]) - _repeats(server.log[:first])

    def _kill_again_and_again(self, directory: Path, options: Sequence[str], seconds: float) -> None:
        for _ in range(self._rng.randint(1, MOST_KILLS)):
            after_s = self._rng.uniform(0, EARLY_S if self._rng.random() < 0.3 else seconds / 2)
            before = len(self._server.log)
            begun = (directory / CRAWL).exists()
            arguments = ["resume", str(directory), "-q"] if begun else ["run", *options, "-d", str(directory)]
            settled = self._settled(directory) if begun else frozenset[str]()
            if self._rng.random() < 0.1:
                status = _run_afresh(arguments, after_s)
            else:
                status = self._nursery.run(*arguments, kill_after_s=after_s).status
            self._see_no_repeat(settled, before)
            if status != -signal.SIGKILL:
                return
            self._figures.kills += 1
            self._figures.kills_in_the_making += not (directory / CRAWL).exists()
            _require(
                (directory / CRAWL).exists() or len(self._server.log) == before, "requests were made before there was a crawl"
            )

    def _finish(self, directory: Path, options: Sequence[str], expected: Ended) -> None:
        begun = (directory / CRAWL).exists()
        settled = self._settled(directory) if begun else frozenset[str]()
        before = len(self._server.log)
        arguments = ["resume", str(directory), "-q"] if begun else ["run", *options, "-d", str(directory)]
        ended = self._nursery.run(*arguments)
        _require(ended == expected, f"the last resume ended with {ended}, the undisturbed crawl with {expected}")
        self._see_no_repeat(settled, before)

    def _settled(self, directory: Path) -> frozenset[str]:
        """Return the URLs that have a durable record, as a copy tells: the crawl itself is opened by nobody but the resume."""
        copy = self._place / "copy.crawl"
        copy_crawl(directory, copy)
        with open_crawl_for_reading(copy) as crawl:
            return frozenset(record.url for record in crawl.pages.walk())

    def _see_no_repeat(self, settled: frozenset[str], before: int) -> None:
        again = settled & {_url(request) for request in self._server.log[before:]}
        _require(not again, f"fetched again though their records were durable: {sorted(again)[:5]}")

    def _see_manners(self, requests: Sequence[Request]) -> None:
        """See gaps between requests to a host, from the end of one to the start of the next, over all lives of a crawl."""
        if not self._plan.delay_s:
            return
        last: dict[str, Request] = {}
        for request in requests:
            before = last.get(request.host)
            if before is not None:
                gap_s = request.at_s - (before.ended_s or request.at_s)
                _require(
                    gap_s >= self._plan.delay_s - SLACK_S,
                    f"{_url(request)} came {gap_s:.3f} s after {_url(before)}; the gap is {self._plan.delay_s} s",
                )
            last[request.host] = request

    def _see_state(self, directory: Path, report: bytes, expected: Ended) -> None:
        _require(self._report(directory) == report, "the report differs from that of the undisturbed crawl")
        litter = [str(path) for path in directory.rglob("*.tmp")]
        _require(not litter, f"left behind: {litter}")
        verified = self._nursery.run("verify", "--deep", str(directory))
        _require(verified.status == 0, f"verify found: {verified.output}")
        _see_archive(directory)
        before = len(self._server.log)
        ended = self._nursery.run("resume", str(directory), "-q")
        _require(ended == expected, f"a resume of the finished crawl ended with {ended}, the crawl with {expected}")
        _require(len(self._server.log) == before, "a resume of the finished crawl made requests")

    def _report(self, directory: Path) -> bytes:
        output = self._place / f"{directory.name}.jsonl"
        ended = self._nursery.run("report", str(directory), "--format", "jsonl", "-o", str(output))
        _require(ended == Ended(0), f"report ended with {ended}")
        return output.read_bytes()


def _see_archive(directory: Path) -> None:
    """See that another program, where it is installed, finds nothing wrong with the archive."""
    files = sorted(directory.glob("warc/*"))
    if not files or importlib.util.find_spec("warcio") is None:
        return
    command = [sys.executable, "-m", "warcio.cli", "check", *map(str, files)]
    checked = subprocess.run(command, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    _require(checked.returncode == 0, f"warcio check found: {checked.stdout}")


def _require(kept: bool, otherwise: str) -> None:
    if not kept:
        raise Violation(otherwise)


def _url(request: Request) -> str:
    return f"http://{request.host}{request.target}"


def _repeats(requests: Sequence[Request]) -> int:
    """How many requests were for what had been asked for before, robots.txt aside."""
    asked = Counter(request.target + request.host for request in requests if request.target != "/robots.txt")
    return asked.total() - len(asked)


def _run_afresh(arguments: Sequence[str], after_s: float) -> int:
    """Run a command in an interpreter of its own, killed after that time; return its status."""
    with subprocess.Popen([sys.executable, "-m", "crawlkit", *arguments], stderr=subprocess.DEVNULL) as process:
        try:
            return process.wait(after_s)
        except subprocess.TimeoutExpired:
            process.kill()
            return process.wait()


def torture(seed: int, minutes: float, figures: Figures) -> None:
    """Do rounds from `seed` on until the time is over, at least one; Violation at the first broken promise."""
    until_s = time.monotonic() + minutes * 60
    with Nursery() as nursery:
        while True:
            place = Path(tempfile.mkdtemp(prefix="crawlkit-crash-"))
            plan = Plan.of(seed)
            before = (figures.kills, figures.refetches, time.monotonic())
            try:
                Round(plan, place, nursery, figures).run()
            except (Violation, TimeoutError) as error:
                raise Violation(f"{error}\nkept: {place}\nreplay: scripts/crash --minutes 0 --seed {seed}") from error
            shutil.rmtree(place)
            _say({
                "seed": seed, "urls": len(plan.graph.nodes), "hosts": len(plan.graph.bases), "workers": plan.workers,
                "delay_s": plan.delay_s, "archives": plan.archives,
                "kills": figures.kills - before[0], "refetches": figures.refetches - before[1],
                "seconds": round(time.monotonic() - before[2], 2),
            })  # fmt: skip
            seed += 1
            if time.monotonic() >= until_s:
                return


def simulate(seed: int, minutes: float, figures: Figures) -> None:
    """Simulate seeds until the time is over, crawls as one and in partitions in turn; Violation if one breaks a promise."""
    until_s = time.monotonic() + minutes * 60
    for module, seeds in itertools.cycle(SIMULATIONS):
        if time.monotonic() >= until_s:
            return
        command = ["-m", module, "--first", str(seed), "--seeds", str(seeds)]
        ended = subprocess.run(
            [sys.executable, *command], check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        if ended.returncode != 0:
            raise Violation(f"{ended.stdout}\nreplay: python {' '.join(command)}")
        seed += seeds
        figures.simulated += seeds


def main(arguments: Sequence[str] | None = None) -> int:
    """Torture; return 0 if every promise was kept, else 1."""
    parser = argparse.ArgumentParser(prog="scripts/crash", description="Kill random crawls at random, finish them, compare.")
    parser.add_argument("--minutes", type=float, default=2.0, help="how long; 0 for one round [default: 2]")
    parser.add_argument("--seed", type=int, help="of the first round, later ones count on [default: random]")
    given = parser.parse_args(arguments)
    seed = random.SystemRandom().randrange(1_000_000) if given.seed is None else given.seed
    figures = Figures()
    try:
        torture(seed, given.minutes * (1 - SIMULATION_SHARE), figures)
        simulate(seed, given.minutes * SIMULATION_SHARE, figures)
    except Violation as violation:
        sys.stderr.write(f"VIOLATION: {violation}\n")
        return 1
    finally:
        sys.stdout.write(figures.line() + "\n")
    return 0


def _say(figures: dict[str, object]) -> None:
    sys.stdout.write(json.dumps(figures) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
