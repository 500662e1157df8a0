"""A seeded static site as files: so many pages of so many bytes, each with so many links, always the same for a seed.

    python -m benchmarks.static_site --kind repeating --pages 5000 DIRECTORY

`repeating`: all links lead to pages of the site, so that each URL is met as often as a page has links (60 times): what
sites' navigation does, and the best case for every memo. `varied`: ten of them do; the others lead to URLs on other hosts
that are met once each. Page 0 is `/`; from it all pages are reached, since page n links to pages n * k + 1 to n * k + k.
"""

import argparse
import random
from collections.abc import Iterator, Sequence
from enum import StrEnum
from pathlib import Path

LINKS = 60
PAGE_BYTES = 18 * 1024
LOCAL_LINKS_OF_VARIED = 10
PAGES_A_FOLDER = 500


class Kind(StrEnum):
    """How often the site's links repeat."""

    REPEATING = "repeating"
    VARIED = "varied"


# Text is made of words that end as English ones do: what picks words by their letters must find some here too.
_ENDINGS = "e" * 19 + "s" * 14 + "d" * 9 + "t" * 9 + "n" * 8 + "y" * 6 + "r" * 6 + "o" * 5 + "flaghmkp"
_SYLLABLES = ("ka", "lo", "mi", "re", "tu", "sen", "dor", "vi", "pal", "ne", "gor", "ti", "ba", "shu", "el", "on")


class StaticSite:
    """The pages of one site: `path(n)` and `body(n)` for n from 0 to `pages` - 1."""

    def __init__(self, kind: Kind, pages: int, seed: int) -> None:
        self._kind = kind
        self.pages = pages
        self._seed = seed
        rng = random.Random(f"site {seed}")
        self._words = ["".join(rng.choices(_SYLLABLES, k=rng.randint(1, 3))) + rng.choice(_ENDINGS) for _ in range(4000)]
        self._names = [f"{word}-{self._words[rng.randrange(4000)]}" for word in self._words]

    def path(self, number: int) -> str:
        """Return the path of a page, as its links are written."""
        if number == 0:
            return "/"
        return f"/section-{number // PAGES_A_FOLDER}/{self._names[number % len(self._names)]}-{number}.html"

    def body(self, number: int) -> bytes:
        """Return a page of about `PAGE_BYTES`: ASCII HTML, a list of entries with a link each, about half of it text."""
        rng = random.Random(f"{self._seed} {number}")
        title = " ".join(rng.choices(self._words, k=6))
        script = ", ".join(f"{word}: {n}" for n, word in enumerate(rng.choices(self._words, k=100)))
        head = (
            f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title>\n'
            '<meta name="viewport" content="width=device-width"><link rel="stylesheet" href="/style.css">\n'
            f"<script>var settings = {{{script}}};</script>\n"
            f'</head><body class="listing">\n<h1>{title}</h1>\n<ul class="entries">\n'
        )
        links = list(self._links(number, rng))
        per_link = (PAGE_BYTES - len(head) - 40) // len(links)
        entries = [self._entry(n, link, per_link, rng) for n, link in enumerate(links)]
        return (head + "".join(entries) + "</ul></body></html>\n").encode()

    def _entry(self, number: int, link: str, size: int, rng: random.Random) -> str:
        """Return a list item of about `size` characters around a link."""
        start = (
            f'<li id="entry-{number}"><a href="{link}" class="title">{rng.choice(self._words)} {rng.choice(self._words)}</a> '
            f'<span class="date">{rng.randint(1, 28)} May</span> <em>{rng.choice(self._words)}</em> <p>'
        )
        text = " ".join(rng.choices(self._words, k=size // 5))
        return start + text[: max(0, size - len(start) - 10)] + "</p></li>\n"

    def _links(self, number: int, rng: random.Random) -> Iterator[str]:
        local = LINKS if self._kind is Kind.REPEATING else LOCAL_LINKS_OF_VARIED
        for n in range(local):
            yield self.path((number * local + 1 + n) % self.pages)
        for n in range(LINKS - local):
            words = "-".join(rng.choices(self._words, k=3))
            yield f"https://www.{rng.choice(self._words)}{rng.randrange(500)}.example/{words}/{number * LINKS + n}.html"


def write_site(site: StaticSite, directory: Path) -> None:
    """Write the site's files below `directory`, which a server serves as its root."""
    for number in range(site.pages):
        path = directory / (site.path(number).removeprefix("/") or "index.html")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(site.body(number))
    (directory / "robots.txt").write_text("User-agent: *\nDisallow: /private/\n")
    (directory / "style.css").write_text("body { margin: 2em }\n")


def main(arguments: Sequence[str] | None = None) -> None:
    """Write a site."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--kind", type=Kind, choices=list(Kind), default=Kind.REPEATING)
    parser.add_argument("--pages", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("directory", type=Path)
    options = parser.parse_args(arguments)
    write_site(StaticSite(options.kind, options.pages, options.seed), options.directory)


if __name__ == "__main__":
    main()
