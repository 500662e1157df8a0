"""The archive's files: their names, and the few things that are ever done to them.

A file grows by appending, whole gzip members only. What is not acknowledged is cut off before anything is appended.
"""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO, Final

from crawlkit.durable import sync_directory
from crawlkit.errors import StorageError

FOLDER: Final = "warc"
_NAME: Final = re.compile(r"crawlkit-[0-9a-f]{32}-(\d{5,})\.warc\.gz")


def file_name(crawl_id: str, number: int) -> str:
    """Return the name of a file: another one in each crawl, so that archives can be gathered in one place."""
    return f"crawlkit-{crawl_id}-{number:05}.warc.gz"


def file_path(directory: Path, crawl_id: str, number: int) -> Path:
    """Return where a file of the crawl in `directory` lies."""
    return directory / FOLDER / file_name(crawl_id, number)


def create_file(path: Path) -> BinaryIO:
    """Make a file to append to. Its name is durable only after `sync_directory`. OSError if there is one already."""
    path.parent.mkdir(exist_ok=True)
    return path.open("xb")


def open_file(path: Path, size: int) -> BinaryIO:
    """Open a file to append to; StorageError if it has another size than the one acknowledged."""
    file = path.open("ab")
    if file.tell() != size:
        file.close()
        raise StorageError(f"{path} has another size than this crawl gave it: something else writes to it")
    return file


def write_bytes(file: BinaryIO, data: bytes) -> int:
    """Write to a file, or to its buffer; return how many bytes."""
    return file.write(data)


def sync_file(file: BinaryIO) -> None:
    """Make durable all that was written."""
    file.flush()
    os.fsync(file.fileno())


def found_sizes(directory: Path, numbers: Mapping[int, int], crawl_id: str) -> dict[int, int]:
    """Return the sizes on disk of the files with these numbers; 0 for one that is missing."""
    sizes = {}
    for number in numbers:
        try:
            sizes[number] = file_path(directory, crawl_id, number).stat().st_size
        except FileNotFoundError:
            sizes[number] = 0
    return sizes


def cut_back(directory: Path, crawl_id: str, sizes: Mapping[int, int]) -> None:
    """Cut the files to `sizes` where they are longer, and remove those that have none: what was never acknowledged.

    StorageError if that cannot be done.
    """
    folder = directory / FOLDER
    try:
        for path in sorted(folder.glob("*.warc.gz")) if folder.is_dir() else ():
            match = _NAME.fullmatch(path.name)
            if match is None or path.name != file_name(crawl_id, int(match[1])):
                continue  # not this crawl's
            size = sizes.get(int(match[1]), 0)
            if size == 0:
                path.unlink()
                sync_directory(folder)
            elif path.stat().st_size > size:
                _cut(path, size)
    except OSError as error:
        raise StorageError(f"cannot cut the archive in {folder} back: {error.strerror}; mend the disk, then resume") from error


def _cut(path: Path, size: int) -> None:
    with path.open("r+b") as file:
        file.truncate(size)
        os.fsync(file.fileno())
