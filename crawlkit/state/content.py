"""What is kept of a page beside its record: a row of its own, so that reading records does not read texts."""

import msgspec
import zstandard

from crawlkit.model import Content
from crawlkit.state import keys
from crawlkit.state.damage import damaged
from crawlkit.state.store import Store

_encode = msgspec.msgpack.Encoder().encode
_decoder = msgspec.msgpack.Decoder(Content)


class Contents:
    """Look-ups and staged changes. One for each thread, as for `codec.RecordCodec`."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._compress = zstandard.ZstdCompressor(level=3).compress
        self._decompress = zstandard.ZstdDecompressor().decompress

    def put(self, url: str, content: Content) -> None:
        """Stage the content of a page."""
        self._store.stage(keys.content_key(url), self._compress(_encode(content)))

    def remove(self, url: str) -> None:
        """Stage the removal of the content of a page."""
        self._store.unstage(keys.content_key(url))

    def get(self, url: str) -> Content | None:
        """Return the content of a page, None if none was kept; StateDamaged if it cannot be read."""
        value = self._store.get(keys.content_key(url))
        return None if value is None else self.decode(url, value)

    def decode(self, url: str, value: bytes) -> Content:
        """Return the content that a row of `url` holds; StateDamaged if it holds none."""
        try:
            return _decoder.decode(self._decompress(value))
        except (msgspec.DecodeError, zstandard.ZstdError, MemoryError) as error:  # MemoryError: a length that cannot be
            raise damaged(f"the content of {url} cannot be read: {error}") from error
