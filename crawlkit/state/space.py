"""Free space: a crawl stops in order while there is still some, not in the middle of a write when there is none."""

import os
from pathlib import Path

from crawlkit.config import ValueKind, format_value
from crawlkit.errors import StorageError
from crawlkit.state.layout import ARCHIVE


def free_bytes(directory: Path) -> int:
    """Return how much is free to us for the crawl in `directory`, which is there; OSError if that cannot be told."""
    return min(_free_at(place) for place in _places(directory))


def check_space(directory: Path, least_bytes: int) -> None:
    """Raise StorageError if fewer than `least_bytes` are free to us where `directory` or its archive lies, or will lie."""
    if least_bytes == 0:
        return
    for place in _places(directory):
        try:
            free = _free_at(_nearest(place))
        except OSError as error:
            raise StorageError(f"cannot tell how much space is free at {place}: {error.strerror}") from error
        if free < least_bytes:
            raise StorageError(
                f"{free / 2**20:.1f}MiB are free for {place}, less than the {format_value(ValueKind.SIZE, least_bytes)} "
                "of --min-free-disk; free space, or do without: --min-free-disk 0 with run, --set min_free_disk=0 with resume"
            )


def _places(directory: Path) -> tuple[Path, ...]:
    """Return where a crawl writes; its archive may be a link to, or a mount of, another disk."""
    archive = directory / ARCHIVE
    return (directory, archive) if _is_there(archive) else (directory,)


def _free_at(place: Path) -> int:
    found = os.statvfs(place)
    return found.f_bavail * found.f_frsize


def _nearest(place: Path) -> Path:
    """Return `place`, or what is there of the way to it."""
    near = place.absolute()
    while not _is_there(near):
        near = near.parent
    return near


def _is_there(place: Path) -> bool:
    """Whether `place` is there; no where that cannot be told, which whoever makes the directory will say."""
    try:
        return place.exists()
    except OSError:
        return False
