"""The full-text index of a table `records` in an SQLite file that is being written."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

WEIGHTS: Mapping[str, float] = MappingProxyType({"title": 10.0, "description": 5.0, "text": 1.0})
"""The columns that hold words, and how much a word in one counts when pages are ranked."""

# Without a journal, since a file that could not be finished is thrown away.
UNSAFE_AND_FAST = """
    PRAGMA journal_mode = OFF;
    PRAGMA synchronous = OFF;
    PRAGMA locking_mode = EXCLUSIVE;
    PRAGMA cache_size = -32768;
"""


def full_text_index(columns: Sequence[str]) -> str:
    """Return the SQL that makes `records_fts` of the `columns` of all records; words match whatever their case and accents."""
    # datasette finds the index of a table by the very letters of `content="records"`.
    weights = ", ".join(str(WEIGHTS[name]) for name in columns)
    return f"""
        CREATE VIRTUAL TABLE records_fts USING fts5(
            {", ".join(columns)}, content="records", content_rowid = 'id', tokenize = 'unicode61 remove_diacritics 2'
        );
        INSERT INTO records_fts (records_fts, rank) VALUES ('rank', 'bm25({weights})');
        INSERT INTO records_fts (records_fts) VALUES ('rebuild');
        INSERT INTO records_fts (records_fts) VALUES ('optimize');
    """
