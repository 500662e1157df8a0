"""Turn text into URLs: the normal form, links against a base, redirect targets, and the parts of a normal form.

A URL is carried as a plain `str` in normal form: parsed as browsers do (WHATWG URL Standard, through `ada_url`), http
or https, without fragment, user name and password; everything else is kept as written. A normal form is ASCII, has a
host and a path that starts with `/`, and names a port only where it is not the scheme's own: its parts are slices.
"""

import re
from codecs import CodecInfo
from collections.abc import Callable
from urllib.parse import quote_from_bytes

import webencodings
from ada_url import join_url, normalize_url

from crawlkit.errors import UsageError

_HTTP = ("http://", "https://")

# Schemes that are never http(s), as pages nearly always write them; other spellings get there through the parser.
_OTHER_SCHEMES = ("javascript:", "mailto:", "tel:", "data:")

# The navigation of a site is the same on each of its pages, so a memo of references pays: a fiftieth of a parse. Its size
# and the longest text it keeps bound it: about 5 MiB on real pages, 50 MiB at the worst.
_MEMO_ENTRIES = 32_768
_MEMO_CHARS = 512

# What the parser leaves as it is, but for a fragment: most URLs on the web, at a fifth of the time. No host that could be
# an address or punycode, no port, nothing to be encoded, no segment that begins with a dot.
# The letters are spelt out: a class that is all characters is a bitmap, one with a category in it is gone through.
_NO_DOT = "A-Za-z0-9_!$&()*+,:;=@~-"
_SEGMENT = rf"[{_NO_DOT}][.{_NO_DOT}]*+"
_PATH = rf"(?:/++(?:{_SEGMENT})?+)"
_REST = rf"(?:\?[./?{_NO_DOT}]*+)?+)(?:#.*)?+"
_PLAIN_PATH = re.compile(rf"(/(?!/)(?:{_SEGMENT})?+{_PATH}*+{_REST}", re.DOTALL)
_PLAIN_URL = re.compile(rf"(https?://(?:(?!xn--)[a-z0-9][a-z0-9-]*+\.)++[a-z]{{2,}}+{_PATH}++{_REST}", re.DOTALL)

_C0_OR_SPACE = "".join(map(chr, range(0x21)))
_TAB_OR_NEWLINE = {ord(c): None for c in "\t\n\r"}
_ASCII = bytes(range(0x80))

# What the special-query percent-encode set leaves as it is (URL Standard section 1.3), besides what quoting does.
_QUERY_SAFE = "!$%&()*+,/:;=?@[\\]^`{|}"

# Not encoded here but by the parser: these have UTF-8 as their output encoding (Encoding Standard section 4.3).
_UTF8_OUT = ("utf-8", "utf-16le", "utf-16be", "replacement")


def normalise(text: str) -> str | None:
    """Return the normal form of an absolute http(s) URL; None for anything else. Idempotent, never raises."""
    plain = _PLAIN_URL.fullmatch(text)
    if plain:
        return plain[1]
    try:
        return _normal(normalize_url(text))
    except ValueError:
        return None


def parse_seed(text: str, what: str = "seed") -> str:
    """Return the normal form of a seed; UsageError, in one line, says what is wrong with `what` and what to do."""
    seed = text.strip(_C0_OR_SPACE)
    shown = repr(seed if len(seed) <= 200 else seed[:200] + "...")
    if not seed:
        raise UsageError(f"a {what} is empty; give an absolute URL like https://example.com/")
    # A colon that a port follows ends a host name, whatever the parser makes of it: localhost:8080 is no scheme.
    if not re.match(r"[A-Za-z][A-Za-z0-9+.-]*:(?![0-9]+(?:[/?#]|$))", seed):
        guess = "https://" + seed.lstrip("/")
        likely = len(guess) <= 200 and guess.isprintable() and normalise(guess)
        advice = f"; did you mean {guess}?" if likely else ""
        raise UsageError(f"{what} {shown} has no scheme{advice}")
    try:
        href = normalize_url(seed)
    except ValueError:
        raise UsageError(f"{what} {shown} is not a valid URL") from None
    url = _normal(href)
    if url is None:
        raise UsageError(f"{what} {shown} is not an http or https URL")
    if url != href.partition("#")[0]:
        raise UsageError(f"{what} {url!r} was given with a user name or password; pass those with --auth")
    return url


class _Memo:
    """References that were resolved, by the place that they are resolved against: an origin, or a folder."""

    __slots__ = ("_entries", "_places")

    def __init__(self) -> None:
        self._places: dict[str, dict[str, str]] = {}
        self._entries = 0

    def of(self, place: str) -> dict[str, str]:
        """Return what is known of a place, to be added to by `note` only."""
        known = self._places.get(place)
        if known is None:
            self._take_one()
            known = self._places.setdefault(place, {})
        return known

    def note(self, known: dict[str, str], reference: str, url: str) -> None:
        """Add what `reference` leads to."""
        self._take_one()
        known[reference] = url

    def _take_one(self) -> None:
        self._entries += 1
        if self._entries >= _MEMO_ENTRIES:  # begun anew: another thread may be at work on the one before
            self._places, self._entries = {}, 0


class Joiner:
    """Resolves the references of one document.

    `base` is its base URL, absolute; `charset` its encoding, by the Encoding Standard's name in lower case. A reference
    costs 2 to 3 us; again, on any page of the origin if it starts with a slash or is absolute, else on any page of the
    folder, a tenth of that. `known` holds what some references lead to: to look there first saves the call.
    """

    __slots__ = ("_at_root", "_base", "_codec", "_in_folder", "_is_memorable", "_own", "_root", "known")

    def __init__(self, base: str, charset: str = "utf-8") -> None:
        self._begin(base, normalise(base), charset)

    @classmethod
    def at(cls, base: str, charset: str) -> "Joiner":
        """Return the joiner of a document whose base URL is in normal form."""
        joiner = cls.__new__(cls)
        joiner._begin(base, base, charset)
        return joiner

    def _begin(self, base: str, own: str | None, charset: str) -> None:
        self._own = own
        self._base = base if own is None else own
        self._codec = _output_codec(charset)
        self._at_root: dict[str, str] = {}
        self._in_folder: dict[str, str] = {}
        self._is_memorable = own is not None and len(own) <= _MEMO_CHARS
        if own is not None:
            # All that a reference with a leading slash takes from its base.
            origin = origin_of(own)
            self._root = origin + "/"
            if self._is_memorable:
                path = own.partition("?")[0]
                self._at_root = _memo.of(origin)
                self._in_folder = _memo.of(path[: path.rindex("/") + 1])
        # In another charset a reference is remembered with its query encoded, not as it is written.
        self.known = self._at_root if self._codec is None else {}

    def join(self, reference: str) -> str | None:
        """Return the normal form of the http(s) URL that `reference` names; None if it names none. Never raises.

        Its query is encoded in the document's encoding, its path in UTF-8 (URL Standard sections 4.4 and 5.2).
        """
        if self._codec is not None and not reference.isascii():
            reference = _encode_query(reference, self._codec)
        if reference.startswith(_HTTP):  # first: of what is not known yet most leads elsewhere
            return self._remembered(self._at_root, reference, normalise)
        if reference.startswith(_OTHER_SCHEMES):
            return None
        first = reference[:1] if self._own is not None else ""
        if first == "#":
            return self._own
        if first == "/":
            return self._remembered(self._at_root, reference, self._below_root)
        # What begins otherwise may depend on the base's name and query.
        if first > " " and first != "?" and ":" not in reference:
            return self._remembered(self._in_folder, reference, self._below_folder)
        return _join(self._base, reference)

    def _remembered(self, known: dict[str, str], reference: str, resolve: Callable[[str], str | None]) -> str | None:
        if reference in known:
            return known[reference]
        url = resolve(reference)
        if url is not None and self._is_memorable and len(reference) <= _MEMO_CHARS:
            _memo.note(known, reference, url)
        return url

    def _below_root(self, reference: str) -> str | None:
        plain = _PLAIN_PATH.fullmatch(reference)
        return self._root[:-1] + plain[1] if plain else _join(self._root, reference)

    def _below_folder(self, reference: str) -> str | None:
        return _join(self._base, reference)


def resolve_location(base: str, raw: bytes) -> str | None:
    """Return the normal form of the http(s) target that the bytes of a Location header name; None if they name none.

    Bytes outside of ASCII are percent-encoded as received, as browsers do: the server gets back its own octets.
    """
    text = quote_from_bytes(raw.strip(), safe=_ASCII)
    return _join(base, text) if text else None


def host_of(url: str) -> str:
    """Return the host name of a normal form, without port; an IPv6 address keeps its brackets."""
    authority = url[8 if url[4] == "s" else 7 : url.index("/", 8)]  # some thirty times a page
    if ":" not in authority or authority[-1] == "]":
        return authority
    return authority.rpartition(":")[0]


def origin_of(url: str) -> str:
    """Return scheme, host and port of a normal form, like `https://example.com:8443`; a default port is left out."""
    return url[: url.index("/", 8)]


def path_of(url: str) -> str:
    """Return the path and the query of a normal form: the request target on the wire (RFC 9112 section 3.2.1)."""
    return url[url.index("/", 8) :]


def _join(base: str, reference: str) -> str | None:
    try:
        return _normal(join_url(base, reference))
    except ValueError:
        return None


_memo = _Memo()


def _normal(href: str) -> str | None:
    """Return the normal form of a URL that the parser serialised (URL Standard section 4.5), None unless http(s)."""
    if not href.startswith(_HTTP):
        return None
    url = href.partition("#")[0]
    if "@" in url:
        start, end = url.index("/") + 2, url.index("/", 8)
        return url[:start] + url[url.rfind("@", start, end) + 1 :] if "@" in url[start:end] else url
    return url


def _output_codec(charset: str) -> CodecInfo | None:
    """Return the codec for the queries of a document in `charset`; None for UTF-8, and for a name that is unknown."""
    encoding = None if charset == "utf-8" else webencodings.lookup(charset)
    return None if encoding is None or encoding.name in _UTF8_OUT else encoding.codec_info


def _encode_query(reference: str, codec: CodecInfo) -> str:
    """Return `reference` with its query percent-encoded after encoding (URL Standard section 1.3), fragment dropped."""
    text = reference.strip(_C0_OR_SPACE).translate(_TAB_OR_NEWLINE).partition("#")[0]
    head, mark, query = text.partition("?")
    if not mark:
        return reference
    try:
        encoded = codec.encode(query)[0]
    except UnicodeEncodeError:
        encoded = codec.encode(query.translate({ord(c): _encodable(c, codec) for c in set(query)}))[0]
    return f"{head}?{quote_from_bytes(encoded, safe=_QUERY_SAFE)}"


def _encodable(character: str, codec: CodecInfo) -> str:
    """Return `character`, or what stands for it in a query if the encoding lacks it."""
    try:
        codec.encode(character)
    except UnicodeEncodeError as error:
        # Bytes that Python leaves undefined are controls of the same number in the Encoding Standard's indexes.
        if error.encoding == "charmap" and "\x80" <= character <= "\x9f":
            byte = bytes([ord(character)])
            if not codec.decode(byte, "ignore")[0]:
                return quote_from_bytes(byte)
        return f"%26%23{ord(character)}%3B"
    return character
