"""The commands' side: ask a running crawl, or read it; and the one way to open a crawl whether it runs or not."""

from collections.abc import Generator, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import msgspec

from crawlkit.engine.partitions import Part, Partitions, open_part
from crawlkit.errors import StateError, StateLocked, error_of
from crawlkit.net.local import connect
from crawlkit.state.copying import copied_store
from crawlkit.state.directory import DirectoryLock, is_held, read_manifest
from crawlkit.state.layout import CONTROL
from crawlkit.state.looking import Looking
from crawlkit.state.partitions import is_partitioned
from crawlkit.state.reading import CrawlReader
from crawlkit.surfaces.control.messages import END, Answer, Do, Request

ANSWER_WITHIN_S = 30.0

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Answer).decode


class NoAnswer(StateError):
    """Nobody answers on a crawl's socket: nothing runs, or what runs is another version's, is stopped, or has just ended."""


def ask(directory: Path, request: Request) -> Answer:
    """Return what the crawl that runs in `directory` answers; NoAnswer if none does, the error that it answers if it is one."""
    with closing(_lines(directory, request)) as lines:
        return _first(directory, lines)


@contextmanager
def open_crawl(directory: Path) -> Iterator[CrawlReader]:
    """Open a crawl to read it: from its directory, or while it runs a copy of its last checkpoint. Partitions are read as one.

    StateLocked if it runs and does not answer, StateError and its other kinds if it cannot be opened, StorageError if there
    is no room for the copy.
    """
    with ExitStack() as resources:
        yield _opened(directory, resources)


def _opened(directory: Path, resources: ExitStack) -> CrawlReader:
    if is_partitioned(directory):
        return _opened_partitions(Partitions.read(directory), resources)
    part = _opened_part(directory, Request(do=Do.READ), resources)
    return CrawlReader(directory, part.manifest, part.store, running=part.running)


def _opened_partitions(partitions: Partitions, resources: ExitStack) -> CrawlReader:
    parts, running = _opened_parts(partitions, Request(do=Do.READ), resources)
    return partitions.reader(parts, running=running)


@contextmanager
def look_at_partitions(partitions: Partitions) -> Iterator[Looking]:
    """Open a crawl in partitions to look at it: at rest, or copies of all rows of those that run, as of their checkpoints."""
    with ExitStack() as resources:
        parts, running = _opened_parts(partitions, Request(do=Do.READ, whole=True), resources)
        yield partitions.looking(parts, running=running)


def _opened_parts(partitions: Partitions, read: Request, resources: ExitStack) -> tuple[list[Part], bool]:
    """Return all partitions, and whether the crawl runs."""
    try:
        resources.enter_context(DirectoryLock(partitions.directory))  # so that it is not gone on with meanwhile
        running = False
    except StateLocked:
        running = True
    parts = [_opened_part(member, read, resources) for member in partitions.members]
    return parts, running or any(part.running for part in parts)


def _opened_part(directory: Path, read: Request, resources: ExitStack) -> Part:
    """Open a crawl that is no other's partition, or a partition: at rest, or as the copy that it sends of itself."""
    try:
        return open_part(directory, resources)
    except StateLocked as locked:
        try:
            store = resources.enter_context(copied_store(_rows(directory, read)))
            return Part(read_manifest(directory), store, running=True)
        except NoAnswer:
            if is_held(directory):
                raise locked from None
    return open_part(directory, resources)  # it has just ended


def _rows(directory: Path, read: Request) -> Iterator[bytes]:
    with closing(_lines(directory, read)) as lines:
        _first(directory, lines)
        for line in lines:
            if line == END:
                return
            yield line
    raise NoAnswer(f"the crawl in {directory} ended while it was being read; try again")


def _first(directory: Path, lines: Iterator[bytes]) -> Answer:
    line = next(lines, b"")
    try:
        answer = _decode(line)
    except msgspec.DecodeError as error:
        raise NoAnswer(f"the crawl in {directory} does not answer") from error
    if answer.error is not None:
        raise error_of(answer.status, answer.error)
    return answer


def _lines(directory: Path, request: Request) -> Generator[bytes, None, None]:
    """Yield the lines of an answer; NoAnswer if nobody listens, or a line takes too long."""
    try:
        with connect(directory, CONTROL, ANSWER_WITHIN_S) as connection, connection.makefile("rb") as answer:
            connection.sendall(_encode(request) + b"\n")
            yield from answer
    except OSError as error:
        raise NoAnswer(f"the crawl in {directory} does not answer: {error}") from error
