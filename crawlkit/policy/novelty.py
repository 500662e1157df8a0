"""Tell pages that say something new from those a trap makes without end: templates, sketches, freshness.

URLs of one shape are a *template*. A page is *fresh* if enough of its word shingles were not met on its template's pages
before, else *stale*. What stood on the page before it too is the template's frame and counts for neither. Numbers are
masked, so that a calendar that prints its dates is stale once its twelve months went by; so are the words of the page's own
folders and query, which search pages and facets repeat.

Shingles and their sampling follow Broder ("On the resemblance and containment of documents", SEQUENCES 1997): three words
in a row of one text node, chosen by what they are, so that what two pages share is chosen on both.
"""

import re
from collections.abc import Collection, Sequence
from operator import itemgetter
from zlib import crc32

from crawlkit.policy.urls import host_of, path_of

MOST_SHINGLES = 64
"""Shingles kept of a page."""

MOST_OWN = 16
"""Shingles beside the frame that are compared and remembered."""

MEMORY_BYTES = 16_384
"""Size of a template's memory, one byte a shingle: with 5,000 shingles, of 300 pages, one in seven was overwritten."""

NEW_SHARE = 3
"""Of a fresh page one shingle in so many of its own is new."""

MOST_TEXT = 32_768
"""Characters of a page's text that are looked at."""

BREAK = " \x01 "
"""What separates a page's text nodes: a word that ends a shingle."""
_BREAK_WORD = b"\x01"

_MASK = b"0"

# Digits become 0, capitals small, punctuation spaces; what is beyond ASCII stays.
_PLAIN = bytes(
    48 if chr(b).isdigit() else b + 32 if chr(b).isupper() else b if chr(b).isalpha() or b < 32 else 32 for b in range(128)
) + bytes(range(128, 256))


def _ending_in(letters: bytes, every: int) -> re.Pattern[bytes]:
    return re.compile(b"[%s%s]" % (letters, bytes(range(0x80 + every // 2, 0xC0, every))))


# Which words begin a shingle, by their last byte (in UTF-8 the last one of a character is spread evenly), and for up to how
# many words: all, a quarter, a twelfth, one of thirty. Where that leaves fewer than ENOUGH, the row before is taken.
_ANCHORS = (
    (96, re.compile(b".", re.S)),
    (384, _ending_in(b"yhdro", 4)),
    (1152, _ending_in(b"yh", 12)),
    (MOST_TEXT, _ending_in(b"h", 32)),
)
_ENOUGH = 16
_MOST_ANCHORS = 128
"""Where few words of a language end so, the row before gives hundreds: the first ones tell as much, at a third of the cost."""

_last_byte = itemgetter(-1)

# A segment that names one thing of many: it has a digit, or is too long for a word of a site's structure.
_ID = re.compile(r".*[0-9]|.{25}", re.S)
_DIGITS = re.compile("[0-9]+")


def template_of(url: str) -> str:
    """Return the shape of a normal form: host, first folder, extension, names of parameters; what is an id is masked.

    A page below a folder shares its template with all others below that folder, so that paths that grow do not escape.
    """
    path, _, query = path_of(url).partition("?")
    folder, slash, rest = path[1:].partition("/")
    name = rest.rpartition("/")[2] if slash else folder
    if not (slash or query):  # with a query, a script is a folder of its own
        folder = ""
    extension = name.rpartition(".")[2] if "." in name[-6:] else ""
    names = sorted({_DIGITS.sub("0", pair.partition("=")[0]) for pair in query.split("&")}) if query else ()
    return f"{host_of(url)}/{_masked(folder)}{slash}.{_masked(extension)}?{'&'.join(names)}"


def _masked(segment: str) -> str:
    return "0" if _ID.match(segment) else segment


def sketch_of(text: str, url: str) -> tuple[int, ...]:
    """Return up to 64 hashes, ascending, of the shingles of the visible text of the page at `url`.

    Text nodes are separated by `BREAK`. About 60 us for 600 words.
    """
    words = text[:MOST_TEXT].encode(errors="replace").translate(_PLAIN).split()
    own = _own_words(url)
    hashes = {_hash_at(words, start, own) for start in _anchors(words)}
    return tuple(sorted(h for h in hashes if h is not None)[:MOST_SHINGLES])


def _own_words(url: str) -> frozenset[bytes]:
    """Return the words of a URL's folders and query; its name may well be the page's own title."""
    path, _, query = path_of(url).partition("?")
    return frozenset(f"{path.rpartition('/')[0]} {query}".encode().translate(_PLAIN).split())


def _anchors(words: Sequence[bytes]) -> list[int]:
    """Return where shingles begin."""
    last_bytes = bytes(map(_last_byte, words))
    row = next(row for row, (most, _) in enumerate(_ANCHORS) if len(words) <= most)
    while True:
        starts = [match.start() for match in _ANCHORS[row][1].finditer(last_bytes)]
        if row == 0 or len(starts) >= _ENOUGH:
            return starts[:_MOST_ANCHORS]
        row -= 1


def _hash_at(words: Sequence[bytes], start: int, own: frozenset[bytes]) -> int | None:
    """Return the hash of the shingle at `start`, None if it begins with a number or is none."""
    shingle = words[start : start + 3]
    joined = b" ".join(shingle)
    if _MASK not in joined and _BREAK_WORD not in joined and own.isdisjoint(shingle):
        return crc32(joined)
    if _MASK in shingle[0] or shingle[0] == _BREAK_WORD:
        return None
    if _BREAK_WORD in shingle:
        shingle = shingle[: shingle.index(_BREAK_WORD)]
    return crc32(b" ".join(_MASK if _MASK in word or word in own else word for word in shingle))


def own_shingles(sketch: Sequence[int], before: Collection[int]) -> list[int]:
    """Return up to 16 shingles of a page that are not its template's frame: those that the page `before` it lacks."""
    frame = frozenset(before)
    return [shingle for shingle in sketch if shingle not in frame][:MOST_OWN]


def is_fresh(own: Collection[int], memory: Sequence[int]) -> bool:
    """Whether a page with the shingles `own` says something new, by its template's memory."""
    new = sum(memory[shingle % MEMORY_BYTES] != _fingerprint(shingle) for shingle in own)
    return new > 0 and new * NEW_SHARE >= len(own)


def remember(own: Collection[int], memory: bytearray) -> None:
    """Note a page's shingles in its template's memory; each takes the place of an older one."""
    for shingle in own:
        memory[shingle % MEMORY_BYTES] = _fingerprint(shingle)


def _fingerprint(shingle: int) -> int:
    """Return 1 to 255: two shingles of one place are alike once in 255 times."""
    return (shingle >> 14) % 255 + 1
