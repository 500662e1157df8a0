"""Records made from what a fetch led to."""

import msgspec

from crawlkit.model import Content, Facts, Fetched, Record
from crawlkit.policy.disposition import Done


class Place(msgspec.Struct, frozen=True):
    """Where a URL stands in the crawl: distances and sources, the failed fetches before this one, where it was first met."""

    url: str
    depth: int
    hops: int
    sources: int
    attempts: int
    via: str | None


def record_of(place: Place, done: Done, fetched: Fetched | None) -> Record:
    """Return the record of a URL that settles as `done`; `fetched` is None where no request was needed."""
    facts = fetched.answer if fetched is not None and isinstance(fetched.answer, Facts) else None
    fetched_at, elapsed_ms, attempts = None, None, 0
    if fetched is not None:
        fetched_at, elapsed_ms, attempts = fetched.started_s, _elapsed_ms(fetched), place.attempts + 1
    record = Record(
        url=place.url,
        kind=done.kind,
        depth=place.depth,
        hops=place.hops,
        sources=place.sources,
        via=place.via,
        reason=done.reason,
        message=done.message,
        fetched_at=fetched_at,
        elapsed_ms=elapsed_ms,
        attempts=attempts,
        not_modified=fetched is not None and fetched.not_modified,
    )
    if facts is None:
        return record
    return msgspec.structs.replace(
        record,
        status=facts.status,
        content_type=facts.content_type,
        charset=facts.charset,
        body_bytes=facts.body_bytes,
        truncated=facts.truncated,
        title=facts.title,
        digest=facts.digest,
        links=facts.links,
        nofollow=facts.nofollow,
        redirect_to=facts.location,
        canonical=facts.canonical,
        admits_canonical=facts.admits_canonical,
        directives=facts.directives,
        description=facts.description,
        language=facts.language,
        headings=facts.headings,
        alternates=facts.alternates,
        etag=facts.etag,
        last_modified=facts.last_modified,
        words=facts.words,
        text_digest=facts.text_digest,
        fields=dict(facts.fields),
        simhash=facts.simhash,
        rendering=facts.rendering,
    )


def _elapsed_ms(fetched: Fetched) -> int:
    return round((fetched.ended_s - fetched.started_s) * 1000)


def content_of(fetched: Fetched | None) -> Content | None:
    """Return what is to be kept beside the record, None if that is nothing."""
    return fetched.answer.content if fetched is not None and isinstance(fetched.answer, Facts) else None


def facts_of(record: Record, content: Content | None) -> Facts:
    """Return the facts that a page's record was made of, its sketch made up: pages of one text have one, others another."""
    text = (record.text_digest or "").removeprefix("sha256:") if record.words else ""
    return Facts(
        status=record.status or 0,
        content_type=record.content_type,
        charset=record.charset,
        body_bytes=record.body_bytes or 0,
        truncated=bool(record.truncated),
        title=record.title,
        digest=record.digest,
        links=record.links,
        nofollow=record.nofollow,
        canonical=record.canonical,
        admits_canonical=record.admits_canonical,
        directives=record.directives,
        sketch=tuple(int(text[at : at + 8], 16) for at in range(0, len(text), 8)) if record.headings else None,
        description=record.description,
        language=record.language,
        headings=record.headings,
        alternates=record.alternates,
        etag=record.etag,
        last_modified=record.last_modified,
        words=record.words,
        text_digest=record.text_digest,
        fields=record.fields,
        simhash=record.simhash,
        content=content,
        rendering=record.rendering,
    )
