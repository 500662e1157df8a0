"""Standard output for data."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO

from crawlkit.errors import StorageError


@contextmanager
def standard_output() -> Iterator[BinaryIO]:
    """Give standard output, and flush it at the end. StorageError if it cannot be written; that nobody reads it passes."""
    try:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise StorageError(f"cannot write standard output: {error.strerror}") from error
