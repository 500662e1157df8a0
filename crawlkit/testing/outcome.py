"""What came of a simulated crawl against what its world says.

Where everything found credit, each record is known beforehand. Where the template budget ran out, order decides which URLs
were admitted, as the report says; of those all else is known, up to ways that were met too late, and the others were refused.
"""

from collections.abc import Callable, Collection, Iterable, Mapping

import msgspec

from crawlkit.model import MAX_HOPS, OrderReason, Reason, Record, Refusal, Source
from crawlkit.policy.edges import admitting_edges
from crawlkit.policy.urls import host_of
from crawlkit.state.counters import Counters
from crawlkit.state.crawl import CrawlState
from crawlkit.testing.watch import TrapMet, require
from crawlkit.testing.world import World


def report_of(run: Callable[[], bytes]) -> bytes | None:
    """Return what a crawl reports, None if it says that the order of its pages decided what that is."""
    try:
        return run()
    except TrapMet:
        return None


def dump(records: Iterable[Record]) -> bytes:
    """Return records as one line each, without what depends on time or order."""
    return b"\n".join(
        msgspec.json.encode(
            msgspec.structs.replace(r, fetched_at=None, elapsed_ms=None, attempts=0, via=None, message=None, held=False)
        )
        for r in records
    )


def check_outcome(world: World, max_depth: int | None, found: Mapping[str, Record], counters: Counters) -> None:
    """SimulationError unless the records of a crawl that has finished are right."""
    refused = counters.refused.get(Refusal.TRAP_TEMPLATE, 0)
    require((OrderReason.TRAP in counters.reasons) == (refused > 0), f"{refused} were refused, and the reasons are others")
    if refused:
        check_bounds(found, world.expected(max_depth, within=found))
    else:
        check_records(found, world.expected(max_depth))


def check_records(found: Mapping[str, Record], expected: Mapping[str, Record]) -> None:
    """SimulationError unless each URL ended as expected."""
    for url in sorted(found.keys() | expected.keys()):
        require(url in found, f"{url} has no record")
        require(url in expected, f"{url} has a record and should have none")
        got, right = (dump([records[url]]).decode() for records in (found, expected))
        require(got == right, f"{url} ended as\n{got}\nand should have ended as\n{right}")


def check_bounds(found: Mapping[str, Record], least: Mapping[str, Record]) -> None:
    """SimulationError unless each URL ended as it may: no nearer than `least`, and otherwise the same."""
    for url, got in found.items():
        require(url in least, f"{url} has a record, and nothing that has one leads to it")
        right = least[url]
        require(got.depth >= right.depth and got.hops >= right.hops, f"{url} is nearer than it can be: {got}")
        require(got.sources | Source.LINK == right.sources | Source.LINK, f"{url} has other sources: {got}")
        if got.hops >= MAX_HOPS > right.hops and right.redirect_to is not None:
            require(got.reason is Reason.TOO_MANY_REDIRECTS, f"{url} is no redirect at {got.hops} hops: {got}")
        else:
            right = msgspec.structs.replace(right, depth=got.depth, hops=got.hops, sources=got.sources)
            check_records({url: got}, {url: right})


def check_refusals(state: CrawlState, found: Mapping[str, Record], missing: Collection[str], max_depth: int | None) -> None:
    """SimulationError unless what records lead to and is `missing` was refused, where a page had to wait for credit."""
    for record in found.values():
        for edge in admitting_edges(record):
            if edge.url in missing and (max_depth is None or edge.depth <= max_depth):
                refused = state.refusals.get(state.hosts.id_of(host_of(edge.url)), edge.url)
                require(record.held and refused is not None, f"{edge.url}, to which {record.url} leads, was lost")
