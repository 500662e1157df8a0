"""Where the directories of partitions lie, and how they are looked at from where the driver runs."""

from collections.abc import Callable
from pathlib import Path
from typing import Protocol, TypeVar

from crawlkit.state.partitions import Table, check_members, member_directory

Result = TypeVar("Result")


class Places(Protocol):
    """Where partitions lie. One of `place` and `find` comes before `at`."""

    async def place(self, directory: Path, partitions: int) -> None:
        """Choose where each partition of a new crawl in `directory` is to lie."""

    async def find(self, directory: Path, table: Table) -> None:
        """Find the partitions of a crawl; StateError, naming one, if it is missing or of another crawl."""

    async def at(self, number: int, look: Callable[[Path], Result]) -> Result:
        """Call `look` with a partition's directory, where that lies, and return what it returns; what it raises passes."""


class Here:
    """All partitions lie in the directory of the crawl, on this machine."""

    _directory = Path()

    async def place(self, directory: Path, partitions: int) -> None:
        """Let them lie there."""
        self._directory = directory

    async def find(self, directory: Path, table: Table) -> None:
        """See that they are there."""
        check_members(directory, table)
        self._directory = directory

    async def at(self, number: int, look: Callable[[Path], Result]) -> Result:
        """Look there."""
        return look(member_directory(self._directory, number))
