"""Take from an answer all that the crawl keeps of it, so that its body can be dropped."""

import hashlib
from collections.abc import Iterable, Sequence

from crawlkit.model import Content, Facts, Response
from crawlkit.policy.content_type import read_content_type
from crawlkit.policy.disposition import REDIRECTS
from crawlkit.policy.document import markup_of
from crawlkit.policy.language import language_tag
from crawlkit.policy.link_header import linked_alternates, linked_canonical
from crawlkit.policy.links import Page, read_page, robots_directives
from crawlkit.policy.metadata import Metadata, first_of_each
from crawlkit.policy.novelty import sketch_of
from crawlkit.policy.page_text import one_line, weigh
from crawlkit.policy.simhash import simhash_of
from crawlkit.policy.urls import resolve_location
from crawlkit.policy.wanted import NOTHING_MORE, Wanted
from crawlkit.rendering import Rendered

_READ = frozenset(b"content-language content-type etag last-modified link location refresh retry-after x-robots-tag".split())
"""The header fields that are read."""

_NO_PAGE = Page(
    title=None,
    base="",
    links=(),
    nofollow=(),
    canonical=None,
    directives=frozenset(),
    metadata=Metadata(),
    fields={},
    anchors=(),
    texts=None,
)


def read_answer(
    url: str, response: Response, wanted: Wanted = NOTHING_MORE, *, sketched: bool = True, rendered: Rendered | None = None
) -> Facts:
    """Return what the answer to a request of `url`, a normal form, says. Never raises.

    Title, links and meta elements are read of 2xx answers that are HTML by their type, or by their start where there is
    no type; `canonical` may also come from the Link header of any 2xx answer. `content_type` is what was declared, None
    if nothing usable was. `charset` is the encoding that HTML was read in; of all else, the one that was declared.
    `directives` are those of the robots meta elements and of X-Robots-Tag, without those for another robot than
    our product token. Where `nofollow` or `none` is among them, no link admits, nor does `canonical`. Of a page with
    more than `wanted.most_links` links the first ones are kept, and it is marked as truncated. `language` is the page's
    own, else the one language of Content-Language; `alternates` are the page's, then those of the Link header.
    The sketch of the text, a tenth of the time of the rest, is left out unless `sketched`. Of an answer that is HTML, what
    `rendered` holds is read in the place of its body; digest and size are those of the body all the same.
    """
    headers = _grouped(response.headers)
    declared = read_content_type(headers.get(b"content-type", ()))
    success = 200 <= response.status < 300
    page, charset = _NO_PAGE, declared.charset
    if success and (markup := markup_of(response.body, declared)) is not None:
        charset = markup.charset
        refresh = [value.decode("latin-1") for value in headers.get(b"refresh", ())]
        if rendered is None:
            page = read_page(markup.html, url, charset, wanted, refresh)
        else:
            gone = [] if rendered.target is None else [f"0;url={rendered.target}"]
            page = read_page(rendered.markup, rendered.url, charset, wanted, (*gone, *refresh))
    directives = page.directives.union(*_directives_of(headers.get(b"x-robots-tag", ()), wanted.agent))
    follows = directives.isdisjoint(("nofollow", "none"))
    metadata, texts = page.metadata, page.texts
    weighed = None if texts is None else weigh(texts.main)
    related = headers.get(b"link", ()) if success else ()
    return Facts(
        status=response.status,
        content_type=declared.essence,
        charset=charset,
        body_bytes=len(response.body),
        truncated=response.truncated or page.cut or (rendered is not None and rendered.cut),
        title=page.title,
        digest=f"sha256:{hashlib.sha256(response.body).hexdigest()}",
        links=page.links,
        nofollow=page.nofollow if follows else tuple(range(len(page.links))),
        canonical=page.canonical or (linked_canonical(url, related) if related else None),
        admits_canonical=follows,
        location=_location(url, headers.get(b"location", ())) if response.status in REDIRECTS else None,
        retry_after=_first(headers.get(b"retry-after")),
        directives=tuple(sorted(directives)),
        sketch=None if texts is None else sketch_of(texts.visible, url) if sketched else (),
        description=metadata.description,
        language=metadata.language or language_tag(b",".join(headers.get(b"content-language", ())).decode("latin-1")),
        headings=metadata.headings,
        alternates=first_of_each((*metadata.alternates, *linked_alternates(url, related))) if related else metadata.alternates,
        etag=_first(headers.get(b"etag")),
        last_modified=_first(headers.get(b"last-modified")),
        words=None if weighed is None else weighed.words,
        text_digest=None if weighed is None else weighed.digest,
        fields=page.fields,
        simhash=simhash_of(texts.main) if texts is not None and wanted.simhash else None,
        content=_content(page, wanted),
    )


def _grouped(headers: Iterable[tuple[bytes, bytes]]) -> dict[bytes, list[bytes]]:
    """Return the values of those fields that are read and there."""
    grouped: dict[bytes, list[bytes]] = {}
    for name, value in headers:
        if name in _READ:
            grouped.setdefault(name, []).append(value)
    return grouped


def _content(page: Page, wanted: Wanted) -> Content | None:
    """Return what is to be kept beside the record, None if that is nothing."""
    text = one_line(page.texts.main) if wanted.text and page.texts is not None else None
    return Content(text, page.anchors) if text is not None or page.anchors else None


def _first(values: Sequence[bytes] | None) -> str | None:
    return values[0].decode("latin-1") if values else None


def _directives_of(values: Iterable[bytes], agent: str) -> list[frozenset[str]]:
    return [robots_directives(value.decode("latin-1"), agent) for value in values]


def _location(url: str, values: Iterable[bytes]) -> str | None:
    """Return the target of a redirect. Equal repeats are one value; different ones leave none that is meant."""
    distinct = {value.strip() for value in values}
    return resolve_location(url, distinct.pop()) if len(distinct) == 1 else None
