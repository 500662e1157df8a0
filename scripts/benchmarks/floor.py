"""The floor: the least that a crawl in Python has to do, written as a loop of raw keep-alive connections.

    python floor.py SEED CONNECTIONS

uvloop, httptools, selectolax's `tags('a')`, a memo of joined links and a dict. It keeps nothing on disk and has no
manners, no robots.txt, no limits, no charset, no title. Prints how many pages answered 200. Runs in the environment of the
peers; imports nothing of crawlkit.
"""

import asyncio
import sys
from collections import deque
from typing import Any
from urllib.parse import urljoin, urlsplit

import httptools
import uvloop
from selectolax.lexbor import LexborHTMLParser


class Crawl:
    """What the connections share: URLs to fetch, those seen, the memo."""

    def __init__(self, seed: str) -> None:
        self.origin = seed.rstrip("/")
        parts = urlsplit(seed)
        self.host, self.port, self.authority = parts.hostname or "", parts.port or 80, parts.netloc
        self.seen = {seed: True}
        self.queue = deque([seed])
        self.memos: dict[str, dict[str, str]] = {}
        self.idle: list[Connection] = []
        self.busy = 0
        self.pages = 0
        self.finished = asyncio.get_running_loop().create_future()

    def read(self, url: str, body: bytes) -> None:
        """Take the links of a page."""
        memo = self.memos.setdefault(url[: url.rindex("/")], {})
        seen, inside = self.seen, self.origin + "/"
        for node in LexborHTMLParser(body).tags("a"):
            href = node.attributes.get("href")
            if href is None:
                continue
            link = memo.get(href)
            if link is None:
                joined = href if href.startswith(("http://", "https://")) else urljoin(url, href)
                link = memo[href] = joined.partition("#")[0]
            if link not in seen and link.startswith(inside):
                seen[link] = True
                self.queue.append(link)
        while self.queue and self.idle:
            self.idle.pop().next()
        if not self.busy and not self.queue and not self.finished.done():
            self.finished.set_result(None)


class Connection(asyncio.Protocol):
    """One keep-alive connection: one request at a time."""

    def __init__(self, crawl: Crawl) -> None:
        self.crawl = crawl
        self.url = ""
        self.chunks: list[bytes] = []

    def connection_made(self, transport: Any) -> None:  # uvloop's are not asyncio.Transport
        self.transport = transport
        self.next()

    def next(self) -> None:
        crawl = self.crawl
        if not crawl.queue:
            crawl.idle.append(self)
            return
        crawl.busy += 1
        self.url = crawl.queue.popleft()
        self.parser = httptools.HttpResponseParser(self)
        target = self.url[len(crawl.origin) :]
        self.transport.write(
            f"GET {target} HTTP/1.1\r\nHost: {crawl.authority}\r\nUser-Agent: floor\r\nAccept: */*\r\n\r\n".encode()
        )

    def data_received(self, data: bytes) -> None:
        self.parser.feed_data(data)

    def on_body(self, body: bytes) -> None:
        self.chunks.append(body)

    def on_message_complete(self) -> None:
        crawl, url, body = self.crawl, self.url, b"".join(self.chunks)
        self.chunks.clear()
        crawl.busy -= 1
        if self.parser.get_status_code() == 200:
            crawl.pages += 1
        self.next()
        crawl.read(url, body)


async def main(seed: str, connections: int) -> None:
    """Crawl from `seed` and print the number of pages."""
    crawl = Crawl(seed)
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, told: crawl.finished.set_exception(told.get("exception") or RuntimeError(str(told))))
    for _ in range(connections):
        await loop.create_connection(lambda: Connection(crawl), crawl.host, crawl.port)
    await crawl.finished
    print(crawl.pages)


if __name__ == "__main__":
    uvloop.run(main(sys.argv[1], int(sys.argv[2])))
