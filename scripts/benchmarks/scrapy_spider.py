"""The peer Scrapy: follows every link of one host. Runs in the environment of the peers; imports nothing of crawlkit.

It stores no items, which favours it: crawlkit keeps a record of each page.
"""

from urllib.parse import urlsplit

import scrapy


class SiteSpider(scrapy.Spider):
    """Follows all links within the host of `seed`."""

    name = "site"

    def __init__(self, seed: str, **kwargs) -> None:
        super().__init__(**kwargs)
        self.start_urls = [seed]
        self.allowed_domains = [urlsplit(seed).hostname]
        self.pages = 0

    def parse(self, response):
        """Yield a request for each link."""
        self.pages += 1
        for href in response.css("a::attr(href)").getall():
            yield response.follow(href, callback=self.parse)

    def closed(self, reason) -> None:
        """Print how many pages came."""
        print(self.pages)
