"""A crawl in partitions, on disk: a directory of crawl directories, and the table that says whose each virtual node is.

`PARTITIONS` is replaced as a whole, so a virtual node has one owner at any moment: whoever the table names. Its first line is
JSON, the second the SHA-256 of the first. `CRAWL` has a format of its own, which versions that know no partitions refuse.
"""

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from crawlkit.durable import replace_file, sync_directory
from crawlkit.errors import StateDamaged, StateError
from crawlkit.shell import as_argument
from crawlkit.state.damage import damaged
from crawlkit.state.directory import PARTITIONED_FORMAT, Manifest, read_manifest
from crawlkit.state.layout import CRAWL, MEMBERS, PARTITIONS, PLACES, SEEDS


class Table(msgspec.Struct, frozen=True):
    """The content of `PARTITIONS`.

    `members` are the crawl ids of the partitions by number; one that owns nothing any more stays, for its archive and ledger.
    `settings` are those in force, as values: a partition that differs from them is yet to be told.
    `owners` is the number of the owner of each virtual node; `moving` is the table that takes its place once the rows of the
    nodes that differ have moved. `version` counts tables, `epoch` the runs of the crawl. `before` are the owners of the table
    before this one, until the rows that they own no more are removed there.
    """

    crawl_id: str
    members: list[str]
    owners: list[int]
    version: int = 1
    epoch: int = 0
    moving: list[int] | None = None
    settings: dict[str, Any] = {}
    before: list[int] | None = None

    @property
    def settled(self) -> bool:
        """Whether no rows are on the move: else some may be in two partitions, and those of the owner count."""
        return self.moving is None and self.before is None


def is_partitioned(directory: Path) -> bool:
    """Whether a crawl in partitions was begun in `directory`, whatever became of its table."""
    try:
        return (directory / CRAWL).exists() and ((directory / PARTITIONS).exists() or (directory / MEMBERS).is_dir())
    except OSError:  # no way in, a name that is too long: who reads its `CRAWL` says so
        return False


def member_directory(directory: Path, number: int) -> Path:
    """Return the crawl directory of a partition."""
    return directory / MEMBERS / f"{number:03}"


def write_table(directory: Path, table: Table) -> None:
    """Replace `PARTITIONS`; StorageError if that fails."""
    line = msgspec.json.encode(table)
    replace_file(directory / PARTITIONS, line + b"\n" + hashlib.sha256(line).hexdigest().encode() + b"\n")


def read_table(directory: Path) -> Table:
    """Return what `PARTITIONS` says; StateError and its kinds if it cannot be read or is of another crawl."""
    manifest = read_partitioned_manifest(directory)
    path = directory / PARTITIONS
    try:
        line, _, checksum = path.read_bytes().partition(b"\n")
    except OSError as error:
        raise StateDamaged(f"{path} cannot be read ({error.strerror}): restore it from a copy") from error
    if hashlib.sha256(line).hexdigest().encode() != checksum.strip():
        raise StateDamaged(f"{path} does not match its checksum: restore it from a copy")
    try:
        table = msgspec.json.decode(line, type=Table)
    except msgspec.DecodeError as error:
        raise StateDamaged(f"{path} is damaged: {error}; restore it from a copy") from error
    if table.crawl_id != manifest.crawl_id:
        raise StateDamaged(f"{CRAWL} and {PARTITIONS} in {directory} are of different crawls")
    return table


def read_partitioned_manifest(directory: Path) -> Manifest:
    """Return what `CRAWL` says of a crawl in partitions; StateError and its kinds if it says something else."""
    return read_manifest(directory, PARTITIONED_FORMAT)


def check_members(directory: Path, table: Table) -> None:
    """StateError if a partition's directory is missing, or is of another crawl."""
    for number, crawl_id in enumerate(table.members):
        member = member_directory(directory, number)
        if not (member / CRAWL).exists():
            lies = "restore it from a copy"
            if (directory / PLACES).exists():
                lies = f"bring it from the Ray cluster (crawlkit gather {as_argument(directory)}), or restore it from a copy"
            raise StateError(f"partition {number} of {directory} is missing: {member} holds no crawl; {lies}")
        if read_manifest(member).crawl_id != crawl_id:
            raise StateError(f"{member} is of another crawl than {directory}: put the right directory in its place")


def seal_partitioned(directory: Path, crawl_id: str) -> None:
    """Write `CRAWL`: from now on the directory is a crawl in partitions."""
    replace_file(directory / CRAWL, msgspec.json.encode(Manifest(PARTITIONED_FORMAT, crawl_id)) + b"\n")
    sync_directory(directory.parent)


def write_seeds(directory: Path, urls: Iterable[str]) -> None:
    """Write the seeds that span the crawl's scope; StorageError if that fails."""
    replace_file(directory / SEEDS, "".join(f"{url}\n" for url in urls).encode())


def read_span(directory: Path) -> list[str]:
    """Return the seeds that span the crawl's scope; StateDamaged if they cannot be read."""
    try:
        return (directory / SEEDS).read_text().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise damaged(f"{directory / SEEDS} cannot be read", directory) from error
