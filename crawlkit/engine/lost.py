"""Bytes of the archive that are gone: files that were cut or removed. What they archived is fetched again.

A revisit whose original is gone archives nothing either. Its bytes stay where they are, and it is no record's any more.
"""

import itertools
from collections.abc import Iterable, Mapping

import msgspec

from crawlkit.archive.files import file_name, found_sizes
from crawlkit.engine.coordinator import Coordinator
from crawlkit.engine.revival import requeue
from crawlkit.exchange import Extent, Role
from crawlkit.policy.urls import origin_of
from crawlkit.state.crawl import CrawlState
from crawlkit.state.sitemaps import SitemapState

EXTENTS_A_BATCH = 1_000


class Lost(msgspec.Struct, frozen=True):
    """The files that are shorter than they were, by number, each with the size of what is still whole in it (0 for none).

    `places` are the responses that are gone, which revisits may refer to.
    """

    files: Mapping[int, int]
    places: frozenset[tuple[int, int]]


def find_lost(state: CrawlState) -> Lost | None:
    """Return which acknowledged bytes of the archive are gone, None if none are."""
    acknowledged = state.extents.sizes
    found = found_sizes(state.directory, acknowledged, state.crawl_id)
    files: dict[int, int] = {}
    places: set[tuple[int, int]] = set()
    for number in sorted(acknowledged):
        if found[number] >= acknowledged[number]:
            continue
        files[number] = 0
        for extent in _extents_of(state, number):
            if extent.end <= found[number]:
                files[number] = extent.end
            else:
                places.add((number, extent.offset))
    return Lost(files, frozenset(places)) if files else None


def take_back(state: CrawlState, coordinator: Coordinator, lost: Lost, now: float) -> str:
    """Queue the URLs whose archived answers are gone, forget where those were; return what happened, as a warning.

    Each batch is a checkpoint of its own. The files' new sizes come with the last one: after a kill this is done again.
    """
    queued = 0
    # Revisits first: once the rows of their originals are gone nothing tells that they refer to nothing.
    dangling = (e for e in state.extents.walk() if e.original in lost.places and (e.file, e.offset) not in lost.places)
    gone = (e for number in lost.files for e in _extents_of(state, number) if (number, e.offset) in lost.places)
    extents = itertools.chain(dangling, gone)
    while batch := list(itertools.islice(extents, EXTENTS_A_BATCH)):
        queued += sum([_take_back(state, extent, lost) for extent in batch])
        coordinator.freeze(now).write()
        state.installed()
    for number, size in lost.files.items():
        state.extents.set_size(number, size)
    coordinator.look_again()
    names = ", ".join(file_name(state.crawl_id, number) for number in lost.files)
    return (
        f"warning: the archive has lost bytes of {names}: {len(lost.places)} exchanges; "
        f"the {queued} URLs whose answers they were are fetched again"
    )


def _extents_of(state: CrawlState, number: int) -> Iterable[Extent]:
    return itertools.takewhile(lambda extent: extent.file == number, state.extents.walk_from(number, 0))


def _take_back(state: CrawlState, extent: Extent, lost: Lost) -> bool:
    """Forget one extent, as far as it is gone; whether its URL is queued for it."""
    record = state.pages.get(extent.url) if extent.role is Role.RECORD else None
    if record is not None:
        requeue(state, record)
    if extent.role is Role.ROBOTS:
        state.origins.expire(origin_of(extent.url))
    if extent.role is Role.SITEMAP:
        _read_again(state, extent.url)
    if (extent.file, extent.offset) in lost.places:
        state.extents.remove(extent)
    else:
        state.extents.supersede(extent)
    return record is not None


def _read_again(state: CrawlState, url: str) -> None:
    """Let a sitemap wait that was read; one that failed would fail again."""
    row = state.sitemaps.get(url)
    if row is not None and row.state is SitemapState.READ:
        state.sitemaps.put(msgspec.structs.replace(row, state=SitemapState.WAITING, attempts=0))
        state.counters.finished = False
