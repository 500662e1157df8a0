"""Small crawls, one for each code that an explanation may have, and the golden answer for a URL of each."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from crawlkit.engine.explain.answer import Explanation, Fate
from crawlkit.engine.explain.explainer import MOST_SEARCHED, Explainer
from crawlkit.engine.steering import Steering
from crawlkit.model import Facts, FetchFailure, Kind, Reason, Record, Refusal
from crawlkit.policy.url_steps import NoUrl
from crawlkit.sitemap import Sitemap, SitemapEntry, SitemapForm
from crawlkit.state.looking import look_at_crawl
from tests.engine.driver import SEED, A, Answer, Driver, answer, file, moved, page

X = f"{A}/x"
MAP = f"{A}/sitemap.xml"
AGAIN = "to try it again: crawlkit resume DIR --retry-failed="
AS_SEED = "to crawl it: start another crawl with it as a seed"
NOT_ROBOTS = "to fetch it anyway, start another crawl with --no-robots"


class Explained(Driver):
    """A crawl in whose web there may be a sitemap, of two URLs."""

    def sitemap_of(self, url: str) -> Sitemap | None:
        return Sitemap(SitemapForm.URLSET, (SitemapEntry(X), SitemapEntry(f"{A}/y"))) if url == MAP else None


def drained(driver: Driver) -> None:
    driver.drain()


@dataclass(frozen=True, kw_only=True)
class Case:
    """A crawl, what is done to it, and what is told of `url`. In `remedy` DIR stands for the directory."""

    summary: str
    remedy: str | None
    standing: str = "settled"
    url: str = X
    web: Mapping[str, Answer | list[Answer]] = field(default_factory=lambda: {SEED: page(X), X: page()})
    settings: Mapping[str, Any] = field(default_factory=dict)
    act: Callable[[Driver], object] = drained
    most_searched: int = MOST_SEARCHED


def _dropped(driver: Driver) -> None:
    Steering.of(driver.coordinator).drop("a.test", driver.clock.now())
    driver.drain()


def explain(driver: Driver, url: str, most_searched: int = MOST_SEARCHED) -> Explanation:
    """Explain a URL of a crawl that is running."""
    return Explainer(driver.state.look(), driver.coordinator.admission.scope).explain(url, driver.clock.now(), most_searched)


def explain_stopped(driver: Driver, url: str, most_searched: int = MOST_SEARCHED) -> Explanation:
    """Explain a URL of a crawl that is opened to be read."""
    driver.state.close()
    with look_at_crawl(driver.directory) as looking:
        return Explainer(looking).explain(url, driver.clock.now(), most_searched)


# What is answered, or refused -----------------------------------------------------------------------------------------


def _answered(given: Answer, summary: str, remedy: str) -> Case:
    return Case(summary=f"failed: {summary}", remedy=remedy, web={SEED: page(X), X: given})


def _no_answer(reason: Reason, summary: str, remedy: str | None = None) -> Case:
    return _answered(FetchFailure(reason, "words"), f"{summary} (words)", remedy or f"{AGAIN}{reason}")


def _by_robots(robots: Answer, summary: str, remedy: str) -> Case:
    return Case(summary=summary, remedy=remedy, url=SEED, web={f"{A}/robots.txt": robots})


def _kept_out(url: str, summary: str, remedy: str = AS_SEED, **settings: Any) -> Case:
    return Case(
        summary=f"not admitted: {summary}", remedy=remedy, standing="refused", url=url, web={SEED: page(url)}, settings=settings
    )


def _chain(length: int) -> dict[str, Answer]:
    return {SEED: page(f"{A}/r0"), **{f"{A}/r{n}": moved(f"{A}/r{n + 1}") for n in range(length)}}


# What is done ---------------------------------------------------------------------------------------------------------


def _claimed(driver: Driver) -> None:
    driver.settle(driver.next_job())
    driver.settle(driver.next_job())
    assert driver.next_job().url == X


def _failed_once(driver: Driver) -> None:
    for _ in range(3):
        driver.settle(driver.next_job())
    driver.checkpoint()


def _first_page(driver: Driver) -> None:
    driver.settle(driver.next_job())
    driver.checkpoint()


def _tampered(driver: Driver) -> None:
    driver.drain()
    driver.state.pages.put(Record(url=f"{A}/y", kind=Kind.PAGE, depth=1, links=(f"{A}/z",)))
    driver.checkpoint()


def _urls(path: str, count: int) -> list[str]:
    return [f"{A}{path}{n}" for n in range(count)]


_LIKE = {url: Facts(200, "text/html", sketch=(1, 2, 3)) for url in _urls("/item/", 9)}
_LISTING = {SEED: Facts(200, "text/html", links=tuple(_LIKE), sketch=(1, 2, 3)), **_LIKE}
_SMALL_BUDGET = {"template_budget": 3, "robots": False}
_DEAD = {url: FetchFailure(Reason.CONNECT, "refused") for url in _urls("/", 20)}

_MAPPED: Mapping[str, Answer | list[Answer]] = {
    f"{A}/robots.txt": file(f"Sitemap: {MAP}"),
    SEED: page(),
    MAP: Facts(200),
    X: page(),
    f"{A}/y": page(),
}

_FATES: Mapping[str, Case] = {
    NoUrl.INVALID: Case(
        summary="not a URL: it has to be absolute, like https://example.com/", remedy=None, standing="no_url", url="a.test/x"
    ),
    NoUrl.SCHEME: Case(
        summary="not an http or https URL, and no others are crawled", remedy=None, standing="no_url", url="mailto:me@a.test"
    ),
    Fate.PAGE: Case(summary="fetched: status 200", remedy=None),
    Fate.REDIRECT: Case(
        summary=f"fetched: status 302, redirects to {A}/y",
        remedy=None,
        web={SEED: page(X), X: moved(f"{A}/y"), f"{A}/y": page()},
    ),
    Fate.ROBOTS_FILE: Case(
        summary="not a page: it was asked for as a robots.txt",
        remedy="to crawl it as a page too: start another crawl with it as a seed",
        standing="unseen",
        url=f"{A}/robots.txt",
    ),
    Fate.SITEMAP: Case(
        summary="not a page: it was met as a sitemap",
        remedy="to crawl it as a page too: start another crawl with it as a seed",
        standing="unseen",
        url=MAP,
        web=_MAPPED,
        settings={"sitemaps": True},
    ),
    Fate.QUEUED: Case(
        summary="queued: limit.pages is reached (1 pages of 1)",
        remedy="to go on: crawlkit resume DIR --set max_pages=N",
        standing="queued",
        settings={"max_pages": 1},
    ),
    Fate.IN_FLIGHT: Case(
        summary="in flight: it was asked for, and the answer is not here yet", remedy=None, standing="in_flight", act=_claimed
    ),
    Fate.RETRY: Case(
        summary="waiting to be tried again, after 1 failed try, the last one for http.server_error",
        remedy="to go on: crawlkit resume DIR",
        standing="waiting",
        web={SEED: page(X), X: Facts(500)},
        settings={"retries": 2},
        act=_failed_once,
    ),
    Fate.LINKS: Case(
        summary="not admitted yet: a page that links to it has links that are still to be walked",
        remedy="to go on: crawlkit resume DIR",
        standing="unseen",
        url=f"{A}/item/8",
        web=_LISTING,
        settings=_SMALL_BUDGET,
        act=_first_page,
    ),
    Fate.NEVER_LINKED: Case(
        summary="never met: no page of this crawl links to it", remedy=AS_SEED, standing="unseen", url=f"{A}/nowhere"
    ),
    Fate.NOT_FOUND: Case(
        summary="never admitted, and none of the 1 records searched links to it",
        remedy=AS_SEED,
        standing="unseen",
        url=f"{A}/nowhere",
        most_searched=1,
    ),
    Fate.UNEXPLAINED: Case(
        summary="not admitted, though a page links to it and no rule forbids it",
        remedy="to see whether the state is sound: crawlkit verify DIR",
        standing="unseen",
        url=f"{A}/z",
        act=_tampered,
    ),
}

_REASONS: Mapping[str, Case] = {
    Reason.DNS: _no_answer(Reason.DNS, "The host name could not be resolved"),
    Reason.NAME_NOT_FOUND: _no_answer(Reason.NAME_NOT_FOUND, "The host name does not exist"),
    Reason.CONNECT: _no_answer(Reason.CONNECT, "No connection could be made"),
    Reason.TLS: _no_answer(
        Reason.TLS,
        "The TLS handshake or the certificate failed",
        f"{AGAIN}net.tls, when the server is mended; to fetch it as it is, start another crawl with --insecure",
    ),
    Reason.RESET: _no_answer(Reason.RESET, "The connection broke before the answer was complete"),
    Reason.TIMEOUT: _no_answer(
        Reason.TIMEOUT, "The request took longer than the timeout", f"{AGAIN}net.timeout --set timeout=DURATION"
    ),
    Reason.PROTOCOL: _no_answer(Reason.PROTOCOL, "The answer was not valid HTTP"),
    Reason.ADDRESS: _no_answer(
        Reason.ADDRESS,
        "The host resolves to a private address",
        "to fetch it, start another crawl with --allow-private for its network",
    ),
    Reason.HOOK_FAILED: _no_answer(
        Reason.HOOK_FAILED,
        "A plugin failed on this URL",
        f"{AGAIN}hook.failed --set plugin=FILE, when the plugin is mended",
    ),
    Reason.PROXY: _no_answer(
        Reason.PROXY,
        "The proxy could not be reached, or refused the request",
        f"{AGAIN}net.proxy (--set proxy=URL names another)",
    ),
    Reason.CLIENT_ERROR: _answered(
        Facts(404), "The server answered with a status from 400 to 499 (HTTP 404)", f"{AGAIN}http.client_error"
    ),
    Reason.TOO_MANY_REQUESTS: _answered(
        Facts(429), "The server answered 429, too many requests (HTTP 429)", f"{AGAIN}http.too_many_requests"
    ),
    Reason.SERVER_ERROR: _answered(
        Facts(503), "The server answered with a status from 500 to 599 (HTTP 503)", f"{AGAIN}http.server_error"
    ),
    Reason.OTHER_STATUS: _answered(
        Facts(999), "The server answered with a status outside of HTTP's range (HTTP 999)", f"{AGAIN}http.other_status"
    ),
    Reason.NO_LOCATION: _answered(Facts(302), "A redirect without a usable Location", f"{AGAIN}redirect.no_location"),
    Reason.TOO_MANY_REDIRECTS: Case(
        summary="failed: More than ten redirects led here, and this one redirects on",
        remedy="to follow it, start another crawl with what it redirects to as a seed",
        url=f"{A}/r10",
        web=_chain(12),
    ),
    Reason.HOST_UNREACHABLE: _by_robots(
        FetchFailure(Reason.CONNECT, "words"),
        "failed: The host could not be reached for its robots.txt (words)",
        f"{AGAIN}host.unreachable",
    ),
    Reason.HOST_GIVEN_UP: Case(
        summary="failed: The host failed so often that it was given up",
        remedy=f"{AGAIN}host.given_up",
        url=f"{A}/19",
        web={SEED: page(*_DEAD), **_DEAD},
        settings={"robots": False},
    ),
    Reason.HOST_DROPPED: Case(
        summary="failed: The host was dropped by whoever runs the crawl",
        remedy=f"{AGAIN}host.dropped",
        act=_dropped,
        url=SEED,
    ),
    Reason.ROBOTS_DISALLOW: _by_robots(file("Disallow: /"), "excluded by robots.txt line 2: Disallow: /", NOT_ROBOTS),
    Reason.ROBOTS_UNREACHABLE: _by_robots(
        answer(503), "excluded: robots.txt could not be had, so the URL counts as disallowed", NOT_ROBOTS
    ),
    Reason.ROBOTS_DELAY: _by_robots(
        file("Crawl-delay: 90"),
        "excluded: robots.txt asks for a longer Crawl-delay than is accepted (Crawl-delay: 90)",
        "to fetch it, start another crawl with --max-crawl-delay 90s",
    ),
}

_LONG = f"{A}/{'a' * 60}"

_REFUSALS: Mapping[str, Case] = {
    Refusal.SCOPE: _kept_out(
        "http://b.test/", "scope=host: no seed spans b.test (scope.outside)", f"{AS_SEED}, or with a wider --scope"
    ),
    Refusal.INCLUDE: _kept_out(
        X,
        "include: no pattern matches (scope.include_none)",
        f"{AS_SEED}, or with an --include that matches it",
        include=("/only/",),
    ),
    Refusal.EXCLUDE: _kept_out(
        X, "exclude[1]: /x$/ (scope.exclude)", f"{AS_SEED}, or without that --exclude", exclude=("/never", "x$")
    ),
    Refusal.DEPTH: _kept_out(
        X, "depth 1, at most 0 (depth.limit)", "to crawl it: crawlkit resume DIR --set max_depth=1", max_depth=0
    ),
    Refusal.NOFOLLOW: Case(
        summary="not admitted: it is linked with nofollow only",
        remedy=AS_SEED,
        standing="refused",
        web={SEED: page(X, nofollow=(0,))},
    ),
    Refusal.TRAP_LENGTH: _kept_out(
        _LONG,
        "the URL is longer than accepted (trap.length)",
        f"{AS_SEED}, or with --max-url-length {len(_LONG)}",
        max_url_length=50,
    ),
    Refusal.TRAP_PATH_REPEAT: _kept_out(
        f"{A}/b/b/b/b/",
        "the path repeats a segment, or a run of them, too often (trap.path_repeat)",
        f"{AS_SEED}, or with a greater --max-path-repeats",
    ),
    Refusal.TRAP_HOST_IN_PATH: _kept_out(
        f"{A}/a.test/a.test/", "the path holds the host's own name more than once (trap.host_in_path)"
    ),
    Refusal.TRAP_PARAM_REPEAT: _kept_out(
        f"{A}/?b=1&b=1&b=1&b=1",
        "the query repeats a parameter too often (trap.param_repeat)",
        f"{AS_SEED}, or with a greater --max-param-repeats",
    ),
    Refusal.TRAP_PARAM_COUNT: _kept_out(
        f"{A}/?b=1&c=1&d=1",
        "the query has too many parameters (trap.param_count)",
        f"{AS_SEED}, or with a greater --max-params",
        max_params=2,
    ),
    Refusal.TRAP_ESCAPE: _kept_out(f"{A}/%25252520", "the URL is escaped again and again (trap.escape)"),
    Refusal.TRAP_TEMPLATE: Case(
        summary="not admitted: the template budget refused it: too many URLs of its shape were met without news",
        remedy=f"{AS_SEED}, or with a greater --template-budget",
        standing="refused",
        url=f"{A}/item/8",
        web=_LISTING,
        settings=_SMALL_BUDGET,
    ),
    Refusal.HOOK: _kept_out(
        X, "a plugin does not accept it", f"{AS_SEED}, or with another --plugin", accepts=lambda url: url == SEED
    ),
    Refusal.TRAP_SITEMAP: Case(
        summary="not admitted: a sitemap names it, which is nested too deep or names more than is taken",
        remedy=f"{AS_SEED}, or with a greater --max-sitemap-urls",
        standing="refused",
        url=f"{A}/y",
        web=_MAPPED,
        settings={"sitemaps": True, "max_sitemap_urls": 1},
    ),
}

CASES: Mapping[str, Case] = {**_FATES, **_REASONS, **_REFUSALS}
