"""What is said when a crawl's state is damaged: what was found, and the way out."""

from pathlib import Path

from crawlkit.errors import StateDamaged
from crawlkit.shell import as_argument


def damaged(what: str, directory: Path | None = None) -> StateDamaged:
    """Return the error for damage to `directory` (None where whoever found it does not know which it is)."""
    name = "DIR" if directory is None else as_argument(directory)
    return StateDamaged(f"{what}; to save what can be saved: crawlkit verify --repair {name}")
