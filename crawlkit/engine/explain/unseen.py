"""Why a URL was never admitted: by a rule, by what was kept of its refusal, or by what leads to it, if anything does."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from crawlkit.config import Config
from crawlkit.engine.explain.answer import Code, Fate, Linkers, Ruling
from crawlkit.engine.explain.path import is_too_many, leads_to, linkers_of
from crawlkit.model import Reason, Record, Refusal
from crawlkit.policy.urls import host_of, origin_of
from crawlkit.state.looking import Looking
from crawlkit.state.origins import RobotsState


@dataclass(frozen=True, slots=True)
class Unseen:
    """Why, at what depth it would be (None if no way is known), and what leads to it."""

    code: Code
    depth: int | None
    linkers: Linkers


def why_unseen(url: str, rulings: Iterable[Ruling], looking: Looking, config: Config, most: int) -> Unseen:
    """Return why a URL has no entry; `rulings` are those on the URL alone, `most` is how many records are searched."""
    linkers, records = linkers_of(looking, url, most)
    kept = looking.refusal(url, host_of(url))
    ways = list(_admitting(records, url))
    depths = [depth for _, depth in ways] + ([kept.depth] if kept and kept.refusal is not Refusal.TRAP_SITEMAP else [])
    depth = min(depths, default=None)
    refused = next((Refusal(ruling.code) for ruling in rulings if not ruling.passed), None)
    if refused is None and depth is not None and config.max_depth is not None and depth > config.max_depth:
        refused = Refusal.DEPTH
    if refused is None and kept is not None and kept.refusal is Refusal.HOOK:
        refused = Refusal.HOOK
    if refused is not None:
        return Unseen(refused, depth, linkers)
    admitting = [record for record, _ in ways]
    if any(looking.owes_links(record, host_of(record.url)) for record in admitting):
        return Unseen(Fate.LINKS, depth, linkers)
    file = None if records or kept else _as_file(url, looking)
    if file is not None:
        return Unseen(file, None, linkers)
    others = [record for record in records if record not in admitting]
    code = _by_links(url, admitting, others, None if kept is None else kept.refusal, linkers)
    if code is Fate.UNEXPLAINED and config.plugin:  # of what plugins refuse not all is kept
        code = Refusal.HOOK
    return Unseen(code, depth, linkers)


def _as_file(url: str, looking: Looking) -> Fate | None:
    """Return as what a URL is known that is no page's: a robots.txt, a sitemap."""
    origin = origin_of(url)
    if url == f"{origin}/robots.txt" and looking.origin(origin).state is not RobotsState.UNKNOWN:
        return Fate.ROBOTS_FILE
    return None if looking.sitemap(url) is None else Fate.SITEMAP


def _admitting(records: Iterable[Record], url: str) -> Iterator[tuple[Record, int]]:
    """Yield the records that would admit a URL, with the depth it has by each."""
    for record in records:
        for how in leads_to(record, url):
            if how == "redirect" and not is_too_many(record, url):
                yield record, record.depth
            elif how in ("link", "canonical"):
                yield record, record.depth + 1


def _by_links(url: str, admitting: list[Record], others: list[Record], kept: Refusal | None, linkers: Linkers) -> Code:
    """Return what the records say that admit a URL, then the `others` that lead to it; `kept` is a refusal that was kept."""
    if kept is Refusal.TRAP_TEMPLATE or any(record.held for record in admitting):  # it had to wait, and waits no more
        return Refusal.TRAP_TEMPLATE
    if admitting:
        return Fate.UNEXPLAINED
    if kept is Refusal.TRAP_SITEMAP:
        return kept
    if any(is_too_many(record, url) for record in others):
        return Reason.TOO_MANY_REDIRECTS
    if others:
        return Refusal.NOFOLLOW
    return Fate.NEVER_LINKED if linkers.complete else Fate.NOT_FOUND
