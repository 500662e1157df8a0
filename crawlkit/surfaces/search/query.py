"""Words asked of the index, and the pages that have all of them, best first."""

import re
import sqlite3
from collections.abc import Iterator, Sequence

import msgspec

# What SQLite puts around a word that matched: control characters, which the text of a page has not.
_OPEN, _CLOSE = "\x02", "\x03"
_MARK = re.compile(f"[{_OPEN}{_CLOSE}]")
_SNIPPET_WORDS = 24

_BEST = "SELECT rowid, rank FROM records_fts WHERE records_fts MATCH ? ORDER BY rank, rowid LIMIT ?"
_SHOWN = f"""
    SELECT r.url, r.title, snippet(records_fts, -1, '{_OPEN}', '{_CLOSE}', '…', {_SNIPPET_WORDS})
    FROM records_fts JOIN records r ON r.id = records_fts.rowid WHERE records_fts MATCH ? AND records_fts.rowid = ?
"""


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """A page; `matches` are the ranges of `snippet`, in characters, that were asked for. A higher score is better (BM25)."""

    url: str
    title: str | None
    snippet: str
    matches: tuple[tuple[int, int], ...]
    score: float


def match_of(words: Sequence[str]) -> str:
    """Return the FTS5 query for pages with all of `words`: each is quoted, so that nothing in it is an operator.

    A word with blanks in it is a phrase, as punctuation inside of a word makes it one too.
    """
    return " ".join('"' + _text(word).replace('"', '""') + '"' for word in words)


def _text(word: str) -> str:
    """Return a word without what SQLite takes for its end, and without bytes of a command line that were no text."""
    return word.replace("\0", " ").encode(errors="replace").decode()


def find(database: sqlite3.Connection, words: Sequence[str], limit: int) -> list[Found]:
    """Return up to `limit` pages, the best first, equal ones in the order of URLs."""
    return list(_find(database, match_of(words), limit))


def _find(database: sqlite3.Connection, match: str, limit: int) -> Iterator[Found]:
    for row, rank in database.execute(_BEST, (match, limit)).fetchall():
        ((url, title, marked),) = database.execute(_SHOWN, (match, row))
        snippet, matches = _unmark(marked)
        yield Found(url=url, title=title, snippet=snippet, matches=matches, score=-rank)


def _unmark(marked: str) -> tuple[str, tuple[tuple[int, int], ...]]:
    """Return the text without marks, and the ranges that they enclosed."""
    text = ""
    matches = []
    last = 0
    for mark in _MARK.finditer(marked):
        text += marked[last : mark.start()]
        last = mark.end()
        if mark[0] == _OPEN:
            begin = len(text)
        else:
            matches.append((begin, len(text)))
    return text + marked[last:], tuple(matches)
