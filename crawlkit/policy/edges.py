"""Which URLs a settled one admits, and at what distance: the edges that depth and hops are measured along."""

from collections.abc import Iterator
from typing import NamedTuple

from crawlkit.model import MAX_HOPS, Record


class Edge(NamedTuple):
    """A URL that a record leads to, with the distances it has on this way."""

    url: str
    depth: int
    hops: int


def admitting_edges(record: Record) -> Iterator[Edge]:
    """Yield what `record` leads to: followed links and the canonical one link further, a redirect's target one hop."""
    below = record.depth + 1
    if record.nofollow:
        kept_out = frozenset(record.nofollow)
        for index, url in enumerate(record.links):
            if index not in kept_out:
                yield Edge(url, below, 0)
    else:
        for url in record.links:
            yield Edge(url, below, 0)
    if record.canonical is not None and record.admits_canonical:
        yield Edge(record.canonical, below, 0)
    if record.redirect_to is not None and record.hops < MAX_HOPS:
        yield Edge(record.redirect_to, record.depth, record.hops + 1)
