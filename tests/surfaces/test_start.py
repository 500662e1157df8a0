"""The start of a process: quick where little is asked, and quiet when it is interrupted before anything has begun."""

import signal
import sys
from pathlib import Path

import pytest

import crawlkit
from crawlkit.surfaces.commands import PLACES, Commands
from tests.processes import run

HEAVY = ("asyncio", "httpx", "plyvel", "rich", "selectolax", "ssl", "crawlkit.engine.session", "crawlkit.testing.graph")

INTERRUPTED_AT = """
import os, signal, sys

wanted = sys.argv.pop()

class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == wanted:
            os.kill(os.getpid(), signal.SIGINT)

if {ignored}:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
sys.meta_path.insert(0, Interrupting())
from crawlkit.__main__ import main
sys.argv += ["{command}", "--help"]
main()
"""


@pytest.mark.parametrize(
    "module", ["crawlkit.surfaces", "crawlkit.surfaces.cli", "click", "crawlkit.surfaces.run_command", "httpx", "plyvel"]
)
def test_an_interrupt_during_the_imports_is_quiet_and_status_130(tmp_path: Path, module: str) -> None:
    code = INTERRUPTED_AT.format(ignored=False, command="run")
    ended = run([sys.executable, "-c", code, module], cwd=tmp_path)
    assert (ended.status, ended.out, ended.err) == (128 + signal.SIGINT, b"", "")
    assert list(tmp_path.iterdir()) == []


def test_who_has_interrupts_ignored_is_not_interrupted(tmp_path: Path) -> None:
    code = INTERRUPTED_AT.format(ignored=True, command="status")
    assert run([sys.executable, "-c", code, "click"], cwd=tmp_path).status == 0


@pytest.mark.parametrize(
    "code",
    [
        "import crawlkit",
        "import crawlkit; crawlkit.CrawlError, crawlkit.Config, crawlkit.Record",
        "from crawlkit.surfaces.cli import run_cli; run_cli(['--help'])",
        "from crawlkit.surfaces.cli import run_cli; run_cli(['--version'])",
    ],
)
def test_what_needs_little_imports_little(tmp_path: Path, code: str) -> None:
    ended = run([sys.executable, "-c", f"{code}\nimport sys\nsys.stderr.write(' '.join(sys.modules))"], cwd=tmp_path)
    assert set(HEAVY) & set(ended.err.split()) == set()


def test_the_list_of_commands_says_of_each_what_it_says_of_itself() -> None:
    commands = Commands()
    assert {name: place.summary for name, place in PLACES.items()} == {
        name: command.get_short_help_str(200) for name, command in commands.items()
    }
    assert [command.name for command in commands.values()] == list(commands)


def test_a_name_that_the_package_does_not_have_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'crawlkit' has no attribute 'crawls'"):
        crawlkit.crawls  # type: ignore[attr-defined]  # noqa: B018
    assert set(crawlkit.__all__) <= set(dir(crawlkit))
