"""Free space: a crawl stops in order while there is still some, not in the middle of a write when there is none."""

import os
from pathlib import Path

from crawlkit.config import ValueKind, format_value
from crawlkit.errors import StorageError


def free_bytes(place: Path) -> int:
    """Return how much is free to us where `place` lies, which is there; OSError if that cannot be told."""
    found = os.statvfs(place)
    return found.f_bavail * found.f_frsize


def check_space(directory: Path, least_bytes: int) -> None:
    """Raise StorageError if fewer than `least_bytes` are free to us where `directory` lies, or will once it is made."""
    if least_bytes == 0:
        return
    place = directory.absolute()
    while not _is_there(place):
        place = place.parent
    try:
        free = free_bytes(place)
    except OSError as error:
        raise StorageError(f"cannot tell how much space is free at {place}: {error.strerror}") from error
    if free < least_bytes:
        raise StorageError(
            f"{free / 2**20:.1f}MiB are free for {directory}, less than the {format_value(ValueKind.SIZE, least_bytes)} "
            "of --min-free-disk; free space, or do without it: --min-free-disk 0 with run, --set min_free_disk=0 with resume"
        )


def _is_there(place: Path) -> bool:
    """Whether `place` is there; no where that cannot be told, which whoever makes the directory will say."""
    try:
        return place.exists()
    except OSError:
        return False
