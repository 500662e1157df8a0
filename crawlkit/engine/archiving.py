"""What is archived of a fetch, and the archive of a crawl, opened to append to."""

import re
from typing import Final

import msgspec

from crawlkit.config import VERSION, Config, to_values
from crawlkit.exchange import Role, Settled
from crawlkit.model import Fetched, PageJob, Record
from crawlkit.state.crawl import CrawlState

_STATUS: Final = rb"HTTP/\S*[ \t]+(\d{1,3})"
_CONTENT_TYPE: Final = rb"(?im)^content-type:[ \t]*([^\s;,]*)"


def keep(state: CrawlState, fetched: Fetched, role: Role, record: Record | None = None) -> None:
    """Let the exchange of a fetch, if it is archived, wait for the next checkpoint; with the record that it settles."""
    exchange = fetched.exchange
    if exchange is None:
        return
    found = re.search(_CONTENT_TYPE, exchange.head)
    settled = Settled(
        url=fetched.job.url,
        role=role,
        exchange=exchange,
        started_s=fetched.started_s,
        ended_s=fetched.ended_s,
        attempt=fetched.job.attempts + 1,
        status=status_of(exchange.head),
        content_type=found[1].decode("latin-1").lower() or None if found else None,
        via=fetched.job.via if isinstance(fetched.job, PageJob) else None,
    )
    if record is not None:
        settled = msgspec.structs.replace(
            settled, depth=record.depth, hops=record.hops, reason=record.reason, links=record.links
        )
    state.outbox.add(settled)


def status_of(head: bytes) -> int:
    """Return the status in a head, 0 where there is none to be read: what a parser takes may still be odd."""
    found = re.match(_STATUS, head)
    return int(found[1]) if found else 0


def open_archive(state: CrawlState, config: Config) -> None:
    """Give a crawl that archives its archive, cut back to what is acknowledged; StorageError if that cannot be done."""
    if not config.warc:
        return
    from crawlkit.archive.files import cut_back  # noqa: PLC0415  (most crawls archive nothing)
    from crawlkit.archive.writer import Archive  # noqa: PLC0415

    cut_back(state.directory, state.crawl_id, state.extents.sizes)
    state.archiver = Archive(
        state.directory, state.crawl_id, state.extents.sizes, most_bytes=config.warc_size, about=_about(state, config)
    )


def _about(state: CrawlState, config: Config) -> dict[str, str]:
    """Return what each file says of the crawl (WARC 1.1 section 6.2.2), with the settings as one line of JSON."""
    operator = {"operator": config.contact} if config.contact else {}
    return {
        "conformsTo": "http://bibnum.bnf.fr/WARC/WARC_ISO_28500_version1-1_latest.pdf",
        "software": f"crawlkit/{VERSION}",
        "isPartOf": state.crawl_id,
        **operator,
        "http-header-user-agent": config.sent_user_agent(),
        "robots": "obey" if config.robots else "ignore",
        "crawlkit-settings": msgspec.json.encode(to_values(config)).decode(),
    }
