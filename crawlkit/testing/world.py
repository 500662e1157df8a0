"""A seeded web as a plain function of URL and number of the try, and what a crawl of it has to find.

A world is a graph (`testing.graph`) with manners and faults on top: what each origin's robots.txt does, which URLs fail
at first and which always. `World.expected` follows the contract's rules by itself and shares no code with the crawler.
All faults but those that never end pass within the retries, so that the result does not depend on order or time.
"""

import random
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from enum import Enum, auto
from urllib.parse import urlsplit
from zlib import crc32

import msgspec

from crawlkit.model import MAX_HOPS, Facts, FetchFailure, Kind, Reason, Record, Response, Source
from crawlkit.testing.graph import NOT_FOUND, Answer, Features, Graph, Node, make_graph
from crawlkit.testing.sitemaps import Note, SitemapPlan, make_sitemaps

RETRIES = 2
"""The setting that worlds are made for: what fails at first fails at most so often."""

ROBOTS_HOPS = 5

_PATH = "/robots.txt"


class RobotsPlan(Enum):
    """What an origin's robots.txt leads to."""

    MISSING = auto()  # 404: all is allowed
    RULES = auto()
    DOWN = auto()  # 503 for ever
    NO_HOST = auto()  # no connection for ever
    LOST = auto()  # more redirects than are followed: all is allowed


@dataclass(frozen=True, slots=True)
class Origin:
    """One origin's robots.txt: what it says, after how many redirects (in turn to `via` hosts) and failures at first."""

    plan: RobotsPlan
    disallow: tuple[str, ...] = ()
    crawl_delay_s: float = 0.0
    hops: int = 0
    via: tuple[str, ...] = ()
    fails: tuple[int, ...] = ()


_WITHOUT = Origin(RobotsPlan.MISSING)
"""Of a host that only holds sitemaps."""


@dataclass(frozen=True, slots=True)
class Fault:
    """How a URL answers at first: a status, with a Retry-After or without, or no answer at all (0)."""

    status: int
    retry_after_s: int | None = None


@dataclass(frozen=True, slots=True)
class World:
    """A web with a known answer. `broken` URLs never answer; `faults` come first, one a request.

    With `has_texts` each page has a text of its own, so that what leads to it earns credit (`engine.budget`), but for those
    that are `alike`.
    """

    graph: Graph
    seeds: tuple[str, ...]
    origins: Mapping[str, Origin]
    faults: Mapping[str, tuple[Fault, ...]]
    broken: frozenset[str]
    robots_hops: Mapping[str, tuple[str, int]]
    sitemaps: SitemapPlan
    has_texts: bool = False
    alike: frozenset[str] = frozenset()

    # Answers ---------------------------------------------------------------------------------------------------------

    def page(self, url: str, number: int) -> Facts | FetchFailure:
        """Return what the `number`-th request (from 0) of a page is answered."""
        if url in self.broken:
            return FetchFailure(Reason.TIMEOUT, "simulated")
        faults = self.faults.get(url, ())
        if number < len(faults):
            fault = faults[number]
            after = None if fault.retry_after_s is None else str(fault.retry_after_s)
            return Facts(fault.status, retry_after=after) if fault.status else FetchFailure(Reason.RESET, "simulated")
        return self._facts(url)

    def robots(self, url: str, number: int) -> Response | FetchFailure:
        """Return what the `number`-th request of a robots.txt, or of what one redirects to, is answered."""
        name, hop = self.robots_hops.get(url, ("", 0))
        origin = self.origins.get(name, _WITHOUT)
        if origin.plan is RobotsPlan.NO_HOST:
            return FetchFailure(Reason.CONNECT, "simulated")
        if origin.plan is RobotsPlan.DOWN:
            return Response(503, (), b"")
        if hop < origin.hops:
            return Response(301, ((b"location", _hop_url(name, origin, hop + 1).encode()),), b"")
        if number < len(origin.fails):
            return Response(origin.fails[number], ((b"retry-after", b"7"),), b"")
        if origin.plan is RobotsPlan.MISSING:
            return Response(404, (), b"")
        lines = [f"Crawl-delay: {origin.crawl_delay_s}"] + [f"Disallow: {path}" for path in origin.disallow]
        lines += [f"Sitemap: {url}" for url in self.sitemaps.listed.get(name, ())]
        return Response(200, (), "\n".join(["User-agent: *", *lines, ""]).encode())

    def _facts(self, url: str) -> Facts:
        node = self.graph.nodes.get(url, NOT_FOUND)
        if node.status != 200:
            return Facts(node.status, location=node.location)
        links = self.graph.links(url)
        followed = frozenset(node.links)
        text = "the same" if url in self.alike else url
        return Facts(
            200,
            content_type="text/html",
            body_bytes=len(url),
            truncated=False,
            title=url,
            links=links,
            nofollow=tuple(index for index, link in enumerate(links) if link not in followed),
            canonical=node.canonical,
            sketch=tuple(crc32(f"{text} {number}".encode()) for number in range(16)) if self.has_texts else None,
        )

    # What is right ---------------------------------------------------------------------------------------------------

    def crawl_delay_s(self, url: str) -> float:
        """Return the Crawl-delay that holds for a page that may be fetched."""
        origin = self.origins[_origin_of(url)]
        return origin.crawl_delay_s if origin.plan is RobotsPlan.RULES else 0.0

    def refusal(self, url: str) -> tuple[Kind, Reason] | None:
        """Return how a URL ends that robots.txt keeps a crawler from, None if it may be fetched."""
        origin = self.origins.get(_origin_of(url), _WITHOUT)
        if origin.plan is RobotsPlan.DOWN:
            return Kind.EXCLUDED, Reason.ROBOTS_UNREACHABLE
        if origin.plan is RobotsPlan.NO_HOST:
            return Kind.FAILURE, Reason.HOST_UNREACHABLE
        if origin.plan is RobotsPlan.RULES and urlsplit(url).path.startswith(origin.disallow):
            return Kind.EXCLUDED, Reason.ROBOTS_DISALLOW
        return None

    def expected(self, max_depth: int | None, within: Collection[str] | None = None) -> dict[str, Record]:
        """Return the record of every URL that a crawl from the seeds admits, without what depends on time or order.

        `within` are those that it did admit, where a template budget decided that.
        """
        dead = {url: NOT_FOUND for url in self.graph.nodes if url in self.broken or self.refusal(url)}
        reached = replace(self.graph, nodes={**self.graph.nodes, **dead})
        notes: dict[str, Note] = {}
        while True:
            answers = reached.answers(*self.seeds, max_depth=max_depth, sitemap=notes, within=within)
            before, notes = notes, self._named(answers)
            if notes == before:
                return {url: self._record(url, answer, notes) for url, answer in answers.items()}

    def _named(self, admitted: Collection[str]) -> dict[str, Note]:
        """Return what is named by the sitemaps that a crawl reads which admits these URLs."""
        scope = {str(urlsplit(url).hostname) for url in self.seeds}
        asked = {_origin_of(url) for url in admitted}
        while True:
            told = [origin for origin in asked if origin in self.origins and self.origins[origin].plan is RobotsPlan.RULES]
            read = self.sitemaps.read(told, scope, lambda url: self.refusal(url) is None)
            further = {_origin_of(url) for url in read} - asked
            if not further:
                return self.sitemaps.notes(read)
            asked |= further

    def _record(self, url: str, answer: Answer, notes: Mapping[str, Note]) -> Record:
        record = self._plain_record(url, answer)
        if not answer.sources & Source.SITEMAP:
            return record
        lastmod, priority = notes[url]
        return msgspec.structs.replace(record, lastmod=lastmod, priority=priority)

    def _plain_record(self, url: str, answer: Answer) -> Record:
        ended = self.refusal(url) or ((Kind.FAILURE, Reason.TIMEOUT) if url in self.broken else None)
        if ended is not None:
            kind, reason = ended
            return Record(url=url, kind=kind, depth=answer.depth, hops=answer.hops, sources=answer.sources, reason=reason)
        facts = self._facts(url)
        failed = None
        if answer.kind is Kind.FAILURE:
            failed = Reason.SERVER_ERROR if facts.status >= 500 else Reason.CLIENT_ERROR
            if answer.hops >= MAX_HOPS and facts.location:
                failed = Reason.TOO_MANY_REDIRECTS
        return Record(
            url=url,
            kind=answer.kind,
            depth=answer.depth,
            hops=answer.hops,
            sources=answer.sources,
            status=facts.status,
            content_type=facts.content_type,
            body_bytes=facts.body_bytes,
            truncated=facts.truncated,
            title=facts.title,
            links=facts.links,
            nofollow=facts.nofollow,
            redirect_to=facts.location,
            canonical=facts.canonical,
            reason=failed,
        )

    def needed_requests(self, url: str) -> int:
        """Return how often an undisturbed crawl requests a page that it may fetch."""
        if url in self.broken or self.graph.nodes.get(url, NOT_FOUND).status >= 500:
            return RETRIES + 1
        return len(self.faults.get(url, ())) + 1


def _origin_of(url: str) -> str:
    return url[: url.index("/", len("https://"))]


def _hop_url(name: str, origin: Origin, hop: int) -> str:
    """Return where an origin's robots.txt is after `hop` redirects."""
    return name + _PATH if hop == 0 else f"{origin.via[hop % len(origin.via)]}/robots-of?{name}&{hop}"


# Making one ----------------------------------------------------------------------------------------------------------


def make_world(seed: int) -> World:
    """Return a world of 30 to 80 URLs on 1 to 4 hosts, one of them perhaps with two ports.

    One in six has pages with texts, of which some or all are alike.
    """
    rng = random.Random(f"world {seed}")
    graph = _make_graph(rng, seed, rng.choice((1, 1, 2, 3, 4)))
    origins = {base: _make_origin(rng, (*graph.bases, "http://elsewhere.test")) for base in graph.bases}
    world, texts = _make_faults(rng, seed, graph, origins), random.Random(f"texts {seed}")
    return _with_texts(world, texts, texts.choice((0.0, 0.3, 0.7, 1.0))) if texts.random() < 1 / 6 else world


def _with_texts(world: World, rng: random.Random, share_alike: float) -> World:
    return replace(world, has_texts=True, alike=frozenset(url for url in world.graph.nodes if rng.random() < share_alike))


def make_divided_world(seed: int) -> World:
    """Return a world of several registrable domains, for partitions: a robots.txt redirects within its own domain only.

    Half of them have pages with texts; in half of these some or all of them are alike.
    """
    rng = random.Random(f"divided world {seed}")
    graph = _make_graph(rng, seed, rng.choice((2, 3, 4, 6)))
    if rng.random() < 0.5:  # two hosts of one domain
        graph = graph.at(graph.bases[0], "http://www.h1.test", *graph.bases[2:])
    origins = {base: _make_origin(rng, _of_one_domain(base, graph.bases)) for base in graph.bases}
    world, alike = _make_faults(rng, seed, graph, origins), random.Random(f"pages alike {seed}")
    return _with_texts(world, alike, alike.choice((0.0, 0.0, 0.0, 0.3, 0.7, 1.0))) if rng.random() < 0.5 else world


def _of_one_domain(base: str, bases: tuple[str, ...]) -> tuple[str, ...]:
    domain = str(urlsplit(base).hostname).split(".")[-2:]
    return tuple(other for other in bases if str(urlsplit(other).hostname).split(".")[-2:] == domain)


def _make_faults(rng: random.Random, seed: int, graph: Graph, origins: Mapping[str, Origin]) -> World:
    """Return the world of a graph, with faults, seeds and sitemaps."""
    urls = list(graph.nodes)
    faults = {url: tuple(_make_fault(rng) for _ in range(rng.randint(1, RETRIES))) for url in rng.sample(urls, len(urls) // 6)}
    robots_hops = {
        _hop_url(name, origin, hop): (name, hop) for name, origin in origins.items() for hop in range(origin.hops + 1)
    }
    plain = [url for url in urls if url not in faults and graph.nodes[url].status == 200 and url != graph.seeds[0]]
    broken = frozenset(rng.sample(plain, min(len(plain), rng.randint(0, 2))))
    seeds = graph.seeds if rng.random() < 0.7 else graph.seeds[:1]
    return World(graph, seeds, origins, faults, broken, robots_hops, make_sitemaps(seed, graph, RETRIES))


def _make_graph(rng: random.Random, seed: int, hosts: int) -> Graph:
    redirects = rng.choice((0, 3, 14, 14))
    features = Features(
        redirects=redirects,
        chain=max(1, rng.choice((1, redirects, redirects))),
        canonicals=rng.randint(0, 4),
        missing=rng.randint(0, 3),
        errors=rng.randint(0, 2),
        outside=rng.randint(0, 3),
        nofollow=rng.randint(0, 5),
        unreachable=rng.randint(0, 2),
    )
    graph = make_graph(rng.randint(24, 58), seed, hosts=hosts, links_per_page=rng.choice((2, 3, 5)), features=features)
    if hosts > 1 and rng.random() < 0.3:  # a host with two origins
        graph = graph.at(graph.bases[0], f"{graph.bases[0]}:8080", *graph.bases[2:])
    nodes = dict(graph.nodes)
    pages = [url for url, node in nodes.items() if node.status == 200]
    for target in rng.sample(list(nodes), rng.choice((0, 2, 6))):  # to the middle of chains of redirects too
        page = rng.choice(pages)
        nodes[page] = replace(nodes[page], links=(*nodes[page].links, target))
    return _with_long_way(rng, Graph(nodes, graph.bases))


def _with_long_way(rng: random.Random, graph: Graph) -> Graph:
    """Add a path of pages, each linked to from the one before, whose end a page near the seed may link to as well."""
    names = [f"{rng.choice(graph.bases)}/way{number}" for number in range(rng.choice((0, 4, 9)))]
    if not names:
        return graph
    nodes = {name: Node(200, links=(after,)) for name, after in zip(names, [*names[1:], graph.seeds[0]], strict=True)}
    pages = [url for url, node in graph.nodes.items() if node.status == 200]
    late = rng.choice(pages)
    first = graph.seeds[0]
    changed = {first: replace(graph.nodes[first], links=(*graph.nodes[first].links, names[0]))}
    before = changed.get(late, graph.nodes[late])
    changed[late] = replace(before, links=(*before.links, names[-1]))
    return Graph({**graph.nodes, **nodes, **changed}, graph.bases)


def _make_origin(rng: random.Random, via: tuple[str, ...]) -> Origin:
    plan = rng.choice((RobotsPlan.MISSING, RobotsPlan.RULES, RobotsPlan.RULES, RobotsPlan.RULES, RobotsPlan.RULES))
    if rng.random() < 0.12:
        plan = rng.choice((RobotsPlan.DOWN, RobotsPlan.NO_HOST, RobotsPlan.LOST))
    hops = rng.choice((0, 0, 0, 1, 2, ROBOTS_HOPS))
    return Origin(
        plan,
        disallow=tuple(rng.sample(("/p1", "/p2", "/p3", "/r", "/way4"), rng.randint(0, 2))),
        crawl_delay_s=rng.choice((0.0, 0.0, 0.0, 1.5, 4.0)),
        hops=ROBOTS_HOPS + 1 if plan is RobotsPlan.LOST else hops,
        via=via,
        fails=tuple(rng.choice((503, 500, 429)) for _ in range(rng.choice((0, 0, 1, RETRIES)))),
    )


def _make_fault(rng: random.Random) -> Fault:
    status = rng.choice((0, 500, 503, 429))
    asked = rng.choice((None, 1, 20)) if status in (429, 503) else None
    return Fault(status, asked)
