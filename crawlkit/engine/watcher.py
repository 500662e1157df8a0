"""Who watches a run, so as to count or to trace it: is told of the values that there are anyway."""

from enum import StrEnum
from http import HTTPStatus
from typing import Protocol, assert_never

import msgspec

from crawlkit.model import Facts, Fetched, FetchFailure, Found, Job, PageJob, Reason, Record, Response, RobotsJob, SitemapJob


class Watcher(Protocol):
    """Is told on the loop, between two turns: what it does there must be quick, and must not raise."""

    def fetched(self, fetched: Fetched) -> None:
        """Take note that a job has ended, of whatever kind, also one that will be tried again."""

    def settled(self, record: Record) -> None:
        """Take note that a URL has its record."""

    def written(self, at_s: float, took_s: float) -> None:
        """Take note that a checkpoint is on disk, by the run's clock, and for how long it was being written."""


class JobName(StrEnum):
    """What a request is for."""

    PAGE = "page"
    ROBOTS = "robots"
    SITEMAP = "sitemap"


class Received(msgspec.Struct, frozen=True):
    """What came of a request: a status and the decoded bytes of the body, or the reason why there was no answer."""

    status: int | None = None
    body_bytes: int = 0
    failure: Reason | None = None


def job_name(job: Job) -> JobName:
    """Return what a request is for."""
    match job:
        case PageJob():
            return JobName.PAGE
        case RobotsJob():
            return JobName.ROBOTS
        case SitemapJob():
            return JobName.SITEMAP
        case _:
            assert_never(job)


def received(fetched: Fetched) -> Received | None:
    """Return what came over the wire; None where nothing was asked, but an address found."""
    match fetched.answer:
        case Found():
            return None
        case FetchFailure(reason=reason):
            return Received(failure=reason)
        case Facts() if fetched.not_modified:  # the facts are those of an earlier crawl
            return Received(HTTPStatus.NOT_MODIFIED)
        case Facts(status=status, body_bytes=body_bytes):
            return Received(status, body_bytes)
        case Response(status=status, body=body):
            return Received(status, len(body))
        case _:
            assert_never(fetched.answer)
