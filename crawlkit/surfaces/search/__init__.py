"""Searching the words of a crawl's pages, by SQLite's FTS5.

1. `full_text`: the full-text index as SQL, which the SQLite export has too.
2. `index`: `search.sqlite` in the crawl's directory, made when it is missing or behind the crawl.
3. `query`: words asked for, pages found, best first.
"""
