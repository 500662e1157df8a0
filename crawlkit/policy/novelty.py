"""Tell pages that say something new from those a trap makes without end: templates, sketches, freshness.

URLs of one shape are a *template*. A page is *fresh* if enough of its word shingles were not met on its template's pages
before, else *stale*. What stood on the page before it too is the template's frame and counts for neither. Numbers are
masked, so that a calendar that prints its dates is stale once its twelve months went by; so are the words of the page's own
folders and query, which search pages and facets repeat.

Shingles and their sampling follow Broder ("On the resemblance and containment of documents", SEQUENCES 1997): three words
in a row of one text node, chosen by what they are, so that what two pages share is chosen on both.
"""

import itertools
import re
from collections.abc import Collection, Sequence
from functools import cache, lru_cache
from zlib import crc32

from crawlkit.policy.urls import host_of, path_of

MOST_SHINGLES = 64
"""Shingles kept of a page."""

MOST_OWN = 16
"""Shingles beside the frame that are compared and remembered."""

MEMORY_BYTES = 16_384
"""Size of a template's memory, one byte a shingle: with 5,000 shingles, of 300 pages, one in seven was overwritten."""

_PRINTS = 255
"""A shingle is remembered as 1 to 255: two of one place are alike once in so many times."""

NEW_SHARE = 3
"""Of a fresh page one shingle in so many of its own is new."""

MOST_TEXT = 32_768
"""Characters of a page's text that are looked at."""

BREAK = " \x01 "
"""What separates a page's text nodes: a word that ends a shingle."""

_MASK = b"0"

# Digits become 0, capitals small, punctuation and white space spaces; what is beyond ASCII stays, and the break.
_PLAIN = bytes(
    48 if chr(b).isdigit() else b + 32 if chr(b).isupper() else b if chr(b).isalpha() or b == 1 else 32 for b in range(128)
) + bytes(range(128, 256))


@cache  # compiled for the first text that needs it: 0.6 ms of a start, and most are longer
def _shingles_of(letters: bytes, every: int) -> re.Pattern[bytes]:
    """Return what finds shingles whose first word begins with one of `letters`, or a character beyond ASCII, one in `every`.

    In UTF-8 the last byte of a character is spread evenly.
    """
    last = bytes(range(0x80 + every // 2, 0xC0, every))
    character = rb"[%s]|[\xc2-\xdf][%s]|[\xe0-\xef].[%s]|[\xf0-\xf4]..[%s]" % (letters, last, last, last)
    return re.compile(rb" (?=((?:%s)[^ \x01]*(?: +[^ \x01]+){0,2}))" % character)


# Which words begin a shingle, by their first character: in short texts all but numbers, then a quarter of them.
_SHORT_TEXT = 600
_EVERY_WORD = (bytes(range(97, 123)), 1)
_SOME_WORDS = (b"pmdrfc", 4)

# In longer texts one of some twelve, in long ones of some twenty; there a shingle is so many bytes, three words or four: a
# pattern that begins with what is looked for, and has but one repeat, takes a quarter of the time.
_LONGER_TEXT = 2_400
_LONG_TEXT = 7_200
_FEW_WORDS = re.compile(rb" ([pm][^\x01]{0,23})")
_FEWER_WORDS = re.compile(rb" (p[^\x01]{0,23})")

_ENOUGH = 16
_MOST_FOUND = 128
"""Where many words of a language begin so: the first ones tell as much."""

# A segment that names one thing of many: it has a digit, or is too long for a word of a site's structure.
_ID = re.compile(r".*[0-9]|.{25}", re.S)
_DIGITS = re.compile("[0-9]+")


@lru_cache(4096)  # a page leads to many: of each its template is asked for again
def template_of(url: str) -> str:
    """Return the shape of a normal form: host, first folder, extension, names of parameters; what is an id is masked.

    A page below a folder shares its template with all others below that folder, so that paths that grow do not escape.
    """
    path, _, query = url.partition("?")
    root, last = url.index("/", 8), path.rindex("/")
    name = path[last + 1 :]
    extension = name.rpartition(".")[2] if "." in name[-6:] else ""
    if last > root:
        shape = _shape_of(path[: path.index("/", root + 1) + 1], extension)
    else:
        shape = _shape_of(path if query else path[: root + 1], extension)  # with a query, a script is a folder of its own
    return shape + "&".join(sorted({_DIGITS.sub("0", pair.partition("=")[0]) for pair in query.split("&")})) if query else shape


@lru_cache(1024)  # a URL is seldom asked for twice within so many, its folder is: 1 us instead of 2
def _shape_of(place: str, extension: str) -> str:
    """Return the shape of URLs without a query: `place` is their origin with the first folder, or a script."""
    folder = path_of(place)[1:]
    slash = "/" if folder.endswith("/") else ""
    return f"{host_of(place)}/{_masked(folder.removesuffix('/'))}{slash}.{_masked(extension)}?"


def _masked(segment: str) -> str:
    return "0" if _ID.match(segment) else segment


def sketch_of(text: str, url: str) -> tuple[int, ...]:
    """Return up to 64 hashes, ascending, of the shingles of the visible text of the page at `url`.

    Text nodes are separated by `BREAK`. About 50 us for 1,400 words: what is done for each word is done in C.
    """
    plain = b" %b " % text[:MOST_TEXT].encode(errors="replace").translate(_PLAIN)
    for word in _own_words(url) - {_MASK}:
        plain = plain.replace(b" %b " % word, b" 0 ")
    hashes = set(map(crc32, filter(None, _shingles(plain))))
    return tuple(sorted(hashes)[:MOST_SHINGLES])


def _own_words(url: str) -> frozenset[bytes]:
    """Return the words of a URL's folders and query; its name may well be the page's own title."""
    path, _, query = path_of(url).partition("?")
    return frozenset(f"{path.rpartition('/')[0]} {query}".encode().translate(_PLAIN).split())


def _shingles(plain: bytes) -> list[bytes]:
    """Return the shingles of a text, some of them empty."""
    if len(plain) > _LONGER_TEXT:
        pattern = _FEW_WORDS if len(plain) <= _LONG_TEXT else _FEWER_WORDS
        windows = pattern.findall(plain)[:_MOST_FOUND]
        if len(windows) >= _ENOUGH:
            # A search by `in` takes twice as long: it tries whether the mask is a number first.
            return [window if window.find(_MASK) < 0 else _words(window) for window in windows]
    pattern = _shingles_of(*(_EVERY_WORD if len(plain) <= _SHORT_TEXT else _SOME_WORDS))
    found = list(itertools.islice(pattern.finditer(plain), _MOST_FOUND))
    if len(found) < _ENOUGH:
        found = list(itertools.islice(_shingles_of(*_EVERY_WORD).finditer(plain), _MOST_FOUND))
    return [_words(match[1]) for match in found]


def _words(shingle: bytes) -> bytes:
    """Return the first three words of a shingle with its numbers masked, empty if it begins with one."""
    words = shingle.split()[:3]
    if _MASK not in shingle:
        return b" ".join(words)
    return b"" if _MASK in words[0] else b" ".join([_MASK if _MASK in word else word for word in words])


def own_shingles(sketch: Sequence[int], before: Collection[int]) -> list[int]:
    """Return up to 16 shingles of a page that are not its template's frame: those that the page `before` it lacks."""
    frame = frozenset(before)
    return [shingle for shingle in sketch if shingle not in frame][:MOST_OWN]


def is_fresh(own: Collection[int], memory: Sequence[int]) -> bool:
    """Whether a page with the shingles `own` says something new, by its template's memory."""
    new = sum([memory[shingle % MEMORY_BYTES] != (shingle >> 14) % _PRINTS + 1 for shingle in own])
    return new > 0 and new * NEW_SHARE >= len(own)


def remember(own: Collection[int], memory: bytearray) -> None:
    """Note a page's shingles in its template's memory; each takes the place of an older one."""
    for shingle in own:
        memory[shingle % MEMORY_BYTES] = (shingle >> 14) % _PRINTS + 1
