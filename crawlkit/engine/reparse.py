"""`reparse`: the fields of records picked anew, by other rules, from the archive. Without the network.

What a page says of itself in words (title, description, language, headings, words) is read anew with them, by the same code
that reads answers as they come. Links and digests stay: the crawl rests on them. Each batch is a checkpoint of its own, the
first one has the new settings; after a kill the same command does it all again, with the same result.
"""

import itertools
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from crawlkit.archive.reading import BrokenRecordError
from crawlkit.archive.replay import Replay
from crawlkit.config import Config
from crawlkit.config_extract import parse_extract
from crawlkit.errors import StateDamaged, UsageError
from crawlkit.exchange import Extent, Role
from crawlkit.model import FetchFailure, Kind, Record
from crawlkit.net.replay import answer_of
from crawlkit.policy.facts import read_answer
from crawlkit.policy.wanted import Wanted
from crawlkit.shell import as_argument
from crawlkit.state.crawl import CrawlState

EXTENTS_A_BATCH = 500

_READ_ANEW = ("title", "description", "language", "headings", "words", "text_digest")


@dataclass(frozen=True, slots=True)
class Reparsed:
    """How many pages were read anew, and how many records changed by that."""

    pages: int
    changed: int


def reparse(directory: Path, extract: Sequence[str], now: float) -> Reparsed:
    """Read the pages of the crawl in `directory` anew, with the rules `extract`, or where there are none with its own.

    Raises:
        UsageError, ConfigError: the crawl keeps no archive; a rule cannot be.
        StateError and its kinds: the crawl is running, or cannot be opened; bytes of its archive are gone.
        StorageError: a checkpoint could not be written. What was written stays.
    """
    with CrawlState.open(directory) as state:
        config = state.config()
        if not config.warc:
            raise UsageError(f"{directory} keeps no archive to read from: only a crawl begun with --warc does")
        if config.render:
            raise UsageError(f"{directory} was rendered, and its archive holds what servers sent, not what browsers showed")
        before = config.extract
        if extract:
            config = replace(config, extract=tuple(extract))
        state.begin_run(now)
        state.change_settings(config, {"extract": list(config.extract), "extract_before": list(before)})
        state.checkpoint()
        with closing(Replay(directory, state.crawl_id)) as archive:
            reparsed = _Reparsing(state, config, archive).run()
        state.end_run(now, "reparsed")
        state.checkpoint()
        return reparsed


class _Reparsing:
    """One walk over the archive, in the order in which it lies there."""

    def __init__(self, state: CrawlState, config: Config, archive: Replay) -> None:
        self._state = state
        self._archive = archive
        self._max_body = config.max_body
        rules = tuple(map(parse_extract, config.extract))
        self._wanted = Wanted(config.product_token().lower(), config.max_links, rules)
        self._picked = frozenset(_names_ever_picked(state))

    def run(self) -> Reparsed:
        """Read all of it; what changes is written a batch at a time."""
        pages = changed = 0
        extents = (extent for extent in self._state.extents.walk() if extent.role is Role.RECORD)
        while batch := list(itertools.islice(extents, EXTENTS_A_BATCH)):
            for extent in batch:
                record = self._state.pages.get(extent.url)
                if record is None or record.kind is not Kind.PAGE or record.status != extent.status:
                    continue  # after a 304 the page is another crawl's
                pages += 1
                anew = self._read(record, extent)
                if anew != record:
                    changed += 1
                    self._state.pages.put(anew)
            if self._state.changed:
                self._state.checkpoint()
        return Reparsed(pages, changed)

    def _read(self, record: Record, extent: Extent) -> Record:
        original = None if extent.original is None else self._state.extents.at(*extent.original)
        try:
            head, body = self._archive.answer(extent, original)
            answer = answer_of(head, body, self._max_body, truncated=extent.cut is not None)
        except (BrokenRecordError, OSError) as error:
            what = error.strerror if isinstance(error, OSError) else error
            raise StateDamaged(
                f"the archive in {self._state.directory} cannot be read at {record.url}: {what}; where bytes are gone, "
                f"crawlkit resume {as_argument(self._state.directory)} fetches them again"
            ) from error
        if isinstance(answer, FetchFailure):
            return record
        facts = read_answer(record.url, answer, self._wanted, sketched=False)
        others = {name: value for name, value in record.fields.items() if name not in self._picked}  # of plugins
        anew = {name: getattr(facts, name) for name in _READ_ANEW}
        return msgspec.structs.replace(record, fields={**facts.fields, **others}, **anew)


def _names_ever_picked(state: CrawlState) -> Iterator[str]:
    """Yield the names of all rules of the ledger: a kill may have left records that were read by any of them."""
    for run in state.runs:
        for key in ("extract", "extract_before"):
            yield from (parse_extract(item).name for item in run.changes.get(key, ()))
