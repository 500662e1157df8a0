"""`verify`: the state's own check, and what only the engine can add to it: that links and distances agree."""

from collections.abc import Callable
from contextlib import ExitStack
from enum import Enum
from pathlib import Path

from crawlkit.config import Config
from crawlkit.engine.verify_archive import ArchiveCheck
from crawlkit.errors import StateDamaged
from crawlkit.model import Record, Refusal, Source
from crawlkit.policy.edges import Edge, admitting_edges
from crawlkit.policy.scope import Scope
from crawlkit.policy.traps import Traps
from crawlkit.policy.urls import host_of
from crawlkit.state import keys
from crawlkit.state.bloom import MappedBloom, boot_id
from crawlkit.state.codec import Head
from crawlkit.state.findings import Report, Rule
from crawlkit.state.layout import BLOOM
from crawlkit.state.opening import Opened, open_database
from crawlkit.state.reading import read_config, read_first_seeds, read_rescan
from crawlkit.state.store import Store
from crawlkit.state.verify import Verification

TARGETS_IN_MEMORY = 100_000


class Thoroughness(Enum):
    """How much is looked at."""

    QUICK = "quick"  # single values and keys: about half a second a million rows
    FULL = "full"  # every row, record and link
    DEEP = "deep"  # every byte of the archive too


def verify(directory: Path, thoroughness: Thoroughness) -> Report:
    """Check the crawl in `directory`, which is not running. StateError and its kinds if it cannot be opened."""
    with ExitStack() as resources:
        opened = open_database(directory, resources)
        verification = Verification(opened.store, opened.summary, host_of)
        verification.check_values()
        verification.check_keys()
        archive = ArchiveCheck(directory, opened.manifest.crawl_id, opened.store, verification.findings)
        archive.check_files()
        if thoroughness is not Thoroughness.QUICK:
            bloom = _filter(directory, opened, resources)
            links = _links(opened, verification)
            verification.check_rows(bloom, _looking(links, archive))
            verification.reading(archive.check_rows, Rule.READABLE)
        if thoroughness is Thoroughness.DEEP and not verification.findings.has(Rule.DECODES):
            verification.reading(archive.check_bytes, Rule.READABLE)
        return verification.findings.report()


def _looking(links: "LinkCheck | None", archive: ArchiveCheck) -> Callable[[bytes, Record], None]:
    """Return what is to be done with each record and its key."""

    def look(key: bytes, record: Record) -> None:
        if links is not None:
            links.look(key, record)
            if links.archives:
                archive.look(record)

    return look


def _filter(directory: Path, opened: Opened, resources: ExitStack) -> MappedBloom | None:
    """Return the filter that a resume would go on using."""
    bloom = MappedBloom.reuse(directory / BLOOM, opened.manifest.crawl_id.encode()[:16], boot_id())
    if bloom is not None:
        resources.callback(bloom.close)
    return bloom


def _links(opened: Opened, verification: Verification) -> "LinkCheck | None":
    """Return the check of links; None where the settings that it depends on cannot be read (which was noted)."""
    try:
        config = read_config(opened.store)
        # What plugins said, now or before a change of the settings, is known only of some: any URL may be one of the others.
        has_plugins = bool(opened.summary.counters.refused.get(Refusal.HOOK))
        scope = Scope.of(read_first_seeds(opened.store), config)
        return LinkCheck(opened.store, verification, config, scope, may_be_unseen=has_plugins)
    except StateDamaged:
        return None


class LinkCheck:
    """Checks for each record what it admits: in scope and within the depth limit it was seen, as linked, and no further away.

    What looks like a trap may be unseen, and so may what a page leads to that had to wait for a budget; and anything where
    `may_be_unseen`.
    """

    def __init__(self, store: Store, verification: Verification, config: Config, scope: Scope, *, may_be_unseen: bool) -> None:
        self._store = store
        self._verification = verification
        self._findings = verification.findings
        self._may_be_unseen = may_be_unseen
        self._max_depth = config.max_depth
        self.archives = config.warc
        self._traps = Traps.of(config)
        self._scope = scope
        self._rescan = read_rescan(store)
        self._targets: dict[str, Head | None] = {}

    def look(self, key: bytes, record: Record) -> None:
        """Check the links of the record under `key`."""
        for edge in admitting_edges(record):
            if not self._scope.judge(edge.url).accepted or (self._max_depth is not None and edge.depth > self._max_depth):
                continue
            self._findings.checked["links"] += 1
            found = self._target(edge.url)
            if found is None:
                if not (record.held or self._may_be_unseen or self._traps.judge(edge.url) or self._owed(key, record)):
                    self._findings.broke(Rule.EDGES_SEEN, f"{record.url} links to {edge.url}")
            elif self._is_behind(found, edge) and not self._excused(key, record, edge):
                self._findings.broke(
                    Rule.EDGES_DISTANCES,
                    f"{edge.url} has depth {found.depth}, hops {found.hops}, sources {found.sources}; "
                    f"by {record.url} {edge.depth}, {edge.hops}, and a link",
                )

    @staticmethod
    def _is_behind(found: Head, edge: Edge) -> bool:
        return edge.depth < found.depth or edge.hops < found.hops or not found.may_be(Source.LINK)

    def _excused(self, key: bytes, record: Record, edge: Edge) -> bool:
        """Whether a lesser distance is still on its way: with a twin of the target, or of the record."""
        return self._verification.has_twin(edge.url) or self._owed(key, record)

    def _owed(self, key: bytes, record: Record) -> bool:
        """Whether the edges of a record are still to be walked (again)."""
        if self._rescan is not None and self._rescan.concerns(key, record.depth):
            return True
        return self._store.get(keys.relax_key(record.depth, record.url)) is not None

    def _target(self, url: str) -> Head | None:
        """Return the least distances noted of a URL, and its sources, None if it was not seen; from memory if met lately."""
        if url in self._targets:
            return self._targets[url]
        if len(self._targets) >= TARGETS_IN_MEMORY:
            self._targets.clear()
        found = self._targets[url] = self._verification.least(url)
        return found
