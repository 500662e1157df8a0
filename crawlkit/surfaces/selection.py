"""Which fields of its records a report shows: `--fields`."""

import difflib
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from crawlkit.config_values import shown
from crawlkit.errors import UsageError
from crawlkit.model import Record
from crawlkit.surfaces.lines import TimedLine, as_timed_line

EXTRACTED = "fields."
"""What stands before the name of a field that `--extract` picked."""

TEXT = "text"
"""The main text of a page, which only this shows: it is kept apart from the record."""


@dataclass(frozen=True, slots=True)
class Selection:
    """The fields that are shown, in this order; `text_of` looks up the text of a page."""

    names: tuple[str, ...]
    text_of: Callable[[str], str | None] = lambda _: None

    def values(self, record: Record) -> dict[str, object]:
        """Return the fields of a record by name."""
        line = as_timed_line(record)
        return {name: self.text_of(record.url) if name == TEXT else _value(line, name) for name in self.names}


def _value(line: TimedLine, name: str) -> object:
    if name.startswith(EXTRACTED):
        return line.fields.get(name.removeprefix(EXTRACTED))
    return getattr(line, name)


def read_fields(text: str, extracted: Iterable[str] | None) -> tuple[str, ...]:
    """Return the field names in a list with commas.

    `extracted` are the names that the crawl's `extract` gives, None where any may be there, as plugins give them.

    Raises:
        UsageError: there is none, one is there twice, or one is unknown: then it names the nearest.
    """
    known = (*TimedLine.__struct_fields__, TEXT, *(EXTRACTED + name for name in extracted or ()))
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    if not names:
        raise UsageError("--fields: name at least one field, as in --fields url,title")
    for name in names:
        if name not in known and not (extracted is None and name.startswith(EXTRACTED)):
            near = difflib.get_close_matches(name, known, n=1, cutoff=0.0)[0]
            raise UsageError(f"--fields: unknown field {shown(name)}; the nearest known one is {near}")
        if names.count(name) > 1:
            raise UsageError(f"--fields: {shown(name)} is there twice")
    return names
