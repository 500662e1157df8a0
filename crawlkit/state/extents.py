"""Extents: where each archived exchange lies, by place, by URL and by payload, and how long the archive's files are.

They are known only when the archive's bytes are on disk, which is on the writer's thread: so they join their batch late.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

import msgspec

from crawlkit.exchange import Extent, FindOriginal, Role, Settled, Written
from crawlkit.state import keys
from crawlkit.state.damage import damaged
from crawlkit.state.store import Batch, Store

_encode = msgspec.msgpack.Encoder().encode
_decoder = msgspec.msgpack.Decoder(Extent)


class Archiver(Protocol):
    """What writes exchanges to files (`archive.writer`)."""

    def append(self, settled: Sequence[Settled], find: FindOriginal, /) -> Written:
        """Append exchanges and sync, then return where they lie; StorageError if that fails."""
        ...


class Outbox:
    """Exchanges that have settled and wait for the next checkpoint; `size` in bytes, those being written included."""

    def __init__(self) -> None:
        self._waiting: list[Settled] = []
        self._waiting_bytes = 0
        self._writing_bytes = 0

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def waiting_bytes(self) -> int:
        """The bytes that the next checkpoint will take."""
        return self._waiting_bytes

    @property
    def size(self) -> int:
        """All bytes that are held."""
        return self._waiting_bytes + self._writing_bytes

    def add(self, settled: Settled) -> None:
        """Let an exchange wait."""
        self._waiting.append(settled)
        self._waiting_bytes += settled.exchange.size

    def take(self) -> list[Settled]:
        """Return what waits, to be written with one checkpoint."""
        taken, self._waiting = self._waiting, []
        self._writing_bytes, self._waiting_bytes = self._waiting_bytes, 0
        return taken

    def installed(self) -> None:
        """Note that what was taken is on disk."""
        self._writing_bytes = 0


class Extents:
    """The archive's rows in a store. `sizes` are the acknowledged sizes in bytes of its files, by number."""

    def __init__(self, store: Store) -> None:
        self._store = store
        rows = store.walk(keys.ARCHIVE_FILE, keys.after(keys.ARCHIVE_FILE))
        self.sizes = {int.from_bytes(key[1:]): int.from_bytes(value) for key, value in rows}

    def walk(self) -> Iterator[Extent]:
        """Yield the extents on disk, in the order in which they lie in the archive."""
        yield from self.walk_from(0, 0)

    def walk_from(self, file: int, offset: int) -> Iterator[Extent]:
        """Yield those from a place on."""
        for _, value in self._store.walk(keys.extent_key(file, offset), keys.after(keys.EXTENT)):
            yield decode_extent(value)

    def at(self, file: int, offset: int) -> Extent | None:
        """Return the extent that begins at a place on disk, None if none does."""
        return _found(self._store.read, keys.extent_key(file, offset))

    def of_url(self, url: str) -> list[Extent]:
        """Return the extents of a URL on disk, in the order in which they lie in the archive."""
        prefix = keys.archived_range(url)
        places = [key[len(prefix) :] for key in self._store.walk_keys(prefix, keys.after(prefix))]
        found = [_found(self._store.read, keys.EXTENT + place) for place in places]
        return [extent for extent in found if extent is not None and extent.url == url]

    def supersede(self, extent: Extent) -> None:
        """Stage for an extent that nothing is made of it any more."""
        changed = msgspec.structs.replace(extent, role=Role.SUPERSEDED)
        self._store.stage(keys.extent_key(extent.file, extent.offset), _encode(changed))

    def remove(self, extent: Extent) -> None:
        """Stage the removal of an extent's rows, and of what leads to it."""
        place = keys.extent_key(extent.file, extent.offset)
        self._store.unstage(place)
        self._store.unstage(keys.archived_range(extent.url) + place[1:])
        payload = keys.payload_key(extent.payload)
        if self._store.get(payload) == place[1:]:
            self._store.unstage(payload)

    def set_size(self, file: int, size: int) -> None:
        """Stage another size for a file, or with 0 that there is none."""
        if size:
            self.sizes[file] = size
            self._store.stage(keys.archive_file_key(file), size.to_bytes(8, "big"))
        else:
            del self.sizes[file]
            self._store.unstage(keys.archive_file_key(file))


class Archive(msgspec.Struct, frozen=True):
    """The rows of one archive, the id that its files are named by, and the folder below the crawl's that `warc/` lies in.

    A crawl in partitions has one for each of them, in `partitions/000/` and so on.
    """

    extents: Extents
    crawl_id: str
    folder: str = ""


class Archiving:
    """What a checkpoint archives before its batch is written: its bytes are on disk before their extents are."""

    def __init__(self, extents: Extents, archiver: Archiver, settled: Sequence[Settled]) -> None:
        self._sizes = extents.sizes
        self._archiver = archiver
        self._settled = settled

    def write(self, batch: Batch) -> tuple[int, int]:
        """Write and sync to the archive, then add to `batch` where that lies; return how many files and bytes there are.

        On the writer's thread. StorageError if it fails.
        """

        def find(payload: bytes) -> Extent | None:
            place = batch.read(keys.payload_key(payload))
            return None if place is None else _found(batch.read, keys.EXTENT + place)

        written = self._archiver.append(self._settled, find)
        rows: dict[bytes, bytes] = {}
        for extent in written.extents:
            place = keys.extent_key(extent.file, extent.offset)
            rows[place] = _encode(extent)
            rows[keys.archived_range(extent.url) + place[1:]] = b""
            if extent.is_original:
                rows[keys.payload_key(extent.payload)] = place[1:]
        rows |= {keys.archive_file_key(file): size.to_bytes(8, "big") for file, size in written.sizes.items()}
        batch.add(rows)
        self._sizes.update(written.sizes)
        return len(self._sizes), sum(self._sizes.values())


def decode_extent(value: bytes) -> Extent:
    """Return the extent of `value`; StateDamaged if it is none."""
    try:
        return _decoder.decode(value)
    except msgspec.DecodeError as error:
        raise damaged(f"an extent of the archive cannot be read: {error}") from error


def _found(read: Callable[[bytes], bytes | None], key: bytes) -> Extent | None:
    value = read(key)
    return None if value is None else decode_extent(value)
