"""Find the encoding of a document and decode it, as browsers do.

Encodings go by the Encoding Standard's names in lower case: the labels `latin1` and `ascii` mean `windows-1252`, and
`gb2312` means `gbk`. Labels come from `webencodings`, which is that Standard's table.
"""

import codecs
import re
from functools import cache

import webencodings

FALLBACK = "windows-1252"
"""What undeclared documents without a sign of UTF-8 count as (HTML Standard section 13.2.3.2, western locales)."""

PRESCAN_BYTES = 1024
"""How far the prescan looks for a declaration (HTML Standard section 13.2.3.2)."""

# A declaration further down makes browsers start over (section 13.2.3.4). Only what shows no UTF-8 is read this far.
_LATE_BYTES = 65_536

_BOMS = ((b"\xef\xbb\xbf", "utf-8"), (b"\xfe\xff", "utf-16be"), (b"\xff\xfe", "utf-16le"))
_UTF16_XML = ((b"<\0?\0x\0", "utf-16le"), (b"\0<\0?\0x", "utf-16be"))
_UTF16 = ("utf-16le", "utf-16be")

_SINGLE_BYTE = ("windows-", "iso-8859-", "koi8-", "ibm866", "macintosh", "x-mac-")

# How most pages begin: what the prescan would go through tag by tag, up to a declaration of UTF-8.
_PLAINLY_UTF8 = re.compile(
    rb"""\s*+ (?:<!doctype[^>]{0,200}+>\s*+)?+ (?:<html(?:[\t\n\r ][\t\n\r ]*+[a-z:-]{1,20}+="[^"<>]{0,100}+")*+>\s*+)?+
    (?:<head>\s*+)?+ <meta[\t\n\r ]charset=(?:"utf-8"\s*+/?|'utf-8'\s*+/?|utf-8\s*+)>""",
    re.X | re.I,
)

# What the others are gone through by, compiled for the first of them: 1 ms of a start.
_META = rb"(?i)<meta[\t\n\f\r /]"
_TAG = rb"(?i)</?[a-z][^\t\n\f\r >]*+"

# One attribute (section 13.2.3.2, "get an attribute"): the end of the tag, or a name and perhaps a value. A value whose
# quote is missing runs to the end of the bytes.
_ATTRIBUTE = rb"""(?x)[\t\n\f\r /]*+ (?: (>) | ([^\t\n\f\r />] [^\t\n\f\r />=]*+)
    (?: [\t\n\f\r ]*+ = [\t\n\f\r ]*+ (?: "([^"]*+)"? | '([^']*+)'? | ([^\t\n\f\r >"'] [^\t\n\f\r >]*+) | ) )?+ )"""

# "Extracting a character encoding from a meta element": a quote that is not closed yields nothing.
_META_CHARSET = rb"""(?xi)charset [\t\n\f\r ]*+ = [\t\n\f\r ]*+ (?: "([^"]*+)" | '([^']*+)' | ["'] | ([^\t\n\f\r ;]*+) )"""

_XML_ENCODING = rb"""<\?xml[^>]*?encoding[\0- ]*+=[\0- ]*+(?:"([^"\0- >]*+)"|'([^'\0- >]*+)')[^>]*+>"""


@cache
def _compiled(pattern: bytes) -> re.Pattern[bytes]:
    return re.compile(pattern)


def encoding_name(label: str) -> str | None:
    """Return the name of the encoding that `label` stands for, None if it stands for none (Encoding Standard 4.2)."""
    encoding = webencodings.lookup(label)
    return None if encoding is None else encoding.name


def detect(body: bytes, header_charset: str | None) -> str:
    """Return the name of the encoding of an HTML document.

    `header_charset` is the label of the Content-Type header, if it has one. In this order (HTML Standard section
    13.2.3.2): byte order mark, header, declaration in the first 1,024 bytes. Labels that mean nothing are passed over.
    What declares nothing is `utf-8` if it holds characters of UTF-8 and nothing else, even if its last one is cut; else
    what it declares further down, else `windows-1252`. Never raises.
    """
    head = body[:PRESCAN_BYTES]
    return detect_plainly(head, header_charset) or prescan(head) or _guess(body)


def detect_plainly(beginning: bytes, header_charset: str | None) -> str | None:
    """Return what `detect` does of all documents that begin so, with no mark cut, None where it may depend on more."""
    for mark, name in _BOMS:
        if beginning.startswith(mark):
            return name
    declared = encoding_name(header_charset) if header_charset else None
    return declared or ("utf-8" if _PLAINLY_UTF8.match(beginning) else None)


def decode(body: bytes, encoding: str) -> str:
    """Return the text of `body` in the encoding of that name, without byte order mark (Encoding Standard section 6).

    Bytes that fit nothing become U+FFFD. Never raises: an unknown name counts as `windows-1252`.
    """
    if encoding == "replacement":
        return "\ufffd" if body else ""
    if encoding.startswith(_SINGLE_BYTE):
        return codecs.charmap_decode(body, "replace", _characters(encoding))[0]
    # To the Encoding Standard gbk's decoder is that of gb18030, which Python's gbk is not.
    known = webencodings.lookup("gb18030" if encoding == "gbk" else encoding)
    return webencodings.decode(body, known or FALLBACK, "replace")[0]


def prescan(head: bytes) -> str | None:
    """Return the encoding that the first bytes of a document declare, None if none (HTML Standard section 13.2.3.2)."""
    for start, name in _UTF16_XML:
        if head.startswith(start):
            return name
    return _declared_in_meta(head) or _declared_in_xml(head)


def _guess(body: bytes) -> str:
    if _shows_utf8(body):
        return "utf-8"
    return prescan(body[:_LATE_BYTES]) or FALLBACK


def _shows_utf8(body: bytes) -> bool:
    if body.isascii():
        return False
    try:
        whole = codecs.utf_8_decode(body, "strict", False)[1]
    except UnicodeDecodeError:
        return False
    # A cut character alone is no evidence.
    return not body[:whole].isascii()


@cache
def _characters(encoding: str) -> str:
    """Return the 256 characters of a single-byte encoding.

    Python leaves the bytes 0x80 to 0x9F undefined where the Encoding Standard's indexes have the control of the same
    number. They are met in UTF-8 that is declared as Latin-1, and must survive: the query of a link is encoded back.
    """
    known = webencodings.lookup(encoding) or webencodings.lookup(FALLBACK)
    assert known is not None
    text = known.codec_info.decode(bytes(range(256)), "replace")[0]
    return "".join(chr(i) if c == "\ufffd" and i < 0xA0 else c for i, c in enumerate(text))


def _declared_in_meta(head: bytes) -> str | None:
    if b"charset" not in head.lower():
        return None
    at = head.find(b"<")
    while at != -1:
        end: int | None
        if _compiled(_META).match(head, at):
            attributes, end = _attributes(head, at + len(b"<meta"))
            if end is not None and (name := _meta_encoding(attributes)):
                return name
        else:
            end = _skip(head, at)
        if end is None:
            return None
        at = head.find(b"<", end)
    return None


def _skip(head: bytes, at: int) -> int | None:
    """Return where what starts with the `<` at `at` ends; None where it runs over the end of the bytes."""
    if head.startswith(b"<!--", at):
        # The two hyphens before the > may be those of the start.
        return _end_of(head, b"-->", at + 2)
    if tag := _compiled(_TAG).match(head, at):
        return _attributes(head, tag.end())[1]
    if head.startswith((b"<!", b"</", b"<?"), at):
        return _end_of(head, b">", at)
    return at + 1


def _end_of(head: bytes, mark: bytes, start: int) -> int | None:
    at = head.find(mark, start)
    return None if at == -1 else at + len(mark)


def _attributes(head: bytes, at: int) -> tuple[dict[bytes, bytes], int | None]:
    """Return the attributes of a tag, the first of each name, and where it ends: None if after all bytes."""
    found: dict[bytes, bytes] = {}
    match_one = _compiled(_ATTRIBUTE).match
    while match := match_one(head, at):
        at = match.end()
        closed, name, *values = match.groups()
        if closed:
            return found, at
        found.setdefault(name.lower(), next((v for v in values if v is not None), b""))
    return found, None


def _meta_encoding(attributes: dict[bytes, bytes]) -> str | None:
    """Return the encoding that a meta element declares; `charset` counts more than `content`."""
    if b"charset" in attributes:
        return _for_document(attributes[b"charset"])
    if attributes.get(b"http-equiv", b"").lower() != b"content-type":
        return None
    match = _compiled(_META_CHARSET).search(attributes.get(b"content", b""))
    return _for_document(b"".join(group or b"" for group in match.groups())) if match else None


def _declared_in_xml(head: bytes) -> str | None:
    """Return the encoding that an XML declaration names ("get an XML encoding", the end of the prescan)."""
    match = _compiled(_XML_ENCODING).match(head)
    return _for_document(match[1] or match[2] or b"") if match else None


def _for_document(label: bytes) -> str | None:
    """Return the encoding that a declaration within a document stands for: it cannot be UTF-16 if it could be read."""
    name = encoding_name(label.decode("latin-1"))
    if name in _UTF16:
        return "utf-8"
    return FALLBACK if name == "x-user-defined" else name
