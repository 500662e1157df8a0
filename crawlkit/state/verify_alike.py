"""Checking the rows that tell which pages are alike: each record has its own, and there are no others."""

from crawlkit.errors import StateDamaged
from crawlkit.model import Record
from crawlkit.state import keys
from crawlkit.state.codec import RecordCodec
from crawlkit.state.duplicates import Duplicates
from crawlkit.state.findings import Findings, Rule
from crawlkit.state.store import Store


class AlikeCheck:
    """Is shown each record once, then finishes."""

    def __init__(self, store: Store, findings: Findings) -> None:
        self._store = store
        self._findings = findings
        self._duplicates = Duplicates(store)
        self._found = 0

    def look(self, record: Record) -> None:
        """Check that a record has its rows."""
        for key in self._duplicates.rows_of(record):
            if self._store.get(key) is None:
                self._findings.broke(Rule.ALIKE, f"{record.url} lacks a row that finds it among pages alike")
            else:
                self._found += 1

    def finish(self) -> None:
        """Check that no row is left over; they are walked over only where their number is not that of those found."""
        counted = self._findings.checked["digests"] + self._findings.checked["bands"]
        if counted == self._found:
            return
        codec = RecordCodec()
        for prefix, length in ((keys.DIGEST, keys.DIGEST_HEAD), (keys.BAND, keys.BAND_HEAD)):
            for key in self._store.walk_keys(prefix, keys.after(prefix)):
                if not self._belongs(codec, key, key[length:]):
                    self._findings.broke(Rule.ALIKE, f"row {key.hex()} belongs to no record")

    def _belongs(self, codec: RecordCodec, key: bytes, url: bytes) -> bool:
        value = self._store.get(keys.PAGE + url)
        try:
            return value is not None and key in self._duplicates.rows_of(codec.decode(url.decode(), value))
        except (StateDamaged, UnicodeDecodeError):
            return False
