"""Plugins on the command line: frozen with the crawl, refused when changed, and what ends a run that one of them hangs in."""

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from crawlkit.testing.server import SiteServer
from crawlkit.testing.site import Site, page
from tests.processes import command, ended, started, wait_while_running
from tests.surfaces.conftest import Cli

FAST = ("--delay", "0", "--retries", "0")


@pytest.fixture
def server() -> Iterator[SiteServer]:
    with SiteServer(Site({"/": page("Home", ["/a"]), "/a": page("A")})) as running:
        yield running


def test_a_crawl_keeps_its_plugin_and_says_how_to_go_on_with_another(cli: Cli, server: SiteServer, tmp_path: Path) -> None:
    plugin = tmp_path / "plug.py"
    plugin.write_text("def page(page): return {'n': len(page.url)}")
    assert cli("run", f"{server.url}/", "-d", "x.crawl", *FAST, "--plugin", "plug.py", "--max-pages", "1").status == 0
    assert cli("resume", "x.crawl", "--set", "max_pages=none").status == 0
    shown = cli("report", "x.crawl", "--format", "jsonl", "--fields", "fields.n").out
    assert shown == f'{{"fields.n":{len(server.url) + 1}}}\n{{"fields.n":{len(server.url) + 2}}}\n'
    plugin.write_text("def page(page): return None")

    refused = cli("resume", "x.crawl", "--retry-failed")

    assert (refused.status, len(refused.err.splitlines())) == (2, 1)
    assert f"--set plugin={plugin}" in refused.err
    accepted = cli("resume", "x.crawl", "--retry-failed", "--set", f"plugin={plugin}")
    assert (accepted.status, "hook, settings.changed" in accepted.err) == (0, True)


def test_a_plugin_that_hangs_ends_with_the_second_signal_and_nothing_is_lost(server: SiteServer, tmp_path: Path) -> None:
    (tmp_path / "plug.py").write_text(
        "import pathlib\n"
        "def page(page):\n"
        "    if page.url.endswith('/a') and not pathlib.Path('mended').exists():\n"
        "        pathlib.Path('hangs').touch()\n"
        "        while True: pass  # signals are handled between its steps, where in a wait without end one may be missed\n"
    )
    run = command("run", f"{server.url}/", "-d", "x.crawl", *FAST, "--checkpoint-interval", "1ms", "--plugin", "plug.py")
    with started(run, tmp_path) as process:
        wait_while_running(process, (tmp_path / "hangs").exists)
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGTERM)
        said = ended(process)
    assert said.status in (130, 143)
    assert said.err.splitlines()[-1] == "resume with: crawlkit resume x.crawl"

    (tmp_path / "mended").touch()
    with started(command("resume", "x.crawl"), tmp_path) as process:
        said = ended(process)
    assert (said.status, "2 pages" in said.err) == (0, True)
