"""Power loss: what may be left on disk of a crawl that was killed, as far as nothing was synced.

A shim (`powerloss.c`, compiled by gcc and preloaded) writes down what a crawl does to its files. From that journal and the
files themselves `lose_power` makes crash images: what had not been synced is kept or lost, as file systems may. Exact for files
that only grow by appending: LevelDB's, and all that are replaced.

    shim = compile_shim(directory)
    with Nursery(preload=shim) as nursery:
        recorder = Recorder.begin(directory)
        nursery.run("run", URL, "-d", str(recorder.root / "a.crawl"), faults=Faults(disk=recorder.rule("kill:any:100")))
        lose_power(recorder, directory / "image", FileSystem.POSIX, Random(1))

The boundaries are those of the fault-injection test of LevelDB (db/fault_injection_test.cc) and of Pillai et al., "All File
Systems Are Not Created Equal" (OSDI 2014).
"""

import random
import shutil
import subprocess
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum, auto
from pathlib import Path, PurePosixPath
from typing import Self

from crawlkit.state.bloom import boot_id
from crawlkit.state.layout import BLOOM

PAGE_BYTES = 4096
SHIM_SOURCE = Path(__file__).with_suffix(".c")


class FileSystem(Enum):
    """What a file system promises of names that were not synced."""

    JOURNALED = auto()
    """Syncing anything syncs every name before it; of later ones some are lost, the last first (ext4, XFS, Btrfs)."""

    POSIX = auto()
    """Only syncing a directory keeps its names. Of new names each is kept or lost by itself; a removal is not kept before what
    came before it in its directory."""


class Tail(Enum):
    """What is left of the bytes of a file that were not synced."""

    NOTHING = auto()
    SOME = auto()
    ZEROS = auto()
    """The file has grown, but some of its bytes were never written (delayed allocation)."""


def compile_shim(into: Path) -> Path:
    """Compile the shim; return the library. FileNotFoundError where there is no gcc."""
    library = into / "powerloss.so"
    command = ["gcc", "-shared", "-fPIC", "-O2", "-Wall", "-Wextra", "-Werror", "-o", str(library), str(SHIM_SOURCE)]
    subprocess.run([*command, "-ldl", "-pthread"], check=True)
    return library


@dataclass(frozen=True, slots=True)
class Recorder:
    """Where one command is recorded: its files are below `root`; `graveyard` keeps the bytes of those that lost their names."""

    root: Path
    graveyard: Path
    journal: Path

    @classmethod
    def begin(cls, directory: Path) -> Self:
        """Make an empty recorder in `directory`, in place of one that is there."""
        made = cls(directory / "root", directory / "graveyard", directory / "journal")
        for place in (made.root, made.graveyard):
            shutil.rmtree(place, ignore_errors=True)
            place.mkdir(parents=True)
        made.journal.unlink(missing_ok=True)
        return made

    def rule(self, rule: str) -> tuple[str, str, str, str]:
        """Return the arguments of `fault_arm` for a rule `ACTION:CLASS:N` (the shim's source tells which there are)."""
        return str(self.root), str(self.graveyard), str(self.journal), rule

    def operations(self) -> list[list[str]]:
        """Return what was recorded, each operation as its words."""
        return [line.split("\t") for line in self.journal.read_text().splitlines()] if self.journal.exists() else []


def lose_power(recorder: Recorder, image: Path, file_system: FileSystem, rng: random.Random) -> None:
    """Make the directory `image` in place of any there is: what `root` may look like after the power was cut."""
    shutil.rmtree(image, ignore_errors=True)
    image.mkdir()
    disk = _Disk(file_system)
    for operation in recorder.operations():
        disk.do(operation)
    for path, number in disk.survivors(rng):
        target = image / path
        if number is None:
            target.mkdir()
            continue
        data = (recorder.graveyard / str(number)).read_bytes()
        if target.name == BLOOM:
            target.write_bytes(_lose_pages(data, rng))
        else:
            target.write_bytes(_lose_tail(data, disk.synced[number], rng))


@dataclass(frozen=True, slots=True)
class _Change:
    """A change of one name in a directory: to a file (by number), a directory (None), or gone."""

    name: str
    gone: bool
    number: int | None
    takes_from: str | None = None


@dataclass(slots=True)
class _Disk:
    """Names as programs see them, and as they are durable; the changes in between, by directory."""

    file_system: FileSystem
    seen: dict[str, int | None] = field(default_factory=dict)
    durable: dict[str, dict[str, int | None]] = field(default_factory=lambda: defaultdict(dict))
    pending: dict[str, list[_Change]] = field(default_factory=lambda: defaultdict(list))
    synced: dict[int, int] = field(default_factory=dict)
    order: list[str] = field(default_factory=list)

    def do(self, operation: list[str]) -> None:
        """Take in one line of the journal."""
        match operation:
            case ["create", number, path]:
                self.synced[int(number)] = 0
                self._change(path, int(number))
            case ["mkdir", path]:
                self._change(path, None)
            case ["rename", before, path]:
                number_or_none = self.seen.pop(before)
                self._change(path, number_or_none, before)
            case ["unlink", path]:
                self._unlink(path)
            case ["truncate", number, size, _]:
                self.synced[int(number)] = min(self.synced[int(number)], int(size))
            case ["sync", number, size, _]:
                self.synced[int(number)] = int(size)
                if self.file_system is FileSystem.JOURNALED:
                    self._sync_names(*self.pending)
            case ["dirsync", path]:
                self._sync_names(*(self.pending if self.file_system is FileSystem.JOURNALED else [path]))
            case ["write" | "fail", *_]:
                pass
            case _:
                raise ValueError(f"no operation: {operation}")

    def _unlink(self, path: str) -> None:
        if path in self.seen:  # or it is a socket's, whose making is no file's
            del self.seen[path]
            self._pend(path, _Change(_name(path), gone=True, number=None))

    def survivors(self, rng: random.Random) -> Iterator[tuple[str, int | None]]:
        """Yield each path that is left, directories (with None) before what they hold."""
        if self.file_system is FileSystem.JOURNALED:
            for directory in self.order[: rng.randint(0, len(self.order))]:
                self._apply(directory, self.pending[directory].pop(0))
        else:
            for directory, changes in self.pending.items():
                self._keep_some(directory, changes, rng)
        yield from self._walk(".")

    def _keep_some(self, directory: str, changes: list[_Change], rng: random.Random) -> None:
        all_kept = True
        for change in changes:
            if rng.random() < 0.5 and (all_kept or not change.gone):
                self._apply(directory, change)
            else:
                all_kept = False

    def _walk(self, directory: str) -> Iterator[tuple[str, int | None]]:
        for name, number in self.durable[directory].items():
            path = name if directory == "." else f"{directory}/{name}"
            yield path, number
            if number is None:
                yield from self._walk(path)

    def _change(self, path: str, number: int | None, before: str | None = None) -> None:
        self.seen[path] = number
        self._pend(path, _Change(_name(path), gone=False, number=number, takes_from=before and _name(before)))

    def _pend(self, path: str, change: _Change) -> None:
        directory = str(PurePosixPath(path).parent)
        self.pending[directory].append(change)
        self.order.append(directory)

    def _sync_names(self, *directories: str) -> None:
        for directory in directories:
            for change in self.pending[directory]:
                self._apply(directory, change)
            self.pending[directory] = []
            self.order = [other for other in self.order if other != directory]

    def _apply(self, directory: str, change: _Change) -> None:
        names = self.durable[directory]
        if change.takes_from is not None:
            names.pop(change.takes_from, None)
        if change.gone:
            names.pop(change.name, None)
        else:
            names[change.name] = change.number


def _name(path: str) -> str:
    return PurePosixPath(path).name


def _lose_tail(data: bytes, synced: int, rng: random.Random) -> bytes:
    kept = rng.randint(synced, max(synced, len(data)))
    match rng.choice(list(Tail)):
        case Tail.NOTHING:
            return data[:synced]
        case Tail.SOME:
            return data[:kept]
        case Tail.ZEROS:
            return data[:kept].ljust(len(data), b"\0")


def _lose_pages(data: bytes, rng: random.Random) -> bytes:
    """Lose pages of a file that is written through a memory map, and let another boot have made it."""
    pages = (data[start : start + PAGE_BYTES] for start in range(0, len(data), PAGE_BYTES))
    left = b"".join(page if rng.random() < 0.5 else bytes(len(page)) for page in pages)
    return left.replace(boot_id(), bytes(len(boot_id())))
