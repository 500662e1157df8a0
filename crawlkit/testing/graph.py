"""Seeded web graphs with a known answer.

A graph is a table of absolute URLs under one or more bases (`http://h1.test`, `http://h2.test`, ... unless moved by
`Graph.at`). Links within a base are served as paths, so that a graph with one base is the same bytes wherever it is
served. The oracle follows the contract's rules by itself: it shares no code with the crawler.
"""

import random
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from crawlkit.model import Kind, Source
from crawlkit.testing.site import Reply, Route, Site, page, redirect

MOST_HOPS = 10
FILLER = "The quick brown fox jumps over the lazy dog. "


@dataclass(frozen=True, slots=True)
class Node:
    """One URL: a page with links, or a redirect (with `location`), or an error. Targets are absolute URLs."""

    status: int = 200
    links: tuple[str, ...] = ()
    nofollow: tuple[str, ...] = ()
    canonical: str | None = None
    location: str | None = None


NOT_FOUND = Node(404)


@dataclass(frozen=True, slots=True)
class Answer:
    """What a crawl has to find out about an admitted URL."""

    kind: Kind
    status: int
    depth: int
    hops: int
    sources: int


@dataclass(frozen=True, slots=True)
class Graph:
    """A web of URLs. Every URL of `nodes` lies under one of `bases`; what is not in `nodes` answers 404."""

    nodes: Mapping[str, Node]
    bases: tuple[str, ...] = ("http://h1.test",)

    @property
    def seeds(self) -> tuple[str, ...]:
        """The front page of each base."""
        return tuple(f"{base}/" for base in self.bases)

    def at(self, *bases: str) -> "Graph":
        """Return the same graph under other bases (like `http://127.0.0.1:8080`), one for each of its own."""
        moved = dict(zip(self.bases, (base.rstrip("/") for base in bases), strict=True))

        def move(url: str) -> str:
            base, path = _split(url)
            return moved.get(base, base) + path

        def move_some(urls: tuple[str, ...]) -> tuple[str, ...]:
            return tuple(map(move, urls))

        return Graph(
            {
                move(url): Node(
                    node.status,
                    move_some(node.links),
                    move_some(node.nofollow),
                    node.canonical and move(node.canonical),
                    node.location and move(node.location),
                )
                for url, node in self.nodes.items()
            },
            tuple(moved.values()),
        )

    def links(self, url: str) -> tuple[str, ...]:
        """Return what the report lists as `links` of `url`: each once, in document order."""
        node = self.nodes.get(url, NOT_FOUND)
        return tuple(dict.fromkeys(node.links + node.nofollow))

    def answers(
        self,
        *seeds: str,
        max_depth: int | None = None,
        scope: Collection[str] | None = None,
        sitemap: Collection[str] = (),
        within: Collection[str] | None = None,
    ) -> dict[str, Answer]:
        """Return every URL a crawl from `seeds` (all front pages if none are given) admits, with its answer.

        `sitemap` are URLs that sitemaps name; out of scope they count for nothing.
        `scope` is a set of host names, by default those of the seeds. Depth and hops are each the least over all ways:
        each URL is looked at again whenever one of its two falls, until nothing changes. No way leads out of `within`.
        """
        starts = seeds or self.seeds
        hosts = {urlsplit(url).hostname for url in starts} if scope is None else set(scope)

        def counts(edge: tuple[str, int, int]) -> bool:
            is_out = within is not None and edge[0] not in within
            return not is_out and urlsplit(edge[0]).hostname in hosts and (max_depth is None or edge[1] <= max_depth)

        named = {url for url in sitemap if counts((url, 0, 0))}
        found = self._distances({*starts, *named}, counts)
        linked = {edge[0] for url, distance in found.items() for edge in self._edges(url, *distance) if counts(edge)}
        ways = ((Source.SEED, starts), (Source.LINK, linked), (Source.SITEMAP, named))
        sources = {url: sum(source for source, urls in ways if url in urls) for url in found}
        return {url: self._answer(url, *distance, sources[url]) for url, distance in found.items()}

    def _distances(self, starts: Collection[str], counts: Callable[[tuple[str, int, int]], bool]) -> dict[str, tuple[int, int]]:
        """Return depth and hops of all that the edges which count lead to."""
        found: dict[str, tuple[int, int]] = {}
        todo = deque((url, 0, 0) for url in starts)
        while todo:
            url, depth, hops = todo.popleft()
            before = found.get(url, (depth + 1, hops))
            now = min(depth, before[0]), min(hops, before[1])
            if now == before:
                continue
            found[url] = now
            todo.extend(filter(counts, self._edges(url, *now)))
        return found

    def bfs(self, *seeds: str, max_depth: int | None = None) -> dict[str, int]:
        """Return the depth of every URL that a crawl from `seeds` admits."""
        return {url: answer.depth for url, answer in self.answers(*seeds, max_depth=max_depth).items()}

    def site(self, *, page_bytes: int = 0, delay_s: float = 0.0) -> Site:
        """Return the graph as a site: pages filled up to `page_bytes`, all rendered at once.

        With one base any host answers; with more, each its own.
        """
        routes: dict[str, Route] = {}
        for url, node in self.nodes.items():
            base, path = _split(url)
            owner = "" if len(self.bases) == 1 else urlsplit(base).netloc
            reply = _render(path, base, node, page_bytes)
            routes[owner + path] = Reply(reply.status, reply.headers, reply.body, delay_s)
        return Site(routes)

    def _edges(self, url: str, depth: int, hops: int) -> Iterator[tuple[str, int, int]]:
        """Yield what `url` admits, with the distance it offers."""
        node = self.nodes.get(url, NOT_FOUND)
        if node.location is not None and hops < MOST_HOPS:
            yield node.location, depth, hops + 1
        for link in node.links:
            yield link, depth + 1, 0
        if node.canonical is not None:
            yield node.canonical, depth + 1, 0

    def _answer(self, url: str, depth: int, hops: int, sources: int) -> Answer:
        node = self.nodes.get(url, NOT_FOUND)
        if node.location is not None:
            kind = Kind.REDIRECT if hops < MOST_HOPS else Kind.FAILURE
        else:
            kind = Kind.PAGE if node.status < 400 else Kind.FAILURE
        return Answer(kind, node.status, depth, hops, sources)


def _split(url: str) -> tuple[str, str]:
    slash = url.index("/", len("https://"))
    return url[:slash], url[slash:]


def _render(path: str, base: str, node: Node, page_bytes: int) -> Reply:
    def href(url: str) -> str:
        there, target = _split(url)
        return target if there == base else url

    if node.location is not None:
        return redirect(href(node.location), node.status)

    def html(text: str) -> Reply:
        return page(
            path,
            map(href, node.links),
            nofollow=map(href, node.nofollow),
            canonical=node.canonical and href(node.canonical),
            text=text,
        )

    missing_bytes = max(0, page_bytes - len(html("").body))
    body = html((FILLER * (missing_bytes // len(FILLER) + 1))[:missing_bytes]).body
    return Reply(node.status, (("content-type", "text/html; charset=utf-8"),), body)


@dataclass(frozen=True, slots=True, kw_only=True)
class Features:
    """How many of each a graph has, besides its pages and their links.

    Each chain of redirects and each canonical replaces the link by which the graph's tree reaches some page, so
    together they are fewer than the pages. Only the head of a chain is linked to: one longer than ten does not arrive.
    """

    redirects: int = 0
    """URLs that redirect, in chains of `chain`."""
    chain: int = 1
    canonicals: int = 0
    """Pages that name another as canonical (fewer where no page is left that names none)."""
    missing: int = 0
    """URLs that answer 404."""
    errors: int = 0
    """URLs that answer 500."""
    outside: int = 0
    """Links to `http://outside.test/`."""
    nofollow: int = 0
    """Links with rel=nofollow: to the unreachable pages if there are any, else to any page."""
    unreachable: int = 0
    """Pages that no followed link leads to."""


PLAIN = Features()


def make_graph(pages: int, seed: int, *, hosts: int = 1, links_per_page: int = 10, features: Features = PLAIN) -> Graph:
    """Return a graph of `pages` pages over `hosts` hosts, each page with about `links_per_page` links.

    The same arguments give the same graph, on any machine: of the generator only `random()` is used, whose sequence
    Python keeps. Depth grows as the logarithm of the pages. Raises ValueError for features that do not fit.
    """
    reachable = pages - features.unreachable
    chains = -(-features.redirects // max(1, features.chain))
    if features.chain < 1 or not 1 <= hosts <= reachable or chains + features.canonicals >= reachable:
        raise ValueError(f"{features} does not fit into {pages} pages on {hosts} hosts")
    maker = _Maker(pages, hosts, reachable, random.Random(seed))
    maker.tree(features)
    for _ in range(features.missing):
        maker.leaf(404, "missing")
    for _ in range(features.errors):
        maker.leaf(500, "error")
    for number in range(features.outside):
        maker.some_page().links[f"http://outside.test/{number}"] = None
    maker.nofollow(features.nofollow)
    maker.fill(links_per_page)
    return maker.graph()


@dataclass(slots=True)
class _Draft:
    links: dict[str, None] = field(default_factory=dict)
    nofollow: dict[str, None] = field(default_factory=dict)
    canonical: str | None = None


class _Maker:
    """A graph while it is made: page 0 is the root, pages from `reachable` on get no followed link."""

    def __init__(self, pages: int, hosts: int, reachable: int, rng: random.Random) -> None:
        self._rng = rng
        self._bases = tuple(f"http://h{number + 1}.test" for number in range(hosts))
        self._urls = [self._base(n) + ("/" if n < hosts else f"/p{n}") for n in range(pages)]
        self._drafts = [_Draft() for _ in range(pages)]
        self._reachable = reachable
        self._others: dict[str, Node] = {}

    def tree(self, features: Features) -> None:
        """Make every reachable page the child of an earlier one: by link, by canonical, or through redirects."""
        children = range(1, self._reachable)
        parents = {child: self._drafts[self._below(child)] for child in children}
        canonicals, redirects = features.canonicals, features.redirects
        for child in sorted(children, key=lambda _: self._rng.random()):
            parent, url = parents[child], self._urls[child]
            if redirects:
                length = min(redirects, features.chain)
                redirects -= length
                parent.links[self._chain(url, length)] = None
            elif canonicals and parent.canonical is None:
                canonicals -= 1
                parent.canonical = url
            else:
                parent.links[url] = None

    def leaf(self, status: int, name: str) -> None:
        """Add a URL that answers `status`, linked from some page."""
        number = len(self._others)
        url = f"{self._base(number)}/{name}{number}"
        self._others[url] = Node(status)
        self.some_page().links[url] = None

    def nofollow(self, count: int) -> None:
        """Add links that do not admit."""
        targets = self._urls[self._reachable :] or self._urls
        for _ in range(count):
            self.some_page().nofollow[targets[self._below(len(targets))]] = None

    def fill(self, links_per_page: int) -> None:
        """Fill up the links of each page with links to any reachable page."""
        for draft in self._drafts:
            for _ in range(links_per_page - len(draft.links)):
                draft.links[self._urls[self._below(self._reachable)]] = None

    def some_page(self) -> _Draft:
        """Return any reachable page."""
        return self._drafts[self._below(self._reachable)]

    def graph(self) -> Graph:
        """Return what was made."""
        pages = {
            url: Node(200, tuple(draft.links), tuple(draft.nofollow), draft.canonical)
            for url, draft in zip(self._urls, self._drafts, strict=True)
        }
        return Graph(pages | self._others, self._bases)

    def _chain(self, target: str, length: int) -> str:
        """Add `length` redirects, the last one to `target`; return the first."""
        for _ in range(length):
            number = len(self._others)
            url = f"{self._base(number)}/r{number}"
            self._others[url] = Node((301, 302, 303, 307, 308)[number % 5], location=target)
            target = url
        return target

    def _base(self, number: int) -> str:
        return self._bases[number % len(self._bases)]

    def _below(self, bound: int) -> int:
        return int(self._rng.random() * bound)
