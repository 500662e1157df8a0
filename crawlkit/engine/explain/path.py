"""How a URL is reached from a seed, backwards along records; what is searched for a shorter way is bounded.

Each URL keeps the page on which it was first met (`via`), and that chain always leads to a seed. It is a shortest way as long
as each page on it is one link nearer than the next; where it is not, a shorter way was found later, and the records one link
nearer are searched for one that leads on.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from crawlkit.engine.explain.answer import Linker, Linkers, Path, PathStep
from crawlkit.model import MAX_HOPS, Record, Source
from crawlkit.policy.edges import followed
from crawlkit.policy.urls import host_of
from crawlkit.state.codec import UrlState
from crawlkit.state.looking import Looking

MOST_LINKERS = 10
MOST_STEPS = 10_000
_ENOUGH = 1_000
"""Records that lead to a URL which are compared, to find those that say most."""


@dataclass(frozen=True, slots=True)
class Known:
    """What a step backwards needs of a URL that was seen."""

    depth: int
    sources: int
    via: str | None


@dataclass(slots=True)
class Purse:
    """How many more records may be searched."""

    left: int


def leads_to(record: Record, url: str) -> Iterator[str]:
    """Yield by what a record leads to a URL and admits it: `link`, `canonical`, `redirect`; `nofollow` for what does not."""
    if url in record.links:
        admitting = followed(record)
        yield "link" if url in admitting[: len(record.links)] else "nofollow"
    if record.canonical == url:
        yield "canonical" if record.admits_canonical else "nofollow"
    if record.redirect_to == url:
        yield "redirect"


def is_too_many(record: Record, url: str) -> bool:
    """Whether a record would redirect to a URL, but was itself reached by as many redirects as may be."""
    return record.redirect_to == url and record.hops >= MAX_HOPS


def linkers_of(looking: Looking, url: str, most: int) -> tuple[Linkers, tuple[Record, ...]]:
    """Return the first records that lead to a URL, as told and as stored, of up to `most` that are searched."""
    mentions = looking.pages.mentions(url, most, _ENOUGH, lambda record: any(leads_to(record, url)))
    leading = [(record, how) for record in mentions.records for how in leads_to(record, url)]
    leading.sort(key=lambda pair: (pair[1] == "nofollow", pair[0].depth, pair[0].url.encode()))
    found = tuple(Linker(record.url, how, record.depth) for record, how in leading[:MOST_LINKERS])
    return Linkers(found, mentions.looked_at, mentions.complete), tuple(record for record, _ in leading)


def path_to(looking: Looking, url: str, most: int) -> Path:
    """Return a way to a URL that was seen, searching up to `most` records for where the first-met way is not a shortest."""
    near = _walk(looking, url, Purse(most))
    # Redirects in a circle may lead a shortest way astray, since they take no depth; the first-met way has no circles.
    return near if near.complete else _walk(looking, url, None)


def path_past(looking: Looking, url: str, linkers: Linkers, most: int) -> Path | None:
    """Return the way that would lead to a URL that was not admitted, by the nearest record that leads to it, if one does."""
    if not linkers.found:
        return None
    last = linkers.found[0]
    path = path_to(looking, last.url, most)
    return Path((*path.steps, PathStep(url, last.how)), path.shortest and linkers.complete, path.complete)


def _walk(looking: Looking, url: str, purse: Purse | None) -> Path:
    """Return a way to a URL, backwards: where each was first met, or along what is nearer, as far as the purse goes."""
    steps: list[PathStep] = []
    met = {url}
    shortest = True
    while len(steps) < MOST_STEPS:
        known = _known(looking, url)
        if known is None:  # of a partition that is looked at alone, another one knows it
            return _path([*steps, PathStep(url, "link")] if steps else [], shortest=False, complete=False)
        start = _start(looking, known)
        if start is not None:
            return _path([*steps, PathStep(url, start)], shortest=shortest, complete=True)
        near = None if purse is None else _nearer(looking, url, known, purse, met)
        if near is None and known.via is not None and known.via not in met:
            shortest = False
            near = known.via, _how(looking, known.via, url)
        if near is None:
            return _path([*steps, PathStep(url, "link")], shortest=False, complete=False)
        steps.append(PathStep(url, near[1]))
        url = near[0]
        met.add(url)
    return _path(steps, shortest=False, complete=False)


def _start(looking: Looking, known: Known) -> str | None:
    """Return as what a way begins at a URL, None if it is reached from another one. Crawls of old noted no sources."""
    if known.sources & Source.SEED or (not known.sources and known.via is None):
        return "seed"
    named = known.sources & Source.SITEMAP
    return "sitemap" if named and (known.via is None or _known(looking, known.via) is None) else None


def _path(steps: list[PathStep], *, shortest: bool, complete: bool) -> Path:
    return Path(tuple(reversed(steps)), shortest, complete)


def _known(looking: Looking, url: str) -> Known | None:
    host = host_of(url)
    entry = looking.entry(url, host)
    if entry is None:
        return None
    record = looking.pages.get(url) if entry.state is UrlState.SETTLED else None
    if record is not None:
        return Known(record.depth, record.sources, record.via)
    if entry.state is UrlState.SETTLED:
        return None
    return Known(entry.depth, entry.sources, looking.waiting(url, host, entry).row.via)


def _nearer(looking: Looking, url: str, known: Known, purse: Purse, met: set[str]) -> tuple[str, str] | None:
    """Return a page on a shortest way, and how it leads on: where the URL was first met, if that is one, else searched for."""
    if known.via is not None and known.via not in met:
        first = looking.pages.get(known.via)
        how = None if first is None else _tight(first, url, known.depth)
        if how is not None:
            return known.via, how
    mentions = looking.pages.mentions(
        url,
        purse.left,
        1,
        lambda record: record.url not in met and _tight(record, url, known.depth),
        (known.depth - 1, known.depth),
    )
    purse.left -= mentions.looked_at
    found = next(iter(mentions.records), None)
    return None if found is None else (found.url, _tight(found, url, known.depth) or "link")


def _tight(record: Record, url: str, depth: int) -> str | None:
    """Return how a record leads to a URL at just this depth, None if it does not."""
    for how in leads_to(record, url):
        if how in ("link", "canonical") and record.depth + 1 == depth:
            return how
        if how == "redirect" and record.depth == depth and record.hops < MAX_HOPS:
            return how
    return None


def _how(looking: Looking, near: str, url: str) -> str:
    record = looking.pages.get(near)
    return "link" if record is None else next((how for how in leads_to(record, url) if how != "nofollow"), "link")
