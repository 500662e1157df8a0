"""A worker: one job in, one frozen result out. It fetches and reads; it decides nothing and changes nothing."""

import asyncio
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING, assert_never

import msgspec

from crawlkit.clock import Clock
from crawlkit.config import Config
from crawlkit.config_extract import parse_extract
from crawlkit.config_items import parse_header
from crawlkit.engine.earlier import Earlier, Known
from crawlkit.model import Facts, Fetched, FetchFailure, Found, Job, PageJob, Reason, Response, RobotsJob, SitemapJob
from crawlkit.net.capture import Capture, Veil
from crawlkit.net.fetch import ExtraHeaders, Fetcher
from crawlkit.net.request import Origin
from crawlkit.net.resolver import GuardedResolver
from crawlkit.net.steady import SteadyResolver
from crawlkit.net.transport import Transport
from crawlkit.policy.content_type import read_content_type
from crawlkit.policy.facts import read_answer
from crawlkit.policy.wanted import Wanted
from crawlkit.rendering import Rendered
from crawlkit.sitemap import MOST_BYTES, Sitemap

if TYPE_CHECKING:
    from crawlkit.engine.plugging import Plugged
    from crawlkit.engine.rendering.pages import PageRenderer, Shown

ROBOTS_BODY_BYTES = 1024 * 1024
"""Cap on a robots.txt, above the 500 KiB that are parsed at least (RFC 9309 section 2.5), whatever pages are capped at."""

INLINE_BODY_BYTES = 24 * 1024
"""Bodies up to this are read on the loop, which the worst that was found holds for 0.3 s; larger ones on a thread (lexbor
drops the GIL). Twice as large, one that is made for it would take four times as long."""

_MOST_READ_AT_ONCE = 2
"""Of larger bodies: each may take its own size in memory several times over."""


INLINE_SITEMAP_BYTES = 32 * 1024
"""Sitemaps up to this, of some hundred URLs, are read on the loop. A thread shares the interpreter, but in turns of 5 ms."""


class Worker:
    """Carries out jobs through one transport."""

    def __init__(  # noqa: PLR0913  (all that a fetch stands on)
        self,
        transport: Transport,
        config: Config,
        clock: Clock,
        extra: ExtraHeaders,
        resolver: GuardedResolver | None = None,
        *,
        earlier: Earlier | None = None,
        plugged: "Plugged | None" = None,
        renderer: "PageRenderer | None" = None,
    ) -> None:
        self._clock = clock
        self._earlier = earlier
        self._plugged = plugged
        self._renderer = renderer
        rules = tuple(map(parse_extract, config.extract))
        self._wanted = Wanted(
            config.product_token().lower(),
            config.max_links,
            rules,
            simhash=config.near_duplicates,
            text=config.text,
            anchors=config.anchors,
        )
        self._reading = asyncio.Semaphore(_MOST_READ_AT_ONCE)
        self._veil = _veil(config) if config.warc else None
        self._pages = _fetcher(transport, config, config.max_body, extra)
        self._robots = _fetcher(transport, config, ROBOTS_BODY_BYTES, extra)
        self._resolver = resolver if isinstance(resolver, SteadyResolver) else None
        self._sitemaps = _fetcher(transport, config, MOST_BYTES, extra)

    async def carry_out(self, job: Job) -> Fetched:
        """Return what came of `job`; never raises for what a remote did."""
        fetcher = self._fetcher_for(job)
        started_s = self._clock.now()
        if self._resolver is not None:
            found = await fetcher.find(job.url, self._resolver)
            if not isinstance(found, Found) or found.address != job.address:
                return Fetched(job, started_s, self._clock.now(), found)
        added = () if self._plugged is None or not isinstance(job, PageJob) else self._plugged.headers_for(job.url)
        if isinstance(added, FetchFailure):
            return Fetched(job, started_s, self._clock.now(), added)
        capture = None if self._veil is None else Capture(self._veil.also_over(added))
        known = self._known(job)
        answer = await fetcher.fetch(job.url, capture, added if known is None else (*added, *known.validators))
        ended_s = self._clock.now()
        if self._resolver is not None and isinstance(answer, FetchFailure) and answer.reason is not Reason.PROTOCOL:
            self._resolver.note_failure(Origin.of(job.url).host)
        exchange = None if capture is None else capture.exchange(answer, fetcher.max_body_bytes)
        if isinstance(job, RobotsJob) or not isinstance(answer, Response):
            return Fetched(job, started_s, ended_s, answer, exchange)
        if known is not None and answer.status == HTTPStatus.NOT_MODIFIED:
            return Fetched(job, started_s, ended_s, known.facts, exchange, not_modified=True)
        sitemap = await self._read_sitemap(job, answer) if isinstance(job, SitemapJob) or job.names_urls else None
        if isinstance(job, SitemapJob):
            answer = msgspec.structs.replace(answer, body=b"")  # what else it says is in the head
        if not isinstance(job, PageJob):
            return Fetched(job, started_s, ended_s, await self._read(job.url, answer, sketched=False), exchange, sitemap)
        shown = None if self._renderer is None else await self._renderer.render(job.url, answer, started_s, ended_s)
        read = await self._read_page(job, answer, shown)
        contacts = () if shown is None else shown.contacts
        return Fetched(job, started_s, ended_s, read, exchange, sitemap, contacts=contacts)

    async def _read_page(self, job: PageJob, answer: Response, shown: "Shown | None") -> Facts | FetchFailure:
        rendered = None if shown is None else shown.rendered
        facts = await self._read(job.url, answer, sketched=job.sketched, rendered=rendered)
        if shown is not None:
            facts = msgspec.structs.replace(facts, rendering=shown.outcome)
        return facts if self._plugged is None else self._plugged.read(job.url, answer, facts, rendered)

    def _known(self, job: Job) -> Known | None:
        """Return what an earlier crawl knows of a page; of one that may be a sitemap not, since that has to be read."""
        if self._earlier is None or not isinstance(job, PageJob) or job.names_urls:
            return None
        return self._earlier.known(job.url)

    def _fetcher_for(self, job: Job) -> Fetcher:
        match job:
            case PageJob():
                return self._pages
            case RobotsJob():
                return self._robots
            case SitemapJob():
                return self._sitemaps
            case _:
                assert_never(job)

    async def _read_sitemap(self, job: PageJob | SitemapJob, response: Response) -> Sitemap | None:
        """Return what an answer says as a sitemap."""
        if not 200 <= response.status < 300:
            return None
        from crawlkit.policy.sitemaps import read_sitemap  # noqa: PLC0415  (takes 4 ms of a start, and most crawls read none)

        declared = read_content_type(response.header_values(b"content-type"))
        read = partial(read_sitemap, job.url, response.body, declared.charset, whole=not response.truncated)
        if len(response.body) <= INLINE_SITEMAP_BYTES:
            return read()
        async with self._reading:
            return await asyncio.to_thread(read)

    async def _read(self, url: str, response: Response, *, sketched: bool, rendered: Rendered | None = None) -> Facts:
        if len(response.body if rendered is None else rendered.markup) <= INLINE_BODY_BYTES:
            return read_answer(url, response, self._wanted, sketched=sketched, rendered=rendered)
        async with self._reading:
            return await asyncio.to_thread(read_answer, url, response, self._wanted, sketched=sketched, rendered=rendered)


def _veil(config: Config) -> Veil:
    headers = [parse_header(item) for item in config.header]
    return Veil(header.name for header in headers if header.value is None)


def _fetcher(transport: Transport, config: Config, max_body_bytes: int, extra: ExtraHeaders) -> Fetcher:
    return Fetcher(
        transport,
        timeout_s=config.timeout,
        max_body_bytes=max_body_bytes,
        user_agent=config.sent_user_agent(),
        from_address=config.from_address(),
        extra=extra,
    )
