"""What people change of a crawl: hosts that are held, released or dropped, seeds that are added. Synchronous, takes `now`.

All of it is staged like everything else and durable with the next checkpoint, and so is its line in the ledger. Where it can
change what the report holds the crawl is marked as steered: dropping and adding do, holding and pausing only take time.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

from crawlkit.config import Config
from crawlkit.engine.admission import Admission
from crawlkit.engine.budget import Budget
from crawlkit.engine.coordinator import Coordinator
from crawlkit.engine.events import Ordered
from crawlkit.engine.telling import OnEvent
from crawlkit.errors import UsageError
from crawlkit.model import OrderReason, Source
from crawlkit.policy.edges import Edge
from crawlkit.policy.scope import Scope
from crawlkit.policy.urls import host_of, parse_seed
from crawlkit.state.checkpoint import Action, Steered
from crawlkit.state.crawl import CrawlState
from crawlkit.state.hosts import Host


class Added(msgspec.Struct, frozen=True):
    """What became of seeds: how many are new as seeds, and how many of these are outside of the scope."""

    new: int = 0
    outside: int = 0

    def __add__(self, other: "Added") -> "Added":
        return Added(self.new + other.new, self.outside + other.outside)


class Steering:
    """Changes a crawl on behalf of people.

    `look_at` is told of hosts that may be asked at another time now, `on_event` of what was done.
    """

    def __init__(
        self, state: CrawlState, admission: Admission, look_at: Callable[[Host, float], object], on_event: OnEvent | None = None
    ) -> None:
        self._state = state
        self._admission = admission
        self._look_at = look_at
        self._on_event = on_event

    @classmethod
    def of(cls, coordinator: Coordinator, on_event: OnEvent | None = None) -> "Steering":
        """Return the steering of a crawl that runs."""
        return cls(coordinator.state, coordinator.admission, coordinator.schedule.look_at, on_event)

    def note(self, action: Action, what: str | None, now: float) -> None:
        """Enter something into the ledger, and tell of it."""
        self._state.runs[-1].note(Steered(now, action, what))
        if self._on_event is not None:
            self._on_event(Ordered(action, what), now)

    def hold(self, name: str, for_s: float | None, now: float) -> None:
        """Ask nothing of a host any more: for so many seconds, or until it is released."""
        self._set_hold(name, math.inf if for_s is None else now + for_s, now)
        self.note(Action.HOLD, name if for_s is None else f"{name} for {for_s:g} s", now)

    def release(self, name: str, now: float) -> None:
        """Let a host be asked again that was held or dropped. What a drop has ended stays as it is."""
        self._state.hosts.get(name).record.dropped = False
        self._set_hold(name, 0.0, now)
        self.note(Action.RELEASE, name, now)

    def drop(self, name: str, now: float) -> None:
        """End all URLs of a host without a request, those that wait and those that are found later."""
        self._state.hosts.get(name).record.dropped = True
        self._set_hold(name, 0.0, now)
        self._state.counters.depend(OrderReason.STEERING)
        self.note(Action.DROP, name, now)

    def _set_hold(self, name: str, until_s: float, now: float) -> None:
        host = self._state.hosts.get(name)
        was_held = host.record.held
        host.record.held_until_s = until_s
        self._state.counters.hosts_held += host.record.held - was_held
        self._state.hosts.changed(host)
        self._look_at(host, now)

    def add(self, urls: Sequence[str]) -> Added:
        """Meet seeds (normal form) at distance 0.

        One outside of the scope is in by itself: links to it are not, and it spans nothing. The ledger is the caller's, as one
        addition may come in parts.
        """
        known = [url for url in urls if self._is_seed(url)]
        new = [url for url in dict.fromkeys(urls) if url not in set(known)]
        outside = sum(not self._admission.is_in_scope(url) for url in new)
        for url in new:
            self._state.hosts.trim()
            self._state.append_seed(url)
            self._admission.meet(Edge(url, 0, 0), None, Source.SEED)
        if new:
            self._state.counters.depend(OrderReason.STEERING)
            self._state.counters.finished = False
        return Added(len(new), outside)

    def _is_seed(self, url: str) -> bool:
        entry = self._state.seen.find(url, self._state.hosts.id_of(host_of(url)))
        return entry is not None and bool(entry.sources & Source.SEED)


@contextmanager
def steering_stopped(directory: Path, span: Sequence[str] | None = None) -> Iterator[tuple[CrawlState, Config, Steering]]:
    """Open a crawl that does not run, to steer it; what was done is on disk when the block ends. StateError and its kinds.

    No run is entered into the ledger for it: what was done stands with the last one. `span` are the seeds that span the scope:
    of a partition, those of the whole crawl.
    """
    with CrawlState.open(directory) as state:
        config = state.config()
        budget = Budget(state.templates, config.template_budget)
        scope = Scope.of(state.first_seeds() if span is None else span, config)
        admission = Admission(state, scope, config, budget, lambda _: None)
        yield state, config, Steering(state, admission, lambda _host, _now: None)
        state.checkpoint()


def read_host(text: str) -> str:
    """Return the name of a host as crawls know it; UsageError if it is none."""
    try:
        url = parse_seed(f"http://{text}/")
    except UsageError as error:
        raise UsageError(f"{text!r} is not a host name") from error
    if url != f"http://{host_of(url)}/":
        raise UsageError(f"{text!r} is not a host name; give it without a scheme, a port and a path, like example.com")
    return host_of(url)
