"""CSV: any value comes back as it was through another reader, and no spreadsheet takes text for a formula."""

import csv
import io
import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from crawlkit.surfaces.csv_rows import FORMULA, csv_row

TEXT = st.text(st.characters(exclude_categories=["Cs"]))


def read(data: bytes) -> list[list[str]]:
    return list(csv.reader(io.StringIO(data.decode(), newline="")))


def taken_off(cell: str) -> str:
    """Return a text cell as it was: what the documentation tells whoever needs it."""
    return cell[1:] if cell.startswith("'") and FORMULA.match(cell) else cell


@given(st.lists(TEXT, min_size=1))
@example(["", ""])
@example([""])
@example(["=1+1", "'=1+1", "''=1", "'", "''", "'x", "-", "\r", "\n", "a\rb", 'a"b', "a,b", " a ", "\0"])
def test_text_comes_back_as_it_was(texts: list[str]) -> None:
    rows = read(csv_row(texts))
    assert [[taken_off(cell) for cell in row] for row in rows] == [texts]


@pytest.mark.parametrize("start", list("=+-@\t\r\n＝＋－＠"))  # noqa: RUF001
def test_text_like_a_formula_gets_an_apostrophe(start: str) -> None:
    ((cell, other),) = read(csv_row([f"{start}cmd", f"a{start}"]))
    assert cell == f"'{start}cmd"
    assert other == f"a{start}"


def test_other_values_are_nothing_truth_values_numbers_and_json() -> None:
    ((*cells, links, fields),) = read(csv_row([None, True, False, 0, -1, 1.5, ("a b", 'c"d,'), {"=k": "v"}]))
    assert cells == ["", "true", "false", "0", "-1", "1.5"]
    assert json.loads(links) == ["a b", 'c"d,']
    assert json.loads(fields) == {"=k": "v"}


def test_lines_end_in_a_line_feed_and_only_what_needs_it_is_quoted() -> None:
    assert csv_row(["é", "a,b", 'say "x"', "a\rb"]) == 'é,"a,b","say ""x""","a\rb"\n'.encode()
    assert csv_row(["x", None]) == b"x,\n"
