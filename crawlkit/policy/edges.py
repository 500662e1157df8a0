"""Which URLs a settled one admits, and at what distance: the edges that depth and hops are measured along."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from crawlkit.model import MAX_HOPS, Record


class Edge(NamedTuple):
    """A URL that a record leads to, with the distances it has on this way."""

    url: str
    depth: int
    hops: int


def followed(record: Record) -> Sequence[str]:
    """Return the URLs one link further: followed links and the canonical, which may be one of them."""
    urls: Sequence[str] = record.links
    if record.nofollow:
        kept_out = frozenset(record.nofollow)
        urls = [url for index, url in enumerate(urls) if index not in kept_out]
    if record.canonical is not None and record.admits_canonical:
        urls = [*urls, record.canonical]
    return urls


def redirected(record: Record) -> Edge | None:
    """Return the edge to the target of a redirect, one hop further; None for any other record, and after too many hops."""
    if record.redirect_to is None or record.hops >= MAX_HOPS:
        return None
    return Edge(record.redirect_to, record.depth, record.hops + 1)


def admitting_edges(record: Record) -> Iterator[Edge]:
    """Yield all that `record` leads to, links first."""
    for url in followed(record):
        yield Edge(url, record.depth + 1, 0)
    if (edge := redirected(record)) is not None:
        yield edge
