"""Read the Content-Type header, and decide whether a body is HTML."""

import re
from collections.abc import Sequence
from functools import lru_cache

import msgspec

from crawlkit.policy.charset import encoding_name

HTML = "text/html"
XHTML = "application/xhtml+xml"

SNIFF_BYTES = 1445
"""How much of a body sniffing looks at: a "resource header" (MIME Sniffing Standard section 5.2)."""

_TOKEN = r"[!#$%&'*+\-.^_`|~0-9A-Za-z]++"
_ESSENCE = re.compile(rf"[\t\n\r ]*+({_TOKEN}/{_TOKEN})[\t\n\r ]*+(?=;|\Z)")

# What few answers need is compiled for the first that does.
_PARAMETER = r"""(?xs) ; [\t\n\r ]*+ ([^;=]*+) (?: = (?: " ((?:[^"\\]|\\.)*+) [^;]*+ | ([^;]*+) ) )?+ """
_QUOTED_STRING_TOKEN = r"[\t -~\x80-\xff]*+"
_ESCAPED = r"(?s)\\(.)"

# One of the values of a list: commas within quotes are its own (Fetch Standard, "get, decode, and split").
_VALUE = r"""(?xs) (?: [^",]++ | " (?:[^"\\]++|\\.)*+ "?+ )++ """

# Types that say "unknown" (MIME Sniffing Standard section 7).
_UNKNOWN = frozenset({"unknown/unknown", "application/unknown"})

# Section 7.1: how HTML starts, after blanks. A byte order mark is passed over, as browsers do.
_HTML_START = re.compile(
    rb"""(?:\xef\xbb\xbf)?+ [\t\n\f\r ]*+ < (?: !--
    | (?: !doctype\ html | html | head | script | iframe | h1 | div | font | table | a | style | title | b | body | br
      | p ) [ >] )""",
    re.X | re.I,
)

# By section 7.1 an XML declaration means text/xml. One that a document of type or element html follows is XHTML.
_XHTML_START = rb"""(?xi)(?:\xef\xbb\xbf)?+ <\?xml [\t\n\r ] [^>]*+ > (?: [\t\n\r ]++ | <!-- (?:[^-]|-(?!->))*+ --> )*+
    < (?: !doctype [\t\n\r ]++ )?+ html [\t\n\r >]"""

# The pages of a site have few types; a longer field is not kept in memory.
_MEMO_ENTRIES = 256
_MEMO_BYTES = 128

# Section 3, "binary data byte".
_BINARY = bytes([*range(0x09), 0x0B, *range(0x0E, 0x1B), *range(0x1C, 0x20)])

# UTF-16 holds such bytes and is text: by its byte order mark, or by its first < where there is none.
_UTF16_STARTS = (b"\xfe\xff", b"\xff\xfe", b"<\0", b"\0<")


class ContentType(msgspec.Struct, frozen=True):
    """What Content-Type says: the essence (like `text/html`) and the name of the encoding; None where nothing."""

    essence: str | None
    charset: str | None


def read_content_type(values: Sequence[bytes]) -> ContentType:
    """Return what all Content-Type values of one answer say (Fetch Standard, "extract a MIME type"). Never raises.

    The last value that is a MIME type wins; an earlier charset is kept only if the essence stays the same. A charset is
    the Encoding Standard's name in lower case, None for a label that Standard does not know.
    """
    combined = b", ".join(values)
    return _remembered(combined) if len(combined) <= _MEMO_BYTES else _read(combined)


def _read(combined: bytes) -> ContentType:
    essence: str | None = None
    inherited: str | None = None
    label: str | None = None
    for value in _split(combined):
        match = _ESSENCE.match(value)
        if match is None or match[1] == "*/*":
            continue
        label = _charset_label(value, match.end())
        if match[1].lower() != essence:
            essence, inherited = match[1].lower(), label
        elif label is None:
            label = inherited
    return ContentType(essence, encoding_name(label) if label else None)


_remembered = lru_cache(_MEMO_ENTRIES)(_read)


def sniff(body: bytes, declared: str | None) -> str | None:
    """Return as what HTML `body` is to be parsed: `text/html`, `application/xhtml+xml`, or None if it is not HTML.

    `declared` is the essence of the Content-Type. A type other than these two is believed. A body that is declared as
    HTML is, unless it is binary: it has a control byte that text has not, and does not start as HTML does. Without a
    type (or with one that says "unknown") the start decides (MIME Sniffing Standard section 7.1).
    """
    if declared is None or declared in _UNKNOWN:
        return _sniff_start(body[:SNIFF_BYTES])
    if declared not in (HTML, XHTML):
        return None
    head = body[:SNIFF_BYTES]
    if _sniff_start(head) or head.startswith(_UTF16_STARTS) or len(head.translate(None, _BINARY)) == len(head):
        return declared
    return None


def sniff_plainly(beginning: bytes, declared: str | None) -> str | None:
    """Return what `sniff` does of all bodies that begin so, None where it may depend on more."""
    return sniff(beginning, declared) if _HTML_START.match(beginning) else None


def _sniff_start(head: bytes) -> str | None:
    if _HTML_START.match(head):
        return HTML
    return XHTML if re.match(_XHTML_START, head) else None


def _split(combined: bytes) -> list[str]:
    """Return the single values of all fields: they count as one list (Fetch Standard, "get, decode, and split")."""
    text = combined.decode("latin-1")
    return re.findall(_VALUE, text) if "," in text else [text]


def _charset_label(value: str, start: int) -> str | None:
    """Return the first usable charset parameter (MIME Sniffing Standard section 4.4), None if there is none."""
    for name, quoted, plain in re.findall(_PARAMETER, value[start:]):
        if name.lower() != "charset":
            continue
        label = re.sub(_ESCAPED, r"\1", quoted) if quoted else plain.rstrip("\t\n\r ")
        if label and re.fullmatch(_QUOTED_STRING_TOKEN, label):
            return str(label)
    return None
