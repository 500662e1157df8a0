"""A crawl driven by hand, closed at the test's end."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.engine.driver import Driver, Web


@pytest.fixture
def drive(tmp_path: Path) -> Iterator[Callable[..., Driver]]:
    """Make a crawl over a web; keyword arguments are those of `Driver`."""
    with ExitStack() as stack:

        def make(web: Web, **arguments: Any) -> Driver:
            return stack.enter_context(Driver(tmp_path / "crawl", web, **arguments))

        yield make
