"""A crawl as one Parquet file, by pyarrow, which is an extra: one row for each admitted URL.

The columns are the report's fields and `text`. Lists of texts are lists; maps are JSON, since data frames show Parquet's
maps as lists of pairs. Row groups are cut by a count of rows, links and characters, so memory holds one of them, and equal
records give equal bytes (with the same pyarrow).
"""

import importlib
from collections.abc import Callable
from typing import Any

from crawlkit.errors import UsageError
from crawlkit.surfaces.exports.columns import Column, ColumnType, as_json, columns_of
from crawlkit.surfaces.exports.job import ExportJob
from crawlkit.surfaces.exports.rows import FullLine, GroupSize, groups_of

_GROUP = GroupSize(rows=5_000, links=100_000, characters=16_000_000)


def parquet_writer() -> Callable[[ExportJob], int]:
    """Return the writer; UsageError, naming the extra, where pyarrow is not installed."""
    try:
        arrow, parquet = importlib.import_module("pyarrow"), importlib.import_module("pyarrow.parquet")
    except ImportError as error:
        raise UsageError("Parquet needs pyarrow, which is not installed: pip install 'crawlkit[parquet]'") from error
    return lambda job: _write(arrow, parquet, job)


def _write(arrow: Any, parquet: Any, job: ExportJob) -> int:
    columns = columns_of(FullLine)
    schema = arrow.schema([(column.name, _type_of(arrow, column.type)) for column in columns])
    count = 0
    with parquet.ParquetWriter(job.out, schema, compression="zstd") as writer:
        for group in groups_of(job, _GROUP):
            arrays = [
                arrow.array([_value(column, row.line) for row in group], type=field.type)
                for column, field in zip(columns, schema, strict=True)
            ]
            writer.write_table(arrow.Table.from_arrays(arrays, schema=schema), row_group_size=len(group))
            count += len(group)
        writer.add_key_value_metadata({f"crawlkit.{name}": value for name, value in job.facts().items()})
    return count


def _type_of(arrow: Any, type_: ColumnType) -> Any:
    types = {
        ColumnType.INTEGER: arrow.int64(),
        ColumnType.REAL: arrow.float64(),
        ColumnType.TRUTH: arrow.bool_(),
        ColumnType.TEXTS: arrow.list_(arrow.string()),
    }
    return types.get(type_, arrow.string())


def _value(column: Column, line: FullLine) -> object:
    value = getattr(line, column.name)
    return as_json(value) if column.type is ColumnType.NESTED and value is not None else value
