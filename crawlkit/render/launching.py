"""A browser of its own, started so that nothing can leave it but through who steers it, and with bounded memory.

It is told of a proxy that cannot be reached and of no name that leads anywhere, for whatever is not handed over to be answered
(WebSockets, WebRTC, prefetches, its own errands). It is no child of ours but of Playwright's driver, which ends it when the
pipe to us closes: by our death too, however sudden.
"""

import asyncio
import gc
import os
import re
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from playwright.async_api import Browser, Error, Playwright, async_playwright

MOST_DATA_BYTES: Final = 2 * 1024**3
"""Of memory that each process of a browser may have for itself; a page that takes more crashes."""

_CUT_OFF: Final = (
    "--proxy-server=http://nowhere.invalid:9",
    "--proxy-bypass-list=<-loopback>",  # which would be asked directly else
    "--host-resolver-rules=MAP * ~NOTFOUND",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--disable-quic",
    "--dns-prefetch-disable",
    "--no-pings",
    "--mute-audio",
)


_GUARDS_OFF: Final = ("--disable-popup-blocking", "--disable-ipc-flooding-protection")
"""What playwright switches off of a browser's own guards against pages, for tests of people's own pages."""

_BROWSER_SAID: Final = re.compile(r"\[pid=\d+\]\[err\] (.+)")

_DRIVER_ENDED: Final = "Connection closed while reading from the driver"


class BrowserFailedError(Exception):
    """The browser does not start; the text is one line of what it said."""


async def start_driver() -> Playwright:
    """Start what steers browsers; `stop` it. BrowserFailedError if it does not start."""
    try:
        with _bounded_memory():  # inherited by the browsers that it starts
            return await async_playwright().start()
    except (Error, OSError) as error:
        raise BrowserFailedError(_said(error)) from error


async def start_browser(driver: Playwright, program: str) -> Browser:
    """Start the browser at `program`; `close` it. BrowserFailedError if it does not start."""
    try:
        return await driver.chromium.launch(
            executable_path=program,
            args=[*_CUT_OFF],
            ignore_default_args=[*_GUARDS_OFF],
            chromium_sandbox=os.geteuid() != 0,  # it refuses to run as root with one
            handle_sigint=False,
            handle_sigterm=False,
            handle_sighup=False,
        )
    except Error as error:
        raise BrowserFailedError(_said(error)) from error


@contextmanager
def deaths_untold() -> Iterator[None]:
    """Let asyncio say nothing of drivers that end within the block: playwright leaves a future of theirs unread."""
    loop = asyncio.get_running_loop()
    before = loop.get_exception_handler()

    def handle(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        if str(context.get("exception")) == _DRIVER_ENDED:
            return
        if before is None:
            loop.default_exception_handler(context)
        else:
            before(loop, context)

    loop.set_exception_handler(handle)
    try:
        yield
    finally:
        gc.collect()  # it is told when what holds the future is gone
        loop.set_exception_handler(before)


@contextmanager
def _bounded_memory() -> Iterator[None]:
    """Start processes within the block that may have so much memory and no more; for a moment that holds for us too."""
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    bounded = MOST_DATA_BYTES if soft == resource.RLIM_INFINITY else min(MOST_DATA_BYTES, soft)
    resource.setrlimit(resource.RLIMIT_DATA, (bounded, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


def _said(error: BaseException) -> str:
    """Return the last line that a browser wrote before it gave up, else the first one of the error; not too long."""
    text = str(error).strip() or type(error).__name__
    written = _BROWSER_SAID.findall(text)
    return (written[-1] if written else text.splitlines()[0])[:300]
