"""crawlkit: a crawler that can be killed at any moment, and whose report is the same all the same.

from crawlkit import Config, crawl, report

result = crawl(["https://example.com/"], dir="example.crawl", config=Config(max_depth=2), on_page=print)
for record in report("example.crawl"):
    ...
"""

TYPE_CHECKING = False  # as `typing` has it, whose import would be half of what ours takes

if TYPE_CHECKING:
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

if not TYPE_CHECKING:  # else any name would pass for one of ours
    _HOMES = {
        **dict.fromkeys(("CrawlResult", "crawl", "crawl_async", "report", "resume", "resume_async"), "crawlkit.api"),
        **dict.fromkeys(("CrawlCancelled", "CrawlError", "PageFailed", "PageTimedOut"), "crawlkit.errors"),
        **dict.fromkeys(("Kind", "Record"), "crawlkit.model"),
        "Config": "crawlkit.config",
    }

    def __getattr__(name: str) -> object:
        """Import a public name when it is asked for (PEP 562): all take half a second, and the command line needs few."""
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib import import_module  # noqa: PLC0415  (takes longer than all that this module does)

        value = globals()[name] = getattr(import_module(_HOMES[name]), name)
        return value

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
