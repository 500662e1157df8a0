"""A URL's sort-friendly form, by which indexes of archives are sorted and looked up: `com,example)/path?query`.

As the Internet Archive's wayback machine makes it (Java class IAURLCanonicalizer, Python package `surt`), since a tool that
replays makes the same of the URL that it is asked for. It merges what differs in case, order of parameters, `www.`,
session ids, escapes or a slash at the end: it is a key, never an address.
"""

import re
from typing import Final
from urllib.parse import quote_from_bytes, unquote_to_bytes, urlsplit

_SAFE: Final = "!\"$&'()*+,-./:;<=>?@[\\]^_`{|}~"
_WWW: Final = re.compile(rb"^www\d*\.")
_PATH_SESSION: Final = (
    re.compile(rb"^(.*/)(?:\((?:[a-z]\([0-9a-z]{24}\))+\)/)([^?]+\.aspx.*)$"),
    re.compile(rb"^(.*/)(?:\([0-9a-z]{24}\)/)([^?]+\.aspx.*)$"),
)
_QUERY_SESSION: Final = tuple(
    re.compile(rb"^(.*)(?:%b)(?:&(.*))?$" % name, re.IGNORECASE)
    for name in (
        rb"jsessionid=[0-9a-z]{32}",
        rb"phpsessid=[0-9a-z]{32}",
        rb"sid=[0-9a-z]{32}",
        rb"aspsessionid[a-z]{8}=[a-z]{24}",
        rb"cfid=[^&]+&cftoken=[^&]+",
    )
)


def surt_of(url: str) -> str:
    """Return the sort-friendly form of a URL (normal form)."""
    parts = urlsplit(url)
    host = _WWW.sub(b"", _escaped(parts.hostname or "").lower(), count=1).replace(b"..", b".").strip(b".")
    port = "" if parts.port is None else f":{parts.port}"
    query = _query(parts.query)
    key = b",".join(reversed(host.split(b".")))
    return f"{key.decode()}{port}){_path(parts.path).decode()}{'?' if query else ''}{query.decode()}"


def _path(path: str) -> bytes:
    kept: list[bytes] = []
    for segment in _escaped(path).lower().split(b"/"):
        if segment == b"..":
            del kept[-1:]
        elif segment not in (b"", b"."):
            kept.append(segment)
    folded = b"/" + b"/".join(kept)
    for pattern in _PATH_SESSION:
        folded = pattern.sub(rb"\1\2", folded)
    return folded


def _query(query: str) -> bytes:
    bare = _escaped(query)
    for pattern in _QUERY_SESSION:
        if match := pattern.match(bare):
            bare = match[1] + (match[2] or b"")
    parts = bare.lower().split(b"&")
    parts.sort(key=lambda part: part.split(b"=", 1))
    return b"&".join(parts) if len(bare) > 1 else bare.lower()


def _escaped(text: str) -> bytes:
    """Return a part with its escapes undone, again and again, then only those made that are needed."""
    bare = text.encode()
    while (once := bytes(unquote_to_bytes(bare))) != bare:
        bare = once
    return quote_from_bytes(bare, safe=_SAFE).encode()
