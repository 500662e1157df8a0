"""The sidecar of a written file: what was counted, what vouches for the bytes, and what they depend on."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec

from crawlkit.config import settings_hash
from crawlkit.model import OrderReason
from crawlkit.state.checkpoint import Run
from crawlkit.state.counters import SitemapCounts, sitemap_counts
from crawlkit.state.reading import CrawlReader

SIDECAR_SUFFIX = ".meta.json"


@dataclass(frozen=True, slots=True)
class ReportMeta:
    """What the sidecar says of the crawl: what made the report depend on order or time, the ledger of runs, the sitemaps.

    `running` says that the crawl went on meanwhile, and that the report is of one of its checkpoints.
    """

    settings_hash: str
    reasons: tuple[OrderReason, ...] = ()
    runs: tuple[Run, ...] = ()
    sitemaps: SitemapCounts | None = None
    running: bool = False

    @property
    def deterministic(self) -> bool:
        """Whether the same site gives the same report."""
        return not self.reasons


def meta_of(crawl: CrawlReader) -> ReportMeta:
    """Return what a sidecar says of a crawl."""
    reasons = tuple(sorted(OrderReason(reason) for reason in crawl.counters.reasons))
    return ReportMeta(settings_hash(crawl.config()), reasons, tuple(crawl.runs), sitemap_counts(crawl.counters), crawl.running)


def sidecar_path(path: Path) -> Path:
    """Return where the sidecar of `path` lies."""
    return path.with_name(path.name + SIDECAR_SUFFIX)


def sidecar(counts: Mapping[str, int], sha256: str, meta: ReportMeta, more: Mapping[str, object] | None = None) -> bytes:
    """Return a sidecar's bytes; `sha256` is that of the file, in hex, `more` comes first."""
    content = {
        **(more or {}),
        "counts": counts,
        "settings_hash": meta.settings_hash,
        "sha256": sha256,
        "deterministic": meta.deterministic,
        "reasons": meta.reasons,
        **({} if meta.sitemaps is None else {"sitemaps": meta.sitemaps}),
        "runs": meta.runs,
        "running": meta.running,
    }
    return msgspec.json.format(msgspec.json.encode(content), indent=2) + b"\n"
