"""Crawls to export, made without a network."""

from collections.abc import Callable, Iterable
from pathlib import Path

from crawlkit.model import Content, Kind, OrderReason, Reason, Record
from crawlkit.sitemap import SitemapEntry
from crawlkit.state.pages import reported_kind
from tests.state.making import begin_crawl

Make = Callable[..., Path]

HTML = {"status": 200, "content_type": "text/html", "charset": "utf-8", "body_bytes": 12, "truncated": False}


def page(url: str, **facts: object) -> Record:
    """Return the record of an HTML page with status 200, or as `facts` say."""
    return Record(url=url, kind=Kind.PAGE, depth=1, **{**HTML, **facts})  # type: ignore[arg-type]


RECORDS = [
    page("http://a.test/", title="=1+1", digest="sha256:00", links=("http://a.test/b", "http://o.test/?a,b"), nofollow=(1,)),
    page("http://a.test/b", title='Ünïcode \'n "quotes",\0\r', canonical="http://a.test/", directives=("noindex",)),
    page("http://a.test/data", content_type="text/plain", title=None),
    Record(
        url="http://a.test/gone", kind=Kind.FAILURE, depth=2, status=404, reason=Reason.CLIENT_ERROR, message="no", attempts=3
    ),
    Record(url="http://a.test/old", kind=Kind.REDIRECT, depth=1, status=301, redirect_to="http://a.test/b"),
    Record(url="http://a.test/secret", kind=Kind.EXCLUDED, depth=1, reason=Reason.ROBOTS_DISALLOW),
    page("http://a.test/é", title=""),
]

CONTENTS = {RECORDS[0].url: Content("The main text", (("first", ""), ("", "sponsored")))}


def make_crawl(directory: Path, records: Iterable[Record], reasons: Iterable[OrderReason] = ()) -> Path:
    """Leave a crawl with these records, and what `CONTENTS` has of them."""
    with begin_crawl(directory) as state:
        for record in records:
            state.pages.put(record, CONTENTS.get(record.url))
            state.pages.note(SitemapEntry(record.url, record.lastmod, record.priority))
            state.counters.settled(reported_kind(record))
        state.counters.reasons.update(reasons)
        state.checkpoint()
    return directory
