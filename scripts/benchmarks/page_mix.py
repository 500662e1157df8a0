"""A synthetic web without a network: hosts of equal size, and pages whose 60 links are drawn as a crawl meets them.

Of the 60 links of a page 15 lead to the first pages of its host (navigation), 35 to other pages of the host (skewed to the
lower numbers), 6 to pages of other hosts (skewed alike) and 4 to pages that nobody linked to before. The first
`ACTIVE_HOSTS` hosts are active: with their short gap they give 80 % of the pages, all others together the rest.
"""

import random
from array import array

LINKS = 60
FIRST, OWN, OTHER, NEW = 15, 35, 6, 4
ACTIVE_HOSTS = 200
ACTIVE_GAP_S = 1.0
ACTIVE_SHARE = 0.8

PAGE_BYTES = 18 * 1024


class PageMix:
    """`hosts` hosts that share `urls` known URLs; `links_of` draws the links of a page. Deterministic for a seed."""

    def __init__(self, urls: int, hosts: int, seed: int = 1) -> None:
        self.hosts = hosts
        self._sizes = array("I", [urls // hosts + (n < urls % hosts) for n in range(hosts)])
        self._rng = random.Random(f"mix {seed}")

    @staticmethod
    def host(number: int) -> str:
        """Return a host's name."""
        return f"www.site-{number}.bench.test"

    @staticmethod
    def number_of(host: str) -> int:
        """Return the number of a host."""
        return int(host[9:].partition(".")[0])

    def url(self, host: int, number: int) -> str:
        """Return a page's URL, about as long as those of the web."""
        return f"http://{self.host(host)}/topic-{number % 37}/article-{number}.html?page={number % 5}"

    def size(self, host: int) -> int:
        """Return how many URLs of a host are known."""
        return self._sizes[host]

    def links_of(self, host: int) -> list[str]:
        """Return the links of one more page of `host`."""
        rng, url, size = self._rng.random, self.url, self._sizes[host]
        links = [url(host, n) for n in range(min(FIRST, size))]
        links += [url(host, int(size * rng() ** 2)) for _ in range(OWN)]
        for _ in range(OTHER):
            other = int(self.hosts * rng() ** 2)
            links.append(url(other, int(self._sizes[other] * rng() ** 3)))
        links += [url(host, size + n) for n in range(NEW)]
        self._sizes[host] = size + NEW
        return list(dict.fromkeys(links))

    def crawl_delay_s(self, host: int) -> float:
        """Return the gap between requests to a host that makes the active ones give their share of the pages."""
        if host < ACTIVE_HOSTS:
            return ACTIVE_GAP_S
        rest_per_s = ACTIVE_HOSTS / ACTIVE_GAP_S * (1 - ACTIVE_SHARE) / ACTIVE_SHARE
        return max(ACTIVE_GAP_S, (self.hosts - ACTIVE_HOSTS) / rest_per_s)


def _text() -> str:
    """Return text of made-up words that end as English ones do, long enough for pages to differ."""
    rng = random.Random("text")
    endings = "e" * 19 + "s" * 14 + "d" * 9 + "t" * 9 + "n" * 8 + "y" * 6 + "r" * 6 + "flaghmkp"
    words = ["".join(rng.choices("bcdfgklmnprst", k=1) + rng.choices("aeiou", k=2)) + rng.choice(endings) for _ in range(5000)]
    return " ".join(rng.choices(words, k=100_000))


class PageWriter:
    """Writes pages of `PAGE_BYTES` that hold given links, each with another piece of the text, about half of the page."""

    def __init__(self) -> None:
        self._text = _text()
        self._at = 0

    def write(self, title: str, links: list[str]) -> bytes:
        """Return one more page."""
        per_link = PAGE_BYTES // max(1, len(links))
        blocks = []
        for link in links:
            size = max(0, per_link - len(link) - 110)
            self._at = (self._at + size) % (len(self._text) - PAGE_BYTES)
            text = self._text[self._at : self._at + size]
            anchor = f'<a class="title" href="{link}">read on</a>'
            blocks.append(f'<li class="entry">{anchor} <span class="date">May</span> <p>{text}</p></li>\n')
        head = f"<!DOCTYPE html><html><head><meta charset=utf-8><title>{title}</title></head><body><ul>\n"
        return f"{head}{''.join(blocks)}</ul></body></html>\n".encode()
