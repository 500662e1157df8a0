"""What a sitemap says: bytes in, entries out. Never raises, whatever the bytes.

The forms of the protocol (sitemaps.org): a `urlset`, a `sitemapindex`, RSS and Atom feeds, text with a URL a line; each plain
or gzipped. What a file is, its content decides, not its name or type. Read leniently (`policy.markup`): namespaces count
only where they tell an extension's `loc` (an image's, a video's) from the page's own.
"""

import itertools
import re
import zlib
from collections.abc import Iterator, Mapping
from enum import Enum, auto
from typing import assert_never

import msgspec

from crawlkit.policy.charset import decode, detect
from crawlkit.policy.lastmod import lastmod_utc
from crawlkit.policy.markup import attributes_of, tags, text_of
from crawlkit.policy.urls import Joiner
from crawlkit.sitemap import MOST_BYTES, Sitemap, SitemapEntry, SitemapForm

MOST_ENTRIES = 50_000
"""The protocol's limit on the URLs of one sitemap, and on the sitemaps of one index."""

_GZIP_MAGIC = b"\x1f\x8b"
_GZIP_LAYERS = 2  # some servers compress what is compressed

_BLANKS = b" \t\r\n\f"
_UTF8_BOM = b"\xef\xbb\xbf"
_ABSOLUTE = re.compile(r"https?:", re.I)
_PRIORITY = re.compile(r"[01]?\.[0-9]{1,9}|[01]")


class _Part(Enum):
    """An element that means something."""

    ENTRY = auto()
    PLACE = auto()
    LINK = auto()  # of Atom: the place is an attribute
    GUID = auto()  # of RSS: the place, if there is no link
    LASTMOD = auto()
    PRIORITY = auto()


_FORMS = {
    "urlset": SitemapForm.URLSET,
    "url": SitemapForm.URLSET,
    "sitemapindex": SitemapForm.INDEX,
    "sitemap": SitemapForm.INDEX,
    "rss": SitemapForm.RSS,
    "rdf": SitemapForm.RSS,
    "feed": SitemapForm.ATOM,
}
_FIELDS = {b"loc": _Part.PLACE, b"lastmod": _Part.LASTMOD, b"priority": _Part.PRIORITY}
_PARTS: Mapping[SitemapForm, Mapping[bytes, _Part]] = {
    SitemapForm.URLSET: {b"url": _Part.ENTRY, **_FIELDS},
    SitemapForm.INDEX: {b"sitemap": _Part.ENTRY, **_FIELDS},
    SitemapForm.RSS: {b"item": _Part.ENTRY, b"link": _Part.PLACE, b"guid": _Part.GUID, b"pubdate": _Part.LASTMOD},
    SitemapForm.ATOM: {b"entry": _Part.ENTRY, b"link": _Part.LINK, b"updated": _Part.LASTMOD},
    SitemapForm.TEXT: {},
    SitemapForm.NONE: {},
}


def read_sitemap(url: str, body: bytes, charset: str | None = None, *, whole: bool = True) -> Sitemap:
    """Return what the sitemap at `url`, a normal form, says. `charset` is the label of its Content-Type.

    Entries come in the order of the document, with duplicates, at most MOST_ENTRIES; `cut` says that there is more, or that
    the body is not `whole`, as its reader knows.
    """
    body, complete = _unpacked(body)
    complete = complete and whole
    text = _as_utf8(body.lstrip(_BLANKS), charset).lstrip(_BLANKS)
    if text.startswith(b"<"):
        reader = _Reader(url, text)
        kept, more = _first(reader.entries(), MOST_ENTRIES)
        return Sitemap(reader.form, kept, more or not complete)
    if not complete:
        text = text[: text.rfind(b"\n") + 1]  # a piece of an address is another address
    kept, more = _first(_text_entries(url, text), MOST_ENTRIES)
    return Sitemap(SitemapForm.TEXT if kept else SitemapForm.NONE, kept, more or not complete)


def _first(entries: Iterator[SitemapEntry], most: int) -> tuple[tuple[SitemapEntry, ...], bool]:
    """Return the first entries, and whether there are more."""
    kept = tuple(itertools.islice(entries, most))
    return kept, next(entries, None) is not None


def _unpacked(body: bytes) -> tuple[bytes, bool]:
    """Return `body` without its gzip layers, cut at MOST_BYTES, and whether it is all of it."""
    complete = len(body) <= MOST_BYTES
    for _ in range(_GZIP_LAYERS):
        if not body.startswith(_GZIP_MAGIC):
            break
        body, whole = _gunzip(body)
        complete = complete and whole
    return body[:MOST_BYTES], complete


def _gunzip(data: bytes) -> tuple[bytes, bool]:
    """Return what the members of a gzip file hold (RFC 1952 section 2.2), up to an error or the cap."""
    pieces: list[bytes] = []
    left = MOST_BYTES + 1
    try:
        while data.startswith(_GZIP_MAGIC) and left:
            member = zlib.decompressobj(31)
            piece = member.decompress(data, left)
            pieces.append(piece)
            left -= len(piece)
            if not member.eof:
                return b"".join(pieces), False
            data = member.unused_data.lstrip(b"\0")
    except zlib.error:
        return b"".join(pieces), False
    return b"".join(pieces), left > 0


def _as_utf8(body: bytes, charset: str | None) -> bytes:
    if body.startswith(_UTF8_BOM):
        return body.removeprefix(_UTF8_BOM)
    encoding = detect(body, charset)
    return body if encoding == "utf-8" else decode(body, encoding).encode()


def _text_entries(url: str, text: bytes) -> Iterator[SitemapEntry]:
    """Yield the URLs of a text sitemap, one a line; where the first line is none, it is no sitemap."""
    joiner = Joiner(url)
    first = True
    for line in re.finditer(rb"[^\r\n]++", text):
        place = line[0].decode("utf-8", "replace").strip()
        if not place:
            continue
        target = joiner.join(place) if _ABSOLUTE.match(place) else None
        if target is not None:
            yield SitemapEntry(target)
        elif first:
            return
        first = False


class _Draft(msgspec.Struct):
    """An entry while it is read; `instead` is where it is if no location says so."""

    places: list[str] = msgspec.field(default_factory=list)
    instead: str = ""
    lastmod: str | None = None
    priority: float | None = None


class _Reader:
    """One pass over a sitemap in XML."""

    def __init__(self, url: str, markup: bytes) -> None:
        self._joiner = Joiner(url)
        self._markup = markup
        self._parts: Mapping[bytes, _Part] = {}
        self._draft: _Draft | None = None
        self._open: _Part | None = None  # what is being read, from `_from` on: a field, or an entry's own text
        self._from = 0
        self.form = SitemapForm.NONE

    def entries(self) -> Iterator[SitemapEntry]:
        """Yield the entries; none if the root element is no sitemap's.

        Text that the end of the bytes cuts is not taken: a piece of an address is another address.
        """
        for tag in tags(self._markup):
            name = tag[2].lower()
            if self.form is SitemapForm.NONE and not self._begin(name):
                return
            part = self._parts.get(name)
            if part is _Part.ENTRY:
                yield from self._flush(tag.start())
                if not tag[1]:
                    self._draft = _Draft()
                    self._open, self._from = _Part.ENTRY, tag.end()
            elif self._draft is not None and (self._open is _Part.ENTRY or part is not None):
                self._end(self._draft, tag.start())
                if part is not None and not tag[1]:
                    self._start(self._draft, part, tag)
        yield from self._flush(self._markup.rfind(b"<"))

    def _begin(self, root: bytes) -> bool:
        prefix, colon, name = root.rpartition(b":")
        self.form = _FORMS.get(name.decode("utf-8", "replace"), SitemapForm.NONE)
        # The items of a feed have no prefix, whatever its root has (RSS 1.0 is `rdf:RDF`).
        before = b"" if self.form is SitemapForm.RSS else prefix + colon
        self._parts = {before + name: part for name, part in _PARTS[self.form].items()}
        return self.form is not SitemapForm.NONE

    def _start(self, draft: _Draft, part: _Part, tag: re.Match[bytes]) -> None:
        if part is not _Part.LINK:
            self._open, self._from = part, tag.end()
            return
        attributes = attributes_of(tag)
        if not draft.places and attributes.get("rel", "alternate") == "alternate":
            draft.places.append(attributes.get("href", ""))

    def _end(self, draft: _Draft, end: int) -> None:
        """Take what was open, which ends at `end`."""
        part, self._open = self._open, None
        if part is None or part is _Part.LINK:
            return
        text = text_of(self._markup[self._from : end])
        match part:
            case _Part.PLACE:
                draft.places.append(text)
            case _Part.GUID | _Part.ENTRY:
                if _ABSOLUTE.match(text):
                    draft.instead = text
            case _Part.LASTMOD:
                draft.lastmod = lastmod_utc(text)
            case _Part.PRIORITY:
                draft.priority = min(1.0, float(text)) if _PRIORITY.fullmatch(text) else None
            case _:
                assert_never(part)

    def _flush(self, end: int) -> Iterator[SitemapEntry]:
        """End the entry that is being read, if there is one, at `end`."""
        draft, self._draft = self._draft, None
        if draft is None:
            return
        self._end(draft, end)
        places = [target for place in draft.places if (target := self._target(place))]
        if not places and (instead := self._target(draft.instead)):
            places = [instead]
        for target in places:
            yield SitemapEntry(target, draft.lastmod, draft.priority)

    def _target(self, place: str) -> str | None:
        """Return the URL that a location names. A relative one has no blanks within: then it would be a sentence."""
        if not place or (not place.startswith("http") and len(place.split()) > 1):
            return None
        return self._joiner.join(place)
