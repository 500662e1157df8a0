"""Exports: the records of a crawl in the formats that other programs read.

1. `formats`: the closed list of formats, and which writer each has.
2. `job`: what a writer is given, and how files are replaced together.
3. `columns`: the report's fields as typed columns.
4. One module for each format that is more than the report: `sqlite`, `parquet`, `edges`, `sitemap`.

Writers take one record at a time, in the order of URLs, and write nothing that depends on the clock.
"""
