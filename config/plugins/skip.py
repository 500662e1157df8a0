"""Skips URLs that match a pattern in a database of its own: one regular expression a row.

    sqlite3 skip.db "create table patterns (pattern text); insert into patterns values ('/print/')"
    SKIP_DB=skip.db crawlkit run https://example.com/ --plugin config/plugins/skip.py

Seeds are not asked about. What is skipped has no record; `status` counts it as `hook.refused`.
"""

import os
import re
import sqlite3

with sqlite3.connect(f"file:{os.environ['SKIP_DB']}?mode=ro", uri=True) as database:
    PATTERNS = [re.compile(pattern) for (pattern,) in database.execute("select pattern from patterns")]


def accept(url: str) -> bool:
    """Take what no pattern matches."""
    return not any(pattern.search(url) for pattern in PATTERNS)
