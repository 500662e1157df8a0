"""The house keeps its shape, and each rule of `architecture_rules.py` is seen to go red on sources that break it."""

import fnmatch
import re
import subprocess
from collections.abc import Callable

import pytest

from tests.architecture_rules import (
    DEMO,
    FUNCTION_LINES,
    MODULE_LINES,
    ROOT,
    Module,
    functions_are_short,
    imports,
    imports_point_one_way,
    layer_of,
    modules_are_short,
    modules_parse_under_the_oldest_python,
    names_say_something,
    only_net_knows_the_network,
    only_render_knows_a_browser,
    only_state_knows_leveldb,
    only_the_demo_imports_testing,
    package_modules,
    policy_draws_no_unseeded_number,
    policy_never_waits,
    policy_touches_no_clock_and_no_file,
    public_modules_say_their_job,
    state_knows_no_event_loop,
    the_coordinator_is_synchronous_and_takes_now,
)

TOP_LEVEL = frozenset({"README.md", "config", "crawlkit", "pyproject.toml", "scripts", "tests"})

Rule = Callable[[Module], list[str]]


def _long(lines: int) -> str:
    return "def f():\n" + "    pass\n" * (lines - 1)


# Each rule with modules that break it, and modules that come near and keep it.
RULES: dict[Rule, tuple[list[tuple[str, str]], list[tuple[str, str]]]] = {
    imports_point_one_way: (
        [
            ("crawlkit.model", "from crawlkit.policy import urls"),
            ("crawlkit.policy.urls", "import crawlkit.state.keys"),
            ("crawlkit.policy.urls", "def f():\n    from crawlkit.net.fetch import fetch"),
            ("crawlkit.state.keys", "from crawlkit import policy"),
            ("crawlkit.state.keys", "from ..policy import urls"),
            ("crawlkit.net.fetch", "from crawlkit.archive import warc"),
            ("crawlkit.archive.warc", "import importlib\nimportlib.import_module('crawlkit.net')"),
            ("crawlkit.render.page", "from crawlkit.net.fetch import Fetcher"),
            ("crawlkit.engine.loop", "from crawlkit import Config"),
            ("crawlkit.engine.loop", "from crawlkit.surfaces.ui import Progress"),
            ("crawlkit.engine.loop", "from crawlkit.cluster import actor"),
            ("crawlkit.testing.web", "from crawlkit.surfaces import cli"),
            ("crawlkit.testing.web", "from crawlkit.api import crawl"),
            ("crawlkit.stray", "x = 1"),
        ],
        [
            ("crawlkit.policy.urls", "from crawlkit.model import Kind\nfrom . import scope"),
            ("crawlkit.engine.loop", "from crawlkit.net import fetch\nfrom crawlkit.engine.coordinator import X"),
            ("crawlkit.api", "from crawlkit.engine import loop\nfrom crawlkit.surfaces.report import report"),
            ("crawlkit", "from crawlkit.api import crawl"),
            ("crawlkit.testing.web", "from crawlkit.engine import loop"),
        ],
    ),
    only_the_demo_imports_testing: (
        [
            ("crawlkit.surfaces.cli", "from crawlkit.testing import web"),
            ("crawlkit.engine.loop", "from crawlkit import testing"),
            ("crawlkit.surfaces.demonstration", "import crawlkit.testing.clock"),
        ],
        [(DEMO, "from crawlkit.testing import web"), ("crawlkit.testing.web", "from crawlkit.testing import clock")],
    ),
    only_state_knows_leveldb: (
        [
            ("crawlkit.engine.loop", "import plyvel"),
            ("crawlkit.surfaces.verify", "def f():\n    from plyvel import DB"),
            ("crawlkit.testing.faults", "import plyvel._plyvel as p"),
        ],
        [("crawlkit.state.store", "import plyvel"), ("crawlkit.net.fetch", "'plyvel'")],
    ),
    only_net_knows_the_network: (
        [
            ("crawlkit.engine.loop", "import httpx"),
            ("crawlkit.policy.urls", "from urllib import request"),
            ("crawlkit.state.store", "import socket"),
            ("crawlkit.surfaces.cli", "import ssl as tls"),
            ("crawlkit.errors", "from aiohttp.client import X"),
        ],
        [("crawlkit.net.fetch", "import httpx"), ("crawlkit.policy.urls", "from urllib.parse import urlsplit")],
    ),
    only_render_knows_a_browser: (
        [
            ("crawlkit.engine.rendering.pages", "from playwright.async_api import Page"),
            ("crawlkit.net.fetch", "def f():\n    import playwright"),
        ],
        [("crawlkit.render.page", "from playwright.async_api import Page"), ("crawlkit.render.finding", "'playwright'")],
    ),
    policy_never_waits: (
        [
            ("crawlkit.policy.urls", "async def f(): pass"),
            ("crawlkit.policy.urls", "async def f():\n    return [x async for x in y]"),
        ],
        [("crawlkit.net.fetch", "async def f(): pass")],
    ),
    policy_touches_no_clock_and_no_file: (
        [
            ("crawlkit.policy.retry", "import time"),
            ("crawlkit.policy.retry", "from os import path"),
            ("crawlkit.policy.retry", "import asyncio"),
            ("crawlkit.policy.retry", "from pathlib import Path"),
            ("crawlkit.policy.retry", "from datetime import datetime\nx = datetime.now()"),
            ("crawlkit.policy.retry", "import datetime as dt\nx = dt.datetime.utcnow"),
            ("crawlkit.policy.retry", "x = open('f')"),
        ],
        [
            ("crawlkit.policy.retry", "from datetime import datetime\ndef f(now: datetime): return now.year"),
            ("crawlkit.clock", "import time"),
        ],
    ),
    policy_draws_no_unseeded_number: (
        [
            ("crawlkit.policy.retry", "import random\nx = random.random()"),
            ("crawlkit.policy.retry", "from random import uniform"),
            ("crawlkit.policy.retry", "import random\nx = random.Random()"),
            ("crawlkit.policy.retry", "from random import Random\nx = Random()"),
        ],
        [("crawlkit.policy.retry", "import random\nfrom random import Random\nx = random.Random(7), Random(8)")],
    ),
    state_knows_no_event_loop: (
        [
            ("crawlkit.state.store", "import asyncio"),
            ("crawlkit.state.store", "from asyncio import Queue"),
            ("crawlkit.state.store", "async def f(): pass"),
        ],
        [("crawlkit.state.store", "import threading"), ("crawlkit.engine.loop", "import asyncio")],
    ),
    the_coordinator_is_synchronous_and_takes_now: (
        [
            ("crawlkit.engine.coordinator", "import asyncio"),
            ("crawlkit.engine.coordinator", "from time import monotonic"),
            ("crawlkit.engine.coordinator", "from crawlkit.clock import SystemClock"),
            ("crawlkit.engine.coordinator", "from datetime import date\nx = date.today()"),
            ("crawlkit.engine.coordinator", "async def f(): pass"),
        ],
        [("crawlkit.engine.loop", "import asyncio, time"), ("crawlkit.engine.coordinator", "import heapq")],
    ),
    modules_are_short: (
        [("crawlkit.model", "x = 1\n" * (MODULE_LINES + 1))],
        [("crawlkit.model", "x = 1\n" * MODULE_LINES)],
    ),
    functions_are_short: (
        [("crawlkit.model", _long(FUNCTION_LINES + 1)), ("crawlkit.model", "async " + _long(FUNCTION_LINES + 1))],
        [("crawlkit.model", _long(FUNCTION_LINES)), ("crawlkit.model", "@option\n" * 30 + _long(FUNCTION_LINES))],
    ),
    public_modules_say_their_job: (
        [("crawlkit.model", "# no docstring\nx = 1"), ("crawlkit.__main__", "")],
        [("crawlkit.model", "'''Values.'''"), ("crawlkit._private", "")],
    ),
    names_say_something: (
        [("crawlkit.utils", ""), ("crawlkit.net.http_helper", ""), ("crawlkit.managers.model", "")],
        [("crawlkit.policy.utility", "")],
    ),
    modules_parse_under_the_oldest_python: (
        [("crawlkit.model", "type X = int"), ("crawlkit.model", "def f[T](x: T): pass")],
        [("crawlkit.model", "match x:\n    case _: pass")],
    ),
}


def _examples(which: int) -> list[object]:
    return [
        pytest.param(rule, Module(name, source), id=f"{rule.__name__}-{number}")
        for rule, examples in RULES.items()
        for number, (name, source) in enumerate(examples[which], 1)
    ]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_the_package_keeps(rule: Rule) -> None:
    found = [text for module in package_modules() for text in rule(module)]
    assert not found, f"broken: {rule.__name__.replace('_', ' ')}\n" + "\n".join(found)


@pytest.mark.parametrize(("rule", "module"), _examples(0))
def test_a_violation_is_seen(rule: Rule, module: Module) -> None:
    found = rule(module)
    assert found
    assert all(re.match(rf"{re.escape(module.path)}:\d+: .", text) for text in found)


@pytest.mark.parametrize(("rule", "module"), _examples(1))
def test_what_is_allowed_passes(rule: Rule, module: Module) -> None:
    assert rule(module) == []


def test_relative_imports_are_seen_from_a_package() -> None:
    package = Module("crawlkit.policy", "from . import urls\nfrom ..state import keys", is_package=True)
    assert list(imports(package)) == [(1, "crawlkit.policy.urls"), (2, "crawlkit.state.keys")]


def test_the_rules_are_applied_to_the_package() -> None:
    layers = {layer_of(module.name) for module in package_modules()}
    assert {"base", "policy", "state", "net", "engine", "surfaces"} <= layers


def stray_names(names: set[str]) -> list[str]:
    """What of the top level is neither ours nor a dot file."""
    return sorted(name for name in names if name not in TOP_LEVEL and not name.startswith("."))


def top_level_names() -> set[str]:
    """The top level as git has it; outside of a repository, what lies there and is not ignored."""
    command = ["git", "-c", "safe.directory=*", "ls-files", "-z"]
    try:
        listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        listed = ""
    if listed:
        return {path.split("/")[0] for path in listed.split("\0") if path}
    ignored = [line.rstrip("/") for line in (ROOT / ".gitignore").read_text().splitlines()]
    return {p.name for p in ROOT.iterdir() if not any(fnmatch.fnmatch(p.name, pattern) for pattern in ignored)}


def test_the_top_level_holds_nothing_stray() -> None:
    assert stray_names(top_level_names()) == []


def test_a_stray_file_is_seen() -> None:
    assert stray_names({"README.md", "crawlkit", ".ci", "notes.txt", "docs"}) == ["docs", "notes.txt"]
