"""Opening an existing crawl's database: lock, `CRAWL`, `CHECKPOINT`, LevelDB, and whether they agree.

What LevelDB would take for a smaller but sound database is found here: logs that were cut or have a hole, before it acts on
them; then tables that are shorter than they were written, and batches that are missing. What was never acknowledged and is
torn (a power cut) is cut off.
"""

from contextlib import ExitStack
from pathlib import Path

import msgspec

from crawlkit.errors import StateDamaged
from crawlkit.state import directory as files
from crawlkit.state import keys, logs
from crawlkit.state.checkpoint import Summary, read_summary
from crawlkit.state.damage import damaged
from crawlkit.state.layout import CHECKPOINT, CRAWL, DATABASE
from crawlkit.state.store import Store

BATCH = keys.meta_key("batch")


class Opened(msgspec.Struct, frozen=True):
    """What a crawl directory was found to hold."""

    manifest: files.Manifest
    summary: Summary
    store: Store


def open_database(directory: Path, resources: ExitStack) -> Opened:
    """Lock and open an existing crawl; `resources` closes it. StateError and its kinds, StorageError if it cannot be."""
    manifest = files.read_manifest(directory)
    resources.enter_context(files.DirectoryLock(directory))
    summary = read_summary(directory)
    if summary.crawl_id != manifest.crawl_id:
        raise damaged(f"{CRAWL} and {CHECKPOINT} in {directory} are of different crawls", directory)
    lost = logs.lost_bytes(directory, summary.logs)
    if lost is not None:
        raise damaged(lost, directory)
    store = resources.enter_context(_open_store(directory, summary))
    lost = _cut_table(store) or _lost_batch(store, summary)
    if lost is not None:
        raise damaged(f"the database in {directory} lost synced writes: {lost}", directory)
    return Opened(manifest, summary, store)


def _open_store(directory: Path, summary: Summary) -> Store:
    """Open LevelDB; if it refuses, once more without what may have been torn behind the last checkpoint."""
    for cut in (logs.set_tails_aside, logs.set_manifest_tails_aside):
        try:
            return Store(directory / DATABASE, create=False)
        except StateDamaged as refused:
            refusal = refused
        if not cut(directory, summary.logs) and cut is logs.set_manifest_tails_aside:
            raise refusal
    return Store(directory / DATABASE, create=False)


def _lost_batch(store: Store, summary: Summary) -> str | None:
    """Return which of the last batches is missing, None if they are all there."""
    last = int.from_bytes(store.get(BATCH) or b"")
    if last < summary.batch:
        return f"it is at batch {last}, but {CHECKPOINT} knows of {summary.batch}"
    for batch in range(max(1, last - keys.RECENT_BATCHES + 1), last + 1):
        if store.get(keys.recent_key(batch)) != batch.to_bytes(8, "big"):
            return f"batch {batch} is missing, though it holds {last}"
    return None


def _cut_table(store: Store) -> str | None:
    """Return which table is shorter than it was written, None if all have their size."""
    for path, size in store.tables():
        try:
            now = path.stat().st_size
        except FileNotFoundError:  # compacted away since it was listed: LevelDB refuses to open where one is missing
            continue
        if now < size:
            return f"{path.name} has {now} bytes left of {size}"
    return None
