"""What two independent readers, warcio and fastwarc, make of a file of the archive."""

from argparse import Namespace
from dataclasses import dataclass
from pathlib import Path

from fastwarc.warc import ArchiveIterator as FastIterator
from warcio.archiveiterator import ArchiveIterator
from warcio.checker import Checker


@dataclass(frozen=True, slots=True)
class Seen:
    """One record: `offset` of its member, `http` status line and fields, `content` decoded."""

    kind: str
    uri: str | None
    offset: int
    head: dict[str, str]
    status: str | None
    http: list[tuple[str, str]]
    content: bytes


def is_clean(path: Path) -> bool:
    """Whether `warcio check` finds nothing."""
    status: int = Checker(Namespace(inputs=[str(path)], verbose=False)).process_all()
    return status == 0


def by_warcio(path: Path) -> list[Seen]:
    found = []
    with path.open("rb") as file:
        records = ArchiveIterator(file, check_digests="raise")
        for record in records:
            http = record.http_headers
            content = record.content_stream().read()  # first: asking for the offset reads on to the next record
            seen = Seen(
                record.rec_type,
                record.rec_headers.get_header("WARC-Target-URI"),
                records.get_record_offset(),
                dict(record.rec_headers.headers),
                None if http is None else http.statusline,
                [] if http is None else list(http.headers),
                content,
            )
            found.append(seen)
    return found


def by_fastwarc(path: Path) -> list[Seen]:
    """The same, digests verified; content in its Content-Encoding."""
    found = []
    with path.open("rb") as file:
        for record in FastIterator(file, parse_http=False):
            assert record.verify_block_digest(), record.headers
            record.parse_http()
            http = record.http_headers
            if record.headers.get("WARC-Payload-Digest") and record.headers["WARC-Type"] != "revisit":
                assert record.verify_payload_digest(), record.headers
            seen = Seen(
                record.headers["WARC-Type"],
                record.headers.get("WARC-Target-URI"),
                record.stream_pos,
                dict(record.headers),
                None if http is None else http.status_line,
                [] if http is None else list(http.items()),
                record.reader.read(),
            )
            found.append(seen)
    return found


def agreed(path: Path) -> list[Seen]:
    """What warcio reads of a clean file, after seeing that fastwarc finds the same records at the same places."""
    assert is_clean(path)
    ours, theirs = by_warcio(path), by_fastwarc(path)
    assert [(s.kind, s.uri, s.offset) for s in ours] == [(s.kind, s.uri, s.offset) for s in theirs]
    assert [s.http for s in ours] == [s.http for s in theirs]
    return ours
