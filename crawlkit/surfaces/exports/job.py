"""What a format's writer is given, and the files of one export, which take the place of the old ones together."""

import hashlib
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from crawlkit.durable import open_replacement
from crawlkit.model import Kind, Record
from crawlkit.state.reading import CrawlReader
from crawlkit.surfaces.exports.columns import as_json
from crawlkit.surfaces.report import ReportCounts, json_line
from crawlkit.surfaces.sidecar import ReportMeta


class Tally:
    """Counts the records that pass, and digests them as the JSON report would write them, so that exports can be compared."""

    def __init__(self) -> None:
        self._kinds: Counter[Kind] = Counter()
        self._digest = hashlib.sha256()

    def watch(self, records: Iterator[Record]) -> Iterator[Record]:
        """Yield `records`."""
        for record in records:
            self._kinds[record.kind] += 1
            self._digest.update(json_line(record))
            yield record

    def counts(self) -> ReportCounts:
        """Return what passed so far; the digest is that of the JSON report."""
        kinds = self._kinds
        return ReportCounts(
            pages=kinds[Kind.PAGE],
            redirects=kinds[Kind.REDIRECT],
            failures=kinds[Kind.FAILURE],
            excluded=kinds[Kind.EXCLUDED],
            sha256=self._digest.hexdigest(),
        )


@dataclass(frozen=True, slots=True)
class ExportJob:
    """One export under way: a writer takes all of `records()` once and writes to `out`.

    `out` is a temporary file (its name is `out.name`) that becomes `path` when all is written; so do the files beside it.
    """

    crawl: CrawlReader
    meta: ReportMeta
    path: Path
    out: BinaryIO
    files: ExitStack
    tally: Tally = field(default_factory=Tally)

    def records(self) -> Iterator[Record]:
        """Yield the records as reported, sorted by the bytes of their URL; the tally counts them."""
        return self.tally.watch(self.crawl.pages.walk_marked())

    def facts(self) -> dict[str, str]:
        """Return what a file with room for it says of the crawl, once all records have passed: nothing of the clock."""
        counts = self.tally.counts()
        return {
            **{kind: str(count) for kind, count in counts.by_kind().items()},
            "report_sha256": counts.sha256,
            "settings_hash": self.meta.settings_hash,
            "deterministic": as_json(self.meta.deterministic),
            "reasons": as_json(self.meta.reasons),
        }

    def open_beside(self, name: str) -> BinaryIO:
        """Return another file of this export, in the folder of `path`."""
        return self.files.enter_context(open_replacement(self.path.with_name(name)))
