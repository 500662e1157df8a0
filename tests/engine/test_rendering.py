"""A crawl that renders: what is read of its pages, what is asked of whom, and what is refused; over kills and resumes too."""

import asyncio
import hashlib
import itertools
import os
import signal
import subprocess
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from crawlkit.config import Config
from crawlkit.engine.reparse import reparse
from crawlkit.engine.session import Hooks, Outcome, Surroundings, begin, go_on
from crawlkit.errors import ConfigError, UsageError
from crawlkit.model import Kind, OrderReason, Reason, Record
from crawlkit.rendering import Rendering
from crawlkit.state.reading import open_crawl_for_reading
from crawlkit.testing.log import RequestLog
from crawlkit.testing.server import SiteServer
from crawlkit.testing.site import Fault, Reply, Site, redirect, robots, status
from tests.processes import command, ended, environment, started, wait_until
from tests.render.chromium import browsers, is_running, kill, needs_renderer

SEED = "http://a.test/"
JS = (("content-type", "text/javascript"),)
HTML = (("content-type", "text/html; charset=utf-8"),)


def html(markup: str) -> Reply:
    return Reply(200, HTML, markup.encode())


def script(text: str, *headers: tuple[str, str]) -> Reply:
    return Reply(200, (*JS, *headers), text.encode())


APP = script("""
document.title = 'made';
const link = to => { const a = document.createElement('a'); a.href = to; document.body.append(a); };
addEventListener('DOMContentLoaded', () => ['/asks', '/goes', '/moved'].forEach(link));
""")
ASKS = """<!doctype html><title>asks</title><body>
<script src=/app.js></script><script src=/denied/x.js></script><script src=/long.js></script>
<script src=http://127.0.0.1:PORT/private.js></script>
<script src=http://cdn.test/lib.js></script><script src=http://cdn.test/busy.js></script><script src=http://cdn.test/b.js></script>
<script>
const told = (name, url) => fetch(url).then(r => r.text()).catch(() => 'refused').then(text => name + '=' + text);
Promise.all([
  told('own', '/data'), told('hop', '/hop'), told('far', '/far'), told('cdn', 'http://cdn.test/secret'), told('open', '/open'),
]).then(all => document.title = all.join(' '));
</script>"""
SITE = {
    "a.test/robots.txt": robots("User-agent: *\nDisallow: /denied/"),
    "a.test/": html("<!doctype html><title>server's</title><meta name=robots content=all><body><script src=/app.js></script>"),
    "a.test/app.js": APP,
    "a.test/goes": html("<title>goes</title><script src=/app.js></script><script>location = '/went'</script>"),
    "a.test/went": html("<title>went</title>"),
    "a.test/moved": redirect("/landed"),
    "a.test/landed": Reply(200, (("content-type", "text/plain"),), b"<script>document.title = 'no'</script>"),
    "a.test/data": Reply(200, (), b"data"),
    "a.test/hop": redirect("/data"),
    "a.test/far": redirect("http://cdn.test/secret"),
    "a.test/open": redirect("http://cdn.test/shared"),
    "a.test/long.js": script("document.title = 'long'" + " " * 4000),
    "cdn.test/robots.txt": robots("User-agent: *\nDisallow: /b.js"),
    "cdn.test/lib.js": script("document.body.dataset.lib = 'run'"),
    "cdn.test/busy.js": status(404),
    "cdn.test/secret": Reply(200, (), b"secret"),
    "cdn.test/shared": Reply(200, (("access-control-allow-origin", "http://a.test"),), b"shared"),
}


def settings(server: SiteServer, **values: Any) -> Config:
    resolve = (f"*.test=127.0.0.1:{server.port}",)
    return Config(**{"resolve": resolve, "render": True, "delay": 0, "retries": 0, "min_free_disk": 0, **values})


def crawl(server: SiteServer, directory: Path, **values: Any) -> Outcome:
    return asyncio.run(begin([SEED], directory, settings(server, **values), Hooks(), Surroundings()))


def records(directory: Path) -> dict[str, Record]:
    with open_crawl_for_reading(directory) as reader:
        return {record.url.removeprefix(SEED): record for record in reader.pages.walk()}


@dataclass(frozen=True, slots=True)
class Crawled:
    outcome: Outcome
    directory: Path
    records: dict[str, Record]
    log: RequestLog

    def asked(self) -> Counter[str]:
        return Counter(f"{request.host}{request.target}" for request in self.log)


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crawled]:
    """A crawl of `SITE`, for the tests to look at."""
    directory = tmp_path_factory.mktemp("rendering") / "crawl"
    with SiteServer(Site()) as server:
        server.site = Site({**SITE, "a.test/asks": html(ASKS.replace("PORT", str(server.port)))})
        outcome = crawl(
            server, directory, timeout=30, header=("X-Ours: 1",), max_body=4000, extract=("lib=body@data-lib",), warc=True
        )
        yield Crawled(outcome, directory, records(directory), server.log)


# What is read ---------------------------------------------------------------------------------------------------------

pytestmark = needs_renderer


def test_links_and_title_are_those_that_scripts_made_and_the_digest_is_the_server_s(crawled: Crawled) -> None:
    home = crawled.records[""]
    body = SITE["a.test/"].body
    assert home.title == "made"
    assert home.links == tuple(SEED + name for name in ("asks", "goes", "moved"))
    assert (home.digest, home.body_bytes) == (f"sha256:{hashlib.sha256(body).hexdigest()}", len(body))
    assert (home.rendering, home.directives) == (Rendering.DONE, ("all",))


def test_where_a_script_goes_is_a_link(crawled: Crawled) -> None:
    assert crawled.records["goes"].links == (SEED + "went",)
    assert crawled.records["went"].kind is Kind.PAGE


def test_a_redirect_is_a_record_and_what_is_no_html_is_not_rendered(crawled: Crawled) -> None:
    moved, landed = crawled.records["moved"], crawled.records["landed"]
    assert (moved.kind, moved.redirect_to, moved.rendering) == (Kind.REDIRECT, SEED + "landed", None)
    assert (landed.kind, landed.title, landed.rendering) == (Kind.PAGE, None, None)


def test_a_page_whose_scripts_never_end_is_read_as_it_was_sent(tmp_path: Path) -> None:
    spins = html("<title>spins</title><a href=/of-body>x</a><script>setTimeout(() => { for (;;); })</script>")
    with SiteServer(Site({"/": spins})) as server:
        crawl(server, tmp_path / "crawl", timeout=1)
    found = records(tmp_path / "crawl")
    assert (found[""].kind, found[""].title, found[""].links) == (Kind.PAGE, "spins", (SEED + "of-body",))
    assert found[""].rendering is Rendering.TIMEOUT
    assert found["of-body"].reason is Reason.CLIENT_ERROR


def test_the_report_says_what_it_depends_on(crawled: Crawled) -> None:
    assert crawled.outcome.counters.reasons == {OrderReason.RENDER}


# What is asked for ----------------------------------------------------------------------------------------------------


def test_pages_are_asked_for_once_and_so_is_what_they_share(crawled: Crawled) -> None:
    asked = crawled.asked()
    once = {f"a.test/{name}" for name in ("robots.txt", "", "asks", "goes", "went", "moved", "landed", "app.js")}
    assert {each: asked[each] for each in once | {"cdn.test/robots.txt"}} == dict.fromkeys(once | {"cdn.test/robots.txt"}, 1)
    assert crawled.outcome.counters.requests == len(crawled.log)


def test_what_may_not_be_asked_for_is_not(crawled: Crawled) -> None:
    asked = crawled.asked()
    assert asked["cdn.test/lib.js"] == 1
    assert (asked["a.test/denied/x.js"], asked["cdn.test/b.js"]) == (0, 0)
    assert not [request for request in crawled.log if request.target == "/private.js"]


def test_scripts_read_what_other_origins_let_them(crawled: Crawled) -> None:
    assert crawled.records["asks"].title == "own=data hop=data far=refused cdn=refused open=shared"
    assert crawled.records["asks"].fields == {"lib": "run"}


def test_only_the_page_s_own_host_gets_the_headers_of_the_settings(crawled: Crawled) -> None:
    with_ours = {request.host for request in crawled.log if ("x-ours", "1") in request.headers}
    assert with_ours == {"a.test"}
    agents = {dict(request.headers)["user-agent"] for request in crawled.log}
    assert agents == {Config().sent_user_agent()}
    assert not [request for request in crawled.log if "cookie" in dict(request.headers)]


def test_the_archive_is_not_read_anew(crawled: Crawled) -> None:
    with pytest.raises(UsageError, match="was rendered"):
        reparse(crawled.directory, ["x=title"], 1.0)


# Manners --------------------------------------------------------------------------------------------------------------


def test_the_gap_holds_for_what_pages_need(tmp_path: Path) -> None:
    scripts = "".join(f"<script src=/{name}.js></script>" for name in "abc")
    routes = {f"/{name}.js": script(f"document.title += '{name}'") for name in "abc"}
    site = Site({"/": html(f"<title>-</title>{scripts}<a href=/next>x</a>"), "/next": html("<title>n</title>"), **routes})
    with SiteServer(site) as server:
        crawl(server, tmp_path / "crawl", delay=0.5, timeout=30)
        requests = list(server.log)
    assert [request.target for request in requests] == ["/robots.txt", "/", "/a.js", "/b.js", "/c.js", "/next"]
    for before, after in itertools.pairwise(requests):
        assert before.ended_s is not None
        assert after.at_s - before.ended_s > 0.45
    assert records(tmp_path / "crawl")[""].title == "-abc"


# Ends -----------------------------------------------------------------------------------------------------------------


HELD = {
    "/": html("<title>held</title><body><script src=/held.js></script>"),
    "/held.js": Reply(200, JS, b"// never", fault=Fault.STALL),
}
FREED = {"/held.js": script("const a = document.createElement('a'); a.href = '/found'; document.body.append(a)")}


def holding(log: RequestLog) -> bool:
    return any(request.target == "/held.js" for request in log)


def arguments(server: SiteServer) -> list[str | Path]:
    return [f"--resolve=*.test=127.0.0.1:{server.port}", "--render", "--delay=0", "--min-free-disk=0", "-q"]


def test_a_kill_leaves_no_browser_behind_and_a_resume_renders_on(tmp_path: Path) -> None:
    with SiteServer(Site(HELD)) as server:
        with started(command("run", SEED, "-d", "x.crawl", *arguments(server)), tmp_path) as process:
            assert server.log.wait_for(holding, 60)
            left = browsers(process.pid)
            assert left
            process.kill()
            wait_until(lambda: not any(map(is_running, left)))
        server.site = Site({**HELD, **FREED})
        asyncio.run(go_on(tmp_path / "x.crawl", {"delay": 0}, Hooks(), Surroundings()))
    found = records(tmp_path / "x.crawl")
    assert (found[""].rendering, found[""].links) == (Rendering.DONE, (SEED + "found",))
    assert found["found"].reason is Reason.CLIENT_ERROR


def test_a_browser_that_is_killed_in_a_crawl_is_replaced(tmp_path: Path) -> None:
    with (
        SiteServer(Site(HELD)) as server,
        started(command("run", SEED, "-d", "x.crawl", *arguments(server)), tmp_path) as process,
    ):
        assert server.log.wait_for(holding, 60)
        server.site = Site({**HELD, **FREED})
        kill(browsers(process.pid))
        assert ended(process).status == 1
    assert records(tmp_path / "x.crawl")[""].links == (SEED + "found",)


def test_a_stop_from_a_terminal_lets_the_page_be_rendered(tmp_path: Path) -> None:
    pipe = subprocess.PIPE
    with SiteServer(Site(HELD)) as server:
        argv = command("run", SEED, "-d", "x.crawl", *arguments(server), "--timeout=3s")
        with subprocess.Popen(
            argv, cwd=tmp_path, env=environment(), stdout=pipe, stderr=pipe, start_new_session=True
        ) as process:
            assert server.log.wait_for(holding, 60)
            left = browsers(process.pid)
            os.killpg(process.pid, signal.SIGINT)  # as a terminal does: what it started gets it too
            assert ended(process).status == 130
            assert not any(map(is_running, left))
    home = records(tmp_path / "x.crawl")[""]
    assert (home.rendering, home.title) == (Rendering.DONE, "held")


# Without what it takes ------------------------------------------------------------------------------------------------


def test_rendering_is_frozen(crawled: Crawled) -> None:
    with pytest.raises(ConfigError, match=r"^render: frozen when the crawl began"):
        asyncio.run(go_on(crawled.directory, {"render": False}, Hooks(), Surroundings()))
