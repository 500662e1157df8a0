"""The server: beside the loop of a crawl, or for `crawlkit ui` until somebody ends it."""

import asyncio
import secrets
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from crawlkit.engine.session import Running
from crawlkit.net.http_server import is_loopback, serving_http
from crawlkit.net.local import Socket
from crawlkit.surfaces.listening import listen_for, parse_address, url_of
from crawlkit.surfaces.live_page.access import Access
from crawlkit.surfaces.live_page.answering import Answering

OPEN_TO_OTHERS = "warning: other machines can reach the live page, unencrypted; who has its URL may pause the crawl"


@dataclass(frozen=True, slots=True)
class Desk:
    """Where the page is to be had: what listens there, and what a request needs."""

    listening: Socket
    access: Access

    @classmethod
    @contextmanager
    def open(cls, option: str, text: str) -> Iterator[Self]:
        """Listen at `ADDR:PORT`, the value of an option, while the block runs; UsageError if that is none or cannot be."""
        name, _ = parse_address(option, text)
        with listen_for(option, text) as listening:
            yield cls(listening, Access(secrets.token_urlsafe(24), name, listening.getsockname()[1]))

    @property
    def url(self) -> str:
        """Where the page is, token and all."""
        return f"{url_of(self.listening)}/?token={self.access.token}"

    @property
    def is_open_to_others(self) -> bool:
        """Whether other machines may reach it."""
        return not is_loopback(self.listening.getsockname()[0])

    @asynccontextmanager
    async def serving(self, directory: Path) -> AsyncIterator[None]:
        """Show the crawl in `directory` while the block runs."""
        stopping = asyncio.Event()
        answering = Answering(directory, self.access, stopping)
        try:
            async with serving_http(self.listening, answering.answer, stopping):
                yield
        finally:
            answering.close()

    def beside(self, running: Running) -> AbstractAsyncContextManager[None]:
        """Show a crawl that runs on this loop."""
        return self.serving(running.coordinator.state.directory)

    async def serve_until_signalled(self, directory: Path) -> None:
        """Show the crawl in `directory` until SIGINT or SIGTERM."""
        ended = asyncio.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, ended.set)
        async with self.serving(directory):
            await ended.wait()
