"""A copy of a crawl that another process has open: the rows that reports are made of, as lines of JSON, and back.

A line is an array of pairs of key and value, in base64. All of them are of one snapshot, so of one checkpoint.
"""

from collections.abc import Collection, Generator, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from crawlkit.errors import StateDamaged, StorageError
from crawlkit.state import keys
from crawlkit.state.layout import DATABASE
from crawlkit.state.store import Snapshot, Store

_NOT_COPIED = {
    keys.SEEN,
    keys.QUEUE,
    keys.TIMED,
    keys.RELAX,
    keys.ORIGIN,
    keys.TEMPLATE,
    keys.MEMORY,
    keys.HELD,
    keys.RECENT,
    keys.WAITING_SITEMAP,
    keys.ARCHIVE_FILE,
    keys.EXTENT,
    keys.ARCHIVED,
    keys.PAYLOAD,
    keys.LETTER,
    keys.NEXT_LETTER,
    keys.HIGH_WATER,
}
"""What only going on with the crawl needs, or its archive, or who asks what became of one URL."""

REPORTED = frozenset(keys.KINDS) - _NOT_COPIED
"""The kinds of rows that reports are made of."""

EVERYTHING = frozenset(keys.KINDS)

_LINE_BYTES = 128 * 1024
_ROWS_A_BATCH = 20_000

_Rows = list[tuple[bytes, bytes]]
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(_Rows).decode


def lines_of(snapshot: Snapshot, kinds: Collection[bytes]) -> Generator[bytes, None, None]:
    """Yield lines with all rows of these kinds of a snapshot, some 128 KiB each, without line ends."""
    rows: _Rows = []
    size = 0
    for prefix in sorted(kinds):
        for row in snapshot.walk(prefix, keys.after(prefix)):
            rows.append(row)
            size += len(row[0]) + len(row[1])
            if size >= _LINE_BYTES:
                yield _encode(rows)
                rows, size = [], 0
    if rows:
        yield _encode(rows)


@contextmanager
def copied_store(lines: Iterable[bytes]) -> Iterator[Store]:
    """Give a store with the rows in `lines`, as a copy in the temporary directory for as long as the block runs.

    StorageError if there is no room for it; what `lines` raises passes.
    """
    try:
        place = TemporaryDirectory(prefix="crawlkit-", ignore_cleanup_errors=True)
    except OSError as error:
        raise StorageError(f"cannot copy the crawl into the temporary directory (TMPDIR can name another): {error}") from error
    with place as name, Store(Path(name) / DATABASE, create=True) as store:
        for line in lines:
            _stage(store, line)
            if store.staged_rows >= _ROWS_A_BATCH:
                _write(store)
        _write(store)
        yield store


def _stage(store: Store, line: bytes) -> None:
    try:
        rows = _decode(line)
    except msgspec.DecodeError as error:
        raise StateDamaged(f"the running crawl sent rows that cannot be read: {error}") from error
    for key, value in rows:
        store.stage(key, value)


def _write(store: Store) -> None:
    store.freeze().write()
    store.install()
