"""A record as the report shows it: the one list of its fields, their order and their types.

JSON lines, CSV and the exports all take their columns from here.
"""

import msgspec

from crawlkit.model import FieldValue, Kind, Reason, Record, Source
from crawlkit.policy.metadata import HEADINGS
from crawlkit.sentences import detail_of

_SOURCES = tuple(
    tuple(str(source.name).lower() for source in (Source.SEED, Source.SITEMAP, Source.LINK) if bits & source)
    for bits in range(sum(Source) + 1)
)


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """One line of JSON: these fields in this order, all of them always there."""

    url: str
    kind: Kind
    status: int | None
    depth: int
    content_type: str | None
    charset: str | None
    bytes: int | None
    truncated: bool | None
    title: str | None
    digest: str | None
    links: tuple[str, ...]
    redirect_to: str | None
    canonical: str | None
    duplicate_of: str | None
    fields: dict[str, FieldValue]
    reason: Reason | None
    detail: str | None
    description: str | None
    language: str | None
    directives: tuple[str, ...]
    headings: dict[str, int] | None
    alternates: dict[str, str]
    etag: str | None
    last_modified: str | None
    words: int | None
    text_digest: str | None
    sources: tuple[str, ...]
    lastmod: str | None
    priority: float | None
    near_duplicate_of: str | None


class TimedLine(Line, frozen=True, kw_only=True):
    """A line with what depends on time and order: `fetched_at` in seconds since the epoch, `message` the library's."""

    message: str | None
    fetched_at: float | None
    elapsed_ms: int | None
    attempts: int
    via: str | None
    not_modified: bool


def as_line(record: Record) -> Line:
    """Return what the report says of a record."""
    return Line(
        url=record.url,
        kind=record.kind,
        status=record.status,
        depth=record.depth,
        content_type=record.content_type,
        charset=record.charset,
        bytes=record.body_bytes,
        truncated=record.truncated,
        title=record.title,
        digest=record.digest,
        links=record.links,
        redirect_to=record.redirect_to,
        canonical=record.canonical,
        duplicate_of=record.duplicate_of,
        fields=record.fields,
        reason=record.reason,
        detail=detail_of(record.reason, record.rendering),
        description=record.description,
        language=record.language,
        directives=record.directives,
        headings=dict(zip(HEADINGS, record.headings, strict=True)) if record.headings else None,
        alternates=dict(record.alternates),
        etag=record.etag,
        last_modified=record.last_modified,
        words=record.words,
        text_digest=record.text_digest,
        sources=_SOURCES[record.sources],
        lastmod=record.lastmod,
        priority=record.priority,
        near_duplicate_of=record.near_duplicate_of,
    )


def as_timed_line(record: Record) -> TimedLine:
    """Return what the report says of a record with timing."""
    return TimedLine(
        **msgspec.structs.asdict(as_line(record)),
        message=record.message,
        fetched_at=record.fetched_at,
        elapsed_ms=record.elapsed_ms,
        attempts=record.attempts,
        via=record.via,
        not_modified=record.not_modified,
    )
