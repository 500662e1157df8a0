"""The index of the archive, sorted: in runs that fit into memory, then merged."""

import heapq
import itertools
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from typing import Final

from crawlkit.archive.cdxj import cdxj_line, is_indexed
from crawlkit.archive.files import FOLDER
from crawlkit.errors import UsageError
from crawlkit.surfaces.exports.job import ExportJob

_LINES_A_RUN: Final = 200_000  # some 60 MB


def write_cdxj(job: ExportJob) -> int:
    """Write a line for each answer in the archive, sorted by its bytes; UsageError if there is no archive."""
    crawl = job.crawl
    if not crawl.config().warc:
        raise UsageError(f"{crawl.directory} keeps no archive to index: only a crawl begun with --warc does")
    for _ in job.records():  # the sidecar counts them
        pass
    lines = (
        cdxj_line(extent, archive.crawl_id, f"{archive.folder}{FOLDER}/" if archive.folder else "")
        for archive in crawl.archives
        for extent in archive.extents.walk()
        if is_indexed(extent)
    )
    count = 0
    for line in _sorted(lines):
        job.out.write(line)
        count += 1
    return count


def _sorted(lines: Iterator[bytes]) -> Iterator[bytes]:
    """Yield the lines in order; all but the first run of them wait in files of their own."""
    with ExitStack() as files:
        runs: list[Iterable[bytes]] = []
        while run := sorted(itertools.islice(lines, _LINES_A_RUN)):
            if runs:
                file = files.enter_context(tempfile.TemporaryFile())
                file.writelines(run)
                file.seek(0)
                runs.append(file)
            else:
                runs.append(run)
        yield from heapq.merge(*runs)
