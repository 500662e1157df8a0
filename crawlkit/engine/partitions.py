"""A crawl in partitions, read: whose each host is, and all of its partitions as one crawl."""

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from crawlkit.config import Config
from crawlkit.errors import ConfigError, StateDamaged, StateError
from crawlkit.policy.partition import VIRTUAL_NODES, node_of
from crawlkit.shell import as_argument
from crawlkit.state.checkpoint import Summary, merged_summary, read_summary
from crawlkit.state.directory import DirectoryLock, Manifest, read_manifest
from crawlkit.state.extents import Archive, Extents
from crawlkit.state.layout import CONFIG, MEMBERS, PARTITIONS
from crawlkit.state.looking import Looking, Rows, at_rest
from crawlkit.state.merging import MergedStore
from crawlkit.state.opening import open_database
from crawlkit.state.partitions import (
    Table,
    check_members,
    is_partitioned,
    member_directory,
    read_partitioned_manifest,
    read_span,
    read_table,
)
from crawlkit.state.reading import CrawlReader
from crawlkit.state.store import Store


class Part(NamedTuple):
    """An open crawl, or partition: where `running`, a copy of one that another process has open."""

    manifest: Manifest
    store: Store
    running: bool


def open_part(directory: Path, resources: ExitStack) -> Part:
    """Lock and open a crawl or partition that does not run; `resources` closes it. StateError and its kinds."""
    with ExitStack() as own:
        opened = open_database(directory, own)
        resources.push(own.pop_all())
    return Part(opened.manifest, opened.store, running=False)


@dataclass(frozen=True, slots=True)
class Partitions:
    """The partitions of the crawl in `directory`, by number, and which of them owns each host."""

    directory: Path
    manifest: Manifest
    table: Table

    @classmethod
    def read(cls, directory: Path) -> "Partitions":
        """Read the table, and see that every partition is there; StateError and its kinds if not."""
        table = read_table(directory)
        known = range(len(table.members))
        for owners in (table.owners, table.moving):
            if owners is not None and (len(owners) != VIRTUAL_NODES or not all(owner in known for owner in owners)):
                raise StateDamaged(f"{directory / PARTITIONS} does not name a partition for each node: restore it from a copy")
        check_members(directory, table)
        return cls(directory, read_partitioned_manifest(directory), table)

    @property
    def members(self) -> list[Path]:
        """The directories of the partitions, by number."""
        return [member_directory(self.directory, number) for number in range(len(self.table.members))]

    def owner_of(self, host: str) -> int:
        """Return the number of the partition that owns a host."""
        return self.table.owners[node_of(host)]

    def check_settled(self) -> None:
        """StateError while rows are on the move to other partitions, as a kill may have left them."""
        if not self.table.settled:
            raise StateError(
                f"{self.directory} was being spread over another number of partitions: "
                f"crawlkit resume {as_argument(self.directory)} finishes that, then try again"
            )

    def member_of(self, host: str) -> Path:
        """Return the directory of the partition that owns a host."""
        return member_directory(self.directory, self.owner_of(host))

    def config(self) -> Config:
        """Return the settings, as the first partition's readable copy of them says; StateDamaged if that cannot be read."""
        import tomllib  # noqa: PLC0415  (takes 2 ms of each start, for crawls in partitions)

        path = self.members[0] / CONFIG
        try:
            return Config.from_values(tomllib.loads(path.read_text(encoding="utf-8")))
        except (OSError, ValueError, ConfigError) as error:
            raise StateDamaged(f"{path} cannot be read: {error}; restore it from a copy") from error

    def merged(self, stores: Sequence[Store]) -> MergedStore:
        """Return the stores of all partitions as one."""
        return MergedStore(stores, read_span(self.directory), self.owner_of)

    def archives(self, parts: Sequence[Part]) -> list[Archive]:
        """Return the archives of all partitions."""
        folders = (f"{MEMBERS}/{member.name}/" for member in self.members)
        return [
            Archive(Extents(part.store), part.manifest.crawl_id, folder) for part, folder in zip(parts, folders, strict=True)
        ]

    def summary(self) -> Summary:
        """Return what the checkpoints of all partitions say together."""
        return merged_summary(self.table.crawl_id, [read_summary(member) for member in self.members])

    def reader(self, parts: Sequence[Part], *, running: bool) -> CrawlReader:
        """Return all partitions as one crawl to be read; `running` says whether the crawl as a whole runs."""
        store = self.merged([part.store for part in parts])
        return CrawlReader(self.directory, self.manifest, store, archives=self.archives(parts), running=running)

    def looking(self, parts: Sequence[Part], *, running: bool) -> Looking:
        """Return a view of one URL or host, whichever partition has it; what walks over rows sees those of all."""
        store = self.merged([part.store for part in parts])
        rows = Rows(store, self.archives(parts), lambda host: parts[self.owner_of(host)].store)
        return Looking(self.directory, rows, at_rest(store), running=running)


def whole_of(directory: Path) -> Path | None:
    """Return the crawl that a directory is a partition of, None for any other directory."""
    members = Path(os.path.realpath(directory)).parent  # a loop of links is refused by whoever opens it
    return members.parent if members.name == MEMBERS and is_partitioned(members.parent) else None


def check_crawl(directory: Path) -> None:
    """StateError and its kinds unless there is a crawl, in partitions or not, that this version reads."""
    if is_partitioned(directory):
        Partitions.read(directory)
    else:
        read_manifest(directory)


def summary_of(directory: Path) -> Summary:
    """Return what the last checkpoint says of a crawl, in partitions or not; StateError and its kinds if there is none."""
    if is_partitioned(directory):
        return Partitions.read(directory).summary()
    read_manifest(directory)
    return read_summary(directory)


@contextmanager
def open_for_reading(directory: Path) -> Iterator[CrawlReader]:
    """Lock and open a crawl that does not run, in partitions or not, to read it. StateError and its kinds if it cannot be."""
    with ExitStack() as resources:
        if not is_partitioned(directory):
            part = open_part(directory, resources)
            yield CrawlReader(directory, part.manifest, part.store)
            return
        partitions = Partitions.read(directory)
        yield partitions.reader(_open_parts(partitions, resources), running=False)


def _open_parts(partitions: Partitions, resources: ExitStack) -> list[Part]:
    resources.enter_context(DirectoryLock(partitions.directory))
    return [open_part(member, resources) for member in partitions.members]
