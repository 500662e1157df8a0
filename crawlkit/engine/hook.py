"""What the caller is shown of each page, and what it raises then."""

from collections.abc import Callable

from crawlkit.model import Kind, Record

OnPage = Callable[[Record], object]


class PageHookError(Exception):
    """`on_page` raised: `original` is what."""

    def __init__(self, original: BaseException) -> None:
        super().__init__(str(original))
        self.original = original


def show(on_page: OnPage | None, record: Record) -> None:
    """Show the caller a record, if it is a page and is wanted; PageHookError for whatever comes of that."""
    if on_page is None or record.kind is not Kind.PAGE:
        return
    try:
        on_page(record)
    except Exception as error:
        raise PageHookError(error) from error
