"""What the settings ask of each page beside what a crawl cannot do without."""

import sys
from dataclasses import dataclass

from crawlkit.config_extract import ExtractRule


@dataclass(frozen=True, slots=True)
class Wanted:
    """`agent` is our product token in lower case; `most_links` how many links are kept; `rules` the fields to pick."""

    agent: str = "crawlkit"
    most_links: int = sys.maxsize
    rules: tuple[ExtractRule, ...] = ()


NOTHING_MORE = Wanted()
