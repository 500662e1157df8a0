"""One side of a comparison: the records of a crawl directory, or the lines of a JSON report, sorted by URL."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import msgspec

from crawlkit.errors import StateError, UsageError
from crawlkit.model import Record
from crawlkit.surfaces.control.client import open_crawl

Text = str | msgspec.UnsetType | None


class Known(msgspec.Struct, frozen=True, kw_only=True):
    """What is compared of a record. A report that was written with `--fields` may lack some: what is unset is not compared."""

    url: str
    kind: str | msgspec.UnsetType = msgspec.UNSET
    status: int | msgspec.UnsetType | None = msgspec.UNSET
    reason: Text = msgspec.UNSET
    redirect_to: Text = msgspec.UNSET
    digest: Text = msgspec.UNSET
    title: Text = msgspec.UNSET
    canonical: Text = msgspec.UNSET


COMPARED = Known.__struct_fields__[1:]


@contextmanager
def open_side(path: Path) -> Iterator[Iterator[Known]]:
    """Give the records at `path`: a crawl directory, or a file with a JSON report.

    Raises:
        StateError: it is neither there nor a crawl, or the crawl runs and does not answer (StateLocked).
        UsageError: while records are taken: the file holds something else, or is not sorted.
    """
    if not _is_file(path):
        with open_crawl(path) as crawl:
            yield map(_known, crawl.pages.walk())
        return
    try:
        file = path.open("rb")
    except OSError as error:
        raise StateError(f"cannot read {path}: {error.strerror}") from error
    with file:
        yield _lines(path, file)


def _is_file(path: Path) -> bool:
    """Whether a file is there; no where that cannot be told, which opening it as a crawl will say."""
    try:
        return path.exists() and not path.is_dir()
    except OSError:
        return False


def _known(record: Record) -> Known:
    return Known(
        url=record.url,
        kind=record.kind.value,
        status=record.status,
        reason=record.reason,
        redirect_to=record.redirect_to,
        digest=record.digest,
        title=record.title,
        canonical=record.canonical,
    )


def _lines(path: Path, file: BinaryIO) -> Iterator[Known]:
    decoder = msgspec.json.Decoder(Known)
    last: str | None = None
    for number, line in enumerate(file, 1):
        try:
            known = decoder.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise UsageError(f"{path}, line {number} is not of a report with --format jsonl: {error}") from error
        if last is not None and known.url <= last:  # code points sort as their UTF-8 bytes do
            raise UsageError(f"{path}, line {number}: the URLs of a report are sorted, each there once; this one's are not")
        last = known.url
        yield known
