"""What a kill may leave of a crawl's files besides what was acknowledged."""

import random
import shutil
from pathlib import Path

from crawlkit.state.layout import CONTROL

_BLOOM_HEADER_BYTES = 64 * 1024


def tear_archive(archive: Path, rng: random.Random) -> None:
    """Leave behind what a checkpoint that was never acknowledged may have written: a torn tail, another file."""
    paths = sorted(archive.glob("*")) if archive.exists() else []
    if not paths or rng.random() < 0.3:
        return
    last = paths[-1]
    whole = last.read_bytes()
    last.write_bytes(whole + whole[: rng.randint(0, len(whole))])
    if rng.random() < 0.5:
        stem, number = last.name.removesuffix(".warc.gz").rsplit("-", 1)
        (archive / f"{stem}-{int(number) + 1:05}.warc.gz").write_bytes(whole[: rng.randint(0, len(whole))])


def spoil_filter(path: Path, how: str) -> None:
    """Lose the filter's file, or all its bits while it still says that it is complete."""
    if how == "missing":
        path.unlink()
    if how == "empty":
        with path.open("r+b") as file:
            file.seek(_BLOOM_HEADER_BYTES)
            file.write(bytes(path.stat().st_size - _BLOOM_HEADER_BYTES))


def copy_crawl(directory: Path, target: Path) -> None:
    """Make `target` a copy of a crawl, in place of what is there, without the socket that a killed run leaves."""
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(directory, target, ignore=shutil.ignore_patterns(CONTROL))
