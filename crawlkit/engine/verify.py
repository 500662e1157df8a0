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
from crawlkit.state.reading import read_config, read_counters, read_first_seeds, read_rescan
from crawlkit.state.store import Store
from crawlkit.state.verify import Verification

TARGETS_IN_MEMORY = 100_000


class Thoroughness(Enum):
    """How much is looked at."""

    QUICK = "quick"  # single values and keys: about half a second a million rows
    FULL = "full"  # every row, record and link
    DEEP = "deep"  # every byte of the archive too


class Whole:
    """What the check of a crawl knows of the rest of it: nothing, as there is none. Of a partition there is."""

    least_seeds = 1

    def span(self, store: Store) -> list[str]:
        """Return the seeds that span the scope."""
        return read_first_seeds(store)

    def is_elsewhere(self, url: str) -> bool:
        """Whether a URL belongs to another partition."""
        return False

    def least(self, url: str) -> Head | None:
        """Return the least distances noted elsewhere of a URL, and its sources; None if it was not seen."""
        return None

    def is_excused(self, url: str) -> bool:
        """Whether a URL elsewhere need not be seen, or not at its least distance."""
        return False


def verify(directory: Path, thoroughness: Thoroughness) -> Report:
    """Check the crawl in `directory`, which is not running. StateError and its kinds if it cannot be opened."""
    with ExitStack() as resources:
        return check_opened(directory, open_database(directory, resources), thoroughness, Whole())


def check_opened(directory: Path, opened: Opened, thoroughness: Thoroughness, whole: Whole) -> Report:
    """Check a crawl that is open, or a partition as far as its own rows go, and its links by what `whole` knows."""
    verification = Verification(opened.store, opened.summary, host_of, least_seeds=whole.least_seeds)
    verification.check_values()
    verification.check_keys()
    archive = ArchiveCheck(directory, opened.manifest.crawl_id, opened.store, verification.findings)
    archive.check_files()
    if thoroughness is not Thoroughness.QUICK:
        with ExitStack() as resources:
            bloom = _filter(directory, opened, resources)
            links = _links(opened, verification, whole)
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


def _links(opened: Opened, verification: Verification, whole: Whole) -> "LinkCheck | None":
    """Return the check of links; None where the settings that it depends on cannot be read (which was noted)."""
    try:
        config = read_config(opened.store)
        # What plugins said, now or before a change of the settings, is known only of some: any URL may be one of the others.
        has_plugins = bool(opened.summary.counters.refused.get(Refusal.HOOK))
        scope = Scope.of(whole.span(opened.store), config)
        return LinkCheck(opened.store, verification, config, scope, whole, may_be_unseen=has_plugins)
    except StateDamaged:
        return None


class LinkCheck:
    """Checks for each record what it admits: in scope and within the depth limit it was seen, as linked, and no further away.

    What looks like a trap may be unseen, and so may what a page leads to that had to wait for a budget; and anything where
    `may_be_unseen`.
    """

    def __init__(
        self,
        store: Store,
        verification: Verification,
        config: Config,
        scope: Scope,
        whole: Whole,
        *,
        may_be_unseen: bool,
    ) -> None:
        self._store = store
        self._whole = whole
        self._verification = verification
        self._findings = verification.findings
        self._may_be_unseen = may_be_unseen
        self._max_depth = config.max_depth
        self.archives = config.warc
        self._traps = Traps.of(config)
        self._scope = scope
        self._rescan = read_rescan(store)
        self._short_of_credit = read_counters(store).short_of_credit
        self._targets: dict[str, Head | None] = {}

    def look(self, key: bytes, record: Record) -> None:
        """Check the links of the record under `key`."""
        for edge in admitting_edges(record):
            if not self._scope.judge(edge.url).accepted or (self._max_depth is not None and edge.depth > self._max_depth):
                continue
            self._findings.checked["links"] += 1
            found = self._target(edge.url)
            if found is None:
                if not self._may_lack(key, record, edge.url):
                    self._findings.broke(Rule.EDGES_SEEN, f"{record.url} links to {edge.url}")
            elif self._is_behind(found, edge) and not self._excused(key, record, edge):
                self._findings.broke(
                    Rule.EDGES_DISTANCES,
                    f"{edge.url} has depth {found.depth}, hops {found.hops}, sources {found.sources}; "
                    f"by {record.url} {edge.depth}, {edge.hops}, and a link",
                )

    def _may_lack(self, key: bytes, record: Record, url: str) -> bool:
        """Whether a URL that a record leads to may be unseen."""
        if record.held or self._may_be_unseen or self._traps.judge(url):
            return True
        return self._owed(key, record) or self._whole.is_excused(url)

    @staticmethod
    def _is_behind(found: Head, edge: Edge) -> bool:
        return edge.depth < found.depth or edge.hops < found.hops or not found.may_be(Source.LINK)

    def _excused(self, key: bytes, record: Record, edge: Edge) -> bool:
        """Whether a lesser distance is still on its way: with a twin of the target, or of the record, or with a letter.

        Or with a page that waits for credit, or found none in the end: what it leads to may have been admitted by another way.
        """
        if self._verification.has_twin(edge.url) or self._owed(key, record) or self._whole.is_excused(edge.url):
            return True
        return record.held and self._short_of_credit

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
        known = self._whole if self._whole.is_elsewhere(url) else self._verification
        found = self._targets[url] = known.least(url)
        return found
