"""What the caller and the plugins are shown and asked while the coordinator works, and what becomes of an exception then."""

from collections.abc import Callable

import msgspec

from crawlkit.engine.abroad import Abroad
from crawlkit.engine.watcher import Watcher
from crawlkit.model import Kind, Record

OnPage = Callable[[Record], object]
OnRecord = Callable[[Record], object]


class Callers(msgspec.Struct, frozen=True):
    """Whom the coordinator calls: with each page, with each record, and for the priority of a URL (None for its depth).

    `watchers` are told of records too. Only `on_page` may raise: that ends the run. What belongs to other partitions of the
    crawl goes `abroad`.
    """

    on_page: OnPage | None = None
    on_record: OnRecord | None = None
    priority: Callable[[str], int | None] | None = None
    watchers: tuple[Watcher, ...] = ()
    abroad: Abroad | None = None


NOBODY = Callers()


class PageHookError(Exception):
    """`on_page` raised: `original` is what."""

    def __init__(self, original: BaseException) -> None:
        super().__init__(str(original))
        self.original = original


def show(callers: Callers, record: Record) -> None:
    """Show the callers a record as far as they want it; PageHookError for whatever `on_page` makes of a page."""
    if callers.on_page is not None and record.kind is Kind.PAGE:
        try:
            callers.on_page(record)
        except Exception as error:
            raise PageHookError(error) from error
    if callers.on_record is not None:
        callers.on_record(record)
    for watcher in callers.watchers:
        watcher.settled(record)
