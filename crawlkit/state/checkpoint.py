"""`CHECKPOINT`: what the last batch held, in short, for who may not open the database.

Replaced atomically after each batch, so it is never ahead of the database: a database behind it has lost synced writes and is
damaged. The first line is JSON, the second the SHA-256 of the first.
"""

import hashlib
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from crawlkit.durable import replace_file
from crawlkit.errors import StateDamaged
from crawlkit.state.counters import Counters
from crawlkit.state.layout import CHECKPOINT, DATABASE

_WAY_OUT = "restore the directory from a copy"


class Run(msgspec.Struct):
    """One `run` or `resume` in the ledger. `ended_s` is None while it goes on, and for good if it was killed."""

    number: int
    started_s: float
    ended_s: float | None = None
    how: str = "running"
    pages: int = 0
    requests: int = 0
    checkpoints: int = 0
    changes: dict[str, Any] = {}


class Summary(msgspec.Struct):
    """The content of `CHECKPOINT`: `logs` are the sizes of the database's logs, `in_flight` the claims when it was frozen."""

    crawl_id: str
    batch: int
    counters: Counters
    runs: list[Run]
    logs: dict[str, int] = {}
    in_flight: int = 0


def log_sizes(directory: Path) -> dict[str, int]:
    """Return the sizes of the database's logs, by name; LevelDB may remove one while we look."""
    sizes = {}
    for path in sorted((directory / DATABASE).glob("*.log")):
        with suppress(FileNotFoundError):
            sizes[path.name] = path.stat().st_size
    return sizes


def write_summary(directory: Path, summary: Summary) -> None:
    """Replace `CHECKPOINT`; StorageError if that fails."""
    line = msgspec.json.encode(summary)
    replace_file(directory / CHECKPOINT, line + b"\n" + hashlib.sha256(line).hexdigest().encode() + b"\n")


def read_summary(directory: Path) -> Summary:
    """Return what `CHECKPOINT` says; StateDamaged if it is missing or does not match its checksum."""
    path = directory / CHECKPOINT
    try:
        line, _, checksum = path.read_bytes().partition(b"\n")
    except OSError as error:
        raise StateDamaged(f"{path} cannot be read: {error.strerror}; {_WAY_OUT}") from error
    if hashlib.sha256(line).hexdigest().encode() != checksum.strip():
        raise StateDamaged(f"{path} does not match its checksum; {_WAY_OUT}")
    try:
        return msgspec.json.decode(line, type=Summary)
    except msgspec.DecodeError as error:
        raise StateDamaged(f"{path} is damaged: {error}; {_WAY_OUT}") from error
