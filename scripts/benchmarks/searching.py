"""`search`: how long `crawlkit search` takes to find the best pages."""

import tempfile
from pathlib import Path

from benchmarks.figures import Unit, emit_medians
from benchmarks.processes import run_part

UNITS = {
    "common_s": Unit("three words that most pages have", "s"),
    "phrase_s": Unit("a phrase of two such words", "s"),
    "rare_s": Unit("a rare word and a common one", "s"),
    "disk_bytes": Unit("bytes on disk a page", "B"),
    "memory_mib": Unit("anonymous memory when the index was made", "MiB"),
}


def bench_search(pages: int, words: int, repeat: int) -> None:
    """Print the figures for an index of so many pages with so many words each."""
    runs = []
    for _ in range(repeat):
        with tempfile.TemporaryDirectory(prefix="bench-search-") as folder:
            options = {"pages": pages, "words": words, "directory": Path(folder) / "index"}
            runs.append(run_part("search_part", options))
    emit_medians("search", UNITS, runs, pages=pages, words=words)
