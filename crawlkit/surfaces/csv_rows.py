"""Rows of comma-separated values: RFC 4180 in UTF-8, with a header, lines ended by a line feed alone.

Nothing is an empty cell, a truth value `true` or `false`, a list or a map its JSON. Spreadsheets run text that begins like
a formula, and a title is whatever a site says it is, so such text gets an apostrophe in front. So that it can be taken off
again without doubt, text that begins with apostrophes and then like a formula gets one more: whoever wants the text as it
was strips one apostrophe where `FORMULA` matches.
"""

import csv
import re
from collections.abc import Iterable

import msgspec

FORMULA = re.compile(r"'*[=+\-@\t\r\n＝＋－＠]")  # noqa: RUF001  (the wide ones count as formulas in East Asian settings)
"""What text begins with that a spreadsheet may run (OWASP, CSV injection), behind apostrophes or not."""

_to_json = msgspec.json.Encoder().encode


class _Line:
    """What the csv module writes to, one row at a time."""

    text = ""

    def write(self, text: str) -> None:
        self.text = text


class CsvRows:
    """Turns rows of values into bytes."""

    def __init__(self) -> None:
        self._line = _Line()
        # It quotes the bytes of its line end, so with CRLF a lone CR is quoted too, as the RFC asks.
        self._writer = csv.writer(self._line, lineterminator="\r\n")

    def row(self, values: Iterable[object]) -> bytes:
        """Return one row."""
        self._writer.writerow(map(_cell, values))
        return self._line.text.removesuffix("\r\n").encode() + b"\n"


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return f"'{value}" if FORMULA.match(value) else value
    return _to_json(value).decode()
