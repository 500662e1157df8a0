"""The browser itself: it ends under a page, it cannot be started, it is bounded, it is found."""

import asyncio
import gc
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from crawlkit.errors import ConfigError, RendererLost
from crawlkit.render.finding import find_browser, need_browser
from crawlkit.rendering import Aside, Document, Piece, Rendered, Rendering, Unrendered, Wish
from tests.render.chromium import PROGRAM, browsers, descendants, is_running, kill, needs_renderer

PAGE = Document("http://a.test/", b"<title>kept</title><script src=/app.js></script>")
APP = Piece(200, (("content-type", "text/javascript"),), b"document.title = 'made'")

Kill = Callable[[], object]


def all_of_it() -> None:
    kill(browsers(os.getpid()))


def what_steers_it() -> None:
    kill([pid for pid, line in descendants(os.getpid()) if "run-driver" in line])


def what_shows_the_page() -> None:
    kill([pid for pid, line in descendants(os.getpid()) if "--type=renderer" in line])


async def shown(*deaths: Kill) -> tuple[Rendered | Unrendered, int]:
    """Render a page, with a death each time that it asks for its script; tell too how often it asked."""
    from crawlkit.render.browser import Renderer  # noqa: PLC0415  (its package is an extra)

    renderer, due, asked = Renderer(PROGRAM, "test/1.0", 10_000, 1), list(deaths), 0

    async def grant(wish: Wish, aside: Aside) -> Piece | None:
        nonlocal asked
        asked += 1
        if due:
            due.pop(0)()
            await asyncio.Event().wait()
        return APP

    await renderer.open()
    try:
        return await renderer.render(PAGE, grant, 60.0), asked
    finally:
        await renderer.aclose()


@needs_renderer
@pytest.mark.parametrize("death", [all_of_it, what_steers_it])
def test_a_browser_that_ends_under_a_page_is_replaced_and_the_page_shown_again(
    death: Kill, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    found, asked = asyncio.run(shown(death))
    gc.collect()
    assert isinstance(found, Rendered)
    assert (b"<title>made</title>" in found.markup, asked) == (True, 2)
    assert browsers(os.getpid()) == []
    assert ([record.message for record in caplog.records if "Executing" not in record.message], *capfd.readouterr()) == (
        [], "", "",
    )  # fmt: skip


@needs_renderer
def test_a_page_that_browsers_end_under_is_given_up(capfd: pytest.CaptureFixture[str]) -> None:
    assert asyncio.run(shown(all_of_it, all_of_it)) == (Unrendered(Rendering.CRASHED), 2)
    assert capfd.readouterr() == ("", "")


@needs_renderer
def test_a_page_that_crashes_alone_is_given_up_at_once() -> None:
    assert asyncio.run(shown(what_shows_the_page)) == (Unrendered(Rendering.CRASHED), 1)


@needs_renderer
def test_a_browser_that_is_gone_for_good_ends_the_run(tmp_path: Path) -> None:
    program = tmp_path / "chromium"
    program.symlink_to(PROGRAM)

    async def main() -> None:
        from crawlkit.render.browser import Renderer  # noqa: PLC0415

        renderer = Renderer(str(program), "test/1.0", 10_000, 1)
        await renderer.open()
        program.unlink()
        all_of_it()
        try:
            await renderer.render(PAGE, _refuse, 60.0)
        finally:
            await renderer.aclose()

    with pytest.raises(RendererLost, match="does not start any more"):
        asyncio.run(main())


@needs_renderer
def test_after_many_pages_there_is_another_browser_and_the_first_one_ends_with_its_last_page(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from crawlkit.render import browser  # noqa: PLC0415

    monkeypatch.setattr(browser, "PAGES_A_BROWSER", 1)

    async def main() -> None:
        renderer, ends, first = browser.Renderer(PROGRAM, "test/1.0", 10_000, 2), asyncio.Event(), asyncio.Event()

        async def grant(wish: Wish, aside: Aside) -> Piece | None:
            first.set()
            await ends.wait()
            return APP

        await renderer.open()
        old = browsers(os.getpid())
        try:
            slow = asyncio.create_task(renderer.render(PAGE, grant, 60.0))
            await first.wait()
            assert isinstance(await renderer.render(PAGE, _refuse, 60.0), Rendered)
            assert any(map(is_running, old))
            ends.set()
            found = await slow
            assert isinstance(found, Rendered)
            assert b"<title>made</title>" in found.markup
            assert not any(map(is_running, old))
        finally:
            await renderer.aclose()

    asyncio.run(main())


async def _refuse(wish: Wish, aside: Aside) -> Piece | None:
    return None


# Where it is ----------------------------------------------------------------------------------------------------------


def _program(path: Path) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch(0o755)
    return str(path)


def test_a_browser_is_found_on_the_path_else_where_playwright_puts_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("crawlkit.render.finding._ELSEWHERE", ())
    environ = {"PATH": str(tmp_path / "bin"), "HOME": str(tmp_path)}
    assert find_browser(environ) is None
    own = _program(tmp_path / ".cache/ms-playwright/chromium-1200/chrome-linux/chrome")
    assert find_browser(environ) == own
    assert find_browser({**environ, "PLAYWRIGHT_BROWSERS_PATH": str(tmp_path / "none")}) is None
    chrome = _program(tmp_path / "bin/google-chrome")
    assert find_browser(environ) == chrome
    chromium = _program(tmp_path / "bin/chromium")
    assert find_browser(environ) == chromium


@needs_renderer
def test_where_there_is_none_it_is_said_how_to_get_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("crawlkit.render.finding._ELSEWHERE", ())
    with pytest.raises(ConfigError, match=r"^render: there is no Chromium .* apt-get install chromium, or playwright install"):
        need_browser({"PATH": "", "HOME": "/nowhere"})
