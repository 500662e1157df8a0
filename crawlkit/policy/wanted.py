"""What the settings ask of each page beside what a crawl cannot do without."""

import sys

import msgspec

from crawlkit.config_extract import ExtractRule


class Wanted(msgspec.Struct, frozen=True):
    """`agent` is our product token in lower case; `most_links` how many links are kept; `rules` the fields to pick.

    `simhash` says that pages are to be compared, `text` and `anchors` that these are to be kept of each.
    """

    agent: str = "crawlkit"
    most_links: int = sys.maxsize
    rules: tuple[ExtractRule, ...] = ()
    simhash: bool = False
    text: bool = False
    anchors: bool = False


NOTHING_MORE = Wanted()
