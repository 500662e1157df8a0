"""The archive's part of `verify`: its files, its rows, and with `--deep` its bytes."""

import itertools
from collections.abc import Iterator
from pathlib import Path

from crawlkit.archive.check import check_extents, check_warcinfo
from crawlkit.archive.files import file_name, file_path, found_sizes
from crawlkit.errors import StateDamaged
from crawlkit.exchange import Extent, Role
from crawlkit.model import Record
from crawlkit.state import keys
from crawlkit.state.extents import Extents, decode_extent
from crawlkit.state.findings import Findings, Rule
from crawlkit.state.store import Store


class ArchiveCheck:
    """One check of the archive of a crawl that has one; what it finds goes into `findings`."""

    def __init__(self, directory: Path, crawl_id: str, store: Store, findings: Findings) -> None:
        self._directory = directory
        self._crawl_id = crawl_id
        self._store = store
        self._findings = findings
        self._extents = Extents(store)

    def check_files(self) -> None:
        """Check that every file is there, as long as it was acknowledged; a tail that was not is cut off by a resume."""
        found = found_sizes(self._directory, self._extents.sizes, self._crawl_id)
        for number, size in self._extents.sizes.items():
            if found[number] < size:
                self._findings.broke(
                    Rule.ARCHIVE_FILES,
                    f"{file_name(self._crawl_id, number)} has {found[number]} bytes left of {size}; a resume fetches anew",
                )

    def check_rows(self) -> None:
        """Check that extents follow each other to the end of their file, and are found by URL and by body."""
        ends: dict[int, int] = {}
        for key, extent in self._decoded():
            if key != keys.extent_key(extent.file, extent.offset):
                self._findings.broke(Rule.ARCHIVE_EXTENTS, f"{extent.url} lies under another place than its own")
            elif ends.get(extent.file, extent.offset) != extent.offset:
                self._findings.broke(
                    Rule.ARCHIVE_EXTENTS,
                    f"nothing is known of bytes {ends[extent.file]} to {extent.offset} of file {extent.file}",
                )
            ends[extent.file] = extent.end
            self._check_row(extent)
        sizes = self._extents.sizes
        for number in sorted(sizes.keys() | ends.keys()):
            self._findings.compare(Rule.ARCHIVE_EXTENTS, f"size of file {number}", sizes.get(number), ends.get(number))
        checked = self._findings.checked
        self._findings.compare(Rule.ARCHIVE_EXTENTS, "extents, by URL", checked["archived"], checked["archived by URL"])

    def _decoded(self) -> Iterator[tuple[bytes, Extent]]:
        for key, value in self._store.walk(keys.EXTENT, keys.after(keys.EXTENT)):
            try:
                yield key, decode_extent(value)
            except StateDamaged as error:
                self._findings.broke(Rule.DECODES, f"{key.hex()}: {error}")

    def _check_row(self, extent: Extent) -> None:
        place = keys.extent_key(extent.file, extent.offset)[1:]
        if self._store.get(keys.archived_range(extent.url) + place) is None:
            self._findings.broke(Rule.ARCHIVE_EXTENTS, f"{extent.url} is not found by its URL")
        if extent.original is not None and extent.role is not Role.SUPERSEDED:
            original = self._extents.at(*extent.original)
            if original is None or original.payload != extent.payload or not original.is_original:
                self._findings.broke(Rule.ARCHIVE_EXTENTS, f"{extent.url} refers to a body that is not there")
        if extent.is_original and self._store.get(keys.payload_key(extent.payload)) is None:
            self._findings.broke(Rule.ARCHIVE_EXTENTS, f"the body of {extent.url} is not found by its digest")
        if extent.role is Role.RECORD and self._store.get(keys.page_key(extent.url)) is None:
            self._findings.broke(Rule.ARCHIVE_RECORDS, f"{extent.url} has an answer and no record")

    def look(self, record: Record) -> None:
        """Check that a record has the one answer that it was made of."""
        answers = sum(extent.role is Role.RECORD for extent in self._extents.of_url(record.url))
        if answers > 1 or (answers == 0 and record.status is not None):
            self._findings.broke(Rule.ARCHIVE_RECORDS, f"{record.url} has {answers} answers")

    def check_bytes(self) -> None:
        """Ungzip every record and compute its digests anew. Only where the rows are whole."""
        for number, size in self._extents.sizes.items():
            path = file_path(self._directory, self._crawl_id, number)
            first = next(self._of(number), None)
            wrong = check_warcinfo(path, size if first is None else first.offset)
            for found in itertools.chain([wrong] if wrong else [], check_extents(path, self._counted(number))):
                self._findings.broke(Rule.ARCHIVE_BYTES, found)

    def _counted(self, number: int) -> Iterator[Extent]:
        for extent in self._of(number):
            self._findings.checked["exchanges read"] += 1
            yield extent

    def _of(self, number: int) -> Iterator[Extent]:
        return itertools.takewhile(lambda extent: extent.file == number, self._extents.walk_from(number, 0))
