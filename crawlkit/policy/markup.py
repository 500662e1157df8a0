"""XML as a flat run of tags with text between them, read from whatever there is: sitemaps and feeds are often not well-formed.

An XML parser ends at the first error, and a second, lenient reader would have to take over there; so there is only the lenient
one. Finding the tags costs what expat does with handlers in Python (0.2 s each for 50,000 URLs). It is safe by what it
lacks: no entity that a document declares is ever expanded, and nothing outside of the document is ever read.
"""

import re
from collections.abc import Iterator
from html.entities import html5

LONGEST_TAG_BYTES = 64 * 1024
"""A longer tag is cut there, so that no search in one holds the interpreter for long."""

LONGEST_TEXT_BYTES = 64 * 1024
"""How much of one text is read; no URL that anything is done with is near it."""

TAG = re.compile(rb"""<(/?+)([^\s<>/!?"'=]++)((?:[^<>"']++|"[^"]*+"|'[^']*+')*+)>?+""")
"""A tag, its end missing perhaps: whether it closes an element, its name with prefix, the rest of it."""

_END_OF_SUBSET = re.compile(rb"\]\s*+>")
_PIECE = re.compile(r"<!\[CDATA\[(.*?)\]\]>|<!--.*?-->|<[^>]*+>?+|([^<]++)", re.S)
_ATTRIBUTE = re.compile(r"""([^\s=/"'<>]++)\s*+=\s*+(?:"([^"]*+)"|'([^']*+)')""")
_REFERENCE = re.compile(r"&(?:#([0-9]{1,7})|#[xX]([0-9A-Fa-f]{1,6})|([A-Za-z][A-Za-z0-9]*+));")
_INVISIBLE = "\ufeff\u200b\u200c\u200d\u2060"


def tags(markup: bytes) -> Iterator[re.Match[bytes]]:
    """Yield the tags of `markup` as matches of TAG, in order; none from comments, CDATA sections and declarations.

    Never raises, and takes time in proportion to the bytes.
    """
    find, match = markup.find, TAG.match
    start = find(b"<")
    while start >= 0:
        tag = match(markup, start, start + LONGEST_TAG_BYTES)
        if tag is None:
            at = _after_declaration(markup, start) if markup.startswith((b"<!", b"<?"), start) else start + 1
        else:
            yield tag
            at = tag.end()
        start = find(b"<", at)


def _after_declaration(markup: bytes, start: int) -> int:
    """Return where a comment, a CDATA section, a processing instruction or a document type ends.

    One without an end takes all that is left.
    """
    for opening, closing in ((b"<!--", b"-->"), (b"<![CDATA[", b"]]>"), (b"<?", b"?>")):
        if markup.startswith(opening, start):
            end = markup.find(closing, start + len(opening))
            return len(markup) if end < 0 else end + len(closing)
    end, subset = markup.find(b">", start), markup.find(b"[", start, start + LONGEST_TAG_BYTES)
    if 0 <= subset < end:
        closed = _END_OF_SUBSET.search(markup, subset)
        return len(markup) if closed is None else closed.end()
    return len(markup) if end < 0 else end + 1


def text_of(raw: bytes) -> str:
    """Return the character data of a piece of markup, without blanks around it; that of elements within is part of it.

    Empty if it refers to an entity that no standard knows.
    """
    text = raw[:LONGEST_TEXT_BYTES].decode("utf-8", "replace")
    if "<" in text:
        pieces = [cdata if plain is None else unescape(plain) for cdata, plain in _pieces(text)]
        text = "" if None in pieces else "".join(filter(None, pieces))
    elif "&" in text:
        text = unescape(text) or ""
    text = text.strip()
    return text if text.isascii() else text.strip(_INVISIBLE).strip()


def _pieces(text: str) -> Iterator[tuple[str, str | None]]:
    """Yield the CDATA sections of a text, and what stands between its tags."""
    for piece in _PIECE.finditer(text):
        yield piece[1] or "", piece[2]


def attributes_of(tag: re.Match[bytes]) -> dict[str, str]:
    """Return the attributes of a tag, names in lower case; those that refer to an unknown entity are left out."""
    found: dict[str, str] = {}
    for name, double, single in _ATTRIBUTE.findall(tag[3].decode("utf-8", "replace")):
        value = unescape(double or single)
        if value is not None:
            found.setdefault(name.lower(), value.strip())
    return found


def unescape(text: str) -> str | None:
    """Return `text` with its references replaced: by number, XML's five, HTML's; None if there is one of no such name.

    An ampersand that begins no reference stands for itself.
    """
    try:
        return _REFERENCE.sub(_character, text)
    except LookupError:
        return None


def _character(reference: re.Match[str]) -> str:
    decimal, hexadecimal, name = reference.groups()
    if name is not None:
        return html5[f"{name};"]
    number = int(decimal) if decimal is not None else int(hexadecimal, 16)
    if number > 0x10FFFF or 0xD800 <= number <= 0xDFFF:
        raise LookupError(number)
    return chr(number)
