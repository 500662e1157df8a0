"""Take from an answer all that the crawl keeps of it, so that its body can be dropped."""

import hashlib
import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator

from crawlkit.model import Facts, Response
from crawlkit.policy.charset import decode, detect
from crawlkit.policy.content_type import XHTML, read_content_type, sniff
from crawlkit.policy.disposition import REDIRECTS
from crawlkit.policy.links import Page, read_page, robots_directives, xhtml_as_html
from crawlkit.policy.novelty import sketch_of
from crawlkit.policy.urls import resolve_location

# One value of a Link header: the target, then all of its parameters (RFC 8288 section 3).
_LINK = re.compile(r"""<([^<>]*+)>((?:[^<"]|"[^"]*+")*+)""")
_RELATION = re.compile(r""";\s*+rel\s*+=\s*+(?:"([^"]*+)"|([^\s;,"]++))""", re.I)
_ANCHOR = re.compile(r";\s*+anchor\s*+=", re.I)

_UTF8_BOM = b"\xef\xbb\xbf"
_NO_PAGE = Page(title=None, base="", links=(), nofollow=(), canonical=None, directives=frozenset(), text=None)


def read_answer(url: str, response: Response, agent: str = "crawlkit", most_links: int = sys.maxsize) -> Facts:
    """Return what the answer to a request of `url`, a normal form, says. Never raises.

    Title, links and meta elements are read of 2xx answers that are HTML by their type, or by their start where there is
    no type; `canonical` may also come from the Link header of any 2xx answer. `content_type` is what was declared, None
    if nothing usable was. `charset` is the encoding that HTML was read in; of all else, the one that was declared.
    `directives` are those of the robots meta elements and of X-Robots-Tag, without those for another robot than
    `agent`, our product token. Where `nofollow` or `none` is among them, no link admits, nor does `canonical`. Of a page with
    more than `most_links` links the first ones are kept, and it is marked as truncated.
    """
    headers = _grouped(response.headers)
    token = agent.lower()
    declared = read_content_type(headers[b"content-type"])
    success = 200 <= response.status < 300
    page, charset = _NO_PAGE, declared.charset
    if success and (kind := sniff(response.body, declared.essence)):
        charset = detect(response.body, declared.charset)
        markup = _as_utf8(response.body, charset)
        refresh = [value.decode("latin-1") for value in headers[b"refresh"]]
        page = read_page(xhtml_as_html(markup) if kind == XHTML else markup, url, charset, token, refresh, most_links)
    directives = page.directives.union(*_header_directives(headers[b"x-robots-tag"], token))
    follows = directives.isdisjoint(("nofollow", "none"))
    return Facts(
        status=response.status,
        content_type=declared.essence,
        charset=charset,
        body_bytes=len(response.body),
        truncated=response.truncated or page.cut,
        title=page.title,
        digest=f"sha256:{hashlib.sha256(response.body).hexdigest()}",
        links=page.links,
        nofollow=page.nofollow if follows else tuple(range(len(page.links))),
        canonical=page.canonical or (_linked_canonical(url, headers[b"link"]) if success else None),
        admits_canonical=follows,
        location=_location(url, headers[b"location"]) if response.status in REDIRECTS else None,
        retry_after=next((value.decode("latin-1") for value in headers[b"retry-after"]), None),
        directives=tuple(sorted(directives)),
        sketch=None if page.text is None else sketch_of(page.text, url),
    )


def _grouped(headers: Iterable[tuple[bytes, bytes]]) -> defaultdict[bytes, list[bytes]]:
    grouped: defaultdict[bytes, list[bytes]] = defaultdict(list)
    for name, value in headers:
        grouped[name].append(value)
    return grouped


def _as_utf8(body: bytes, charset: str) -> bytes:
    """Return `body` in UTF-8 without byte order mark; what is UTF-8 already is not copied through text."""
    if charset == "utf-8":
        try:
            body.decode()
        except UnicodeDecodeError:
            pass
        else:
            return body.removeprefix(_UTF8_BOM)
    return decode(body, charset).encode()


def _header_directives(values: Iterable[bytes], agent: str) -> Iterator[frozenset[str]]:
    for value in values:
        yield robots_directives(value.decode("latin-1"), agent)


def _location(url: str, values: Iterable[bytes]) -> str | None:
    """Return the target of a redirect. Equal repeats are one value; different ones leave none that is meant."""
    distinct = {value.strip() for value in values}
    return resolve_location(url, distinct.pop()) if len(distinct) == 1 else None


def _linked_canonical(url: str, values: Iterable[bytes]) -> str | None:
    """Return the first usable target of rel=canonical in Link headers; one with an anchor speaks of something else."""
    for value in values:
        for reference, parameters in _LINK.findall(value.decode("latin-1")):
            relation = _RELATION.search(parameters)
            tokens = (relation[1] or relation[2] or "").lower().split() if relation else ()
            if "canonical" not in tokens or _ANCHOR.search(parameters):
                continue
            if target := resolve_location(url, reference.encode("latin-1")):
                return target
    return None
