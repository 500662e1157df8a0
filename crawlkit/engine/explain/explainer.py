"""Puts an explanation together, of a crawl that is open to be read or is running."""

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from crawlkit.engine.explain import facts, rules
from crawlkit.engine.explain.answer import Code, Explanation, Fate, Linkers, Path, Ruling, Standing
from crawlkit.engine.explain.path import path_past, path_to
from crawlkit.engine.explain.unseen import why_unseen
from crawlkit.engine.explain.words import remedy_of, summary_of
from crawlkit.model import Kind, Record, Refusal, Source
from crawlkit.policy.scope import Scope
from crawlkit.policy.url_steps import read_url
from crawlkit.policy.urls import host_of
from crawlkit.state.codec import SeenEntry, UrlState
from crawlkit.state.looking import Looking, WaitingRow

MOST_SEARCHED = 1_000_000
"""Records that are searched for what leads to a URL: some fifteen seconds at the most. Who may not wait passes less."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """What became of a URL, and the rows that say so."""

    code: Code
    standing: Standing
    depth: int | None = None
    hops: int | None = None
    sources: int = 0
    record: Record | None = None
    waiting: WaitingRow | None = None
    path: Path | None = None
    linkers: Linkers | None = None


class Explainer:
    """Explains URLs of one crawl. Settings and seeds are read once: after a change of settings make another."""

    def __init__(self, looking: Looking, scope: Scope | None = None) -> None:
        """Take the scope of a crawl that runs from it: else all seeds are read, of which there may be a million.

        What plugins say of a URL is not asked anew, by either way.
        """
        self._looking = looking
        self._config = looking.config()
        self._settings = rules.Settings(self._config)
        self._scope = (
            Scope.of(looking.first_seeds(), self._config) if scope is None else msgspec.structs.replace(scope, accepts=None)
        )

    def explain(self, text: str, now: float, most_searched: int = MOST_SEARCHED) -> Explanation:
        """Return the verdict on `text`, as typed; `now` in seconds since the epoch. Any text has one.

        StateDamaged if what is stored of it cannot be read.
        """
        reading = read_url(text)
        shown = text.encode(errors="replace").decode()  # an argument's bytes need not be UTF-8
        said = Explanation(
            typed=shown, url=reading.url, code="", standing=Standing.NO_URL, summary="", remedy=None, steps=reading.steps
        )
        if reading.url is None:
            assert reading.problem is not None
            return self._in_words(reading.problem, said)
        entry = self._looking.entry(reading.url, host_of(reading.url))
        alone = self._rulings_alone(reading.url, entry)
        found = self._find(reading.url, entry, alone, most_searched)
        return self._in_words(found.code, self._with_facts(said, reading.url, alone, found, now))

    def _in_words(self, code: Code, said: Explanation) -> Explanation:
        looking = self._looking
        remedy = remedy_of(code, said, looking.directory, running=looking.running)
        return msgspec.structs.replace(said, code=code.value, summary=summary_of(code, said), remedy=remedy)

    def _rulings_alone(self, url: str, entry: SeenEntry | None) -> tuple[Ruling, Ruling]:
        """Return what the rules say that look at the URL alone, and at whether it is a seed."""
        is_first = url in self._scope.seeds
        is_added = not is_first and entry is not None and bool(entry.sources & Source.SEED)
        scope = rules.ADDED if is_added else rules.scope_ruling(url, self._scope, self._settings)
        return scope, rules.trap_ruling(url, is_first or is_added, self._settings)

    def _find(self, url: str, entry: SeenEntry | None, alone: Sequence[Ruling], most: int) -> _Found:
        looking = self._looking
        stored = looking.pages.get(url)
        if stored is not None:
            return _settled(looking.pages.marked(stored), path_to(looking, url, most))
        if entry is not None and entry.state is not UrlState.SETTLED:
            return _pending(entry, looking.waiting(url, host_of(url), entry), path_to(looking, url, most))
        unseen = why_unseen(url, alone, looking, self._config, most)
        standing = Standing.REFUSED if isinstance(unseen.code, Refusal) else Standing.UNSEEN
        return _Found(
            code=unseen.code,
            standing=standing,
            depth=unseen.depth,
            linkers=unseen.linkers,
            path=path_past(looking, url, unseen.linkers, most),
        )

    def _with_facts(self, said: Explanation, url: str, alone: Sequence[Ruling], found: _Found, now: float) -> Explanation:
        looking, config, settings = self._looking, self._config, self._settings
        name = host_of(url)
        host = looking.host(name)
        robots = rules.robots_standing(url, looking, config)
        budget = facts.budget_standing(url, name, looking, config)
        is_known = found.standing in (Standing.QUEUED, Standing.IN_FLIGHT, Standing.WAITING, Standing.SETTLED)
        return msgspec.structs.replace(
            said,
            standing=found.standing,
            depth=found.depth,
            hops=found.hops,
            sources=facts.sources_of(found.sources),
            rules=(
                *alone,
                rules.depth_ruling(found.depth, settings),
                rules.robots_ruling(robots, settings),
                rules.budget_ruling(budget, is_known, settings),
                *rules.limit_rulings(host, looking, settings),
            ),
            path=found.path,
            linked_from=found.linkers,
            record=None if found.record is None else facts.outcome_of(found.record),
            attempts=facts.attempts_of(found.record, found.waiting),
            robots=robots,
            host=None if host is None else facts.host_standing(host, looking, config, now),
            budget=budget,
            archive=facts.archive_places(url, looking),
        )


def _settled(record: Record, path: Path) -> _Found:
    done = Fate.REDIRECT if record.kind is Kind.REDIRECT else Fate.PAGE
    return _Found(
        code=record.reason or done,
        standing=Standing.SETTLED,
        depth=record.depth,
        hops=record.hops,
        sources=record.sources,
        record=record,
        path=path,
    )


def _pending(entry: SeenEntry, waiting: WaitingRow, path: Path) -> _Found:
    if waiting.claimed:
        code, standing = Fate.IN_FLIGHT, Standing.IN_FLIGHT
    elif entry.state is UrlState.TIMED:
        code, standing = Fate.RETRY, Standing.WAITING
    else:
        code, standing = Fate.QUEUED, Standing.QUEUED
    return _Found(
        code=code, standing=standing, depth=entry.depth, hops=entry.hops, sources=entry.sources, waiting=waiting, path=path
    )
