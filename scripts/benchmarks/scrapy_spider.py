"""The peer Scrapy: follows every link of one host. Runs in the environment of the peers; imports nothing of crawlkit.

It stores no items, which favours it: crawlkit keeps a record of each page.
"""

from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import scrapy  # type: ignore[import-not-found]  # in the peers' environment only


class SiteSpider(scrapy.Spider):  # type: ignore[misc]
    """Follows all links within the host of `seed`."""

    name = "site"

    def __init__(self, seed: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.start_urls = [seed]
        self.allowed_domains = [urlsplit(seed).hostname]
        self.pages = 0

    def parse(self, response: Any) -> Iterator[Any]:
        """Yield a request for each link."""
        self.pages += 1
        for href in response.css("a::attr(href)").getall():
            yield response.follow(href, callback=self.parse)

    def closed(self, reason: str) -> None:
        """Print how many pages came."""
        print(self.pages)
