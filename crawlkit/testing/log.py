"""What a site was asked, and when."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import overload

import msgspec


@dataclass(frozen=True, slots=True)
class Request:
    """One request as the site saw it.

    `at_s` is when its head had arrived, `ended_s` when the last byte of the answer was handed over or the connection
    ended (None: not yet), on the log's clock. `host` is the Host header; names of `headers` are lower-cased.
    """

    at_s: float
    ended_s: float | None
    host: str
    target: str
    headers: tuple[tuple[str, str], ...]


class RequestLog(Sequence[Request]):
    """All requests in the order of their arrival. Any thread may read it while the site writes.

    `on_end` is called with each request that has ended, in the site's thread.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic, on_end: Callable[[Request], None] | None = None) -> None:
        self._now = now
        self._on_end = on_end
        self._requests: list[Request] = []
        self._in_flight: Counter[str] = Counter()
        self._in_flight_max: Counter[str] = Counter()
        self._changed = threading.Condition()

    def begin(self, host: str, target: str, headers: tuple[tuple[str, str], ...]) -> int:
        """Note that a request has arrived; return its index."""
        with self._changed:
            self._requests.append(Request(self._now(), None, host, target, headers))
            self._in_flight[host] += 1
            self._in_flight_max[host] = max(self._in_flight_max[host], self._in_flight[host])
            self._changed.notify_all()
            return len(self._requests) - 1

    def end(self, index: int) -> None:
        """Note that a request has ended; once for each."""
        with self._changed:
            ended = self._requests[index] = replace(self._requests[index], ended_s=self._now())
            self._in_flight[ended.host] -= 1
            self._changed.notify_all()
        if self._on_end is not None:
            self._on_end(ended)

    def wait_for(self, condition: Callable[["RequestLog"], bool], timeout_s: float = 10.0) -> bool:
        """Wait until `condition` of this log holds; False if it did not within `timeout_s`."""
        with self._changed:
            return self._changed.wait_for(lambda: condition(self), timeout_s)

    @property
    def in_flight_max(self) -> dict[str, int]:
        """The most requests that were in flight at once, by Host header."""
        with self._changed:
            return dict(self._in_flight_max)

    def __len__(self) -> int:
        return len(self._requests)

    @overload
    def __getitem__(self, index: int) -> Request: ...
    @overload
    def __getitem__(self, index: slice) -> list[Request]: ...
    def __getitem__(self, index: int | slice) -> Request | list[Request]:
        return self._requests[index]


def encode(request: Request) -> bytes:
    """Return one line of a log file."""
    return msgspec.json.encode(request) + b"\n"


def read_log(path: Path) -> list[Request]:
    """Return the requests of a log file, in the order of their ends; a last line still being written is left out."""
    whole, _, _ = path.read_bytes().rpartition(b"\n")
    return [msgspec.json.decode(line, type=Request) for line in whole.splitlines()]
