"""The site that is crawled."""

from collections.abc import Iterator

import pytest

from crawlkit.testing.server import SiteServer
from tests.surfaces.control.crawls import SITE


@pytest.fixture
def server() -> Iterator[SiteServer]:
    with SiteServer(SITE) as running:
        yield running
