"""Exchanges to archive."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from crawlkit.archive.files import file_path
from crawlkit.archive.writer import Archive
from crawlkit.exchange import Cut, Exchange, Extent, Role, Settled

CRAWL_ID = "0123456789abcdef0123456789abcdef"
ABOUT = {"software": "testkit/1.0", "isPartOf": CRAWL_ID}
AT_S = 1_796_000_000.123
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n"


def settled(url: str = "http://a.test/", body: bytes = b"hello", head: bytes = HEAD, **more: Any) -> Settled:
    cut: Cut | None = more.pop("cut", None)
    request = f"GET /{url.split('/', 3)[3]} HTTP/1.1\r\nHost: a.test\r\n\r\n".encode()
    exchange = Exchange(request, head, body, cut, more.pop("address", None), more.pop("protocol", None))
    told = {"role": Role.RECORD, "started_s": AT_S, "ended_s": AT_S + 0.05, "attempt": 1, "status": int(head[9:12]), **more}
    return Settled(url=url, exchange=exchange, **told)


class Shelf:
    """An archive in `directory`, with what it acknowledged."""

    def __init__(self, directory: Path, *, most_bytes: int = 1 << 30) -> None:
        self.directory = directory
        self.most_bytes = most_bytes
        self.sizes: dict[int, int] = {}
        self.extents: list[Extent] = []
        self.reopen()

    def reopen(self) -> None:
        self.archive = Archive(self.directory, CRAWL_ID, self.sizes, most_bytes=self.most_bytes, about=ABOUT)

    def append(self, *exchanges: Settled) -> Sequence[Extent]:
        written = self.archive.append(exchanges, self.find)
        self.extents += written.extents
        self.sizes.update(written.sizes)
        return written.extents

    def find(self, payload: bytes) -> Extent | None:
        return next((e for e in self.extents if e.payload == payload and e.is_original), None)

    def path(self, number: int = 1) -> Path:
        return file_path(self.directory, CRAWL_ID, number)
