"""Which pages a search engine may show as themselves."""

from crawlkit.model import Kind, Record
from crawlkit.policy.content_type import HTML, XHTML


def is_html(record: Record) -> bool:
    """Whether the record is of an answer that was read as HTML; without a type only what was has a charset."""
    if record.content_type is None:
        return record.charset is not None
    return record.content_type in (HTML, XHTML)


def is_indexable(record: Record) -> bool:
    """Whether the page counts as itself: HTML with status 200, without noindex, whose canonical is no other page."""
    return (
        record.kind is Kind.PAGE
        and record.status == 200
        and is_html(record)
        and not {"noindex", "none"}.intersection(record.directives)
        and record.canonical in (None, record.url)
    )
