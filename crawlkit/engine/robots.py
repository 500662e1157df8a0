"""robots.txt of each origin: what it says, when it has to be fetched (again), and what a fetch of it led to.

RFC 9309, and the contract where it leaves a choice: a file holds 24 hours; 4xx other than 429 allows everything; 5xx, 429 and
network failures are tried again as pages are, then disallow for an hour, unless an older verdict is known: that one is kept.
A Crawl-delay above the longest that the settings accept excludes the URLs of its origin.
"""

from collections import OrderedDict
from typing import assert_never

import msgspec

from crawlkit.config import Config
from crawlkit.model import Fetched, FetchFailure, Kind, OrderReason, Reason, Response, RobotsJob
from crawlkit.policy import politeness, retry
from crawlkit.policy.disposition import REDIRECTS, Done
from crawlkit.policy.robots import MAX_ROBOTS_REDIRECTS, ROBOTS_TTL_S, Access, Rules, access_of, parse
from crawlkit.policy.urls import path_of, resolve_location
from crawlkit.state.crawl import CrawlState
from crawlkit.state.origins import OriginRecord, RobotsState

UNREACHABLE_TTL_S = 3600.0
ORIGINS_IN_MEMORY = 4_096
BODY_BYTES_IN_MEMORY = 32 * 1024 * 1024

_ALLOW_ALL = parse(b"", "crawlkit")


class Standing(msgspec.Struct, frozen=True):
    """What holds for an origin until `expires_s`: rules to ask, or how all its URLs end."""

    rules: Rules
    expires_s: float
    body_bytes: int
    all_end: Done | None = None

    @property
    def crawl_delay_s(self) -> float:
        """The Crawl-delay to keep, 0 where there is none, or nothing that it would be kept for."""
        return 0.0 if self.all_end is not None else self.rules.crawl_delay_s or 0.0

    def refusal(self, url: str) -> Done | None:
        """Return how a URL ends that robots.txt keeps us from, None if it may be fetched."""
        if self.all_end is not None:
            return self.all_end
        verdict = self.rules.judge(path_of(url))
        if verdict.allowed:
            return None
        return Done(Kind.EXCLUDED, Reason.ROBOTS_DISALLOW, f"line {verdict.line}: {verdict.text}")


class Robots:
    """Answers for origins from memory or the store; names the fetch that is needed where neither knows."""

    def __init__(self, state: CrawlState, config: Config) -> None:
        self._state = state
        self._token = config.product_token()
        self._retries = config.retries
        self._delay_s = config.delay
        self._max_crawl_delay_s = config.max_crawl_delay
        self._max_retry_after_s = config.max_retry_after
        self._known: OrderedDict[str, Standing] = OrderedDict()
        self._known_bytes = 0
        self._hops: dict[str, RobotsJob] = {}

    def standing(self, origin: str, host: str, now: float) -> Standing | RobotsJob:
        """Return what holds for `origin` at `now`, or the fetch that has to come first."""
        known = self._known.get(origin)
        if known is not None and now < known.expires_s:
            self._known.move_to_end(origin)
            return known
        hop = self._hops.get(origin)
        if hop is not None:
            return hop
        record = self._state.origins.get(origin)
        if record.state is RobotsState.UNKNOWN or record.attempts > 0 or now >= record.expires_s:
            return RobotsJob(origin, f"{origin}/robots.txt", host, attempts=record.attempts)
        return self._remember(record, self._rules(record))

    def sitemaps_of(self, origin: str) -> tuple[str, ...]:
        """Return the values of the Sitemap lines of an origin's robots.txt, as far as it is in memory."""
        known = self._known.get(origin)
        return () if known is None else known.rules.sitemaps

    def settle(self, job: RobotsJob, fetched: Fetched, now: float) -> float:
        """Take in what a fetch led to; return for how many seconds the host is to be left alone before the next try."""
        answer = fetched.answer
        assert isinstance(answer, Response | FetchFailure)
        self._hops.pop(job.origin, None)
        hop = next_hop(job, answer)
        if hop is not None:
            self._hops[job.origin] = hop
            return 0.0
        access = access_of(answer)
        match access:
            case Access.RULES:
                assert isinstance(answer, Response)
                self._conclude(OriginRecord(job.origin, RobotsState.RULES, answer.body, now + ROBOTS_TTL_S), now)
            case Access.ALLOW:
                self._conclude(OriginRecord(job.origin, RobotsState.ALLOW, b"", now + ROBOTS_TTL_S), now)
            case Access.DEFER | Access.UNREACHABLE:
                return self._unreachable(job, answer, now)
            case _:
                assert_never(access)
        return 0.0

    def _unreachable(self, job: RobotsJob, answer: Response | FetchFailure, now: float) -> float:
        """Try again while retries last; then keep an older verdict, or disallow for a while."""
        attempts = job.attempts + 1
        reason, asked_s = _why(answer, now, self._max_retry_after_s)
        before = self._state.origins.get(job.origin)
        if retry.may_retry(reason, attempts, self._retries):
            self._state.origins.put(msgspec.structs.replace(before, attempts=attempts))
            return retry.hold_s(reason, job.origin, attempts, asked_s)
        if before.state in (RobotsState.RULES, RobotsState.ALLOW):
            verdict = msgspec.structs.replace(before, attempts=0, expires_s=now + UNREACHABLE_TTL_S)
        else:
            verdict = _verdict_without_file(job.origin, reason, answer, now + UNREACHABLE_TTL_S)
        self._conclude(verdict, now)
        return 0.0

    def _conclude(self, record: OriginRecord, now: float) -> None:
        before = self._state.origins.get(record.origin)
        had_verdict = before.state in (RobotsState.RULES, RobotsState.ALLOW)
        if had_verdict and (before.state, before.body) != (record.state, record.body):
            self._state.counters.depend(OrderReason.ROBOTS_CHANGED)
        rules = self._rules(record)
        # Where the gap is longer than a verdict holds, no page would ever get its turn.
        gap = politeness.gap_s(self._delay_s, self._standing(record, rules).crawl_delay_s)
        record = msgspec.structs.replace(record, expires_s=max(record.expires_s, now + 2 * gap))
        self._state.origins.put(record)
        self._remember(record, rules)

    def _rules(self, record: OriginRecord) -> Rules:
        return rules_of(record, self._token)

    def _standing(self, record: OriginRecord, rules: Rules) -> Standing:
        all_end = _all_end(record)
        if all_end is None and politeness.is_too_long(rules.crawl_delay_s, self._max_crawl_delay_s):
            all_end = Done(Kind.EXCLUDED, Reason.ROBOTS_DELAY, f"Crawl-delay: {rules.crawl_delay_s:g}")
        return Standing(rules, record.expires_s, len(record.body), all_end)

    def _remember(self, record: OriginRecord, rules: Rules) -> Standing:
        standing = self._standing(record, rules)
        old = self._known.pop(record.origin, None)
        self._known_bytes += standing.body_bytes - (old.body_bytes if old else 0)
        self._known[record.origin] = standing
        while len(self._known) > ORIGINS_IN_MEMORY or (self._known_bytes > BODY_BYTES_IN_MEMORY and len(self._known) > 1):
            self._known_bytes -= self._known.popitem(last=False)[1].body_bytes
        return standing


def rules_of(record: OriginRecord, token: str) -> Rules:
    """Return what an origin's robots.txt says to our product token: nothing, where there is none or it could not be had."""
    return parse(record.body, token) if record.state is RobotsState.RULES else _ALLOW_ALL


def next_hop(job: RobotsJob, answer: Response | FetchFailure) -> RobotsJob | None:
    """Return the fetch that follows where `answer` redirects `job` to; None if it does not, or leads on too far or nowhere."""
    if isinstance(answer, FetchFailure) or answer.status not in REDIRECTS or job.hops >= MAX_ROBOTS_REDIRECTS:
        return None
    values = set(answer.header_values(b"location"))
    target = resolve_location(job.url, values.pop()) if len(values) == 1 else None
    return None if target is None else msgspec.structs.replace(job, url=target, hops=job.hops + 1)


def _why(answer: Response | FetchFailure, now: float, max_retry_after_s: float) -> tuple[Reason, float | None]:
    """Return the reason an answer is no verdict, and the wait that it asks for."""
    if isinstance(answer, FetchFailure):
        return answer.reason, None
    reason = retry.reason_of_status(answer.status) or Reason.RESET  # a 2xx that is not whole
    asked = answer.header_values(b"retry-after")
    return reason, retry.retry_after_s(asked[0].decode("latin-1"), now, max_retry_after_s) if asked else None


def _verdict_without_file(origin: str, reason: Reason, answer: Response | FetchFailure, expires_s: float) -> OriginRecord:
    if isinstance(answer, Response):
        return OriginRecord(origin, RobotsState.UNREACHABLE, b"", expires_s)
    states = {Reason.PROXY: RobotsState.NO_PROXY, Reason.ADDRESS: RobotsState.REFUSED}
    return OriginRecord(origin, states.get(reason, RobotsState.NO_HOST), answer.message.encode(), expires_s)


def _all_end(record: OriginRecord) -> Done | None:
    """Return how every URL of an origin ends whose robots.txt could not be had."""
    match record.state:
        case RobotsState.UNREACHABLE:
            return Done(Kind.EXCLUDED, Reason.ROBOTS_UNREACHABLE)
        case RobotsState.NO_HOST:
            return Done(Kind.FAILURE, Reason.HOST_UNREACHABLE, _words(record))
        case RobotsState.REFUSED:
            return Done(Kind.FAILURE, Reason.ADDRESS, _words(record))
        case RobotsState.NO_PROXY:
            return Done(Kind.FAILURE, Reason.PROXY, _words(record))
        case RobotsState.UNKNOWN | RobotsState.RULES | RobotsState.ALLOW:
            return None
        case _:
            assert_never(record.state)


def _words(record: OriginRecord) -> str | None:
    return record.body.decode(errors="replace") or None
