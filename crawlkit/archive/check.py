"""Whether the archive holds what is said of it: each member ungzipped, its digests computed anew."""

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from crawlkit.archive.reading import BrokenRecordError, ReadRecord, read_record
from crawlkit.exchange import Extent


def check_extents(path: Path, extents: Iterator[Extent]) -> Iterator[str]:
    """Yield what is wrong with the exchanges of one file, in sentences."""
    try:
        with path.open("rb") as file:
            for extent in extents:
                try:
                    _check(file, extent)
                except BrokenRecordError as error:
                    yield f"{path.name} at {extent.offset}, {extent.url}: {error}"
    except OSError as error:
        yield f"{path.name} cannot be read: {error.strerror}"


def check_warcinfo(path: Path, length: int) -> str | None:
    """Return what is wrong with the record that a file begins with, in its first `length` bytes."""
    try:
        with path.open("rb") as file:
            _expect(read_record(file, 0, length), "warcinfo", None)
    except BrokenRecordError as error:
        return f"{path.name} at 0: {error}"
    except OSError as error:
        return f"{path.name} cannot be read: {error.strerror}"
    return None


def _check(file: BinaryIO, extent: Extent) -> None:
    answer, request, metadata = extent.lengths
    kind = "response" if extent.original is None else "revisit"
    at = extent.offset
    payload = _expect(read_record(file, at, answer), kind, extent.url)
    if payload != (extent.payload if extent.original is None else hashlib.sha256().digest()):
        raise BrokenRecordError("another body than was archived")
    _expect(read_record(file, at + answer, request), "request", extent.url)
    _expect(read_record(file, at + answer + request, metadata), "metadata", extent.url)


def _expect(record: ReadRecord, kind: str, url: str | None) -> bytes:
    """See that a record is of this kind, of this URL and whole; return the SHA-256 of the body, where it is an answer."""
    fields = record.fields
    if (fields.get("WARC-Type"), fields.get("WARC-Target-URI")) != (kind, url):
        raise BrokenRecordError(f"a {fields.get('WARC-Type')} of {fields.get('WARC-Target-URI')}, not the {kind}")
    block, payload = hashlib.sha256(), hashlib.sha256()
    if kind in ("response", "revisit"):
        head, body = record.answer()
        block.update(head)
    else:
        body = record.block
    for piece in body:
        block.update(piece)
        payload.update(piece)
    if fields.get("WARC-Block-Digest") != f"sha256:{block.hexdigest()}":
        raise BrokenRecordError(f"the {kind}'s block does not match its digest")
    return payload.digest()
