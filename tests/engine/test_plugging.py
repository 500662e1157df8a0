"""Crawls with plugins: what each function decides, what comes of one that fails, what a resume makes of one that changed."""

import asyncio
import gzip
import hashlib
import re
import sqlite3
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from crawlkit.config import Config
from crawlkit.engine.explain.explainer import Explainer
from crawlkit.engine.plugging import load_plugins
from crawlkit.engine.repair import repair
from crawlkit.engine.session import Hooks, Outcome, Surroundings, begin, go_on
from crawlkit.engine.verify import Thoroughness, verify
from crawlkit.errors import ConfigError
from crawlkit.model import Kind, OrderReason, Reason, Record
from crawlkit.state.crawl import CrawlState
from crawlkit.state.looking import look_at_crawl
from crawlkit.testing.fakeweb import FakeWeb
from crawlkit.testing.site import Reply, Site, page

EXAMPLES = Path(__file__).resolve().parents[2] / "config" / "plugins"
HOME = "http://a.test/"
SITE = Site(
    {"/": page("Home", ["/a", "/b", "/z"]), "/a": page("A", ["/deep"]), "/b": page("B"), "/z": page("Z"), "/deep": page("Deep")}
)
Write = Callable[[str], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write a plugin's source and return the file."""

    def written(source: str) -> Path:
        path = tmp_path / "plug.py"
        path.write_text(textwrap.dedent(source))
        return path

    return written


def crawl(web: FakeWeb, directory: Path, *plugins: Path, **settings: Any) -> Outcome:
    config = Config(plugin=tuple(map(str, plugins)), **{"delay": 0, "workers": 1, **settings})
    return asyncio.run(begin([HOME], directory, config, Hooks(), Surroundings(transport=web)))


def resume(web: FakeWeb, directory: Path, retry: frozenset[Reason] = frozenset(), **changes: object) -> Outcome:
    return asyncio.run(go_on(directory, changes, Hooks(), Surroundings(transport=web), retry))


def asked(web: FakeWeb) -> list[str]:
    """Return what was asked for, without robots.txt."""
    return [each.target for each in web.log if each.target != "/robots.txt"]


def records(directory: Path) -> dict[str, Record]:
    with CrawlState.open(directory) as state:
        return {record.url.removeprefix("http://a.test"): record for record in state.pages.walk()}


# accept ----------------------------------------------------------------------------------------------------------------


def test_what_a_plugin_does_not_accept_has_no_record_and_is_counted(write: Write, tmp_path: Path) -> None:
    outcome = crawl(FakeWeb(SITE), tmp_path / "c", write("def accept(url): return not url.endswith(('/a', '.test/'))"))

    assert set(records(tmp_path / "c")) == {"/", "/b", "/z"}  # seeds are exempt
    assert outcome.counters.refused["hook.refused"] == 1
    assert OrderReason.HOOK in outcome.counters.reasons
    assert verify(tmp_path / "c", Thoroughness.FULL).whole
    with look_at_crawl(tmp_path / "c") as looking:
        said = Explainer(looking).explain("http://a.test/a", 0.0)
    assert (said.code, said.summary) == ("hook.refused", "not admitted: a plugin does not accept it")


def test_a_repaired_crawl_leaves_out_what_its_plugin_does_not_accept(write: Write, tmp_path: Path) -> None:
    crawl(FakeWeb(SITE), tmp_path / "c", write("def accept(url): return not url.endswith('/a')"))
    repaired = repair(tmp_path / "c", 2e9).directory

    web = FakeWeb(SITE)
    resume(web, repaired, max_pages=None)

    assert set(records(repaired)) == {"/", "/b", "/z"}
    assert asked(web) == []


def test_a_url_that_accept_fails_on_is_a_failure_and_the_crawl_goes_on(write: Write, tmp_path: Path) -> None:
    web = FakeWeb(SITE)
    crawl(web, tmp_path / "c", write("def accept(url):\n    if url.endswith('/a'): raise KeyError('colour')\n    return True"))

    found = records(tmp_path / "c")
    assert {path: record.kind for path, record in found.items()} == {
        "/": Kind.PAGE, "/a": Kind.FAILURE, "/b": Kind.PAGE, "/z": Kind.PAGE
    }  # fmt: skip
    assert found["/a"].reason is Reason.HOOK_FAILED
    assert found["/a"].message == "plug.py: accept(): KeyError: 'colour'"
    assert "/a" not in asked(web)


# priority --------------------------------------------------------------------------------------------------------------


def test_a_priority_goes_before_the_depth(write: Write, tmp_path: Path) -> None:
    def order(*plugins: Path) -> list[str]:
        web = FakeWeb(SITE)
        directory = tmp_path / f"c{len(plugins)}"
        crawl(web, directory, *plugins, robots=False)
        return asked(web)

    assert order() == ["/", "/a", "/b", "/z", "/deep"]
    assert order(write("def priority(url): return {'/z': -3, 'ep': 1, '/a': 1, '/b': 10**9}.get(url[-2:])")) == [
        "/", "/z", "/a", "/deep", "/b"
    ]  # fmt: skip


def test_a_queue_in_an_order_of_its_own_outlives_a_stop(write: Write, tmp_path: Path) -> None:
    plugin = write("def priority(url): return 0 if url.endswith('/z') else 200")
    crawl(FakeWeb(SITE), tmp_path / "c", plugin, max_pages=1, robots=False)
    assert verify(tmp_path / "c", Thoroughness.FULL).whole
    web = FakeWeb(SITE)

    resume(web, tmp_path / "c", max_pages=None)

    assert asked(web) == ["/z", "/a", "/b", "/deep"]


# request ---------------------------------------------------------------------------------------------------------------


def test_a_request_carries_what_a_plugin_adds_and_no_other_does(write: Write, tmp_path: Path) -> None:
    web = FakeWeb(SITE)
    source = "def request(r): return r.with_header('ACCEPT', 'text/x') if r.url.endswith('/a') else r"
    crawl(web, tmp_path / "c", write(source), header=("X-One: 1",))

    sent = {each.target: [value for name, value in each.headers if name == "accept"] for each in web.log}
    assert sent["/a"] == ["text/x"]
    assert all("text/x" not in values for path, values in sent.items() if path != "/a")
    assert {dict(each.headers)["x-one"] for each in web.log} == {"1"}


@pytest.mark.parametrize(
    "header", ["'Host', 'b.test'", "'X', 'a\\r\\nY: b'", "'X Y', 'a'", "'User-Agent', 'me'", "'Range', 'bytes=0-'", "'X', 1"]
)
def test_a_header_that_cannot_be_fails_its_page_only(write: Write, tmp_path: Path, header: str) -> None:
    web = FakeWeb(SITE)
    crawl(web, tmp_path / "c", write(f"def request(r): return r.with_header({header}) if r.url.endswith('/a') else r"))

    found = records(tmp_path / "c")
    assert (found["/a"].kind, found["/a"].reason) == (Kind.FAILURE, Reason.HOOK_FAILED)
    assert found["/b"].kind is Kind.PAGE


def test_no_header_that_a_plugin_adds_is_archived(write: Write, tmp_path: Path) -> None:
    web = FakeWeb(SITE)
    crawl(web, tmp_path / "c", write("def request(r): return r.with_header('X-Pass', 'o' * 3 + 'pen')"), warc=True)

    assert {dict(each.headers)["x-pass"] for each in web.log if each.target == "/a"} == {"ooopen"}
    archived = b"".join(gzip.decompress(path.read_bytes()) for path in (tmp_path / "c" / "warc").iterdir())
    assert b"x-pass: (not archived)" in archived.lower()
    assert b"ooopen" not in archived


# page ------------------------------------------------------------------------------------------------------------------


def test_fields_of_a_page_are_any_json(write: Write, tmp_path: Path) -> None:
    source = """
        def page(page):
            assert page.header("Content-Type").startswith("text/html")
            return {"heading": page.html.css_first("title").text(), "status": page.status, "size": len(page.body) > 0,
                    "deep": {"list": [1, 2.5, None, {"x": "ü"}]}, "in": "title" in page.text}
    """
    crawl(FakeWeb(SITE), tmp_path / "c", write(source), extract=("status=title", "other=title"))

    assert records(tmp_path / "c")["/a"].fields == {
        "heading": "A", "status": 200, "other": "A", "size": True, "deep": {"list": [1, 2.5, None, {"x": "ü"}]}, "in": True
    }  # fmt: skip


@pytest.mark.parametrize(
    "returned",
    [
        "[]",
        "{'x': b'y'}",
        "{'x': float('nan')}",
        "{'x': 2**70}",
        "{'x': '\\ud800'}",
        "{'x': 'y' * 300_000}",
        "{'x': page}",
        "1",
    ],
)
def test_a_page_whose_fields_cannot_be_stored_is_a_failure(write: Write, tmp_path: Path, returned: str) -> None:
    crawl(FakeWeb(SITE), tmp_path / "c", write(f"def page(page):\n    if page.url.endswith('/a'):\n        return {returned}"))

    found = records(tmp_path / "c")
    assert found["/a"].reason is Reason.HOOK_FAILED
    assert "/deep" not in found  # a failure's links are not followed
    assert found["/b"].kind is Kind.PAGE


@pytest.mark.parametrize("raised", ["ZeroDivisionError()", "SystemExit(3)", "RecursionError()", "MemoryError()"])
def test_whatever_a_plugin_raises_fails_its_page_only(write: Write, tmp_path: Path, raised: str) -> None:
    outcome = crawl(FakeWeb(SITE), tmp_path / "c", write(f"def page(page):\n    if page.url.endswith('/b'): raise {raised}"))

    assert (outcome.counters.pages, outcome.counters.failures) == (4, 1)
    assert records(tmp_path / "c")["/b"].reason is Reason.HOOK_FAILED


def test_a_page_that_would_take_too_long_has_no_tree(write: Write, tmp_path: Path) -> None:
    bomb = Reply(200, (("content-type", "text/html"),), b"<b>" * 60_000)
    crawl(FakeWeb(Site({"/": bomb})), tmp_path / "c", write("def page(page): return {'tree': page.html is not None}"))

    assert records(tmp_path / "c")["/"].fields == {"tree": False}


# Loading and resuming --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("def pages(page): pass", "none of the functions accept, priority, request, page"),
        ("def accept(url:", "cannot be loaded: SyntaxError"),
        ("1 / 0", "cannot be loaded: ZeroDivisionError"),
        ("accept = 3", "accept has to be a plain function"),
        ("async def accept(url): return True", "accept has to be a plain function"),
        ("raise SystemExit('no')", "cannot be loaded: SystemExit: no"),
    ],
)
def test_a_plugin_that_cannot_be_used_is_refused_before_anything_is_made(
    write: Write, tmp_path: Path, source: str, said: str
) -> None:
    with pytest.raises(ConfigError, match=said):
        crawl(FakeWeb(SITE), tmp_path / "c", write(source))
    assert not (tmp_path / "c").exists()


def test_a_plugin_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"plugin: .*nothing\.py cannot be read: No such file"):
        crawl(FakeWeb(SITE), tmp_path / "c", tmp_path / "nothing.py")
    with pytest.raises(ConfigError, match=r"there is no nothing in the entry points of crawlkit\.plugins"):
        crawl(FakeWeb(SITE), tmp_path / "c", Path("nothing"))


def test_a_resume_wants_the_plugin_as_it_was_or_is_told_otherwise(write: Write, tmp_path: Path) -> None:
    plugin = write("def page(page):\n    if page.url.endswith('/b'): raise ValueError")
    crawl(FakeWeb(SITE), tmp_path / "c", plugin)
    mended = write("def page(page): return {'mended': True}")
    retry = frozenset({Reason.HOOK_FAILED})

    with pytest.raises(ConfigError, match=r"plug\.py has changed since the crawl began.*--set plugin="):
        resume(FakeWeb(SITE), tmp_path / "c", retry)
    outcome = resume(FakeWeb(SITE), tmp_path / "c", retry, plugin=(str(mended),))

    assert records(tmp_path / "c")["/b"].fields == {"mended": True}
    assert {OrderReason.HOOK, OrderReason.SETTINGS_CHANGED} <= outcome.counters.reasons
    with CrawlState.open(tmp_path / "c") as state:
        digest = hashlib.sha256(mended.read_bytes()).hexdigest()
        assert state.config().plugin == (f"{mended}#sha256:{digest}",)


def test_a_finished_crawl_is_told_so_without_its_plugin(write: Write, tmp_path: Path) -> None:
    plugin = write("def page(page): return None")
    crawl(FakeWeb(SITE), tmp_path / "c", plugin)
    plugin.unlink()

    assert resume(FakeWeb(SITE), tmp_path / "c").counters.pages == 5


def test_the_ledger_says_that_a_plugin_was_changed_and_what_it_was_is_read_back(write: Write, tmp_path: Path) -> None:
    crawl(FakeWeb(SITE), tmp_path / "c", write("def page(page): return None"), max_pages=1)
    resume(FakeWeb(SITE), tmp_path / "c", max_pages=2, plugin=())

    with CrawlState.open(tmp_path / "c") as state:
        assert state.runs[-1].changes.keys() == {"max_pages", "plugin"}
        assert state.config().plugin == ()
        assert OrderReason.HOOK in state.counters.reasons


def test_an_entry_point_is_a_plugin_by_its_name_and_frozen_by_its_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def install(version: str) -> None:
        info = tmp_path / "lib" / "shop-1.dist-info"
        info.mkdir(parents=True, exist_ok=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: shop\nVersion: {version}\n")
        (info / "entry_points.txt").write_text("[crawlkit.plugins]\nshop = shop_plugin_of_a_test\n")

    install("1.2")
    (tmp_path / "lib" / "shop_plugin_of_a_test.py").write_text("def page(page): return {'shop': 1}")
    monkeypatch.syspath_prepend(str(tmp_path / "lib"))

    pins = load_plugins(["shop"]).pins
    assert pins == ("shop#1.2",)
    assert load_plugins(pins).pins == pins
    install("1.3")
    with pytest.raises(ConfigError, match=r"shop was version 1\.2 when the crawl began and is 1\.3.*--set plugin=shop"):
        load_plugins(pins)


# The examples: the README's, then those of config/plugins -----------------------------------------------------------


def test_the_example_of_the_readme_does_what_it_says(write: Write, tmp_path: Path) -> None:
    readme = (EXAMPLES.parents[1] / "README.md").read_text()
    [source] = re.findall(r"```python\n(# plugin\.py\n.*?)```", readme, re.DOTALL)
    heading = Reply(200, (("content-type", "text/html"),), b"<h1> Du jour </h1>")
    paths = ["/print/a", "/a", "/fr/b", "/news/c"]
    web = FakeWeb(Site({"/": page("Home", paths), "/a": page("A"), "/fr/b": heading, "/news/c": page("C")}))

    crawl(web, tmp_path / "c", write(source), robots=False)

    assert asked(web) == ["/", "/news/c", "/a", "/fr/b"]
    assert records(tmp_path / "c")["/fr/b"].fields == {"heading": "Du jour"}
    assert [each.target for each in web.log if dict(each.headers).get("accept-language") == "fr"] == ["/fr/b"]


def test_the_example_that_skips_reads_patterns_of_a_database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    database = sqlite3.connect(tmp_path / "skip.db")
    database.executescript("create table patterns (pattern text); insert into patterns values ('/[ab]$'), ('print')")
    database.close()
    monkeypatch.setenv("SKIP_DB", str(tmp_path / "skip.db"))

    crawl(FakeWeb(SITE), tmp_path / "c", EXAMPLES / "skip.py")

    assert set(records(tmp_path / "c")) == {"/", "/z"}


def test_the_example_of_tokens_tells_each_host_its_own_and_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tokens.json").write_text('{"a.test": "s3cret-a", "b.test": "s3cret-b"}')
    monkeypatch.setenv("TOKENS", str(tmp_path / "tokens.json"))
    site = Site({"/": page("B"), "a.test/": page("Home", ["http://b.test/", "http://c.test/"])})
    web = FakeWeb(site)

    crawl(web, tmp_path / "c", EXAMPLES / "tokens.py", scope="any", warc=True)

    sent = {each.host: dict(each.headers).get("authorization") for each in web.log if each.target == "/"}
    assert sent == {"a.test": "Bearer s3cret-a", "b.test": "Bearer s3cret-b", "c.test": None}
    stored = b"".join(path.read_bytes() for path in (tmp_path / "c").rglob("*") if path.is_file())
    assert b"s3cret" not in stored


def test_the_example_of_prices_puts_numbers_into_fields(tmp_path: Path) -> None:
    offer = b'<p><span itemprop="price" content="12.50"></span><meta itemprop="priceCurrency" content="EUR">'
    mug = Reply(200, (("content-type", "text/html"),), offer)
    site = Site({"/": page("Shop", ["/b", "/product/1"]), "/b": page("B"), "/product/1": mug})
    web = FakeWeb(site)

    crawl(web, tmp_path / "c", EXAMPLES / "prices.py", robots=False)

    assert records(tmp_path / "c")["/product/1"].fields == {"price": 12.5, "currency": "EUR"}
    assert records(tmp_path / "c")["/b"].fields == {}
    assert asked(web) == ["/", "/product/1", "/b"]
