"""Origins: what is known of each origin's robots.txt, kept over restarts with its expiry."""

from enum import IntEnum

import msgspec
import zstandard

from crawlkit.state import keys
from crawlkit.state.damage import damaged
from crawlkit.state.store import Store


class RobotsState(IntEnum):
    """What the last fetch of a robots.txt led to."""

    UNKNOWN = 0  # no verdict yet: it is being tried (again)
    RULES = 1  # a file was received: `body` decides
    ALLOW = 2  # there is none: all is allowed
    UNREACHABLE = 3  # answered 5xx or 429 to the last: all is disallowed for now
    NO_HOST = 4  # the host could not be reached; of this and what follows `body` says how
    REFUSED = 5  # the host has a private address, which we do not connect to
    NO_PROXY = 6  # the proxy could not be reached, or refused


class OriginRecord(msgspec.Struct, frozen=True, array_like=True):
    """An origin's robots.txt: verdict, body (decoded), until when it holds, failed attempts since the last verdict."""

    origin: str
    state: RobotsState = RobotsState.UNKNOWN
    body: bytes = b""
    expires_s: float = 0.0
    attempts: int = 0


class Origins:
    """Look-ups and staged changes of origins."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._compress = zstandard.ZstdCompressor(level=1).compress
        self._decompress = zstandard.ZstdDecompressor().decompress

    def get(self, origin: str) -> OriginRecord:
        """Return what is known of `origin`."""
        value = self._store.get(keys.origin_key(origin))
        if value is None:
            return OriginRecord(origin)
        return self.decode(value)

    def decode(self, value: bytes) -> OriginRecord:
        """Return what `value` says of an origin; StateDamaged if it cannot be read."""
        try:
            return msgspec.msgpack.decode(self._decompress(value), type=OriginRecord)
        except (msgspec.DecodeError, zstandard.ZstdError, MemoryError) as error:  # MemoryError: a length that cannot be
            raise damaged(f"what is stored of an origin's robots.txt cannot be read: {error}") from error

    def forget_outage(self, origin: str) -> None:
        """Forget a verdict that the origin's robots.txt could not be had; others stay."""
        if self.get(origin).state in (RobotsState.UNREACHABLE, RobotsState.NO_HOST, RobotsState.REFUSED, RobotsState.NO_PROXY):
            self._store.unstage(keys.origin_key(origin))

    def expire(self, origin: str) -> None:
        """Let a verdict hold no longer: the robots.txt is fetched again before the next page, if there is one."""
        known = self.get(origin)
        if known.state is not RobotsState.UNKNOWN:
            self.put(msgspec.structs.replace(known, expires_s=0.0))

    def put(self, record: OriginRecord) -> None:
        """Stage what is known of an origin."""
        self._store.stage(keys.origin_key(record.origin), self._compress(msgspec.msgpack.encode(record)))
