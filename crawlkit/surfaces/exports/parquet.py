"""A crawl as one Parquet file, by pyarrow, which is an extra: one row for each admitted URL, the report's fields as columns.

Lists of texts are lists; maps are JSON, since data frames show Parquet's maps as lists of pairs. Row groups are cut by a
count of rows and of links, so memory holds one of them, and equal records give equal bytes (with the same pyarrow).
"""

import importlib
from collections.abc import Callable, Iterator
from typing import Any

from crawlkit.errors import UsageError
from crawlkit.model import Record
from crawlkit.surfaces.exports.columns import Column, ColumnType, as_json, columns_of
from crawlkit.surfaces.exports.job import ExportJob
from crawlkit.surfaces.lines import Line, as_line

_GROUP_ROWS = 5_000
_GROUP_LINKS = 100_000


def parquet_writer() -> Callable[[ExportJob], int]:
    """Return the writer; UsageError, naming the extra, where pyarrow is not installed."""
    try:
        arrow, parquet = importlib.import_module("pyarrow"), importlib.import_module("pyarrow.parquet")
    except ImportError as error:
        raise UsageError("Parquet needs pyarrow, which is not installed: pip install 'crawlkit[parquet]'") from error
    return lambda job: _write(arrow, parquet, job)


def _write(arrow: Any, parquet: Any, job: ExportJob) -> int:
    columns = columns_of()
    schema = arrow.schema([(column.name, _type_of(arrow, column.type)) for column in columns])
    count = 0
    with parquet.ParquetWriter(job.out, schema, compression="zstd") as writer:
        for group in _groups(job.records()):
            arrays = [
                arrow.array([_value(column, line) for line in group], type=field.type)
                for column, field in zip(columns, schema, strict=True)
            ]
            writer.write_table(arrow.Table.from_arrays(arrays, schema=schema), row_group_size=len(group))
            count += len(group)
        writer.add_key_value_metadata(_meta(job))
    return count


def _groups(records: Iterator[Record]) -> Iterator[list[Line]]:
    group: list[Line] = []
    links = 0
    for record in records:
        group.append(as_line(record))
        links += len(record.links)
        if len(group) == _GROUP_ROWS or links >= _GROUP_LINKS:
            yield group
            group, links = [], 0
    if group:
        yield group


def _type_of(arrow: Any, type_: ColumnType) -> Any:
    types = {
        ColumnType.INTEGER: arrow.int64(),
        ColumnType.REAL: arrow.float64(),
        ColumnType.TRUTH: arrow.bool_(),
        ColumnType.TEXTS: arrow.list_(arrow.string()),
    }
    return types.get(type_, arrow.string())


def _value(column: Column, line: Line) -> object:
    value = getattr(line, column.name)
    return as_json(value) if column.type is ColumnType.NESTED and value is not None else value


def _meta(job: ExportJob) -> dict[str, str]:
    counts = job.tally.counts()
    return {
        **{f"crawlkit.{kind}": str(count) for kind, count in counts.by_kind().items()},
        "crawlkit.report_sha256": counts.sha256,
        "crawlkit.settings_hash": job.meta.settings_hash,
        "crawlkit.deterministic": as_json(job.meta.deterministic),
        "crawlkit.reasons": as_json(job.meta.reasons),
    }
