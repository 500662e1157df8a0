"""The document in an answer: what HTML it holds, in UTF-8, for a parser or a browser."""

from functools import lru_cache
from typing import Final

import msgspec

from crawlkit.model import Response
from crawlkit.policy.charset import PRESCAN_BYTES, decode, detect, detect_plainly
from crawlkit.policy.content_type import XHTML, ContentType, read_content_type, sniff, sniff_plainly
from crawlkit.policy.links import xhtml_as_html
from crawlkit.rendering import Document

_UTF8_BOM: Final = b"\xef\xbb\xbf"

# The pages of a site begin alike, up to where they declare their encoding.
_MEMO_ENTRIES: Final = 64

_HOLDS_IN_A_BROWSER: Final = (b"content-security-policy",)


class Markup(msgspec.Struct, frozen=True):
    """HTML in UTF-8, and the encoding that it came in."""

    html: bytes
    charset: str


def markup_of(body: bytes, declared: ContentType) -> Markup | None:
    """Return the HTML in the body of a 2xx answer, None if it is none by its type, or by its start where there is no type."""
    declaration = 0 if declared.charset else max(0, body.find(b"charset", 0, PRESCAN_BYTES))
    kind, charset = _plainly(body[: body.find(b">", declaration, PRESCAN_BYTES) + 1], declared)
    kind = kind or sniff(body, declared.essence)
    if kind is None:
        return None
    charset = charset or detect(body, declared.charset)
    markup = _as_utf8(body, charset)
    return Markup(xhtml_as_html(markup) if kind == XHTML else markup, charset)


@lru_cache(_MEMO_ENTRIES)
def _plainly(beginning: bytes, declared: ContentType) -> tuple[str | None, str | None]:
    """Return as what HTML documents that begin so, up to a `>`, are parsed, and their encoding; None where more may count."""
    if not beginning:
        return None, None
    return sniff_plainly(beginning, declared.essence), detect_plainly(beginning, declared.charset)


def document_of(url: str, response: Response) -> Document | None:
    """Return the document in an answer to a request of `url`, None if it is no success or no HTML."""
    if not 200 <= response.status < 300:
        return None
    markup = markup_of(response.body, read_content_type(response.header_values(b"content-type")))
    if markup is None:
        return None
    headers = []
    for name in _HOLDS_IN_A_BROWSER:
        values = response.header_values(name)
        if values:
            headers.append((name.decode(), b", ".join(values).decode("latin-1")))
    return Document(url, markup.html, tuple(headers))


def _as_utf8(body: bytes, charset: str) -> bytes:
    """Return `body` in UTF-8 without byte order mark; what is UTF-8 already is not copied through text."""
    if charset == "utf-8":
        if body.isascii():  # a third of the time of decoding
            return body
        try:
            body.decode()
        except UnicodeDecodeError:
            pass
        else:
            return body.removeprefix(_UTF8_BOM)
    return decode(body, charset).encode()
