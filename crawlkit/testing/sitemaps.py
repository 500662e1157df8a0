"""Sitemaps of a simulated web, and what a crawler has to find in them; by the contract's rules, without the crawler's code."""

import random
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit
from xml.sax.saxutils import escape

from crawlkit.model import Facts, FetchFailure, Reason
from crawlkit.sitemap import Sitemap, SitemapEntry, SitemapForm
from crawlkit.testing.graph import Graph
from crawlkit.testing.site import Reply, robots

Note = tuple[str | None, float | None]


@dataclass(frozen=True, slots=True)
class SitemapPlan:
    """The sitemaps of a web: which each origin's robots.txt names, what is in each, and how each answers at first.

    What is named and not among `files` answers 404; a fault of 0 is no answer. All faults pass within the retries.
    """

    listed: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    files: Mapping[str, Sitemap] = field(default_factory=dict)
    faults: Mapping[str, tuple[int, ...]] = field(default_factory=dict)

    def answer(self, url: str, number: int) -> tuple[Facts | FetchFailure, Sitemap | None]:
        """Return what the `number`-th request (from 0) of a sitemap is answered."""
        faults = self.faults.get(url, ())
        if number < len(faults):
            return (Facts(faults[number]) if faults[number] else FetchFailure(Reason.RESET, "simulated")), None
        found = self.files.get(url)
        return (Facts(404), None) if found is None else (Facts(200, content_type="application/xml"), found)

    def routes(self, bases: Collection[str]) -> dict[str, Reply]:
        """Return the robots.txt files and sitemaps as they are served beside a graph with these bases (`Graph.site`)."""
        own = len(bases) > 1
        lines = {base: "".join(f"Sitemap: {url}\n" for url in self.listed.get(base, ())) for base in bases}
        served = {f"{base}/robots.txt": robots(f"User-agent: *\nDisallow:\n{text}") for base, text in lines.items()}
        served |= {url: _render(sitemap) for url, sitemap in self.files.items()}
        return {_key(url, own=own): reply for url, reply in served.items()}

    def read(self, origins: Collection[str], scope: Collection[str], may_fetch: Callable[[str], bool]) -> set[str]:
        """Return the sitemaps that are read if the robots.txt of `origins` can be had, with the host names in scope."""
        todo = [url for origin in origins if urlsplit(origin).hostname in scope for url in self.listed.get(origin, ())]
        found: set[str] = set()
        while todo:
            url = todo.pop()
            if url in found or url not in self.files or not may_fetch(url):
                continue
            found.add(url)
            if self.files[url].form is SitemapForm.INDEX:
                near = {*scope, urlsplit(url).hostname}
                todo += [entry.url for entry in self.files[url].entries if urlsplit(entry.url).hostname in near]
        return found

    def notes(self, read: Collection[str]) -> dict[str, Note]:
        """Return the URLs that these sitemaps name, each with the latest change and the highest priority."""
        found: dict[str, Note] = {}
        for url in read:
            if self.files[url].form is SitemapForm.URLSET:
                for entry in self.files[url].entries:
                    lastmod, priority = found.get(entry.url, (None, None))
                    found[entry.url] = (
                        max(filter(None, (lastmod, entry.lastmod)), default=None),
                        max(filter(None, (priority, entry.priority)), default=None),
                    )
        return found


def _key(url: str, *, own: bool) -> str:
    parts = urlsplit(url)
    return (parts.netloc if own else "") + parts.path


def _render(sitemap: Sitemap) -> Reply:
    root, entry = ("sitemapindex", "sitemap") if sitemap.form is SitemapForm.INDEX else ("urlset", "url")
    items = "".join(
        f"<{entry}><loc>{escape(named.url)}</loc>"
        + ("" if named.lastmod is None else f"<lastmod>{named.lastmod}</lastmod>")
        + ("" if named.priority is None else f"<priority>{named.priority}</priority>")
        + f"</{entry}>"
        for named in sitemap.entries
    )
    return Reply(200, (("content-type", "application/xml"),), f"<{root}>{items}</{root}>".encode())


def make_sitemaps(seed: int, graph: Graph, most_faults: int) -> SitemapPlan:
    """Return the sitemaps of a web: none for half of the seeds; else with indexes, circles, strangers, some of them broken."""
    rng = random.Random(f"sitemaps {seed}")
    if rng.random() < 0.5:
        return SitemapPlan()
    homes = (*graph.bases, "http://cdn.test")
    names = [f"{rng.choice(homes)}/map{number}.xml" for number in range(rng.randint(1, 6))]
    files = {name: _make_file(rng, graph, names) for name in names if rng.random() < 0.9}
    listed = {base: tuple(rng.sample(names, rng.randint(0, min(3, len(names))))) for base in graph.bases}
    failing = [name for name in names if most_faults and rng.random() < 0.2]
    faults = {name: tuple(rng.choice((0, 500, 503)) for _ in range(rng.randint(1, most_faults))) for name in failing}
    return SitemapPlan(listed, files, faults)


def _make_file(rng: random.Random, graph: Graph, names: list[str]) -> Sitemap:
    if rng.random() < 0.25:
        return Sitemap(SitemapForm.INDEX, tuple(map(SitemapEntry, rng.sample(names, rng.randint(0, len(names))))))
    places = [*graph.nodes, "http://outside.test/1", f"{graph.bases[0]}/nowhere"]
    chosen = rng.sample(places, rng.randint(0, min(12, len(places))))
    dates, priorities = (None, "2023-01-01T00:00:00Z", "2024-01-01T00:00:00Z"), (None, 0.2, 1.0)
    return Sitemap(SitemapForm.URLSET, tuple(SitemapEntry(url, rng.choice(dates), rng.choice(priorities)) for url in chosen))
