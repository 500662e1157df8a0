"""Opening an existing crawl's database: lock, `CRAWL`, `CHECKPOINT`, LevelDB, and whether they agree."""

from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from crawlkit.errors import StateDamaged
from crawlkit.state import directory as files
from crawlkit.state import keys, layout
from crawlkit.state.checkpoint import Summary, read_summary
from crawlkit.state.store import Store

BATCH = keys.meta_key("batch")


@dataclass(frozen=True, slots=True)
class Opened:
    """What a crawl directory was found to hold."""

    manifest: files.Manifest
    summary: Summary
    store: Store


def open_database(directory: Path, resources: ExitStack) -> Opened:
    """Lock and open an existing crawl; `resources` closes it. StateError and its kinds if it cannot be."""
    manifest = files.read_manifest(directory)
    resources.enter_context(files.DirectoryLock(directory))
    summary = read_summary(directory)
    store = resources.enter_context(Store(directory / layout.DATABASE, create=False))
    batch = int.from_bytes(store.get(BATCH) or b"")
    if summary.crawl_id != manifest.crawl_id or batch < summary.batch:
        raise StateDamaged(
            f"the database in {directory} is at batch {batch}, but {layout.CHECKPOINT} knows of {summary.batch}: "
            "synced writes are missing; restore the directory from a copy"
        )
    return Opened(manifest, summary, store)
