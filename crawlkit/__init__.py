"""crawlkit: a crawler that can be killed at any moment, and whose report is the same all the same.

from crawlkit import Config, crawl, report

result = crawl(["https://example.com/"], dir="example.crawl", config=Config(max_depth=2), on_page=print)
for record in report("example.crawl"):
    ...
"""

from crawlkit.api import CrawlResult, crawl, crawl_async, report, resume, resume_async
from crawlkit.config import Config
from crawlkit.errors import CrawlCancelled, CrawlError, PageFailed, PageTimedOut
from crawlkit.model import Kind, Record

__all__ = [
    "Config",
    "CrawlCancelled",
    "CrawlError",
    "CrawlResult",
    "Kind",
    "PageFailed",
    "PageTimedOut",
    "Record",
    "crawl",
    "crawl_async",
    "report",
    "resume",
    "resume_async",
]
