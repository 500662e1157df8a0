"""Records: how each admitted URL ended, under the URL's own bytes, so that a walk over them is the sorted report."""

from collections.abc import Callable, Container, Iterator

import msgspec

from crawlkit.model import MAX_HOPS, Content, Kind, Reason, Record, Source
from crawlkit.sitemap import SitemapEntry
from crawlkit.state import keys
from crawlkit.state.codec import Head, RecordCodec, head_of, with_head
from crawlkit.state.content import Contents
from crawlkit.state.damage import damaged
from crawlkit.state.duplicates import Duplicates
from crawlkit.state.store import Store

_BY_SITEMAP = int(Source.SITEMAP)


class Mentions(msgspec.Struct, frozen=True):
    """Records that were wanted; how many were looked at, and whether that was all."""

    records: tuple[Record, ...]
    looked_at: int
    complete: bool


class Pages:
    """Look-ups and staged changes of records."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._codec = RecordCodec()
        self._duplicates = Duplicates(store)
        self._contents = Contents(store)
        self._open: Record | None = None

    def put(self, record: Record, content: Content | None = None) -> None:
        """Stage a record, and what is kept beside it; without that, what is there already stays.

        A record that takes another's place must have the same digest: else that is to be removed before.
        """
        self.begin(record, content)
        self.end()

    def begin(self, record: Record, content: Content | None) -> None:
        """Do as `put`, but for encoding the record: that is left to `end`, or to when somebody asks for it.

        Meanwhile its links are followed; one record in seven is held by then, and would be encoded twice.
        """
        self._open = record
        self._duplicates.add(record)
        if content is not None:
            self._contents.put(record.url, content)

    def end(self) -> None:
        """Stage the record that was begun, if it is not yet."""
        record, self._open = self._open, None
        if record is not None:
            self._store.stage(keys.page_key(record.url), self._codec.encode(record))

    def _is_open(self, url: str) -> bool:
        return self._open is not None and self._open.url == url

    def put_held(self, record: Record) -> None:
        """Stage once more a record, saying that it is held: with the head it has now."""
        if self._is_open(record.url):
            self._open = msgspec.structs.replace(record, held=True)
            return
        key = keys.page_key(record.url)
        value = self._codec.encode(msgspec.structs.replace(record, held=True))
        before = self._store.get(key)
        self._store.stage(key, value if before is None else with_head(value, head_of(before)))

    def remove(self, url: str) -> None:
        """Stage the removal of a record."""
        record = self.get(url)
        if record is not None:
            self._duplicates.remove(record)
        self._contents.remove(url)
        self._store.unstage(keys.page_key(url))

    def content(self, url: str) -> Content | None:
        """Return what is kept of a page beside its record: None where the settings did not ask for it."""
        return self._contents.get(url)

    def get(self, url: str) -> Record | None:
        """Return the record of `url`, None if it has not settled."""
        value = self._value(keys.page_key(url), url)
        return None if value is None else self._codec.decode(url, value)

    def head(self, url: str) -> Head | None:
        """Return the head of the record of `url`, None if it has not settled."""
        value = self._value(keys.page_key(url), url)
        return None if value is None else head_of(value)

    def _value(self, key: bytes, url: str) -> bytes | None:
        if self._is_open(url):
            self.end()
        return self._store.get(key)

    def set_head(self, url: str, head: Head) -> None:
        """Stage other distances and sources for the record of `url`."""
        key = keys.page_key(url)
        value = self._value(key, url)
        if value is not None:
            self._store.stage(key, with_head(value, head))

    def note(self, entry: SitemapEntry) -> None:
        """Stage what a sitemap says of a URL: of what several say the latest change and the highest priority."""
        if entry.lastmod is None and entry.priority is None:
            return
        lastmod, priority = self._noted(entry.url)
        latest = max((moment for moment in (lastmod, entry.lastmod) if moment is not None), default=None)
        highest = max((value for value in (priority, entry.priority) if value is not None), default=None)
        if (latest, highest) != (lastmod, priority):
            self._store.stage(keys.note_key(entry.url), msgspec.msgpack.encode((latest, highest)))

    def _noted(self, url: str) -> tuple[str | None, float | None]:
        value = self._store.get(keys.note_key(url))
        return (None, None) if value is None else decode_note(value)

    def with_note(self, record: Record) -> Record:
        """Return a record with what sitemaps say of its URL."""
        if not record.sources & _BY_SITEMAP:
            return record
        lastmod, priority = self._noted(record.url)
        return msgspec.structs.replace(record, lastmod=lastmod, priority=priority)

    def walk(self) -> Iterator[Record]:
        """Yield the records on disk as they are reported, in the order of their URLs' bytes; memory does not grow."""
        for key, value in self._store.walk(keys.PAGE, keys.after(keys.PAGE)):
            yield as_reported(self.with_note(self._codec.decode(key[1:].decode(), value)))

    def walk_marked(self) -> Iterator[Record]:
        """Yield the records as `walk` does, each with the smallest URLs of pages alike: a look-up more for each page."""
        return map(self._duplicates.marking(), self.walk())

    def mentions(
        self, url: str, most: int, enough: int, wanted: Callable[[Record], object], depths: Container[int] | None = None
    ) -> Mentions:
        """Return records on disk that mention `url` and are `wanted`, of the first `most` by URL, up to `enough` of them.

        About 15 us a record of 60 links; with `depths` only those that have one of these are read, the others cost 2 us.
        """
        found: list[Record] = []
        looked_at = 0
        text = url.encode()
        for key, value in self._store.walk(keys.PAGE, keys.after(keys.PAGE)):
            if looked_at == most or len(found) == enough:
                return Mentions(tuple(found), looked_at, complete=False)
            looked_at += 1
            if (depths is None or head_of(value).depth in depths) and self._codec.mentions(value, text):
                record = self._codec.decode(key[1:].decode(), value)
                if wanted(record):
                    found.append(record)
        return Mentions(tuple(found), looked_at, complete=True)

    def marked(self, record: Record) -> Record:
        """Return a stored record as the report shows it, with the smallest URLs of pages alike, as of the last checkpoint."""
        return self._duplicates.marking()(as_reported(record))

    def at_depths(self, depths: range, start: bytes, limit: int) -> tuple[list[tuple[str, int]], bytes | None]:
        """Return URL and depth of the settled records at `depths` among the next `limit` on disk, and where to go on."""
        found = []
        last = None
        for count, (key, value) in enumerate(self._store.walk(start or keys.PAGE, keys.after(keys.PAGE)), 1):
            depth = head_of(value).depth
            if depth in depths:
                found.append((key[1:].decode(), depth))
            if count == limit:
                last = key + b"\0"
                break
        return found, last


def decode_note(value: bytes) -> tuple[str | None, float | None]:
    """Return lastmod and priority of a note; StateDamaged if it is none."""
    try:
        return msgspec.msgpack.decode(value, type=tuple[str | None, float | None])
    except msgspec.DecodeError as error:
        raise damaged(f"what a sitemap said of a URL cannot be read: {error}") from error


def reported_kind(record: Record) -> Kind:
    """Return the kind a record is reported and counted as: a redirect reached by too many redirects is a failure.

    It is stored as the redirect that it is, so that it becomes one, without a fetch, when a shorter way is found.
    """
    if record.hops >= MAX_HOPS and record.kind is Kind.REDIRECT:
        return Kind.FAILURE
    return record.kind


def as_reported(record: Record) -> Record:
    """Return a stored record as the report shows it."""
    kind = reported_kind(record)
    if kind is record.kind:
        return record
    return msgspec.structs.replace(record, kind=kind, reason=Reason.TOO_MANY_REDIRECTS)
