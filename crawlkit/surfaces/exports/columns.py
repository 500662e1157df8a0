"""The fields of a report's line as typed columns, read off `surfaces.lines`, so that a new field needs no word here."""

import types
import typing
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum, auto

import msgspec

from crawlkit.surfaces.lines import Line

_PLAIN = {bool: "TRUTH", int: "INTEGER", float: "REAL"}


class ColumnType(Enum):
    """What a column holds; any of them may hold nothing."""

    TEXT = auto()
    INTEGER = auto()
    REAL = auto()
    TRUTH = auto()
    TEXTS = auto()  # a list of texts
    NESTED = auto()  # maps, and lists of what is more than text


@dataclass(frozen=True, slots=True)
class Column:
    """One field of a line."""

    name: str
    type: ColumnType


def columns_of(struct: type[msgspec.Struct] = Line) -> tuple[Column, ...]:
    """Return the columns for the fields of `struct`, in their order."""
    hints = typing.get_type_hints(struct)
    return tuple(Column(name, _type_of(hints[name])) for name in struct.__struct_fields__)


def _type_of(hint: object) -> ColumnType:
    kinds = list(_without_none(hint))
    kind = kinds[0]
    if len(kinds) > 1:
        return ColumnType.NESTED
    if typing.get_origin(kind) in (tuple, list):
        arguments = [argument for argument in typing.get_args(kind) if argument is not Ellipsis]
        return ColumnType.TEXTS if arguments == [str] else ColumnType.NESTED
    if not isinstance(kind, type):
        return ColumnType.NESTED
    if issubclass(kind, str):
        return ColumnType.TEXT
    name = _PLAIN.get(kind)
    return ColumnType.NESTED if name is None else ColumnType[name]


def _without_none(hint: object) -> Iterator[object]:
    """Yield the types that `hint` allows besides None."""
    if typing.get_origin(hint) in (types.UnionType, typing.Union):
        yield from (part for part in typing.get_args(hint) if part is not types.NoneType)
    else:
        yield hint


def as_json(value: object) -> str:
    """Return a nested value as the text that CSV and SQLite hold."""
    return _to_json(value).decode()


_to_json = msgspec.json.Encoder().encode
