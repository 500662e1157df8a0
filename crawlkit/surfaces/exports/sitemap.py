"""A sitemap of the pages that may be indexed, in the form of sitemaps.org.

Where they are too many for one file it is an index, and its parts lie beside it.
"""

import shutil
from dataclasses import dataclass
from datetime import UTC
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import BinaryIO
from urllib.parse import quote, urljoin
from xml.sax.saxutils import escape

from crawlkit.policy.indexing import is_indexable
from crawlkit.surfaces.exports.job import ExportJob

_NAMESPACE = 'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'
_HEAD = f'<?xml version="1.0" encoding="UTF-8"?>\n<urlset {_NAMESPACE}>\n'.encode()
_END = b"</urlset>\n"
_INDEX_HEAD = f'<?xml version="1.0" encoding="UTF-8"?>\n<sitemapindex {_NAMESPACE}>\n'.encode()
_INDEX_END = b"</sitemapindex>\n"


@dataclass(frozen=True, slots=True)
class Limits:
    """The most that one file of a sitemap may hold."""

    urls: int
    bytes: int


PROTOCOL = Limits(50_000, 50 * 1024 * 1024)
"""The bounds of sitemaps.org ("Using Sitemap index files")."""


class _Parts:
    """The files of a sitemap: one, until a second one is needed; then `out` becomes the index of all."""

    def __init__(self, job: ExportJob, limits: Limits) -> None:
        self._job = job
        self._limits = limits
        self._part: BinaryIO = job.out
        self._names: list[str] = []
        self._first = ""
        self._urls = 0
        self._bytes = self._part.write(_HEAD)

    def add(self, url: str, last_modified: str | None) -> None:
        dated = "" if last_modified is None else f"<lastmod>{last_modified}</lastmod>"
        entry = f"<url><loc>{_escaped(url)}</loc>{dated}</url>\n".encode()
        if self._urls == self._limits.urls or self._bytes + len(entry) + len(_END) > self._limits.bytes:
            self._begin_part()
        self._first = self._first or url
        self._urls += 1
        self._bytes += self._part.write(entry)

    def close(self) -> None:
        self._part.write(_END)
        self._part.flush()
        if self._names:
            self._write_index()

    def _begin_part(self) -> None:
        self._part.write(_END)
        self._part.flush()
        if not self._names:
            with Path(self._job.out.name).open("rb") as whole:
                shutil.copyfileobj(whole, self._open_part())
        self._part = self._open_part()
        self._urls, self._bytes = 0, self._part.write(_HEAD)

    def _open_part(self) -> BinaryIO:
        path = self._job.path
        self._names.append(f"{path.stem}-{len(self._names) + 1}{path.suffix}")
        return self._job.open_beside(self._names[-1])

    def _write_index(self) -> None:
        """Write the index: an index has the absolute URLs of its parts, and the root of the site is where they may lie."""
        out = self._job.out
        out.truncate(0)
        out.write(_INDEX_HEAD)
        for name in self._names:
            out.write(f"<sitemap><loc>{_escaped(urljoin(self._first, '/' + quote(name)))}</loc></sitemap>\n".encode())
        out.write(_INDEX_END)


def write_sitemap(job: ExportJob, limits: Limits = PROTOCOL) -> int:
    """Write the sitemap and return how many URLs it has. Parts of an earlier, longer one are not touched."""
    parts = _Parts(job, limits)
    count = 0
    for record in job.records():
        if is_indexable(record):
            parts.add(record.url, _as_w3c_date(record.last_modified))
            count += 1
    parts.close()
    return count


def _as_w3c_date(header: str | None) -> str | None:
    """Return a Last-Modified header as sitemaps write times, in UTC; None where it is not a time."""
    try:
        time = parsedate_to_datetime(header or "")
        return time.replace(tzinfo=time.tzinfo or UTC).astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ").zfill(20)
    except (ValueError, TypeError, OverflowError, IndexError):
        return None


def _escaped(url: str) -> str:
    return escape(url, {"'": "&apos;", '"': "&quot;"})
