"""The Bloom filter in front of the seen-set: pybloom-live's filters, their bits on a memory map.

The filter grows by layers, each four times as large and half as wrong as the one before, so that the whole stays below
`ERROR_RATE` however many keys it takes (the sum of a geometric series; Almeida et al., Scalable Bloom Filters, 2007;
pybloom-live's own scalable filter shrinks by 0.9 a layer and ends near ten times its rate).

The keys are hashes themselves, so the bits that stand for one are taken from its last bytes by double hashing (Kirsch and
Mitzenmacher, "Less Hashing, Same Performance", ESA 2006) and not by hashing it again; they are
set and looked at here, all in one expression: 1 us a key instead of 9, and of 3 by the filters' own methods.

The bits live in a shared memory map: a kill leaves them in the page cache, so a filter of the same boot and crawl is used as
it is. After a power cut it may lack bits, so any other filter is rebuilt. Bits that are set for a batch that was never
written only cost a look-up.
"""

import math
import mmap
import os
import struct
from pathlib import Path
from typing import Any, BinaryIO, Self

import bitarray
from pybloom_live import BloomFilter

from crawlkit.errors import StorageError

ERROR_RATE = 0.01
FIRST_CAPACITY = 1 << 18
GROWTH = 4
MAX_LAYERS = 16

_HEADER = struct.Struct("<8s16s36sBB")
_COUNTS = struct.Struct(f"<{MAX_LAYERS}Q")
_COUNTS_AT = 128
_HEADER_BYTES = mmap.ALLOCATIONGRANULARITY
_MAGIC = b"crkblm02"
_COMPLETE_AT = _HEADER.size - 1
_LAYERS_AT = _HEADER.size - 2


def boot_id() -> bytes:
    """Return what identifies this boot of the machine; empty where the system does not tell (then no filter is reused)."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_bytes().strip()
    except OSError:
        return b""


def _layer_shape(layer: int) -> tuple[int, float, int, int]:
    """Return (capacity, error rate, slices, bits a slice) of a layer, by pybloom-live's own formula."""
    capacity = FIRST_CAPACITY * GROWTH**layer
    error_rate = ERROR_RATE / 2 ** (layer + 1)
    slices = math.ceil(math.log2(1.0 / error_rate))
    bits_per_slice = math.ceil(capacity * abs(math.log(error_rate)) / (slices * math.log(2) ** 2))
    return capacity, error_rate, slices, bits_per_slice


def _layer_bytes(layer: int) -> int:
    _, _, slices, bits_per_slice = _layer_shape(layer)
    size = slices * bits_per_slice // 8 + 1
    return -(-size // mmap.ALLOCATIONGRANULARITY) * mmap.ALLOCATIONGRANULARITY


def _first_and_step(key: bytes) -> tuple[int, int]:
    """Return the numbers that a key's bits are reckoned from: its n-th is at first + n * step, within the n-th slice."""
    return int.from_bytes(key[-10:-5]), int.from_bytes(key[-5:]) | 1


def _reserve(file: BinaryIO, offset: int, size: int) -> None:
    # Not sparse: a full disk is an error here, and not a SIGBUS at some later bit.
    os.posix_fallocate(file.fileno(), offset, size)


class MappedBloom:
    """A growing set of keys that answers "surely not" or "maybe". Of a key, the last ten bytes have to be evenly spread.

    `complete` is False until every key that the database holds has been added: until then nothing is surely absent.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = path.open("r+b")
        self._header = mmap.mmap(self._file.fileno(), _HEADER_BYTES)
        self._maps: list[mmap.mmap] = []
        self._layers: list[Any] = []
        counts = _COUNTS.unpack_from(self._header, _COUNTS_AT)
        for layer in range(self._header[_LAYERS_AT]):
            self._map_layer(layer, counts[layer])

    @classmethod
    def create(cls, path: Path, crawl_id: bytes, boot: bytes) -> Self:
        """Make an empty filter file in place of any there is; it is not complete yet."""
        header = _HEADER.pack(_MAGIC, crawl_id, boot, 0, 0)
        try:
            path.unlink(missing_ok=True)
            path.write_bytes(header.ljust(_HEADER_BYTES, b"\0"))
        except OSError as error:
            raise StorageError(f"cannot write {path}: {error.strerror}") from error
        made = cls(path)
        try:
            made._grow()
        except BaseException:
            made.close()
            raise
        return made

    @classmethod
    def reuse(cls, path: Path, crawl_id: bytes, boot: bytes) -> Self | None:
        """Return the filter on disk if it is this crawl's, of this boot, complete and of the right size, else None."""
        try:
            with path.open("rb") as file:
                header = file.read(_HEADER_BYTES)
            if len(header) < _HEADER_BYTES or not boot:
                return None
            magic, owner, made_in, layers, complete = _HEADER.unpack_from(header)
            size = _HEADER_BYTES + sum(_layer_bytes(layer) for layer in range(min(layers, MAX_LAYERS)))
            if (magic, owner, made_in.rstrip(b"\0"), complete) != (_MAGIC, crawl_id, boot, 1):
                return None
            if not 1 <= layers <= MAX_LAYERS or path.stat().st_size != size:
                return None
            return cls(path)
        except OSError:
            return None

    @property
    def complete(self) -> bool:
        """Whether every key of the database is in, so that "no" may be believed."""
        return self._header[_COMPLETE_AT] == 1

    def mark_complete(self) -> None:
        """Say that every key of the database has been added."""
        self._header[_COMPLETE_AT] = 1

    def add(self, key: bytes) -> None:
        """Set the key's bits, growing by a layer when the last one is full. StorageError if there is no room to grow."""
        last = self._layers[-1]
        if last.count >= last.capacity:
            self._grow()
            last = self._layers[-1]
        at, step = _first_and_step(key)
        size = last.bits_per_slice
        last.bitarray[[n * size + (at + n * step) % size for n in range(last.num_slices)]] = 1
        last.count += 1

    def __contains__(self, key: bytes) -> bool:
        at, step = _first_and_step(key)
        for layer in reversed(self._layers):
            bits, size = layer.bitarray, layer.bits_per_slice
            for n in range(layer.num_slices):
                if not bits[n * size + (at + n * step) % size]:
                    break  # most keys that are not in are denied by the first bit or the second
            else:
                return True
        return False

    def save_counts(self) -> None:
        """Note how full each layer is; a count lost in a crash only lets the last layer take a few keys more."""
        counts = [layer.count for layer in self._layers]
        _COUNTS.pack_into(self._header, _COUNTS_AT, *counts, *[0] * (MAX_LAYERS - len(counts)))

    def close(self) -> None:
        """Unmap the file."""
        self.save_counts()
        for layer in self._layers:
            layer.bitarray = None  # a traceback may hold the layer, and a map that is in use cannot be closed
        self._layers.clear()
        for mapped in self._maps:
            mapped.close()
        self._maps.clear()
        self._header.close()
        self._file.close()

    def _grow(self) -> None:
        layer = len(self._layers)
        offset = _HEADER_BYTES + sum(_layer_bytes(n) for n in range(layer))
        try:
            _reserve(self._file, offset, _layer_bytes(layer))
        except OSError as error:
            raise StorageError(f"cannot grow {self._path}: {error.strerror}; free space, then resume") from error
        self._map_layer(layer, 0)
        self._header[_LAYERS_AT] = layer + 1

    def _map_layer(self, layer: int, count: int) -> None:
        offset = _HEADER_BYTES + sum(_layer_bytes(n) for n in range(layer))
        mapped = mmap.mmap(self._file.fileno(), _layer_bytes(layer), offset=offset)
        capacity, error_rate, slices, bits_per_slice = _layer_shape(layer)
        # Made without its constructor, which would allocate the bits in memory.
        filter_ = BloomFilter.__new__(BloomFilter)
        filter_._setup(error_rate, slices, bits_per_slice, capacity, min(count, capacity))
        filter_.bitarray = bitarray.bitarray(buffer=memoryview(mapped), endian="little")
        self._maps.append(mapped)
        self._layers.append(filter_)
