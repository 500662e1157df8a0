"""The site that is crawled: four hosts, each of which is asked once and then waits for an hour; and its live page."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from crawlkit.testing.server import SiteServer
from crawlkit.testing.site import Reply, Site, page
from tests.surfaces.live_page.shown import HOSTILE, Page, showing

ESCAPED = HOSTILE.replace("&", "&amp;").replace("<", "&lt;")
LINKS = ["/1", "http://b.test/gone?<img/src=x/onerror=document.title='taken&nbsp;over'>", "http://c.test/", "http://d.test/"]
HOME = f"<title>{ESCAPED}</title>" + "".join(f'<a href="{link}">{ESCAPED}</a>' for link in LINKS)
SITE = Site(
    {
        "a.test/": Reply(200, (("content-type", "text/html"),), HOME.encode()),
        "a.test/1": page("1"),
        "c.test/": page("c", ["/2", "/3"]),
        "d.test/": page("d"),
    }
)


@pytest.fixture
def server() -> Iterator[SiteServer]:
    with SiteServer(SITE) as running:
        yield running


@pytest.fixture
def settings(server: SiteServer) -> list[str]:
    """Options of a crawl that soon has nothing to do for an hour."""
    resolve = f"*.test=127.0.0.1:{server.port}"
    return [
        "--delay",
        "1h",
        "--no-robots",
        "--retries",
        "0",
        "--scope",
        "any",
        "--resolve",
        resolve,
        "--checkpoint-interval",
        "50ms",
        "-q",
    ]


@pytest.fixture
def live(settings: list[str], tmp_path: Path) -> Iterator[Page]:
    """The page of a crawl in x.crawl that has met four hosts, one failure, and waits."""
    with showing(tmp_path, "run", "http://a.test/", "-d", "x.crawl", *settings, "--ui") as found:
        while found.shown()["status"]["requests"] < 4 or found.shown()["status"]["in_flight"]:
            pass
        yield found
