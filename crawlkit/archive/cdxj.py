"""CDXJ: one line for each answer in the archive, `SURT timestamp JSON`, by which tools that replay find it.

As pywb and its kin read it: sorted by the bytes of the line, numbers as text, a revisit's type `warc/revisit`.
"""

import msgspec

from crawlkit.archive.files import file_name
from crawlkit.archive.records import digest_text, warc_date
from crawlkit.archive.surt import surt_of
from crawlkit.exchange import Extent, Role

_encode = msgspec.json.Encoder().encode
_REVISIT = "warc/revisit"


def is_indexed(extent: Extent) -> bool:
    """Whether an answer can be replayed: not a revisit whose original is gone."""
    return extent.original is None or extent.role is not Role.SUPERSEDED


def cdxj_line(extent: Extent, crawl_id: str, folder: str = "") -> bytes:
    """Return the line of an answer, with its line end; `folder` comes before the name of its file."""
    date = warc_date(extent.started_s)
    stamp = "".join([char for char in date if char.isdigit()])[:14]
    told = {
        "url": extent.url,
        "mime": _REVISIT if extent.original is not None else extent.content_type or "unk",
        "status": str(extent.status),
        "digest": digest_text(extent.payload),
        "length": str(extent.lengths[0]),
        "offset": str(extent.offset),
        "filename": f"{folder}{file_name(crawl_id, extent.file)}",
    }
    return f"{surt_of(extent.url)} {stamp} ".encode() + _encode(told) + b"\n"
