"""The live page of a crawl in partitions, at rest and while they run."""

from pathlib import Path

from crawlkit.testing.server import SiteServer
from tests.surfaces.live_page.shown import showing
from tests.surfaces.partitions.conftest import Pair
from tests.surfaces.partitions.dividing import A, E
from tests.surfaces.partitions.live import LIVE_SITE, two_running


def test_partitions_at_rest_are_shown_as_the_crawl_as_one_is(stopped: Pair, tmp_path: Path) -> None:
    with showing(tmp_path, "ui", str(stopped.whole)) as whole, showing(tmp_path, "ui", str(stopped.parts)) as parts:
        one, other = whole.shown(), parts.shown()
        assert other["problem"] is None
        assert other["lately"] == one["lately"]
        for figure in ("state", "pages", "queued", "seen", "hosts", "requests", "reasons"):
            assert other["status"][figure] == one["status"][figure], figure
        assert [host["host"] for host in other["status"]["waiting"]] == [host["host"] for host in one["status"]["waiting"]]
        asked = [page.json("/api/explain", f"&url={E}/") for page in (whole, parts)]
        assert asked[0]["path"] == asked[1]["path"]
        assert "no crawl runs" in parts.json("/api/pause", method="POST")["error"]


def test_partitions_that_run_are_shown_together_and_pause_together(tmp_path: Path) -> None:
    with SiteServer(LIVE_SITE) as server, two_running(tmp_path, server), showing(tmp_path, "ui", "x.crawl") as page:
        shown = page.shown()
        assert (shown["status"]["state"], shown["status"]["live"], shown["status"]["pages"]) == ("running", True, 2)
        assert shown["lately"]["statuses"] == {"200": 2}
        assert sum(point[1] for point in shown["lately"]["timeline"]["points"]) == 2
        assert {host["host"] for host in shown["status"]["waiting"]} == {"a.test", "e.test"}
        assert [page.json("/api/explain", f"&url={url}/")["code"] for url in (A, E)] == ["done.page"] * 2
        page.json("/api/pause", method="POST")
        while not page.shown()["status"]["paused"]:
            pass
        page.json("/api/continue", method="POST")
        while page.shown()["status"]["paused"]:
            pass
