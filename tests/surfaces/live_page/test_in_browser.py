"""The live page in a real browser, during a crawl of a hostile site."""

import signal
from pathlib import Path

from tests.browser import browsing, needs_chromium
from tests.processes import ended
from tests.surfaces.live_page.shown import Page

TEXT = "document.body.innerText"


@needs_chromium
def test_a_browser_shows_it_explains_pauses_and_takes_no_text_for_markup(live: Page, tmp_path: Path) -> None:
    with browsing(live.url, tmp_path / "profile") as tab:
        tab.wait_for("document.querySelector('#state').textContent === 'running'")
        tab.wait_for(f"{TEXT}.includes('4 of 7 known URLs have settled')")
        assert tab.value("document.querySelectorAll('#hosts tbody tr').length") == 2
        assert tab.value("document.querySelector('#failures a').textContent").startswith("http://b.test/gone?")
        assert tab.value("document.querySelector('#statuses').innerText").split()[-4:] == ["200", "3", "404", "1"]
        for text in ("http://a.test/", "<img src=x onerror=\"document.title='taken over'\">"):
            tab.value(f"document.querySelector('#explain input').value = {text!r}")
            tab.value("document.querySelector('#explain').requestSubmit()")
            tab.wait_for(f"document.querySelector('#explained').textContent.includes({text!r})")
        tab.value("document.querySelector('#steer').click()")
        tab.wait_for("document.querySelector('#state').textContent === 'paused'")
        tab.wait_for("document.querySelector('#steer').textContent === 'Continue'")
        assert live.shown()["status"]["paused"]
        assert tab.value("document.title") == "paused: x.crawl"
        assert tab.value("document.images.length") == 0
        assert tab.value("document.scripts.length") == 2
        assert [said for said in tab.said if "favicon" not in said] == []
        live.process.send_signal(signal.SIGINT)
        tab.wait_for("document.querySelector('#state').textContent === 'stopped'")
        tab.wait_for(f"{TEXT}.includes('The run that showed this page has ended')")
        assert tab.value("document.querySelector('#steer').hidden")
        assert ended(live.process, 10).status == 130
