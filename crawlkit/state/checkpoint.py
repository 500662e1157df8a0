"""`CHECKPOINT`: what the last batch held, in short, for who may not open the database.

Replaced atomically after each batch, so it is never ahead of the database: a database behind it has lost synced writes and is
damaged. The first line is JSON, the second the SHA-256 of the first.
"""

import hashlib
import itertools
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any

import msgspec

from crawlkit.durable import replace_file
from crawlkit.state.counters import Counters, summed
from crawlkit.state.damage import damaged
from crawlkit.state.layout import CHECKPOINT


class Action(StrEnum):
    """What people do to a crawl."""

    PAUSE = "pause"
    CONTINUE = "continue"
    HOLD = "hold"
    RELEASE = "release"
    DROP = "drop"
    ADD = "add"


class Steered(msgspec.Struct, frozen=True):
    """One thing that people did to a crawl: when (seconds since the epoch), what, and to what in words."""

    at_s: float
    action: Action
    what: str | None = None


MOST_STEERED = 1_000
"""What is kept of a run, the latest: the ledger is a part of each checkpoint."""


MADE = "made"
"""How a run ended that made the crawl and asked for nothing: the next one takes its place in the ledger."""


class Run(msgspec.Struct):
    """One `run` or `resume` in the ledger.

    `ended_s` is None while it goes on, and for good if it was killed. Every host waits a full gap from `quiet_from_s` on.
    `steered` is what was done to the crawl in the run, or after its end and before the next one.
    """

    number: int
    started_s: float
    ended_s: float | None = None
    how: str = "running"
    pages: int = 0
    requests: int = 0
    checkpoints: int = 0
    changes: dict[str, Any] = {}
    quiet_from_s: float | None = None
    steered: list[Steered] = []

    def note(self, steered: Steered) -> None:
        """Enter what was done into the ledger. The list is another one then: a checkpoint may be holding the old one."""
        self.steered = [*self.steered, steered][-MOST_STEERED:]


def merged_runs(ledgers: Sequence[Sequence[Run]]) -> list[Run]:
    """Return the ledger of a crawl in partitions: their runs of one number are one run of the crawl.

    It lasted from the first start to the last end, and has not ended where one of them has not. It ended as the first one
    did that had not come to its end.
    """
    runs = sorted(itertools.chain.from_iterable(ledgers), key=lambda run: run.number)
    return [_one_run(list(group)) for _, group in itertools.groupby(runs, lambda run: run.number)]


def _one_run(parts: list[Run]) -> Run:
    ends = [part.ended_s for part in parts if part.ended_s is not None]
    quiet = [part.quiet_from_s for part in parts if part.quiet_from_s is not None]
    whole = Run(
        number=parts[0].number,
        started_s=min(part.started_s for part in parts),
        ended_s=max(ends) if len(ends) == len(parts) else None,
        how=next((part.how for part in sorted(parts, key=lambda part: part.how == "finished")), ""),
        pages=sum(part.pages for part in parts),
        requests=sum(part.requests for part in parts),
        checkpoints=sum(part.checkpoints for part in parts),
        quiet_from_s=max(quiet, default=None),
    )
    for part in parts:
        whole.changes = {**whole.changes, **part.changes}
    orders = sorted((order for part in parts for order in part.steered), key=lambda order: order.at_s)
    for _, same in itertools.groupby(orders, lambda order: (order.action, order.what)):  # a pause is every partition's
        whole.note(next(same))
    return whole


def merged_summary(crawl_id: str, parts: Sequence["Summary"]) -> "Summary":
    """Return what the checkpoints of all partitions say together."""
    return Summary(
        crawl_id,
        sum(part.batch for part in parts),
        summed([part.counters for part in parts]),
        merged_runs([part.runs for part in parts]),
        in_flight=sum(part.in_flight for part in parts),
        archive_files=sum(part.archive_files for part in parts),
        archive_bytes=sum(part.archive_bytes for part in parts),
    )


class Summary(msgspec.Struct):
    """The content of `CHECKPOINT`.

    `logs` are the sizes of the database's logs (`state.logs`), `in_flight` counts the claims when it was frozen,
    `archive_files` and `archive_bytes` what there is of the archive.
    """

    crawl_id: str
    batch: int
    counters: Counters
    runs: list[Run]
    logs: dict[str, int] = {}
    in_flight: int = 0
    archive_files: int = 0
    archive_bytes: int = 0


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
        raise damaged(f"{path} cannot be read: {error.strerror}", directory) from error
    if hashlib.sha256(line).hexdigest().encode() != checksum.strip():
        raise damaged(f"{path} does not match its checksum", directory)
    try:
        return msgspec.json.decode(line, type=Summary)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise damaged(f"{path} is damaged: {error}", directory) from error
