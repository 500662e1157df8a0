"""The values that cross boundaries: frozen, without behaviour of their own.

They are structs of msgspec, which are made in a tenth of the time that frozen dataclasses take.

A URL is carried as a `str` in normal form (`policy.urls`). Closed sets are enums; whoever branches on one matches it
exhaustively. Each look-up of a member takes 0.1 us in Python 3.11: where one is asked for with each URL or link, the module
looks it up once and gives it a name (`_PAGE = Kind.PAGE`).
"""

from collections.abc import Mapping
from enum import IntEnum, StrEnum
from typing import Any

import msgspec

from crawlkit.exchange import Exchange
from crawlkit.rendering import Contact, Rendering
from crawlkit.sitemap import Sitemap


class Kind(StrEnum):
    """How an admitted URL ended."""

    PAGE = "page"  # an answer below 400 that is not a redirect
    REDIRECT = "redirect"
    FAILURE = "failure"
    EXCLUDED = "excluded"  # robots.txt


class ScopeMode(StrEnum):
    """Which URLs belong to the crawl, judged from its seeds."""

    HOST = "host"
    DOMAIN = "domain"
    PREFIX = "prefix"
    ANY = "any"


class GroupBy(StrEnum):
    """What gaps and concurrency are kept for: each host name, and besides each address that names lead to."""

    HOST = "host"
    ADDRESS = "address"


class Reason(StrEnum):
    """Why a URL ended as failure or excluded. Stable: users filter by these."""

    DNS = "net.dns"  # the look-up failed, and may succeed later
    NAME_NOT_FOUND = "net.name_not_found"
    CONNECT = "net.connect"
    TLS = "net.tls"
    RESET = "net.reset"
    TIMEOUT = "net.timeout"
    PROTOCOL = "net.protocol"
    ADDRESS = "net.private_address"
    PROXY = "net.proxy"
    CLIENT_ERROR = "http.client_error"
    TOO_MANY_REQUESTS = "http.too_many_requests"
    SERVER_ERROR = "http.server_error"
    OTHER_STATUS = "http.other_status"
    TOO_MANY_REDIRECTS = "redirect.too_many"
    NO_LOCATION = "redirect.no_location"
    HOST_UNREACHABLE = "host.unreachable"
    HOST_GIVEN_UP = "host.given_up"
    HOST_DROPPED = "host.dropped"  # by people
    ROBOTS_DISALLOW = "robots.disallow"
    ROBOTS_UNREACHABLE = "robots.unreachable"
    ROBOTS_DELAY = "robots.delay_too_long"
    HOOK_FAILED = "hook.failed"  # a plugin raised, or returned what it may not


class Source(IntEnum):
    """Ways by which a URL is known, as bits: of each URL the set of all that hold is kept."""

    LINK = 1  # a link, a canonical or a redirect of an admitted URL, within the depth limit
    SEED = 2
    SITEMAP = 4


class Refusal(StrEnum):
    """Why a URL that was met was not admitted. It has no record; it is counted by this code."""

    SCOPE = "scope.outside"
    INCLUDE = "scope.include_none"
    EXCLUDE = "scope.exclude"
    DEPTH = "depth.limit"
    NOFOLLOW = "nofollow"
    HOOK = "hook.refused"  # a plugin does not accept it
    TRAP_LENGTH = "trap.length"
    TRAP_PATH_REPEAT = "trap.path_repeat"
    TRAP_HOST_IN_PATH = "trap.host_in_path"
    TRAP_PARAM_REPEAT = "trap.param_repeat"
    TRAP_PARAM_COUNT = "trap.param_count"
    TRAP_ESCAPE = "trap.escape"
    TRAP_TEMPLATE = "trap.template"  # this one depends on order
    TRAP_SITEMAP = "trap.sitemap"  # named by sitemaps nested too deep; or, which depends on order, by one that names too many


class OrderReason(StrEnum):
    """What made a report depend on order or time: the closed list of the contract."""

    LIMIT_PAGES = "limit.pages"
    LIMIT_HOST = "limit.host"
    LIMIT_TIME = "limit.time"
    HOST_GIVEN_UP = "host.given_up"
    TRANSIENT = "failure.transient"
    ROBOTS_CHANGED = "robots.changed"
    RENDER = "render"
    TRAP = "trap.order"
    STEERING = "steering"
    SETTINGS_CHANGED = "settings.changed"
    HOOK = "hook"
    DEGRADED = "degraded"


MAX_HOPS = 10
"""Redirects that may lead to a URL; one that is reached by ten and redirects on is a failure (RFC 9110 section 15.4)."""


class Verdict(msgspec.Struct, frozen=True):
    """A decision, with the rule that made it and its code; `refusal` is None exactly when accepted."""

    accepted: bool
    rule: str
    refusal: Refusal | None = None


class Response(msgspec.Struct, frozen=True):
    """An HTTP answer, read to its end or to a cap.

    `headers` are as received, names lower-cased, repeated ones kept in order. `body` is decoded (Content-Encoding undone).
    `truncated` says that the body was cut at a cap, or ended early, or its encoding broke off; what decoded is kept.
    """

    status: int
    headers: tuple[tuple[bytes, bytes], ...]
    body: bytes
    truncated: bool = False

    def header_values(self, name: bytes) -> list[bytes]:
        """Return all values of the header `name` (lower case), in order."""
        return [value for key, value in self.headers if key == name]


class FetchFailure(msgspec.Struct, frozen=True):
    """No answer: the closed reason, and the library's own words (shown with timing only)."""

    reason: Reason
    message: str


FieldValue = str | int | float | bool | None | tuple[Any, ...] | dict[str, Any]
"""A field of a page: `extract` picks one text, None where nothing matches, or a list; a plugin may add any JSON value."""


class Content(msgspec.Struct, frozen=True, array_like=True):
    """What is kept of a page beside its record, where the settings ask for it.

    `text` is its main text on one line; `anchors` are text and rel of the first anchor for each of the record's links.
    """

    text: str | None = None
    anchors: tuple[tuple[str, str], ...] = ()


class Facts(msgspec.Struct, frozen=True):
    """What one answer says, body dropped. All URLs in normal form.

    `links` holds each http(s) link once, in the contract's order; `nofollow` the indices into `links` of those that do not
    admit. `canonical` is the target of rel=canonical, `admits_canonical` whether it may admit. `location` is the target of a
    redirect status, None if there is none or it is unusable. `retry_after` is the raw header. `directives` are the robots
    directives in force (lower case, sorted). `sketch` are hashes of the visible text's shingles (`policy.novelty`), empty
    where the job did not ask for it, None for what is not HTML. `headings` are the numbers of h1 to h6, none for what is not
    HTML; `alternates` pairs of language and URL; `words` and `text_digest` those of the main text (`policy.page_text`).
    `language` is a tag as RFC 5646 spells it; `etag` and `last_modified` are as sent; `fields` are what `extract` asks for;
    `simhash` are 64 bits of the main text (`policy.simhash`), None where nobody asked. `rendering` is what came of rendering
    the page, None where that was not asked for.
    """

    status: int
    content_type: str | None = None
    charset: str | None = None
    body_bytes: int = 0
    truncated: bool = False
    title: str | None = None
    digest: str | None = None
    links: tuple[str, ...] = ()
    nofollow: tuple[int, ...] = ()
    canonical: str | None = None
    admits_canonical: bool = True
    location: str | None = None
    retry_after: str | None = None
    directives: tuple[str, ...] = ()
    sketch: tuple[int, ...] | None = None
    description: str | None = None
    language: str | None = None
    headings: tuple[int, ...] = ()
    alternates: tuple[tuple[str, str], ...] = ()
    etag: str | None = None
    last_modified: str | None = None
    words: int | None = None
    text_digest: str | None = None
    fields: Mapping[str, FieldValue] = msgspec.field(default_factory=dict)
    simhash: int | None = None
    content: Content | None = None
    rendering: Rendering | None = None


class PageJob(msgspec.Struct, frozen=True):
    """One claimed URL. `attempts` counts the fetches that failed before, over all runs; `via` is where it was first met.

    `sketched` says that a sketch of the page's text is wanted, `names_urls` that it may be a sitemap, and is to be read as one
    too. `address` is where the host is asked, None if that does not matter or has to be found first.
    """

    url: str
    host: str
    attempts: int = 0
    via: str | None = None
    sketched: bool = True
    address: str | None = None
    names_urls: bool = False


class RobotsJob(msgspec.Struct, frozen=True):
    """A fetch of one origin's robots.txt (`origin` like `https://example.com:8443`).

    `url` is the robots.txt itself or, after `hops` redirects, where it was redirected to; `host` is the origin's.
    """

    origin: str
    url: str
    host: str
    hops: int = 0
    attempts: int = 0
    address: str | None = None


class SitemapJob(msgspec.Struct, frozen=True):
    """A fetch of a sitemap."""

    url: str
    host: str
    attempts: int = 0
    address: str | None = None


Job = PageJob | RobotsJob | SitemapJob


class Found(msgspec.Struct, frozen=True):
    """The address that a job's host has, where the job did not name it: nothing was asked there yet."""

    address: str


class Fetched(msgspec.Struct, frozen=True):
    """What a worker hands back: `answer` is Response for robots.txt, Facts for all else; FetchFailure or Found for any.

    `started_s` and `ended_s` are readings of the run's clock around the request. `exchange` is what went over the wire, where
    that is archived and an answer came. `sitemap` is what a 2xx answer says, where it was asked as one. `not_modified`
    says that the server did not send a page again (304), and `answer` is what an earlier crawl knows of it. `contacts` are
    the hosts that were asked for what the page needed to be rendered.
    """

    job: Job
    started_s: float
    ended_s: float
    answer: Facts | Response | FetchFailure | Found
    exchange: Exchange | None = None
    sitemap: Sitemap | None = None
    not_modified: bool = False
    contacts: tuple[Contact, ...] = ()


class Health(msgspec.Struct, frozen=True, array_like=True):
    """How a host is doing (`policy.health` changes it).

    `strikes` are consecutive failures to reach it, `error_share` the share of server errors among its latest answers, `opens`
    how often its breaker opened since the last good answer, `slowdown` the factor by which its gap is stretched.
    """

    strikes: int = 0
    error_share: float = 0.0
    opens: int = 0
    slowdown: float = 1.0
    given_up: bool = False


class Record(msgspec.Struct, frozen=True, kw_only=True, array_like=True, omit_defaults=True):
    """How one admitted URL ended: one line of the report, and a little more.

    Stored as an array: fields are only ever appended. Everything but `fetched_at`, `elapsed_ms`, `attempts`, `via`,
    `message` and `held` (some of its links had to wait, `engine.growth`) is a function of the site and the settings.
    `not_modified` too depends on when it was asked. `duplicate_of` and `near_duplicate_of` are never stored: they are looked
    up for a report.
    """

    url: str
    kind: Kind
    depth: int
    hops: int = 0
    status: int | None = None
    content_type: str | None = None
    charset: str | None = None
    body_bytes: int | None = None
    truncated: bool | None = None
    title: str | None = None
    digest: str | None = None
    links: tuple[str, ...] = ()
    nofollow: tuple[int, ...] = ()
    redirect_to: str | None = None
    canonical: str | None = None
    admits_canonical: bool = True
    directives: tuple[str, ...] = ()
    reason: Reason | None = None
    message: str | None = None
    fetched_at: float | None = None
    elapsed_ms: int | None = None
    attempts: int = 0
    via: str | None = None
    held: bool = False
    description: str | None = None
    language: str | None = None
    headings: tuple[int, ...] = ()
    alternates: tuple[tuple[str, str], ...] = ()
    etag: str | None = None
    last_modified: str | None = None
    words: int | None = None
    text_digest: str | None = None
    fields: dict[str, FieldValue] = {}
    sources: int = 0
    lastmod: str | None = None
    priority: float | None = None
    simhash: int | None = None
    duplicate_of: str | None = None
    near_duplicate_of: str | None = None
    not_modified: bool = False
    rendering: Rendering | None = None
