"""What the README says by task works as it stands there, on a site on loopback."""

import re
import shlex
from pathlib import Path

import pytest

from crawlkit.testing.server import SiteServer
from crawlkit.testing.site import Site, page, redirect
from tests.surfaces.conftest import Cli

ROOT = Path(__file__).resolve().parent.parent.parent


def commands() -> list[str]:
    """Return the commands of the section, in order."""
    section = re.split(r"^## ", (ROOT / "README.md").read_text(encoding="utf-8"), flags=re.M)
    (tasks,) = [part for part in section if part.startswith("By task\n")]
    blocks = re.findall(r"```sh\n(.*?)```", tasks, re.S)
    return [line for block in blocks for line in block.splitlines()]


def test_each_command_does_what_is_said(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CRAWLKIT_DELAY", "0s")
    monkeypatch.setenv("CRAWLKIT_RETRIES", "0")
    (tmp_path / "config").symlink_to(ROOT / "config")
    site = Site(
        {"/": page("Home", ["/about", "/missing", "/moved"]), "/about": page("About us"), "/moved": redirect("/about", 301)}
    )
    with SiteServer(site) as server:
        (tmp_path / "hosts.txt").write_text(f"{server.url}/\n")
        for command in commands():
            here = command.replace("https://example.com", server.url).replace("example.com.crawl", "127.0.0.1.crawl")
            name, *arguments = shlex.split(here)
            assert name == "crawlkit"
            result = cli(*arguments)
            failed = arguments[0] in ("run", "resume")  # the site has a broken link
            assert result.status == (1 if failed else 0), (command, result.err)
            if arguments[0] in ("report", "export") and "-o" in arguments:
                assert (tmp_path / arguments[arguments.index("-o") + 1]).stat().st_size > 0, command
            if arguments[0] == "search":
                assert "About us" in result.out
            if arguments[:3] == ["report", "127.0.0.1.crawl", "--broken"]:
                assert f"{server.url}/missing 404, linked from 1" in result.out
            if arguments[0] == "explain":
                assert "http.client_error" in result.out
