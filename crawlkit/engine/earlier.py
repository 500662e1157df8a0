"""An earlier crawl, to ask servers only for what has changed since: its records are read, nothing of it is changed.

What it knows of a page is taken over if the server says 304, Not Modified (RFC 9110 section 13), so it must have been made
with the same settings as far as they decide what is read of a page, and what the server is asked for.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http import HTTPStatus
from pathlib import Path

import msgspec

from crawlkit.config import Config
from crawlkit.errors import ConfigError, StateError
from crawlkit.model import Facts, Kind, Record
from crawlkit.policy.records import facts_of
from crawlkit.state.reading import CrawlReader

DECISIVE = (
    "max_body", "max_links", "extract", "near_duplicates", "text", "anchors", "render", "user_agent", "header", "auth",
)  # fmt: skip
"""Settings in which both crawls must agree."""


class Known(msgspec.Struct, frozen=True):
    """A page as the earlier crawl knows it: what to send for it to be asked for if it has changed, and what else holds."""

    validators: tuple[tuple[bytes, bytes], ...]
    facts: Facts


class Earlier:
    """Look-ups in an earlier crawl."""

    def __init__(self, crawl: CrawlReader) -> None:
        self._crawl = crawl

    def known(self, url: str) -> Known | None:
        """Return what is known of a page, None if it was not had whole, or with nothing to tell a change by."""
        record = self._crawl.pages.get(url)
        if record is None or record.kind is not Kind.PAGE or record.status != HTTPStatus.OK or record.truncated:
            return None
        validators = _validators(record)
        return Known(validators, facts_of(record, self._crawl.pages.content(url))) if validators else None


def _validators(record: Record) -> tuple[tuple[bytes, bytes], ...]:
    given = ((b"If-None-Match", record.etag), (b"If-Modified-Since", record.last_modified))
    return tuple((name, value.encode("latin-1")) for name, value in given if value)


def identity_of(directory: Path, config: Config) -> Mapping[str, str]:
    """Return what to remember of the earlier crawl in `directory`: where it is, and which it is.

    StateError and its kinds if it cannot be opened, ConfigError if it was made with other settings than `config`.
    """
    from crawlkit.engine.partitions import open_for_reading  # noqa: PLC0415  (most crawls go by no earlier one)

    with open_for_reading(directory) as crawl:
        for key in DECISIVE:
            if getattr(crawl.config(), key) != getattr(config, key):
                raise ConfigError(
                    f"--since: the crawl in {directory} was made with another {key}, so it does not know "
                    "what this one would of a page; use the same, or crawl without --since"
                )
        return {"directory": str(directory.resolve()), "crawl_id": crawl.manifest.crawl_id}


@contextmanager
def open_earlier(identity: Mapping[str, str] | None) -> Iterator[Earlier | None]:
    """Lock and open the earlier crawl, if there is one; StateError and its kinds if it is gone, running, or another one."""
    if identity is None:
        yield None
        return
    from crawlkit.engine.partitions import open_for_reading  # noqa: PLC0415

    directory = Path(identity["directory"])
    with open_for_reading(directory) as crawl:
        if crawl.manifest.crawl_id != identity["crawl_id"]:
            raise StateError(f"{directory} holds another crawl than the one that this crawl goes by (--since)")
        yield Earlier(crawl)
