"""Where the tests of the state keep their crawls."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.state.making import scratch_directory


@pytest.fixture
def directory() -> Iterator[Path]:
    """The path of a crawl directory that is not there yet."""
    scratch = scratch_directory()
    yield scratch / "x.crawl"
    shutil.rmtree(scratch)
