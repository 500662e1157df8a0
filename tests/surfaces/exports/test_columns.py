"""Columns are read off the types of a struct's fields."""

from enum import StrEnum
from typing import Optional

import msgspec

from crawlkit.surfaces.exports.columns import Column, ColumnType, columns_of
from crawlkit.surfaces.lines import Line


class Colour(StrEnum):
    RED = "red"


class Sample(msgspec.Struct):
    text: str | None
    code: Colour
    number: int | None
    share: Optional[float]  # noqa: UP045  (the older spelling of the same)
    truth: bool | None
    texts: tuple[str, ...]
    more_texts: list[str] | None
    pairs: tuple[tuple[str, str], ...]
    numbers: tuple[int, ...]
    mapping: dict[str, str]
    either: str | list[str]


def test_a_column_has_the_type_of_its_field() -> None:
    kinds = {
        "text": ColumnType.TEXT,
        "code": ColumnType.TEXT,
        "number": ColumnType.INTEGER,
        "share": ColumnType.REAL,
        "truth": ColumnType.TRUTH,
        "texts": ColumnType.TEXTS,
        "more_texts": ColumnType.TEXTS,
        "pairs": ColumnType.NESTED,
        "numbers": ColumnType.NESTED,
        "mapping": ColumnType.NESTED,
        "either": ColumnType.NESTED,
    }
    assert columns_of(Sample) == tuple(Column(name, kind) for name, kind in kinds.items())


def test_the_report_s_fields_are_the_columns() -> None:
    assert tuple(column.name for column in columns_of()) == Line.__struct_fields__
