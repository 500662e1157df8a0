"""The archive: WARC 1.1 files (ISO 28500:2017), one gzip member a record. Knows nothing of the crawl's state.

Modules in the order that an exchange meets them: `records` makes WARC records of it, `files` names the archive's files and
changes what is on disk, `writer` appends to them and tells where, `reading` reads one record back, `replay` gives the answer in
it, `check` looks for what is wrong with a file, `cdxj` lists what there is for tools that replay.
"""
