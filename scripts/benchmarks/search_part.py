"""Make a search index of generated texts and ask it.

python -m benchmarks.search_part --pages N --words N --directory DIR
"""

import argparse
import itertools
import json
import random
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

from benchmarks.memory_of import anonymous_mib
from crawlkit.surfaces.search.index import Entry, Stamp, write_index
from crawlkit.surfaces.search.query import find

VOCABULARY = [f"word{number}" for number in range(100_000)]
WEIGHTS = [1 / (number + 1) for number in range(len(VOCABULARY))]  # as in a language: Zipf's law
ASKED = {"common_s": ("word0", "word1", "word2"), "phrase_s": ("word0 word1",), "rare_s": ("word50000", "word3")}


def _entries(pages: int, words: int) -> Iterator[Entry]:
    """Yield pages with a title of six words and a text of so many."""
    rng = random.Random(7)
    cumulated = list(itertools.accumulate(WEIGHTS))
    for number in range(pages):
        drawn = rng.choices(VOCABULARY, cum_weights=cumulated, k=6 + words)
        yield Entry(f"https://example.com/{number:08}", " ".join(drawn[:6]), None, " ".join(drawn[6:]))


def _ask(path: Path, words: Sequence[str]) -> float:
    """Return how long it took to open the index and find the ten best pages."""
    began_s = time.perf_counter()
    with closing(sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)) as database:
        find(database, words, 10)
    return time.perf_counter() - began_s


def measure(options: argparse.Namespace) -> dict[str, float]:
    """Return the figures."""
    options.directory.mkdir()
    path = options.directory / "search.sqlite"
    write_index(path, _entries(options.pages, options.words), Stamp(1, "bench", 1))
    figures = {"memory_mib": anonymous_mib(), "disk_bytes": path.stat().st_size / options.pages}
    return figures | {name: _ask(path, words) for name, words in ASKED.items()}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--pages", type=int, required=True)
    parser.add_argument("--words", type=int, required=True)
    parser.add_argument("--directory", type=Path, required=True)
    print(json.dumps(measure(parser.parse_args())))


if __name__ == "__main__":
    main()
