"""Which pages are alike: rows by digest and by SimHash, in the order of URLs, so that the smallest alike comes first.

A page has one row under its digest, and one in each of four bands, that is under its SimHash turned so that another 16 of the
64 bits come first: of two hashes that differ in three bits or less, one band at least begins the same. All pages of one hash
lie together, so a look-up reads one row for each different hash of a band, however many pages have it.
"""

from collections.abc import Callable, Iterator
from functools import partial

import msgspec

from crawlkit.model import Kind, Record
from crawlkit.state import keys
from crawlkit.state.store import Cursor, Store

_PAGE = Kind.PAGE  # looked up once (`model`)

MOST_BITS = 3
"""In how many bits the hashes of pages that are nearly alike may differ. More would need more bands."""

MOST_HASHES = 4_096
"""Different hashes of one band that are looked at: in random pages one of 65,536 begins alike. Beyond that the first are taken,
in the order of their turned bits, which no order of arrival changes."""


class Duplicates:
    """The rows of whole pages. A crawl that was begun by a version without them keeps none."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.kept = store.get(keys.INDEXED) is not None

    def add(self, record: Record) -> None:
        """Stage the rows of a record."""
        for key in self.rows_of(record):
            self._store.stage(key, b"")

    def remove(self, record: Record) -> None:
        """Stage the removal of the rows of a record."""
        for key in self.rows_of(record):
            self._store.unstage(key)

    def rows_of(self, record: Record) -> Iterator[bytes]:
        """Yield the keys of a record's rows: none if it is no page, is empty, or was cut."""
        if not self.kept or record.kind is not _PAGE or record.truncated or not record.body_bytes:
            return
        if record.digest is not None:
            yield keys.digest_key(record.digest, record.url)
        if record.simhash is not None:
            for band in range(keys.BANDS):
                yield keys.band_key(band, record.simhash, record.url)

    def marking(self) -> Callable[[Record], Record]:
        """Return what marks records on disk, as of now, with the smallest URLs alike.

        They are None for the smallest itself, and where there is none.
        """
        return partial(self._marked, self._store.cursor())

    def _marked(self, cursor: Cursor, record: Record) -> Record:
        rows = next(self.rows_of(record), None)
        if rows is None:
            return record
        equal = None if record.digest is None else self._smallest_equal(cursor, record.digest)
        near = None if record.simhash is None else self._smallest_near(cursor, record.simhash)
        if equal in (None, record.url) and near in (None, record.url):
            return record
        return msgspec.structs.replace(
            record,
            duplicate_of=None if equal == record.url else equal,
            near_duplicate_of=None if near == record.url else near,
        )

    @staticmethod
    def _smallest_equal(cursor: Cursor, digest: str) -> str | None:
        prefix = keys.digest_range(digest)
        first = cursor.first(prefix)
        return None if first is None else first[len(prefix) :].decode()

    @staticmethod
    def _smallest_near(cursor: Cursor, simhash: int) -> str | None:
        found: list[bytes] = []
        for band in range(keys.BANDS):
            prefix = keys.band_range(band, simhash)
            for count, (other, url) in enumerate(_first_of_each_hash(cursor, prefix), 1):
                if (keys.turned(band, simhash) ^ other).bit_count() <= MOST_BITS:
                    found.append(url)
                if count == MOST_HASHES:
                    break
        return min(found).decode() if found else None


def _first_of_each_hash(cursor: Cursor, prefix: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield each different hash of a band, as turned, with the smallest URL that has it."""
    for key in cursor.firsts(prefix, keys.BAND_HEAD):
        yield int.from_bytes(key[2 : keys.BAND_HEAD]), key[keys.BAND_HEAD :]
