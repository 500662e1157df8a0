"""The answer in an archived exchange: its head, and its body, which for a revisit is that of another one."""

from collections import OrderedDict
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final

from crawlkit.archive.files import file_path
from crawlkit.archive.reading import read_record
from crawlkit.exchange import Extent

_MOST_OPEN: Final = 8


class Replay:
    """Reads answers back from the files of one crawl's archive. Close it."""

    def __init__(self, directory: Path, crawl_id: str) -> None:
        self._directory = directory
        self._crawl_id = crawl_id
        self._files: OrderedDict[int, BinaryIO] = OrderedDict()

    def answer(self, extent: Extent, original: Extent | None) -> tuple[bytes, Iterator[bytes]]:
        """Return head and body (in pieces) of an exchange; `original` is what a revisit refers to.

        Raises BrokenRecordError, here or while the body is read, and OSError.
        """
        head, body = read_record(self._file(extent.file), extent.offset, extent.lengths[0]).answer()
        if original is not None:
            list(body)  # to its end, to see that it is whole: there is none
            _, body = read_record(self._file(original.file), original.offset, original.lengths[0]).answer()
        return head, body

    def _file(self, number: int) -> BinaryIO:
        if number not in self._files:
            self._files[number] = file_path(self._directory, self._crawl_id, number).open("rb")
            if len(self._files) > _MOST_OPEN:
                self._files.popitem(last=False)[1].close()
        self._files.move_to_end(number)
        return self._files[number]

    def close(self) -> None:
        """Close the files."""
        for file in self._files.values():
            file.close()
