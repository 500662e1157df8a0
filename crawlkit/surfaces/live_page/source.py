"""What is shown, asked of the crawl if it runs, else read from its directory. All of it blocks, hence belongs in a thread.

Within the process of the crawl it is asked over its socket too: one way for both, and none of its state is touched from here.
"""

import time
from pathlib import Path

import msgspec

from crawlkit.engine.explain.answer import Explanation
from crawlkit.engine.explain.explainer import Explainer
from crawlkit.engine.figures import HostFigures
from crawlkit.engine.lately import Lately
from crawlkit.errors import CrawlError, StateError
from crawlkit.shell import as_argument
from crawlkit.state.checkpoint import Summary, read_summary
from crawlkit.state.directory import is_held
from crawlkit.state.looking import look_at_crawl
from crawlkit.surfaces.control.client import NoAnswer, ask
from crawlkit.surfaces.control.explaining import ask_to_explain
from crawlkit.surfaces.control.messages import Do, Request
from crawlkit.surfaces.live_page.at_rest import read_at_rest
from crawlkit.surfaces.status import Status, live_status, status_of

MOST_HOSTS = 50
MOST_SEARCHED = 100_000
"""Records of a crawl at rest that are searched for what leads to a URL: half a second."""

HOSTS_SHARE = 20
"""Hosts are looked at anew when twenty times as long has passed as a look takes: of 100,000 hosts, every twelve seconds."""

_Key = tuple[str, int, int]


class Shown(msgspec.Struct, frozen=True):
    """What the page shows at a moment; `problem` is why there is no more of it."""

    at_s: float
    status: Status
    lately: Lately | None
    problem: str | None = None


class Source:
    """What is shown of the crawl in a directory, whether it runs or not, stops, or is resumed meanwhile."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._shown: Shown | None = None
        self._hosts: list[HostFigures] = []
        self._hosts_due_s = 0.0
        self._rest_key: _Key | None = None
        self._rest: tuple[Lately, list[HostFigures]] | None = None

    def look(self) -> Shown:
        """Return what is to be seen now; StateError and its kinds if that is nothing."""
        self._shown = self._look()
        return self._shown

    def _look(self) -> Shown:
        if self._runs():
            try:
                return self._running()
            except NoAnswer as silent:
                if self._runs():
                    return self._last_checkpoint(running=True, problem=str(silent))
        return self._at_rest()

    def _running(self) -> Shown:
        began_s = time.monotonic()
        wanted = MOST_HOSTS if began_s >= self._hosts_due_s else 0
        status, lately = self._watch(wanted)
        if wanted:
            ended_s = time.monotonic()
            self._hosts, self._hosts_due_s = status.waiting, ended_s + HOSTS_SHARE * (ended_s - began_s)
        return Shown(time.time(), msgspec.structs.replace(status, waiting=self._hosts), lately)

    def _last_checkpoint(self, *, running: bool, problem: str | None) -> Shown:
        return Shown(time.time(), status_of(self._summary(), self._directory, running=running), None, problem)

    def _at_rest(self) -> Shown:
        summary = self._summary()
        key = (summary.crawl_id, summary.batch, len(summary.runs))
        if key != self._rest_key:
            try:
                self._rest, self._rest_key = read_at_rest(self._directory, MOST_HOSTS, time.time()), key
            except CrawlError as error:
                return self._last_checkpoint(running=False, problem=str(error))
        assert self._rest is not None
        lately, hosts = self._rest
        status = msgspec.structs.replace(status_of(summary, self._directory, running=False), waiting=hosts)
        return Shown(time.time(), status, lately)

    def _runs(self) -> bool:
        return is_held(self._directory)

    def _watch(self, hosts: int) -> tuple[Status, Lately | None]:
        """Ask the crawl that runs; NoAnswer if it says nothing."""
        answer = ask(self._directory, Request(do=Do.WATCH, hosts=hosts))
        if answer.live is None:
            raise NoAnswer(f"the crawl in {self._directory} does not know what the live page asks: it is of another version")
        return live_status(answer.live, self._directory), answer.lately

    def _summary(self) -> Summary:
        return read_summary(self._directory)

    def end(self) -> Shown:
        """Return what is to be seen when the server ends: of a crawl in this process, how its run ended."""
        lately = self._shown.lately if self._shown else None
        shown = self._last_checkpoint(running=False, problem=None)
        return msgspec.structs.replace(shown, lately=lately, status=msgspec.structs.replace(shown.status, waiting=self._hosts))

    def explain(self, text: str) -> Explanation:
        """Return the verdict on a URL; StateError and its kinds."""
        if is_held(self._directory):
            said = ask_to_explain(self._directory, text)
            if said is None:
                raise StateError("the crawl that runs is of another version, which does not explain URLs")
            return said
        with look_at_crawl(self._directory) as looking:
            return Explainer(looking).explain(text, time.time(), MOST_SEARCHED)

    def order(self, do: Do) -> str:
        """Have an order carried out by the crawl that runs, and return what it says; StateError and its kinds."""
        if not is_held(self._directory):
            raise StateError(f"no crawl runs; go on with it: crawlkit resume {as_argument(self._directory)}")
        return ask(self._directory, Request(do=do)).done or ""
