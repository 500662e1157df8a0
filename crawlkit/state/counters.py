"""Counters of the whole crawl: kept in each batch beside what they count, so that both are of the same moment."""

import msgspec

from crawlkit.model import Kind, OrderReason, Refusal


class Counters(msgspec.Struct):
    """Sums over all runs. `queued` counts URLs that are not settled, `sequence` is the last number given to a row.

    `held` counts pages some of whose links wait for the template budget. `refused` counts by code the links that were not
    admitted, each time one is met; `reasons` are what made the report depend on order or time.
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

    def settled(self, kind: Kind, by: int = 1) -> None:
        """Count a record of `kind`, or take one back with `by=-1`."""
        match kind:
            case Kind.PAGE:
                self.pages += by
            case Kind.REDIRECT:
                self.redirects += by
            case Kind.FAILURE:
                self.failures += by
            case Kind.EXCLUDED:
                self.excluded += by

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
