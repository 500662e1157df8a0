"""One crawl, finished and stopped half way, each as one and in partitions; made once, and read only."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.surfaces.partitions.dividing import crawled_whole, divided


@dataclass(frozen=True, slots=True)
class Pair:
    """The same crawl twice."""

    whole: Path
    parts: Path
    finished: bool


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Pair:
    """A crawl that came to its end, and its rows in three partitions."""
    place = tmp_path_factory.mktemp("finished")
    whole = crawled_whole(place / "whole")
    return Pair(whole, divided(whole, place / "parts", 3), finished=True)


@pytest.fixture(scope="session")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> Pair:
    """A crawl that a limit ended, with URLs that wait, and its rows in two partitions."""
    place = tmp_path_factory.mktemp("stopped")
    whole = crawled_whole(place / "whole", max_pages=7)
    return Pair(whole, divided(whole, place / "parts", 2), finished=False)


@pytest.fixture
def parts(finished: Pair, tmp_path: Path) -> Path:
    """Partitions of one's own, to be changed."""
    return divided(finished.whole, tmp_path / "own.crawl", 3)
