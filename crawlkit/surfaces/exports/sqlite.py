"""A crawl as one SQLite file: records, their links, what the crawl says of itself, and a full-text index.

    records   one row for each admitted URL, the report's fields but links, and `text`; `id` follows the order of URLs
    links     one row for each link of each page: `source` is the id of a record, `target` a URL, admitted or not
    meta      counts, the settings' hash, the SHA-256 of the JSON report, and whether the crawl depended on order
    pages     a view: the records of kind page
    records_fts   FTS5 over what the records hold of words, by the records' id

The file is written without a journal, since it is thrown away when anything fails, and indexes are made when all rows are
there: SQLite sorts them outside of memory, in its temporary directory.
"""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing

import msgspec

from crawlkit.surfaces.exports.columns import Column, ColumnType, as_json, columns_of
from crawlkit.surfaces.exports.edges import edges_of
from crawlkit.surfaces.exports.job import ExportJob
from crawlkit.surfaces.exports.rows import FullLine, GroupSize, groups_of
from crawlkit.surfaces.search.full_text import UNSAFE_AND_FAST, WEIGHTS, full_text_index
from crawlkit.surfaces.sqlite_errors import sqlite_errors

LINKS = "links"

_AT_ONCE = GroupSize(rows=500, links=20_000, characters=4_000_000)
_TYPES = {ColumnType.INTEGER: "INTEGER", ColumnType.TRUTH: "INTEGER", ColumnType.REAL: "REAL"}
_INDEXED = ("kind", "status", "title", "digest", "redirect_to", "canonical")

_LINKS_TABLE = """
    CREATE TABLE links (
        source INTEGER NOT NULL REFERENCES records (id),
        position INTEGER NOT NULL,
        target TEXT NOT NULL,
        text TEXT,
        rel TEXT
    );
    CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
    CREATE VIEW pages AS SELECT * FROM records WHERE kind = 'page';
"""
_LINKS_INDEXES = """
    CREATE INDEX links_source ON links (source);
    CREATE INDEX links_target ON links (target);
"""


def write_sqlite(job: ExportJob) -> int:
    """Write the database and return how many records it has."""
    columns = tuple(column for column in columns_of(FullLine) if column.name != LINKS)
    words = [column.name for column in columns if column.name in WEIGHTS]
    with sqlite_errors(f"cannot write {job.path}"), closing(sqlite3.connect(job.out.name, isolation_level=None)) as database:
        database.executescript(UNSAFE_AND_FAST + records_table(columns) + _LINKS_TABLE)
        database.execute("BEGIN")
        count = _fill(database, job, columns)
        database.executemany("INSERT INTO meta VALUES (?, ?)", job.facts().items())
        database.execute("COMMIT")
        database.executescript(_indexes(columns) + _LINKS_INDEXES + full_text_index(words))
    return count


def records_table(columns: Sequence[Column]) -> str:
    """Return the SQL that makes the table of records."""
    defined = ", ".join(f'"{column.name}" {_TYPES.get(column.type, "TEXT")}' for column in columns)
    return f"CREATE TABLE records (id INTEGER PRIMARY KEY, {defined});\n"


def values_of(line: msgspec.Struct, columns: Sequence[Column]) -> Iterator[object]:
    """Yield what a row holds of a line."""
    for column in columns:
        value = getattr(line, column.name)
        nested = column.type in (ColumnType.TEXTS, ColumnType.NESTED) and value is not None
        yield as_json(value) if nested else value


def _fill(database: sqlite3.Connection, job: ExportJob, columns: Sequence[Column]) -> int:
    marks = ", ".join("?" * (len(columns) + 1))
    number = 0
    for group in groups_of(job, _AT_ONCE):
        numbered = list(enumerate(group, number + 1))
        rows = [(number, *values_of(row.line, columns)) for number, row in numbered]
        edges = ((number, at, edge) for number, row in numbered for at, edge in enumerate(edges_of(row.record, row.content)))
        links = ((number, at, edge.target, edge.text, edge.rel) for number, at, edge in edges)
        database.executemany(f"INSERT INTO records VALUES ({marks})", rows)
        database.executemany("INSERT INTO links VALUES (?, ?, ?, ?, ?)", links)
        number += len(group)
    return number


def _indexes(columns: Sequence[Column]) -> str:
    names = {column.name for column in columns}
    made = (f"CREATE INDEX records_{name} ON records ({name});\n" for name in _INDEXED if name in names)
    return "CREATE UNIQUE INDEX records_url ON records (url);\n" + "".join(made)
