"""How a run ends, as a closed set, and what that means for the crawl's determinism."""

from enum import StrEnum

from crawlkit.config import Config
from crawlkit.errors import ExitStatus
from crawlkit.model import OrderReason
from crawlkit.state import keys
from crawlkit.state.counters import Counters
from crawlkit.state.crawl import CrawlState
from crawlkit.state.damage import damaged


class Ending(StrEnum):
    """Why a run ended; all but FINISHED can be resumed."""

    FINISHED = "finished"
    LIMIT_PAGES = "limit.pages"
    LIMIT_HOST = "limit.host"
    LIMIT_TIME = "limit.time"
    SIGINT = "sigint"
    SIGTERM = "sigterm"
    CANCELLED = "cancelled"
    HOOK = "hook"
    LOW_SPACE = "low_space"
    HELD = "held"  # all that is left is at hosts that people hold


_HOSTS_A_SCAN = 1_024

_LIMITS = {
    Ending.LIMIT_PAGES: OrderReason.LIMIT_PAGES,
    Ending.LIMIT_HOST: OrderReason.LIMIT_HOST,
    Ending.LIMIT_TIME: OrderReason.LIMIT_TIME,
}


def settle_reasons(counters: Counters, how: Ending) -> None:
    """Note in `counters` whether a limit, with something left, decided what the report holds."""
    counters.reasons -= set(_LIMITS.values())
    if how in _LIMITS:
        counters.depend(_LIMITS[how])


def ending_of(state: CrawlState, config: Config, *, pages_spent: bool) -> Ending:
    """Return what it means that nothing is left to claim, in flight or owed; StateDamaged if it should not be so."""
    queued, sitemaps = state.counters.queued, state.counters.sitemaps
    if queued == sitemaps == 0:
        return Ending.FINISHED
    if pages_spent:
        return Ending.LIMIT_PAGES
    if state.counters.hosts_held and (config.max_pages_per_host is None or not _waits_unheld(state)):
        return Ending.HELD
    if config.max_pages_per_host is None:
        raise damaged(f"{queued} URLs and {sitemaps} sitemaps should wait, but no host has them", state.directory)
    return Ending.LIMIT_HOST


def _waits_unheld(state: CrawlState) -> bool:
    """Whether a host that nobody holds has URLs left: 3 us a host, where some are held."""
    start: bytes | None = keys.HOST
    while start is not None:
        found = state.hosts.scan(start, _HOSTS_A_SCAN)
        if any(record.queued and not record.held for _, record in found):
            return True
        start = found[-1][0] + b"\0" if len(found) == _HOSTS_A_SCAN else None
    return False


def exit_status(how: Ending, counters: Counters) -> ExitStatus:
    """Return the contract's status for a run that ended so. A crawl without any page has failed."""
    match how:
        case Ending.SIGINT | Ending.CANCELLED | Ending.HOOK:
            return ExitStatus.SIGINT
        case Ending.SIGTERM:
            return ExitStatus.SIGTERM
        case Ending.LOW_SPACE:
            return ExitStatus.STORAGE
        case Ending.FINISHED | Ending.LIMIT_PAGES | Ending.LIMIT_HOST | Ending.LIMIT_TIME | Ending.HELD:
            failed = counters.failures > 0 or counters.pages == 0
            return ExitStatus.PAGES_FAILED if failed else ExitStatus.DONE
