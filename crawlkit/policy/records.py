"""Records made from what a fetch led to."""

from dataclasses import dataclass

from crawlkit.model import Content, Facts, Fetched, Record
from crawlkit.policy.disposition import Done


@dataclass(frozen=True, slots=True)
class Place:
    """Where a URL stands in the crawl: distances and sources, the failed fetches before this one, where it was first met."""

    url: str
    depth: int
    hops: int
    sources: int
    attempts: int
    via: str | None


def record_of(place: Place, done: Done, fetched: Fetched | None) -> Record:
    """Return the record of a URL that settles as `done`; `fetched` is None where no request was needed."""
    timing = {} if fetched is None else {
        "fetched_at": fetched.started_s,
        "elapsed_ms": round((fetched.ended_s - fetched.started_s) * 1000),
        "attempts": place.attempts + 1,
    }  # fmt: skip
    facts = fetched.answer if fetched is not None and isinstance(fetched.answer, Facts) else None
    told = {} if facts is None else {
        "status": facts.status,
        "content_type": facts.content_type,
        "charset": facts.charset,
        "body_bytes": facts.body_bytes,
        "truncated": facts.truncated,
        "title": facts.title,
        "digest": facts.digest,
        "links": facts.links,
        "nofollow": facts.nofollow,
        "redirect_to": facts.location,
        "canonical": facts.canonical,
        "admits_canonical": facts.admits_canonical,
        "directives": facts.directives,
        "description": facts.description,
        "language": facts.language,
        "headings": facts.headings,
        "alternates": facts.alternates,
        "etag": facts.etag,
        "last_modified": facts.last_modified,
        "words": facts.words,
        "text_digest": facts.text_digest,
        "fields": facts.fields,
        "simhash": facts.simhash,
    }  # fmt: skip
    return Record(
        url=place.url, kind=done.kind, depth=place.depth, hops=place.hops, reason=done.reason, message=done.message,
        via=place.via, sources=place.sources, **told, **timing,  # type: ignore[arg-type]
    )  # fmt: skip


def content_of(fetched: Fetched | None) -> Content | None:
    """Return what is to be kept beside the record, None if that is nothing."""
    return fetched.answer.content if fetched is not None and isinstance(fetched.answer, Facts) else None
