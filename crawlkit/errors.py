"""Every error crawlkit raises on purpose, each with the exit status of the contract.

    CrawlError
    |- UsageError          2    wrong arguments
    |  `- ConfigError      2    a setting that is unknown or cannot be
    |- StateError          3    the crawl directory is missing, foreign or not usable
    |  |- StateExists      3    it already holds a crawl
    |  |- StateLocked      3    another process has it open
    |  |- StateDamaged     3    what is on disk contradicts itself
    |  `- StateVersion     3    written by another version
    |- StorageError        4    disk full, I/O error: nothing more is written, resumable
    |  |- TooManyOpenFiles 4    the process may not open another file or connection
    |  `- RendererLost     4    the browser that renders pages does not start any more
    |- CrawlCancelled    130    stopped by a signal or by the caller, resumable
    `- PageFailed          1    one URL's failure, as a value
       `- PageTimedOut     1    it was the timeout (a TimeoutError too)

A text says what happened, where, and what to do. What a remote host does is never one of these: it is a value
(`crawlkit.model.FetchFailure`). Any other exception is a bug in crawlkit (status 70).
"""

from enum import IntEnum
from typing import ClassVar


class ExitStatus(IntEnum):
    """What the process tells its caller (the contract's table)."""

    DONE = 0
    PAGES_FAILED = 1
    USAGE = 2
    STATE = 3
    STORAGE = 4
    BUG = 70
    SIGINT = 130
    SIGTERM = 143


class CrawlError(Exception):
    """Base of all errors meant for people."""

    exit_status: ClassVar[ExitStatus] = ExitStatus.PAGES_FAILED


class UsageError(CrawlError):
    """The call itself is wrong: no seed, a seed that is no URL."""

    exit_status = ExitStatus.USAGE


class ConfigError(UsageError):
    """A setting is unknown, or its value cannot be."""


class StateError(CrawlError):
    """The crawl directory is missing, is no crawl, or cannot be used."""

    exit_status = ExitStatus.STATE


class StateExists(StateError):
    """The directory already holds a crawl."""


class StateLocked(StateError):
    """Another process has the crawl open."""


class StateDamaged(StateError):
    """What is on disk contradicts itself; never read as a new crawl."""


class StateVersion(StateError):
    """The directory was written by a version this one does not read."""


class StorageError(CrawlError):
    """Writing failed. Nothing more is written; a resume goes on from the last checkpoint."""

    exit_status = ExitStatus.STORAGE


class TooManyOpenFiles(StorageError):
    """The process may not open another file or connection: neither a page's failure nor a remote's doing."""


class RendererLost(StorageError):
    """The browser that renders pages ended and does not start any more: no page's failure, resumable."""


class CrawlCancelled(CrawlError):
    """The crawl was stopped before it ended; it can be resumed."""

    exit_status = ExitStatus.SIGINT


class PageFailed(CrawlError):
    """One URL ended as a failure: handed out as a value, not raised. `reason` is a code of `crawlkit.model.Reason`."""

    def __init__(self, url: str, reason: str, status: int | None) -> None:
        super().__init__(f"{url}: {reason}")
        self.url = url
        self.reason = reason
        self.status = status


class PageTimedOut(PageFailed, TimeoutError):
    """The request for a URL took longer than the timeout."""


def error_of(status: int | None, text: str) -> CrawlError:
    """Return the error that another process ended with, or answered: the base class of its exit status."""
    match status:
        case ExitStatus.USAGE:
            return UsageError(text)
        case ExitStatus.STORAGE:
            return StorageError(text)
        case ExitStatus.STATE:
            return StateError(text)
        case _:
            return CrawlError(text)
