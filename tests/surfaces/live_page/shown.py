"""Live pages of crawls that run as processes of their own, and requests to them."""

import http.client
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from subprocess import Popen
from typing import Any

from tests.processes import command, started

HOSTILE = "</script><script>document.title='taken over'</script><img src=x onerror=\"document.title='taken over'\">"


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    headers: dict[str, str]
    text: str


@dataclass(frozen=True, slots=True)
class Page:
    """Where a page is, and the process that shows it."""

    process: "Popen[bytes]"
    url: str

    @property
    def port(self) -> int:
        return int(re.findall(r":(\d+)/", self.url)[0])

    @property
    def token(self) -> str:
        return self.url.partition("token=")[2]

    def ask(self, path: str, query: str | None = None, *, method: str = "GET", headers: dict[str, str] | None = None) -> Answer:
        """Ask for something, with the token unless `query` is another one."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        try:
            connection.request(method, f"{path}?{f'token={self.token}' if query is None else query}", headers=headers or {})
            answer = connection.getresponse()
            return Answer(answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read().decode())
        finally:
            connection.close()

    def json(self, path: str, more: str = "", *, method: str = "GET") -> Any:
        """Ask for something that is JSON."""
        answer = self.ask(path, f"token={self.token}{more}", method=method)
        assert answer.headers["content-type"].startswith("application/json"), answer
        return json.loads(answer.text)

    def events(self) -> Iterator[tuple[str, Any]]:
        """Yield the events as they come, to the end of the stream."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        try:
            connection.request("GET", f"/events?token={self.token}")
            stream = connection.getresponse()
            assert stream.getheader("content-type") == "text/event-stream"
            while name := stream.readline():
                data = stream.readline()
                assert stream.readline() == b"\n"
                yield name.decode().removeprefix("event: ").strip(), json.loads(data.decode().removeprefix("data: "))
        finally:
            connection.close()

    def shown(self) -> Any:
        """Return what is shown now."""
        return self.json("/api/shown")


@contextmanager
def showing(cwd: Path, *arguments: str) -> Iterator[Page]:
    """Start a command that shows a page."""
    with started(command(*arguments), cwd) as process:
        assert process.stderr is not None
        line = process.stderr.readline().decode()
        assert line.startswith("crawlkit: live page at "), line
        yield Page(process, line.removeprefix("crawlkit: live page at ").strip())
