"""A run of a crawl from its making or opening to its end: puts state, coordinator, workers and loop together."""

import itertools
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager, AsyncExitStack, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from crawlkit.clock import Clock, SystemClock
from crawlkit.config import Config, changed_config
from crawlkit.engine.abroad import Abroad
from crawlkit.engine.archiving import open_archive
from crawlkit.engine.coordinator import Coordinator
from crawlkit.engine.credentials import Carried, carried_by
from crawlkit.engine.earlier import Earlier, identity_of, open_earlier
from crawlkit.engine.ending import Ending, exit_status
from crawlkit.engine.events import RunBegan
from crawlkit.engine.hook import Callers, OnPage
from crawlkit.engine.loop import Loop
from crawlkit.engine.network import UNVERIFIED, check_network, open_network, open_resolver, seeds_private_addresses
from crawlkit.engine.rendering.opening import check_renderer, open_renderer, rendering_pages
from crawlkit.engine.telling import OnEvent, TellingCoordinator
from crawlkit.engine.watcher import Watcher
from crawlkit.engine.worker import Worker
from crawlkit.errors import ExitStatus, UsageError
from crawlkit.model import Kind, OrderReason, Reason, Record
from crawlkit.net.resolver import GuardedResolver
from crawlkit.net.transport import Transport
from crawlkit.policy.partition import Owners
from crawlkit.policy.scope import Scope
from crawlkit.policy.urls import host_of, parse_seed
from crawlkit.state.counters import Counters
from crawlkit.state.crawl import CrawlState
from crawlkit.state.space import check_space

if TYPE_CHECKING:
    from crawlkit.engine.plugging import Plugged
    from crawlkit.render.browser import Renderer

SEEDS_A_BATCH = 10_000


class BarrenSeed(msgspec.Struct, frozen=True):
    """A seed that led to no page: its record, and whether it only redirected to what was not admitted."""

    record: Record
    left_scope: bool


class Outcome(msgspec.Struct, frozen=True):
    """How a run ended. `barren` tells of the first seeds, in a crawl without any page."""

    directory: Path
    how: Ending
    counters: Counters
    barren: tuple[BarrenSeed, ...] = ()

    @property
    def status(self) -> ExitStatus:
        """The exit status of the contract."""
        return exit_status(self.how, self.counters)


class Running(msgspec.Struct, frozen=True):
    """A run that is going on, for who serves it beside: all of it belongs to the event loop's thread, between two turns."""

    coordinator: Coordinator
    loop: Loop
    config: Config
    clock: Clock
    resolver: GuardedResolver
    on_event: OnEvent | None


class Hooks(msgspec.Struct, frozen=True):
    """What the caller is told of: pages; the coordinator, often, to look at only; what to be warned of, as it starts; events.

    `around` wraps the run (a `Loop`, or a driver of several: `signals.Stoppable`), so as to stop it; `beside` is open
    while it goes on, so as to serve it. `watchers` are told what happens.
    """

    on_page: OnPage | None = None
    on_turn: Callable[[Coordinator], object] = lambda _: None
    on_warning: Callable[[str], object] = lambda _: None
    on_event: OnEvent | None = None
    around: Callable[[Any], AbstractContextManager[object]] = nullcontext
    beside: Callable[[Running], AbstractAsyncContextManager[object]] = nullcontext
    watchers: tuple[Watcher, ...] = ()


class Surroundings(msgspec.Struct, frozen=True):
    """The network, the clock and the environment variables of a run; without a transport a real one is opened."""

    transport: Transport | None = None
    clock: Clock = msgspec.field(default_factory=SystemClock)
    environ: Mapping[str, str] = msgspec.field(default_factory=lambda: os.environ)

    def __repr__(self) -> str:  # the environment holds secrets
        return f"Surroundings(transport={self.transport!r}, clock={self.clock!r})"


class _Equipment(msgspec.Struct, frozen=True):
    """What a run was given besides its settings: what requests carry, plugins, what an earlier crawl knows, a browser."""

    carried: Carried
    plugged: "Plugged | None"
    earlier: Earlier | None
    renderer: "Renderer | None"


def default_directory(seeds: Sequence[str]) -> Path:
    """Return `<host of the first seed>.crawl`. UsageError without a seed, or if it is no URL."""
    return Path(f"{host_of(read_seeds(seeds[:1])[0])}.crawl")


def read_seeds(seeds: Sequence[str]) -> list[str]:
    """Return seeds in normal form, each once. UsageError without any, or naming the first that is no URL."""
    if not seeds:
        raise UsageError("no seed: give a URL to start from, or a file of them with --input")
    return list(dict.fromkeys(parse_seed(seed) for seed in seeds))


async def begin(
    seeds: Sequence[str],
    directory: Path,
    config: Config,
    hooks: Hooks,
    surroundings: Surroundings,
    since: Path | None = None,
) -> Outcome:
    """Make a crawl in `directory` and run it; pages that have not changed are as the crawl in `since` knows them.

    UsageError for bad seeds, ConfigError for a secret that is not there and for settings other than those of `since`,
    StateError and its kinds for the directories.
    """
    urls = read_seeds(seeds)
    plugged, config = _plug(config)
    scope = Scope.of(urls, config, None if plugged is None else plugged.accepts)
    check_network(config)
    check_renderer(config, surroundings.environ)
    carried = carried_by(config, surroundings.environ)
    check_space(directory, config.min_free_disk)
    identity = None if since is None else identity_of(since, config)
    async with AsyncExitStack() as resources:
        earlier = resources.enter_context(open_earlier(identity))
        renderer = await resources.enter_async_context(open_renderer(config, surroundings.environ))
        state = resources.enter_context(CrawlState.create(directory, config))
        if identity is not None:
            state.note_earlier(identity)
        if surroundings.transport is None:
            state.allow_private(await seeds_private_addresses(urls, config))
        open_archive(state, config)
        callers = _callers(state, hooks, plugged)
        coordinator = _coordinator(state, scope, hooks, surroundings.clock.now(), config, callers)
        admit_seeds(state, coordinator, urls, surroundings.clock)
        state.seal()
        return await _drive(state, coordinator, hooks, surroundings, _Equipment(carried, plugged, earlier, renderer))


def admit_seeds(state: CrawlState, coordinator: Coordinator, urls: Sequence[str], clock: Clock) -> None:
    """Begin a crawl with seeds in normal form, in several checkpoints where there are many."""
    for start in range(0, len(urls), SEEDS_A_BATCH):
        some = urls[start : start + SEEDS_A_BATCH]
        for number, url in enumerate(some, start):
            state.add_seed(number, url)
        coordinator.admit_seeds(some)
        coordinator.freeze(clock.now()).write()
        state.installed()


class Membership(msgspec.Struct, frozen=True):
    """That a crawl directory is partition `number` of a crawl in partitions, whose scope all its seeds, `span`, span."""

    number: int
    owners: Owners
    span: list[str]


async def go_on(
    directory: Path,
    changes: Mapping[str, object],
    hooks: Hooks,
    surroundings: Surroundings,
    retry: frozenset[Reason] = frozenset(),
    membership: Membership | None = None,
) -> Outcome:
    """Resume the crawl in `directory`, with changed settings, trying again what failed for the reasons in `retry`.

    A partition that has finished goes on too: others may have something for it.
    ConfigError for settings that may not change and for a secret that is gone, StateError and its kinds.
    """
    from crawlkit.engine.lost import find_lost, take_back  # noqa: PLC0415  (a crawl that begins has lost nothing)

    async with AsyncExitStack() as resources:
        state = resources.enter_context(CrawlState.open(directory))
        config = changed_config(state.config(), changes)
        lost = find_lost(state)
        is_idle = state.counters.finished and not (changes or retry or lost or membership)
        check_network(config)
        if not is_idle:
            check_renderer(config, surroundings.environ)
        carried = Carried() if is_idle else carried_by(config, surroundings.environ)
        plugged, config = (None, config) if is_idle else _plug(config)
        if not state.counters.finished:
            check_space(directory, config.min_free_disk)
        span = state.first_seeds() if membership is None else membership.span
        scope = Scope.of(span, config, None if plugged is None else plugged.accepts)
        abroad = None if membership is None else Abroad(state.letters, membership.owners, membership.number)
        callers = _callers(state, hooks, plugged, abroad)
        coordinator = _coordinator(state, scope, hooks, surroundings.clock.now(), config, callers)
        if lost:
            hooks.on_warning(take_back(state, coordinator, lost, surroundings.clock.now()))
        open_archive(state, config)
        if changes:
            state.change_settings(config, changes)
        if retry:
            from crawlkit.engine.revival import revive  # noqa: PLC0415  (few crawls try again)

            revive(state, coordinator, retry, surroundings.clock.now())
        earlier = resources.enter_context(open_earlier(None if is_idle else state.earlier()))
        renderer = await resources.enter_async_context(open_renderer(None if is_idle else config, surroundings.environ))
        # Before the first request: a kill soon after it must not look like the clean end of the run before.
        coordinator.freeze(surroundings.clock.now()).write()
        state.installed()
        return await _drive(state, coordinator, hooks, surroundings, _Equipment(carried, plugged, earlier, renderer))


def _plug(config: Config) -> tuple["Plugged | None", Config]:
    """Return the plugins that the settings name, if any, and the settings with each pinned to what it is now."""
    if not config.plugin:
        return None, config
    from crawlkit.engine.plugging import load_plugins  # noqa: PLC0415  (takes 3 ms of a start, and most crawls have none)

    plugged = load_plugins(config.plugin)
    return plugged, replace(config, plugin=plugged.pins)


def _callers(state: CrawlState, hooks: Hooks, plugged: "Plugged | None", abroad: Abroad | None = None) -> Callers:
    """Return whom the coordinator calls; where there are plugins, which nobody can know to be pure, the report says so."""
    priority = None
    if plugged is not None:
        state.counters.depend(OrderReason.HOOK)
        priority = plugged.priority
    return Callers(hooks.on_page, priority=priority, watchers=hooks.watchers, abroad=abroad)


def _coordinator(state: CrawlState, scope: Scope, hooks: Hooks, now: float, config: Config, callers: Callers) -> Coordinator:
    """Return who decides; where pages are rendered, whose scripts nobody can know to be pure, the report says so."""
    if config.render:
        state.counters.depend(OrderReason.RENDER)
    if hooks.on_event is None:
        return Coordinator(state, config, scope, now, callers)
    return TellingCoordinator(state, config, scope, now, callers, hooks.on_event)


async def _drive(
    state: CrawlState, coordinator: Coordinator, hooks: Hooks, surroundings: Surroundings, equipment: _Equipment
) -> Outcome:
    config = state.config()
    if config.insecure:
        hooks.on_warning(UNVERIFIED)
    if hooks.on_event is not None:
        counters, run = state.counters, len(state.runs)
        began = RunBegan(str(state.directory), run, counters.queued, counters.seen)
        hooks.on_event(began, surroundings.clock.now())
    resolver = open_resolver(config, state.private_addresses())
    transport = surroundings.transport or open_network(
        config, resolver, connections=config.workers, proxy_proof=equipment.carried.proxy_proof
    )
    try:
        extra, earlier, plugged = equipment.carried.extra, equipment.earlier, equipment.plugged
        async with rendering_pages(equipment.renderer, state, transport, surroundings.clock, extra) as pages:
            worker = Worker(
                transport, config, surroundings.clock, extra, resolver, earlier=earlier, plugged=plugged, renderer=pages
            )
            loop = Loop(coordinator, worker, config, surroundings.clock, hooks.on_turn, hooks.watchers)
            with hooks.around(loop):
                async with hooks.beside(Running(coordinator, loop, config, surroundings.clock, resolver, hooks.on_event)):
                    how = await loop.run()
        return Outcome(state.directory, how, state.counters, () if state.counters.pages else _barren_seeds(state))
    finally:
        if surroundings.transport is None:
            await transport.aclose()


def _barren_seeds(state: CrawlState, most: int = 5) -> tuple[BarrenSeed, ...]:
    """Return what became of the first seeds that have settled: why a crawl found nothing."""
    barren: list[BarrenSeed] = []
    for url in itertools.islice(state.seeds(), most):
        record = state.pages.get(url)
        if record is not None:
            target = record.redirect_to if record.kind is Kind.REDIRECT else None
            barren.append(BarrenSeed(record, target is not None and not _is_admitted(state, target)))
    return tuple(barren)


def _is_admitted(state: CrawlState, url: str) -> bool:
    return state.seen.find(url, state.hosts.get(host_of(url)).id) is not None
