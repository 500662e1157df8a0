"""A coordinator driven by hand over a state in a directory, against a table of answers, under a clock that is told."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Self

import msgspec

from crawlkit.config import Config, GroupBy, changed_config
from crawlkit.engine.coordinator import Coordinator
from crawlkit.engine.ending import Ending
from crawlkit.engine.hook import Callers
from crawlkit.engine.telling import OnEvent, TellingCoordinator
from crawlkit.model import Facts, Fetched, FetchFailure, Found, Job, PageJob, Reason, Record, Response, SitemapJob
from crawlkit.policy.scope import Scope
from crawlkit.policy.urls import host_of, path_of
from crawlkit.sitemap import Sitemap
from crawlkit.state.crawl import CrawlState
from crawlkit.testing.clock import ManualClock

Answer = Facts | Response | FetchFailure
Web = Mapping[str, Answer | list[Answer]]

A = "http://a.test"
SEED = f"{A}/"
SOON = 1e-6
"""What a waiting driver oversleeps, so that sums of floats do not keep it a hair too early."""

MOST_STEPS = 5_000

GONE = Facts(404)
NO_CONNECTION = FetchFailure(Reason.CONNECT, "refused")
TIMED_OUT = FetchFailure(Reason.TIMEOUT, "10 s")


def page(*links: str, nofollow: tuple[int, ...] = (), canonical: str | None = None) -> Facts:
    return Facts(200, content_type="text/html", links=links, nofollow=nofollow, canonical=canonical)


def moved(target: str) -> Facts:
    return Facts(302, location=target)


def file(*lines: str) -> Response:
    """A robots.txt for everybody."""
    return Response(200, (), "\n".join(["User-agent: *", *lines, ""]).encode())


def answer(status: int, **headers: str) -> Response:
    return Response(status, tuple((name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()), b"")


class Driver:
    """One crawl. Answers come from `web`: one for each URL, or a list of which the last is given for ever.

    A robots.txt that the web does not have is answered 404, and so is a page.
    """

    def __init__(
        self,
        directory: Path,
        web: Web,
        *,
        seeds: Iterable[str] = (SEED,),
        most_hosts: int = 8_192,
        on_page: Callable[[Record], object] | None = None,
        accepts: Callable[[str], bool] | None = None,
        on_event: OnEvent | None = None,
        **settings: Any,
    ) -> None:
        self.directory = directory
        self.web = web
        self.clock = ManualClock()
        self.requests: list[tuple[float, str]] = []
        """When each request started, seconds after the crawl began, and of what."""
        self.on_page = on_page
        self.accepts = accepts
        self._on_event = on_event
        self.addresses: dict[str, str] = {}
        """Where names lead, for a crawl that groups by address; others have an address of their own."""
        self.config = Config(**{"retries": 0, **settings})
        self._seeds = list(seeds)
        self._most_hosts = most_hosts
        self._began_s = self.clock.now()
        self._started: dict[Job, float] = {}
        self._asked: Counter[str] = Counter()
        self.state = CrawlState.create(directory, self.config)
        self._make_coordinator()
        for number, url in enumerate(self._seeds):
            self.state.add_seed(number, url)
        self.coordinator.admit_seeds(self._seeds)
        self.checkpoint()
        self.state.seal()

    def _make_coordinator(self) -> None:
        scope = Scope.of(self._seeds, self.config, self.accepts)
        now = self.clock.now()
        callers = Callers(self.on_page)
        self.coordinator: Coordinator = (
            Coordinator(self.state, self.config, scope, now, callers, most_hosts=self._most_hosts)
            if self._on_event is None
            else TellingCoordinator(self.state, self.config, scope, now, callers, self._on_event)
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.state.close()

    # Time ------------------------------------------------------------------------------------------------------------

    def elapsed_s(self) -> float:
        return self.clock.now() - self._began_s

    # Steps -----------------------------------------------------------------------------------------------------------

    def claim(self) -> Job | None:
        job = self.coordinator.claim(self.clock.now())
        if job is not None:
            self._started[job] = self.clock.now()
        if job is not None and not self._is_looked_up(job):
            self.requests.append((self.elapsed_s(), job.url))
        return job

    def claim_all(self) -> list[Job]:
        """Claim until nothing is due."""
        jobs = []
        while (job := self.claim()) is not None:
            jobs.append(job)
        return jobs

    def settle(self, job: Job, given: Answer | None = None) -> None:
        """Settle a job now, with `given` or what the web answers."""
        answered = self._answer(job) if given is None else given
        asks = isinstance(job, SitemapJob) or (isinstance(job, PageJob) and job.names_urls)
        is_good = isinstance(answered, Facts) and answered.status == 200
        sitemap = self.sitemap_of(job.url) if asks and is_good else None
        fetched = Fetched(job, self._started.pop(job), self.clock.now(), answered, sitemap=sitemap)
        self.coordinator.settle(fetched, self.clock.now())

    def sitemap_of(self, url: str) -> Sitemap | None:
        """What a good answer of `url` says as a sitemap."""
        return None

    def _is_looked_up(self, job: Job) -> bool:
        """Whether all that is to be done for a job is to find its address."""
        return self.config.group_by is GroupBy.ADDRESS and job.address is None

    def _answer(self, job: Job) -> Answer | Found:
        if self._is_looked_up(job):
            name = host_of(job.url)
            return Found(self.addresses.get(name, f"address of {name}"))
        found = self.web.get(job.url)
        if isinstance(found, list):
            number = min(self._asked[job.url], len(found) - 1)
            self._asked[job.url] += 1
            return found[number]
        if isinstance(found, Facts) and found.sketch and isinstance(job, PageJob) and not job.sketched:
            return msgspec.structs.replace(found, sketch=())  # as a worker leaves it out
        if found is not None:
            return found
        return answer(404) if path_of(job.url) == "/robots.txt" else GONE

    def next_job(self) -> Job:
        """Wait, and do what is owed, until a job is claimed."""
        for _ in range(MOST_STEPS):
            job = self.claim()
            if job is not None:
                return job
            self.wait()
        raise AssertionError("nothing was claimed")

    def wait(self) -> None:
        """Do a piece of what is owed, or let time pass until a claim may succeed."""
        if self.coordinator.owes_work:
            self.coordinator.work()
            return
        due = self.coordinator.next_time()
        assert due is not None, "there is nothing to wait for"
        self.clock.advance(max(0.0, due - self.clock.now()) + SOON)

    def drain(self) -> Ending:
        """Fetch one after the other, in no time each, until nothing is left; checkpoint the end."""
        for _ in range(MOST_STEPS):
            if self.coordinator.exhausted:
                return self.end()
            if self.coordinator.owes_work:
                self.coordinator.work()
            elif (job := self.claim()) is not None:
                self.settle(job)
            elif not self.coordinator.exhausted:
                self.wait()
        raise AssertionError("the crawl does not end")

    def end(self, how: Ending | None = None) -> Ending:
        how = self.coordinator.ending() if how is None else how
        self.coordinator.end(how, self.clock.now()).write()
        self.state.installed()
        return how

    def checkpoint(self) -> None:
        self.coordinator.freeze(self.clock.now()).write()
        self.state.installed()

    def reopen(self, **changes: Any) -> None:
        """Go on in a new run. Without `end` before, the last one was killed: what it did not checkpoint is lost."""
        self.state.close()
        self._started.clear()
        self.state = CrawlState.open(self.directory)
        self.config = changed_config(self.state.config(), changes)
        self._make_coordinator()
        if changes:
            self.state.change_settings(self.config, changes)
        self.checkpoint()

    # What came of it -------------------------------------------------------------------------------------------------

    def records(self) -> dict[str, Record]:
        """The records on disk, as reported."""
        return {record.url: record for record in self.state.pages.walk()}

    def asked(self, url: str) -> int:
        """How often a URL was requested."""
        return sum(1 for _, requested in self.requests if requested == url)

    def starts_s(self, url: str) -> list[float]:
        """When each request of a URL started."""
        return [at for at, requested in self.requests if requested == url]
