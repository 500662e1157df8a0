"""The seen-set: every URL that was admitted, with its state, distances and the row it waits in.

A look-up goes through layers, cheapest first: recently seen URLs (two generations; 50,000 entries catch about 80 % of a
crawl's links: Broder, Najork and Wiener, WWW 2003), all entries of hosts that ask often (`state.active`), the Bloom filter,
LevelDB for every "maybe". All but LevelDB are caches: losing them costs time. Every layer answers with the entry, since a
known URL may still be met on a shorter way.
"""

from collections.abc import Iterable, Iterator, Sequence

from crawlkit.model import Source
from crawlkit.state import codec, keys
from crawlkit.state.active import ActiveHosts
from crawlkit.state.bloom import MappedBloom
from crawlkit.state.codec import SeenEntry
from crawlkit.state.damage import damaged
from crawlkit.state.store import Store

RECENT_URLS = 50_000
MOST_NEAR_URLS = 50_000
MOST_NEAR_DEPTHS = 8

MOST_IN_VAIN = 64
WORTH_OF_A_NO = 2
"""What the filter says "maybe" of has to be looked up nevertheless, and its "no" takes half the time of LevelDB's own. So it is
passed over where it was asked in vain so often, until one URL in three that is looked up turns out to be new."""


class SeenSet:
    """Look-ups and staged changes of seen entries. `host` arguments are host ids (`keys.host_id`)."""

    def __init__(self, store: Store, bloom: MappedBloom) -> None:
        self._store = store
        self._bloom = bloom
        self._active = ActiveHosts(store)
        self._young: dict[str, SeenEntry] = {}
        self._old: dict[str, SeenEntry] = {}
        self._near: dict[int, set[str]] = {}  # by depth: URLs that links led to, that far or less far; which stays true
        self._rebuilding: Iterator[tuple[bytes, bytes]] | None = None
        self._in_vain = 0

    def recent(self, url: str) -> SeenEntry | None:
        """Return the entry if it was met lately; None says nothing."""
        entry = self._young.get(url)
        if entry is None:
            entry = self._old.get(url)
            if entry is not None:
                self._remember(url, entry)
        return entry

    def doubtful(self, urls: Sequence[str], depth: int) -> list[int]:
        """Return the places of those URLs that links from `depth` - 1 may be news of.

        The others were met lately, by links too, and are no farther.
        Nine links in ten are: 0.03 us each where all of a page are, thirty times that if they are met one by one.
        """
        near = self._near_to(depth)
        if near.issuperset(urls):
            return []
        young, link = self._young, int(Source.LINK)
        unsure = [place for place, url in enumerate(urls) if url not in near]
        doubtful = [
            place
            for place in unsure
            if (entry := young.get(urls[place])) is None or depth < entry[1] or entry[2] or not entry[4] & link
        ]
        if len(doubtful) < len(unsure):
            self._note_near(depth, {urls[place] for place in unsure}.difference(urls[place] for place in doubtful))
        return doubtful

    def _note_near(self, depth: int, urls: Iterable[str]) -> None:
        self._near_to(depth).update(urls)
        if sum(map(len, self._near.values())) > MOST_NEAR_URLS:
            self._near.clear()

    def _near_to(self, depth: int) -> set[str]:
        near = self._near.get(depth)
        if near is None:
            if len(self._near) >= MOST_NEAR_DEPTHS:
                self._near.clear()
            near = self._near[depth] = set()
        return near

    def doubtful_of(self, host: bytes, origin: str, urls: Sequence[str], places: Sequence[int], depth: int) -> Sequence[int]:
        """Return those of the `places` whose URLs links from `depth` - 1 may be news of.

        The others begin with `origin`, and the entries of `host` are in memory and tell. 1 us each, a tenth of what it takes to
        meet one; they do not count as met lately, or they would take the place of what is not in memory.
        """
        entries = self._active.entries(host)
        if entries is None:
            return places
        value_of, id_of, is_no_news = entries.get, keys.url_id, codec.is_no_news
        near, doubtful = [], []
        for place in places:
            url = urls[place]
            if url.startswith(origin) and (value := value_of(id_of(url))) is not None and is_no_news(value, depth):
                near.append(url)
            else:
                doubtful.append(place)
        self._note_near(depth, near)
        return doubtful

    def find(self, url: str, host: bytes) -> SeenEntry | None:
        """Return the entry, or None for an unseen URL (wrongly, if the filter lost bits: `known` asks the database)."""
        return self.recent(url) or self.not_recent(url, host)

    def not_recent(self, url: str, host: bytes) -> SeenEntry | None:
        """Return what `find` does, of a URL that was not met lately."""
        url_id = keys.url_id(url)
        entries = self._active.entries(host)
        if entries is not None:
            return self._met(url, entries.get(url_id))
        key = keys.seen_row(host, url_id)
        is_maybe = self._in_vain >= MOST_IN_VAIN or not self._bloom.complete or key in self._bloom
        value = self._store.get(key) if is_maybe else None
        self._in_vain = max(0, self._in_vain - WORTH_OF_A_NO) if value is None else min(MOST_IN_VAIN, self._in_vain + 1)
        return self._met(url, value)

    def expect(self, host: bytes) -> None:
        """Note that many URLs of this host are about to be looked for."""
        self._active.ask(host)

    def known(self, url: str, host: bytes) -> SeenEntry | None:
        """Return the entry of a URL that has a row, whatever the filter says of it."""
        entry = self.recent(url)
        if entry is not None:
            return entry
        url_id = keys.url_id(url)
        entries = self._active.entries(host)
        return self._met(url, self._store.get(keys.seen_row(host, url_id)) if entries is None else entries.get(url_id))

    def _met(self, url: str, value: bytes | None) -> SeenEntry | None:
        if value is None:
            return None
        entry = codec.decode_seen(value)
        self._remember(url, entry)
        return entry

    def has(self, key: bytes) -> bool:
        """Whether the URL of a seen-set's key has an entry."""
        return self._store.get(key) is not None

    def entry(self, url: str, host: bytes) -> SeenEntry:
        """Return the entry of a URL that is known to be seen; StateDamaged if it has none."""
        entry = self.known(url, host)
        if entry is None:
            raise damaged(f"{url} is queued but was never seen")
        return entry

    def add(self, url: str, host: bytes, entry: SeenEntry) -> bool:
        """Stage the entry of a URL that is new. Its bits are set before its batch is written.

        Whether it is known to be new by more than the filter: all entries of the host are in memory, and it has none.
        """
        url_id = keys.url_id(url)
        entries = self._active.entries(host)
        is_surely_new = entries is not None and url_id not in entries
        self._bloom.add(keys.seen_row(host, url_id))
        self._put(url, host, url_id, entry)
        return is_surely_new

    def expect_row(self, key: bytes) -> None:
        """Set the bits of a key whose row is staged by others."""
        self._bloom.add(key)

    def put(self, url: str, host: bytes, entry: SeenEntry) -> None:
        """Stage the entry of a URL that is seen already."""
        self._put(url, host, keys.url_id(url), entry)

    def _put(self, url: str, host: bytes, url_id: bytes, entry: SeenEntry) -> None:
        value = codec.encode_seen(entry)
        self._store.stage(keys.seen_row(host, url_id), value)
        self._active.put(host, url_id, value)
        self._remember(url, entry)

    def _remember(self, url: str, entry: SeenEntry) -> None:
        self._young[url] = entry
        if len(self._young) >= RECENT_URLS // 2:
            self._old, self._young = self._young, {}

    def save_counts(self) -> None:
        """Let the filter note how full it is."""
        self._bloom.save_counts()

    @property
    def rebuilding(self) -> bool:
        """Whether the filter still lacks keys, so that every look-up goes to LevelDB."""
        return not self._bloom.complete

    def rebuild(self, limit: int) -> None:
        """Add up to `limit` keys of the database to an incomplete filter (8 us each); new ones are added as they come."""
        if self._bloom.complete:
            return
        if self._rebuilding is None:
            self._rebuilding = self._store.walk(keys.SEEN, keys.after(keys.SEEN))
        for _ in range(limit):
            row = next(self._rebuilding, None)
            if row is None:
                self._rebuilding = None
                self._bloom.mark_complete()
                return
            self._bloom.add(row[0])

    def close(self) -> None:
        """Stop a rebuild and unmap the filter."""
        self._rebuilding = None
        self._bloom.close()
