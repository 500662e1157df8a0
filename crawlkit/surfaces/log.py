"""What a run says on standard error while it goes on and when it ends: lines for people, or one JSON object a line."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from enum import IntEnum, StrEnum
from pathlib import Path
from typing import Any, assert_never

import msgspec

from crawlkit.clock import Clock
from crawlkit.engine.events import (
    Claimed,
    Event,
    HostGivenUp,
    HostPaused,
    HostRecovered,
    Ordered,
    Retrying,
    RobotsRead,
    RunBegan,
    Settled,
    SitemapRead,
)
from crawlkit.engine.session import Outcome
from crawlkit.shell import as_argument
from crawlkit.surfaces.speech import say
from crawlkit.surfaces.summary import reasons_of_barren, summary_lines


class LogFormat(StrEnum):
    """How lines are written."""

    TEXT = "text"
    JSON = "json"


class Verbosity(IntEnum):
    """How much is said."""

    QUIET = 0  # what went wrong, and how to resume
    NORMAL = 1  # besides, how a run begins and ends, hosts that fail, and what people change
    VERBOSE = 2  # besides, each URL that settles or is to be tried again, and each robots.txt and sitemap
    ALL = 3  # besides, each fetch that starts


class Log:
    """Says what happens in a run of the crawl in `directory`, as far as `verbosity` asks for it."""

    def __init__(self, directory: Path, format_: LogFormat, verbosity: Verbosity, clock: Clock) -> None:
        self._directory = directory
        self.format = format_
        self.verbosity = verbosity
        self._clock = clock

    @property
    def resume_command(self) -> str:
        """The command that goes on with the crawl."""
        return f"crawlkit resume {as_argument(self._directory)}"

    def on_event(self, event: Event, at_s: float) -> None:
        """Say that something happened, at a time in seconds since the epoch."""
        if _level(event) <= self.verbosity:
            self._line(at_s, msgspec.to_builtins(event))

    def warn(self, text: str) -> None:
        """Say what there is to be warned of, whatever the verbosity."""
        if self.format is LogFormat.TEXT:
            say(f"crawlkit: {text}")
        else:
            self._line(self._clock.now(), {"event": "warning", "message": text.removeprefix("warning: ")})

    def serve(self, what: str, url: str) -> None:
        """Say where something of the run is served while it goes on, unless quiet."""
        if self.verbosity > Verbosity.QUIET:
            self._serve(what, url)

    def show_page(self, url: str) -> None:
        """Say where the live page is, also when quiet: nobody can guess its token."""
        self._serve("live page", url)

    def _serve(self, what: str, url: str) -> None:
        if self.format is LogFormat.TEXT:
            say(f"crawlkit: {what} at {url}")
        else:
            self._line(self._clock.now(), {"event": "serving", "what": what, "url": url})

    def fail(self, text: str, *, resumable: bool) -> None:
        """Say that storage failed, which ended the run."""
        if self.format is LogFormat.TEXT:
            say(f"crawlkit: {text}", *([f"resume with: {self.resume_command}"] if resumable else []))
            return
        resume = self.resume_command if resumable else None
        self._line(self._clock.now(), {"event": "storage.failed", "message": text, "resume": resume})

    def left_line(self) -> str:
        """Return the line that a run which is left at once ends with."""
        if self.format is LogFormat.TEXT:
            return f"resume with: {self.resume_command}"
        return self._as_line(self._clock.now(), {"event": "run.left", "resume": self.resume_command})

    def progress(self, figures: Mapping[str, float]) -> None:
        """Say how far the crawl is, as JSON."""
        told = {name.replace(" ", "_"): round(value, 3) for name, value in figures.items()}
        self._line(self._clock.now(), {"event": "progress", **told})

    def end(self, outcome: Outcome) -> None:
        """Say how the run ended and, if there is anything left to do, how to resume; why, where there is no page."""
        is_finished = outcome.counters.finished
        resume = None if is_finished else self.resume_command
        why = reasons_of_barren(outcome)
        if self.format is LogFormat.TEXT:
            if self.verbosity > Verbosity.QUIET:
                say(*summary_lines(outcome, details=self.verbosity > Verbosity.NORMAL))
            say(*(f"crawlkit: {line}" for line in why), *([] if resume is None else [f"resume with: {resume}"]))
            return
        if self.verbosity > Verbosity.QUIET or resume is not None or why:
            self._line(self._clock.now(), {**_ended(outcome), "resume": resume, "why": why})

    def _line(self, at_s: float, fields: Mapping[str, Any]) -> None:
        say(self._as_line(at_s, fields))

    def _as_line(self, at_s: float, fields: Mapping[str, Any]) -> str:
        time = datetime.fromtimestamp(at_s, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        if self.format is LogFormat.JSON:
            return msgspec.json.encode({"time": time, **fields}).decode()
        told = [f"{name}={_as_text(value)}" for name, value in fields.items() if name != "event" and value is not None]
        return " ".join((time, fields["event"], *told))


def _as_text(value: object) -> str:
    """Return a value as one word, in quotes as JSON has them where it is none; so what a site sends cannot forge a line."""
    text = str(value)
    is_word = text.isascii() and text.isprintable() and not any(char in text for char in ' "=\\')
    return text if is_word and text else json.dumps(text).replace("\x7f", "\\u007f")


def _level(event: Event) -> Verbosity:
    match event:
        case RunBegan() | HostPaused() | HostRecovered() | HostGivenUp() | Ordered():
            return Verbosity.NORMAL
        case Settled() | Retrying() | RobotsRead() | SitemapRead():
            return Verbosity.VERBOSE
        case Claimed():
            return Verbosity.ALL
        case _:
            assert_never(event)


def _ended(outcome: Outcome) -> dict[str, Any]:
    """Return the fields that tell how a run ended; counts are of all runs."""
    counters = outcome.counters
    return {
        "event": "run.ended",
        "directory": str(outcome.directory),
        "how": outcome.how.value,
        "status": int(outcome.status),
        "finished": counters.finished,
        "pages": counters.pages,
        "redirects": counters.redirects,
        "failures": counters.failures,
        "excluded": counters.excluded,
        "queued": counters.queued,
        "elapsed_s": round(counters.elapsed_s, 3),
        "reasons": sorted(counters.reasons),
    }
