"""The coordinator: the one owner of crawl state. Synchronous, deterministic, takes `now`.

It never waits and never touches the network: `claim` names the next fetch, `settle` takes in what came of one, `work` does
a bounded piece of what is owed besides, `freeze` gives the next checkpoint. Whoever drives it (`engine.loop`, a simulation,
a test) decides when. Between checkpoints nothing it does is durable; a crash goes back to the last one, whole.
"""

from collections.abc import Iterable
from typing import Final, assert_never

from crawlkit.config import Config
from crawlkit.engine.account import RunAccount
from crawlkit.engine.admission import Admission
from crawlkit.engine.archiving import keep
from crawlkit.engine.budget import Budget
from crawlkit.engine.ending import Ending, ending_of, settle_reasons
from crawlkit.engine.gate import Gate, Leave
from crawlkit.engine.growth import Growth
from crawlkit.engine.hook import NOBODY, Callers, PageHookError, show
from crawlkit.engine.inbox import Inbox
from crawlkit.engine.limits import PageLimit, is_urgent
from crawlkit.engine.robots import Robots
from crawlkit.engine.schedule import MOST_HOSTS, Schedule
from crawlkit.engine.sitemaps import SitemapReader
from crawlkit.exchange import Role
from crawlkit.model import Facts, Fetched, FetchFailure, Job, Kind, OrderReason, PageJob, RobotsJob, SitemapJob, Source
from crawlkit.policy.disposition import Again, Done, dispose, is_transient
from crawlkit.policy.edges import Edge
from crawlkit.policy.records import Place, content_of, record_of
from crawlkit.policy.scope import Scope
from crawlkit.state.codec import QueueRow
from crawlkit.state.crawl import Checkpoint, CrawlState
from crawlkit.state.hosts import Host
from crawlkit.state.letters import Letter
from crawlkit.state.pages import reported_kind
from crawlkit.state.sitemaps import SitemapRow

_GRANTED: Final = Leave.GRANTED  # looked up once (`model`)
_PAGE: Final = Kind.PAGE

# Bounds on one step, so that the loop is never away from the network for long (a step of each takes a few milliseconds).
CLAIM_STEPS = 64
WORK_STEPS = 64
KEYS_A_REBUILD = 512


class Coordinator:
    """Decides what is fetched next and what becomes of it, over one `CrawlState`."""

    def __init__(
        self, state: CrawlState, config: Config, scope: Scope, now: float, callers: Callers = NOBODY,
        *, most_hosts: int = MOST_HOSTS,
    ) -> None:  # fmt: skip
        self.state = state
        self._config = config
        self._callers = callers
        self._now = now
        self.schedule = Schedule(state, config, state.begin_run(now).quiet_from_s, most_hosts)
        budget = Budget(state.templates, config.template_budget, callers.abroad)
        self.admission = Admission(state, scope, config, budget, self._offer, callers)
        self.growth = Growth(state, self.admission, budget)
        self._robots = Robots(state, config)
        self._gate = Gate(state, config, self._robots, self.schedule)
        self._sitemaps = SitemapReader(state, config, scope, self.admission, self._offer, callers.abroad)
        self._inbox = Inbox(state, self.growth, self._sitemaps, budget)
        self._jobs = 0
        self.page_limit = PageLimit(state.counters, config.max_pages)
        self.unwritten = 0  # results that settled since the last checkpoint was frozen
        self.paused = False  # whether nothing is to be claimed for now (whoever claims looks at it)
        self._account = RunAccount(state, now)
        if state.counters.queued:
            state.frontier.restrain(now)

    def _offer(self, host: Host) -> None:
        self.schedule.offer(host, self._now)

    # What is known ---------------------------------------------------------------------------------------------------

    @property
    def in_flight(self) -> int:
        """How many jobs were claimed and have not come back."""
        return self._jobs

    @property
    def owes_work(self) -> bool:
        """Whether `work` has anything to do now that the crawl cannot end without."""
        if self.schedule.can_scan or self.state.rescanning or self.state.distances.pending:
            return True
        return self._sitemaps.owes or self.growth.owes(self._busy)

    @property
    def _busy(self) -> int:
        """Jobs in flight, and sitemaps that wait: while there are any, further URLs may still turn up."""
        return self._jobs + self.state.counters.sitemaps

    @property
    def idle_work(self) -> bool:
        """Whether `work` has anything to do that may as well be done later."""
        return self.state.seen.rebuilding

    @property
    def checkpoint_urgent(self) -> bool:
        """Whether so much has changed that the next checkpoint should not wait for its time."""
        return is_urgent(self.state, self.unwritten)

    @property
    def exhausted(self) -> bool:
        """Whether nothing is in flight, owed, or left to claim under the limits in force."""
        if self._jobs or self.owes_work:
            return False
        return self.budget_spent() or (self.schedule.complete and self.next_time() is None)

    def next_time(self) -> float | None:
        """Return when the next claim may succeed, None if nothing is left to claim."""
        times = [t for t in (self.schedule.next_time(), self.state.frontier.next_due()) if t is not None]
        return min(times, default=None)

    def budget_spent(self) -> bool:
        """Whether the limit on pages leaves nothing to claim now (a claim that ends otherwise gives its place back)."""
        return self.page_limit.spent

    @property
    def deadline_s(self) -> float:
        """When the limit on time is reached, infinity without one."""
        return self._account.deadline_s(self._config.max_time)

    # Claiming --------------------------------------------------------------------------------------------------------

    def admit_seeds(self, urls: Iterable[str]) -> None:
        """Meet seeds: distance 0, exempt from include and exclude."""
        for url in urls:
            self.state.hosts.trim()
            self.admission.meet(Edge(url, 0, 0), None, Source.SEED)

    def look_again(self) -> None:
        """Look at all hosts in the store: URLs were queued without being met."""
        self.schedule.look_again()

    def claim(self, now: float) -> Job | None:
        """Return the next fetch, None if no host is due (or, with `next_time` in the past, only for this turn)."""
        self._now = now
        self.state.hosts.trim()
        if self.budget_spent():
            return None
        for host in self.state.frontier.promote(now, CLAIM_STEPS, self.state.distances.lower):
            self.schedule.offer(host, self._now)
        for _ in range(CLAIM_STEPS):
            if len(self.schedule) == 0:
                self.schedule.scan(now)
            due = self.schedule.take(now)
            if due is None:
                return None
            job = self._claim_from(due, now)
            if job is not None:
                job = self.schedule.addressed(job, now)
                self._start(due, job, now)
                return job
            self.schedule.offer(due, now)
        return None

    def _claim_from(self, host: Host, now: float) -> Job | None:
        """Return a job for a due host; None if what comes first there turned out to need none (or not now)."""
        row = None if self.schedule.budget_spent(host) else self._sitemaps.turn(host) or self._first_row(host)
        if row is None:
            return None
        left = self._gate.ask(host, row.url, now)
        if left is _GRANTED:
            return self._take(host, row)
        match left:
            case RobotsJob():
                return left
            case Done():
                self._end_unasked(host, row, left)
            case Leave.LATER:
                pass
            case _:
                assert_never(left)
        return None

    def _first_row(self, host: Host) -> QueueRow | None:
        """Return the first row of a back queue, unless it has a record: a filter's wrong "no" must not make a second one."""
        row = self.state.frontier.peek(host, self.state.distances.lower)
        if row is None or self.state.frontier.is_new(row.url):
            return row
        found = self.state.pages.head(row.url)
        if found is None:
            return row
        self.state.frontier.discard(host, row, found.settled(), self.state.distances.lower)
        return None

    def _take(self, host: Host, row: QueueRow | SitemapRow) -> Job:
        if isinstance(row, SitemapRow):
            return self._sitemaps.claim(host, row)
        self.state.frontier.take(host, row)
        curious = self.growth.is_curious(row.url, row.via)
        names_urls = self._config.sitemaps and bool(row.sources & Source.SEED)
        return PageJob(row.url, host.record.name, row.attempts, row.via, sketched=curious, names_urls=names_urls)

    def _end_unasked(self, host: Host, row: QueueRow | SitemapRow, done: Done) -> None:
        """End what comes first at a host without a request."""
        if isinstance(row, SitemapRow):
            self._sitemaps.refuse(row, done)
            return
        self.state.frontier.take(host, row)
        self._done(host, row.url, done, None, row)

    def _start(self, host: Host, job: Job, now: float) -> None:
        self.state.counters.requests += self.schedule.note_start(self._gate.asked(host, job), job, now)
        self._jobs += 1
        if isinstance(job, RobotsJob):
            host.robots_pending = True
        self.page_limit.claimed += isinstance(job, PageJob)
        self.schedule.offer(host, self._now)

    # Settling --------------------------------------------------------------------------------------------------------

    def settle(self, fetched: Fetched, now: float) -> None:
        """Take in what came of a job; PageHookError if `on_page` raised: then its page stays queued."""
        self._now = now
        self.state.hosts.trim()
        job = fetched.job
        host = self.state.hosts.get(job.host)
        self._jobs -= 1
        asked = self._gate.asked(host, job)
        if self.schedule.note_found(asked, fetched, now):
            self._take_back(host, job)
        else:
            self.schedule.note_end(asked, fetched, now)
            self._settle_answer(host, asked, fetched, now)
        for each in asked:
            self.schedule.offer(each, now)
            self.schedule.unpark(each.record.name, now)

    def receive(self, letter: Letter, now: float) -> None:
        """Take in what another partition has to tell."""
        self._now = now
        self.state.hosts.trim()
        self._inbox.take(letter)

    def _take_back(self, host: Host, job: Job) -> None:
        """Undo the claim of a job for which nothing was asked."""
        match job:
            case RobotsJob():
                host.robots_pending = False
            case SitemapJob():
                self._sitemaps.release(job.host)
            case PageJob():
                self.page_limit.claimed -= 1
                self.state.frontier.release(job.url, host)
            case _:
                assert_never(job)

    def _settle_answer(self, host: Host, asked: list[Host], fetched: Fetched, now: float) -> None:
        job = fetched.job
        match job:
            case PageJob():
                self.page_limit.claimed -= 1
                self._settle_page(host, job, fetched, now)
            case RobotsJob():
                keep(self.state, fetched, Role.ROBOTS)
                host.robots_pending = False
                self.schedule.hold(asked, now, self._robots.settle(job, fetched, now))
                if self._config.sitemaps:
                    self._sitemaps.meet_listed(job.origin, self._robots.sitemaps_of(job.origin))
            case SitemapJob():
                keep(self.state, fetched, Role.SITEMAP)
                self.schedule.hold(asked, now, self._sitemaps.settle(job, fetched, now))
            case _:
                assert_never(job)

    def _settle_page(self, host: Host, job: PageJob, fetched: Fetched, now: float) -> None:
        answer = fetched.answer
        assert isinstance(answer, Facts | FetchFailure)
        disposition = dispose(job.url, job.attempts, answer, self._config.retries, now, self._config.max_retry_after)
        self.schedule.hold([host], now, disposition.hold_s)
        match disposition.outcome:
            case Again(wait_s, reason):
                keep(self.state, fetched, Role.ATTEMPT)
                self.state.frontier.postpone(job.url, host, job.attempts + 1, now + wait_s, wait_s, reason)
            case Done() as done:
                self._done(host, job.url, done, fetched, job)

    def _done(self, host: Host, url: str, done: Done, fetched: Fetched | None, waited: QueueRow | PageJob) -> None:
        """Settle a claimed URL: its record, then what it leads to."""
        state = self.state
        entry = state.seen.entry(url, host.id)
        place = Place(url, entry.depth, entry.hops, entry.sources, waited.attempts, waited.via)
        record = state.pages.with_note(record_of(place, done, fetched))
        try:
            show(self._callers, record)
        except PageHookError:
            state.frontier.release(url, host)
            raise
        self.unwritten += 1
        if fetched is not None:
            keep(state, fetched, Role.RECORD, record)
        state.frontier.settle(url, host, entry)
        state.pages.begin(record, content_of(fetched))
        state.counters.settled(reported_kind(record))
        state.counters.body_bytes += record.body_bytes or 0
        if record.kind is _PAGE:
            host.record.pages += 1
        if is_transient(record.reason):
            state.counters.depend(OrderReason.TRANSIENT)
        self.growth.settle(record, fetched, host)
        state.pages.end()
        if fetched is not None and isinstance(waited, PageJob) and waited.names_urls:
            self._sitemaps.take_seed(record, fetched.sitemap)

    # What is owed besides --------------------------------------------------------------------------------------------

    def work(self) -> None:
        """Do a bounded piece: propagate lowered distances, find hosts in the store, tell a raised limit, fill the filter."""
        self.state.hosts.trim()
        for _ in range(WORK_STEPS):
            record = self.state.distances.next()
            if record is None:
                break
            self.growth.follow(record)
        self._sitemaps.work()
        self.growth.work(self._busy)
        if self.schedule.can_scan:
            self.schedule.scan(self._now)
        self.state.rescan(WORK_STEPS)
        self.state.seen.rebuild(KEYS_A_REBUILD)

    # Checkpoints and the end -----------------------------------------------------------------------------------------

    def note_time(self, now: float) -> None:
        """Bring the counters and the ledger up to `now`."""
        self._account.note(now)

    def freeze(self, now: float) -> Checkpoint:
        """Take all that settled since the last checkpoint as the next one."""
        self.note_time(now)
        self.unwritten = 0
        return self.state.freeze(self._jobs)

    def end(self, how: Ending, now: float) -> Checkpoint:
        """Note how the run ended, and give its last checkpoint."""
        self.state.counters.finished = how is Ending.FINISHED
        settle_reasons(self.state.counters, how)
        self.state.end_run(now, how)
        return self.freeze(now)

    def ending(self) -> Ending:
        """Return what it means that nothing is left to claim, in flight or owed."""
        return ending_of(self.state, self._config, pages_spent=self.budget_spent())
