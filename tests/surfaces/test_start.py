"""The start of a process: quick where little is asked, and quiet when it is interrupted before anything has begun."""

import signal
import sys
from pathlib import Path

import pytest

import crawlkit
from crawlkit.errors import ExitStatus
from crawlkit.surfaces.commands import PLACES, Commands
from tests.processes import run

SELDOM_NEEDED = (
    "certifi", "importlib.metadata", "opentelemetry", "playwright", "prometheus_client", "publicsuffixlist", "ray",
    "rich", "shlex", "tomllib",
    "crawlkit.archive.writer", "crawlkit.cluster", "crawlkit.engine.explain", "crawlkit.engine.figures",
    "crawlkit.engine.partitions", "crawlkit.engine.plugging", "crawlkit.engine.rendering.pages",
    "crawlkit.engine.rendering.pieces", "crawlkit.engine.steering", "crawlkit.net.http2", "crawlkit.net.http_server",
    "crawlkit.plugins", "crawlkit.policy.markup", "crawlkit.policy.sitemaps", "crawlkit.policy.tree_cost",
    "crawlkit.state.looking", "crawlkit.state.moving",
    "crawlkit.surfaces.control.answering", "crawlkit.surfaces.live_page", "crawlkit.surfaces.metrics", "crawlkit.testing",
)  # fmt: skip
"""What a crawl of http needs for some settings alone, each one to thirty milliseconds of a start."""

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

AT_THE_END = """
import atexit, gc, os, sys

def tell():
    print("collecting", gc.isenabled(), gc.get_threshold()[0], gc.get_freeze_count() > 20_000)

class Telling:
    def find_spec(self, name, path=None, target=None):
        if name == "crawlkit.surfaces.cli":
            atexit.register(tell)

    def __del__(self, write=os.write):
        write(2, b"taken apart")

sys.meta_path.insert(0, Telling())
from crawlkit.__main__ import main
sys.argv = ["crawlkit", *sys.argv[1:]]
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


def test_a_crawl_imports_only_what_its_settings_ask_for(tmp_path: Path) -> None:
    code = "from crawlkit.surfaces.cli import run_cli\nimport sys\nrun_cli(sys.argv[1:])\nprint(*sys.modules)"
    for arguments in (["run", "http://127.0.0.1:9/", "-d", "x.crawl", "--retries", "0"], ["resume", "x.crawl"]):
        imported = set(run([sys.executable, "-c", code, *arguments], cwd=tmp_path).out.decode().split())
        assert "crawlkit.engine.loop" in imported
        assert set(SELDOM_NEEDED) & imported == set()


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


def test_a_command_begins_with_its_program_set_aside_and_leaves_without_taking_it_apart(tmp_path: Path) -> None:
    buffered = {"PYTHONUNBUFFERED": ""}
    ended = run([sys.executable, "-c", AT_THE_END, "status", "none.crawl"], cwd=tmp_path, env=buffered)
    assert ended.status == ExitStatus.STATE
    assert ended.out == b"collecting True 10000 True\n"
    assert "taken apart" not in ended.err


def test_a_partition_begins_with_its_program_set_aside_too(tmp_path: Path) -> None:
    code = (
        "import gc, sys; from crawlkit.surfaces.partition import main; sys.argv = ['', 'no descriptor']\n"
        "try: main()\nexcept ValueError: print(gc.get_threshold()[0], gc.get_freeze_count() > 20_000)"
    )
    assert run([sys.executable, "-c", code], cwd=tmp_path).out == b"10000 True\n"


def test_whoever_asks_for_warnings_has_the_interpreter_taken_apart(tmp_path: Path) -> None:
    ended = run([sys.executable, "-W", "error", "-c", AT_THE_END, "status", "none.crawl"], cwd=tmp_path)
    assert ended.status == ExitStatus.STATE
    assert "taken apart" in ended.err
