"""WARC records of one exchange: response or revisit, request, metadata. Pure: bytes out, identifiers and time passed in.

The body is archived as the server encoded it (Content-Encoding), but not in chunks: the payload is the entity-body (WARC 1.1
section 6.3.2), its digest is that of the payload, and readers do not agree on undoing the chunks before they check it (warcio
1.8 and fastwarc 2.0 take them for payload). So Transfer-Encoding is renamed, as Common Crawl does, and a Content-Length that is
right is added. A head's bare LF is made CRLF: fastwarc finds no field otherwise.
"""

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import Final

from crawlkit.exchange import Extent, Settled

REVISIT_PROFILE: Final = "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest"
RENAMED: Final = b"X-Crawl-"
"""What stands before the name of a field of the head that no longer holds for the body as archived."""

_FRAMING: Final = re.compile(rb"^(?=(?:transfer-encoding|content-length)[ \t]*:)", re.IGNORECASE | re.MULTILINE)
_CHUNKED: Final = re.compile(rb"^transfer-encoding[ \t]*:", re.IGNORECASE | re.MULTILINE)
_FIELDS: Final = "application/warc-fields"
_NEXT_LINK: Final = "\r\noutlink: "
_END: Final = b"\r\n\r\n"

Block = tuple[bytes, ...]
"""A record's block in pieces, so that a body is not copied."""


@dataclass(frozen=True, slots=True)
class WarcRecord:
    """One record: its head, and its block in pieces. Written as `pieces()` says, in a gzip member of its own."""

    head: bytes
    block: Block

    def pieces(self) -> tuple[bytes, ...]:
        """Return all of it in order (WARC 1.1 section 4)."""
        return (self.head, *self.block, _END)


@dataclass(frozen=True, slots=True)
class Original:
    """The response that a revisit refers to."""

    record_id: bytes
    url: str
    started_s: float

    @classmethod
    def of(cls, extent: Extent) -> "Original":
        """Return what refers to an archived response."""
        return cls(extent.record_id, extent.url, extent.started_s)


def payload_digest(settled: Settled) -> bytes:
    """Return the SHA-256 of the body as archived."""
    return hashlib.sha256(settled.exchange.body).digest()


def warcinfo(record_id: bytes, name: str, now: float, about: Mapping[str, str]) -> WarcRecord:
    """Return the record that a file begins with: what made it, and with which settings."""
    block = _fields({"format": "WARC File Format 1.1", **about}.items())
    head = {"WARC-Filename": name, "Content-Type": _FIELDS}
    return _record("warcinfo", record_id, now, head, (block,))


def response(settled: Settled, record_id: bytes, info_id: bytes, payload: bytes) -> WarcRecord:
    """Return the record of an answer."""
    exchange = settled.exchange
    head = _answer_head(settled, info_id, payload)
    if exchange.cut is not None:
        head["WARC-Truncated"] = exchange.cut
    block = (archived_head(exchange.head, len(exchange.body)), exchange.body)
    return _record("response", record_id, settled.started_s, head, block)


def revisit(settled: Settled, record_id: bytes, info_id: bytes, payload: bytes, original: Original) -> WarcRecord:
    """Return the record of an answer whose body was archived before (WARC 1.1 section 6.7.2): its head alone."""
    head = _answer_head(settled, info_id, payload)
    head["WARC-Profile"] = REVISIT_PROFILE
    head["WARC-Refers-To"] = _urn(original.record_id)
    head["WARC-Refers-To-Target-URI"] = original.url
    head["WARC-Refers-To-Date"] = warc_date(original.started_s)
    block = (archived_head(settled.exchange.head, len(settled.exchange.body)),)
    return _record("revisit", record_id, settled.started_s, head, block)


def request(settled: Settled, record_id: bytes, info_id: bytes, response_id: bytes) -> WarcRecord:
    """Return the record of the request."""
    head = _beside(settled, info_id, response_id)
    if settled.exchange.address is not None:
        head["WARC-IP-Address"] = settled.exchange.address
    head["Content-Type"] = "application/http;msgtype=request"
    return _record("request", record_id, settled.started_s, head, (settled.exchange.request,))


def metadata(settled: Settled, record_id: bytes, info_id: bytes, response_id: bytes) -> WarcRecord:
    """Return the record of what the crawl made of the answer. Empty fields are left out."""
    told = {
        "via": settled.via,
        "depth": settled.depth,
        "redirects": settled.hops,
        "purpose": settled.role.name.lower(),
        "attempt": settled.attempt,
        "fetchTimeMs": round((settled.ended_s - settled.started_s) * 1000),
        "reason": settled.reason,
    }
    fields = [(name, str(value)) for name, value in told.items() if value is not None]
    head = _beside(settled, info_id, response_id)
    head["Content-Type"] = _FIELDS
    block = _fields(fields)
    if settled.links:
        block += f"outlink: {_NEXT_LINK.join(settled.links)}\r\n".encode()  # at once: there may be thousands
    return _record("metadata", record_id, settled.started_s, head, (block,))


def is_original(settled: Settled) -> bool:
    """Whether another answer with the same body may refer to this one: it is whole and there is a body."""
    return settled.exchange.cut is None and bool(settled.exchange.body)


def archived_head(head: bytes, body_bytes: int) -> bytes:
    """Return the head of an answer as archived: as it is, unless the body came in a transfer coding, which is undone."""
    if _CHUNKED.search(head) is None:
        return head
    return _FRAMING.sub(RENAMED, head)[:-2] + b"Content-Length: %d\r\n\r\n" % body_bytes


def warc_date(when_s: float) -> str:
    """Return a time as WARC-Date: UTC, with milliseconds (WARC 1.1 section 5.4)."""
    milliseconds = int(when_s * 1000)
    return f"{_second(milliseconds // 1000)}.{milliseconds % 1000:03}Z"


@lru_cache(8)
def _second(when_s: int) -> str:
    return datetime.fromtimestamp(when_s, UTC).strftime("%Y-%m-%dT%H:%M:%S")


def _answer_head(settled: Settled, info_id: bytes, payload: bytes) -> dict[str, str]:
    exchange = settled.exchange
    head = {"WARC-Warcinfo-ID": _urn(info_id), "WARC-Target-URI": settled.url}
    if exchange.address is not None:
        head["WARC-IP-Address"] = exchange.address
    if exchange.protocol is not None:
        head["WARC-Protocol"] = exchange.protocol
    head["WARC-Payload-Digest"] = digest_text(payload)
    head["Content-Type"] = "application/http;msgtype=response"
    return head


def _beside(settled: Settled, info_id: bytes, response_id: bytes) -> dict[str, str]:
    return {
        "WARC-Warcinfo-ID": _urn(info_id),
        "WARC-Target-URI": settled.url,
        "WARC-Concurrent-To": _urn(response_id),
    }


def _record(kind: str, record_id: bytes, when_s: float, fields: Mapping[str, str], block: Block) -> WarcRecord:
    digest = hashlib.sha256(block[0])
    for piece in block[1:]:
        digest.update(piece)
    told = "".join([f"{name}: {value}\r\n" for name, value in fields.items()])
    head = (
        f"WARC/1.1\r\nWARC-Type: {kind}\r\nWARC-Record-ID: {_urn(record_id)}\r\nWARC-Date: {warc_date(when_s)}\r\n{told}"
        f"WARC-Block-Digest: {digest_text(digest.digest())}\r\nContent-Length: {sum(map(len, block))}\r\n\r\n"
    )
    return WarcRecord(head.encode(), block)


def _fields(pairs: Iterable[tuple[str, str]]) -> bytes:
    return "".join([f"{name}: {value}\r\n" for name, value in pairs]).encode()


@lru_cache(64)
def _urn(record_id: bytes) -> str:
    name = record_id.hex()  # uuid.UUID takes five times as long
    return f"<urn:uuid:{name[:8]}-{name[8:12]}-{name[12:16]}-{name[16:20]}-{name[20:]}>"


def digest_text(digest: bytes) -> str:
    """Return a digest in base 16: RFC 3548 has that too, and it is how the report writes it."""
    return f"sha256:{digest.hex()}"
