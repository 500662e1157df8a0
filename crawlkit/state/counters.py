"""Counters of the whole crawl: kept in each batch beside what they count, so that both are of the same moment."""

from collections import Counter
from collections.abc import Sequence
from typing import Final, TypedDict, assert_never

import msgspec

from crawlkit.model import Kind, OrderReason, Refusal

_PAGE: Final = Kind.PAGE  # looked up once (`model`)


class SitemapCounts(TypedDict):
    """How many sitemaps wait, were read, failed, named more than was taken; and how many URLs they named."""

    waiting: int
    read: int
    failed: int
    cut: int
    urls: int


class Counters(msgspec.Struct):
    """Sums over all runs. `queued` counts URLs that are not settled, `sequence` is the last number given to a row.

    `held` counts pages some of whose links wait for the template budget. `refused` counts by code the links that were not
    admitted, each time one is met; `reasons` are what made the report depend on order or time. `sitemaps` counts those that
    wait to be read, `sitemaps_cut` the read ones that named more than was taken, `sitemap_urls` what they named. `noted` counts
    the rows that tell of some URLs why they were refused.
    `hosts_held` counts the hosts that people hold until they release them.
    """

    sequence: int = 0
    seen: int = 0
    queued: int = 0
    hosts: int = 0
    pages: int = 0
    redirects: int = 0
    failures: int = 0
    excluded: int = 0
    body_bytes: int = 0
    requests: int = 0
    elapsed_s: float = 0.0
    finished: bool = False
    refused: dict[str, int] = {}
    reasons: set[str] = set()
    held: int = 0
    sitemaps: int = 0
    sitemaps_read: int = 0
    sitemaps_failed: int = 0
    sitemaps_cut: int = 0
    sitemap_urls: int = 0
    noted: int = 0
    hosts_held: int = 0

    def settled(self, kind: Kind, by: int = 1) -> None:
        """Count a record of `kind`, or take one back with `by=-1`."""
        if kind is _PAGE:
            self.pages += by
            return
        match kind:
            case Kind.REDIRECT:
                self.redirects += by
            case Kind.FAILURE:
                self.failures += by
            case Kind.EXCLUDED:
                self.excluded += by
            case _:
                assert_never(kind)

    @property
    def short_of_credit(self) -> bool:
        """Whether what some pages lead to waits for the template budget, or was refused for want of it in the end."""
        return self.held > 0 or self.refused.get(Refusal.TRAP_TEMPLATE, 0) > 0

    def refuse(self, refusal: Refusal) -> None:
        """Count a link that was not admitted."""
        self.refused[refusal] = self.refused.get(refusal, 0) + 1

    def depend(self, reason: OrderReason) -> None:
        """Note that the report depends on order or time, and why."""
        self.reasons.add(reason)

    @property
    def records(self) -> int:
        """How many URLs have settled."""
        return self.pages + self.redirects + self.failures + self.excluded


def sitemap_counts(counters: Counters) -> SitemapCounts:
    """Return what there is to say of a crawl's sitemaps."""
    return SitemapCounts(
        waiting=counters.sitemaps,
        read=counters.sitemaps_read,
        failed=counters.sitemaps_failed,
        cut=counters.sitemaps_cut,
        urls=counters.sitemap_urls,
    )


def summed(parts: Sequence[Counters]) -> Counters:
    """Return the counters of a crawl in partitions: sums, but for the time, in which they ran side by side.

    It is finished when all of them are; whatever one depended on, the whole depends on.
    """
    total = Counters()
    for name in Counters.__struct_fields__:
        if type(getattr(total, name)) is int:
            setattr(total, name, sum(getattr(part, name) for part in parts))
    total.sequence = max((part.sequence for part in parts), default=0)
    total.elapsed_s = max((part.elapsed_s for part in parts), default=0.0)
    total.finished = all(part.finished for part in parts)
    total.reasons = set().union(*(part.reasons for part in parts))
    refused: Counter[str] = Counter()
    for part in parts:
        refused.update(part.refused)
    total.refused = dict(refused)
    return total
