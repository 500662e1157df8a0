"""Key layout: how each kind of row is named in LevelDB.

All keys are a prefix byte and fields of fixed width, big-endian, so that byte order is the order in which rows are read;
only records and contents, and rows by digest and band, end in something of free length, the URL itself. `state/__init__.py`
lists every prefix with its value.
"""

import math
import struct
from collections.abc import Mapping
from functools import lru_cache
from hashlib import blake2b
from types import MappingProxyType

META = b"m"
HOST = b"h"
SEEN = b"s"
QUEUE = b"q"
TIMED = b"t"
RELAX = b"r"
ORIGIN = b"o"
PAGE = b"p"
SEED = b"g"
RUN = b"l"
RECENT = b"b"
TEMPLATE = b"x"
MEMORY = b"y"
HELD = b"w"
REFUSAL = b"u"
SITEMAP = b"k"
WAITING_SITEMAP = b"i"
NOTE = b"v"
ARCHIVE_FILE = b"F"
EXTENT = b"E"
ARCHIVED = b"U"
PAYLOAD = b"D"
DIGEST = b"d"
BAND = b"n"
CONTENT = b"c"
LETTER = b"O"
NEXT_LETTER = b"N"
HIGH_WATER = b"H"

DIGEST_HEAD = 17
"""Length of a digest's key without the URL."""

BANDS = 4
BAND_HEAD = 10
"""Length of a band's key without the URL."""

KINDS: Mapping[bytes, tuple[int | None, str]] = MappingProxyType(
    {
        RECENT: (2, "batches"),
        SEED: (9, "seeds"),
        RUN: (9, "runs"),
        HOST: (9, "hosts"),
        SEEN: (19, "seen"),
        QUEUE: (18, "queued"),
        TIMED: (17, "timed"),
        RELAX: (21, "relax"),
        ORIGIN: (17, "origins"),
        TEMPLATE: (9, "templates"),
        MEMORY: (9, "memories"),
        HELD: (20, "held"),
        REFUSAL: (19, "refused"),
        SITEMAP: (17, "sitemaps"),
        WAITING_SITEMAP: (19, "waiting sitemaps"),
        NOTE: (None, "notes"),
        ARCHIVE_FILE: (5, "archive files"),
        EXTENT: (13, "archived"),
        ARCHIVED: (29, "archived by URL"),
        PAYLOAD: (33, "payloads"),
        LETTER: (11, "letters"),
        NEXT_LETTER: (3, "outboxes"),
        HIGH_WATER: (5, "inboxes"),
        META: (None, "values"),
        CONTENT: (None, "contents"),
        DIGEST: (None, "digests"),
        BAND: (None, "bands"),
        PAGE: (None, "records"),
    }
)
"""Length of the keys of each kind (None for any), and what its rows are called in a report."""

_BUCKET_BYTES: Mapping[int, int] = MappingProxyType(
    {
        **dict.fromkeys(b"".join((SEEN, QUEUE, WAITING_SITEMAP, REFUSAL)), 9),
        **dict.fromkeys(b"".join((TIMED, RELAX, HOST, HELD)), 1),
    }
)
"""Length of the prefix that names a key's bucket (`bucket_of`), by its first byte; kinds that are in none are not here."""

MAX_PRIORITY = 255
RECENT_BATCHES = 64

_TAIL_QUEUED = struct.Struct(">BQ")
_TAIL_TIMED = struct.Struct(">QQ")
_RELAX_HEAD = struct.Struct(">cI")
_NUMBERED = struct.Struct(">cQ")
_PLACED = struct.Struct(">cIQ")
_FILE = struct.Struct(">cI")


# Hashes to begin with: a copy takes a third of the time that their parameters take to be read.
_HOST_ID = blake2b(digest_size=8, person=b"crawlkit.host")
_URL_ID = blake2b(digest_size=10, person=b"crawlkit.url")
_RELAX_ID = blake2b(digest_size=16, person=b"crawlkit.relx")
_ORIGIN_ID = blake2b(digest_size=16, person=b"crawlkit.orig")
_TEMPLATE_ID = blake2b(digest_size=8, person=b"crawlkit.shap")
_HELD_ID = blake2b(digest_size=10, person=b"crawlkit.held")
_ARCHIVED_ID = blake2b(digest_size=16, person=b"crawlkit.arch")
_DIGEST_ID = blake2b(digest_size=16, person=b"crawlkit.dgst")


def _digest(begun: blake2b, text: str) -> bytes:
    hashing = begun.copy()
    hashing.update(text.encode())
    return hashing.digest()


def host_id(host: str) -> bytes:
    """Return the 8 bytes that stand for a host name.

    At 10^6 hosts two of them share an id with probability 3e-8; what they would share is a back queue and its gaps.
    """
    return _digest(_HOST_ID, host)


@lru_cache(256)  # of a page's links each that is new is asked for three times
def url_id(url: str) -> bytes:
    """Return the 10 bytes that tell a URL from the others of its host (10^7 URLs: 4e-11 for any two alike)."""
    return _digest(_URL_ID, url)


def seen_key(host: bytes, url: str) -> bytes:
    """Return the seen-set's key: a host's URLs are one contiguous range."""
    return seen_row(host, url_id(url))


def seen_row(host: bytes, url: bytes) -> bytes:
    """Return the seen-set's key of a URL by its id: who needs both does not hash it twice."""
    return SEEN + host + url


def host_key(host: bytes) -> bytes:
    """Return the key of a host's record."""
    return HOST + host


def queue_range(host: bytes) -> bytes:
    """Return the prefix of a host's back queue."""
    return QUEUE + host


def queued_tail(priority: int, sequence: int) -> bytes:
    """Return what orders a row in its back queue: priority, then sequence."""
    return _TAIL_QUEUED.pack(min(priority, MAX_PRIORITY), sequence)


def timed_tail(due_s: float, sequence: int) -> bytes:
    """Return what orders a retry in the timed range: when it is due (milliseconds, rounded up: never early), then sequence."""
    due_ms = max(0, math.ceil(due_s * 1000))
    if due_ms / 1000 < due_s:  # the product was rounded down to a whole number
        due_ms += 1
    return _TAIL_TIMED.pack(due_ms, sequence)


def queue_key(host: bytes, tail: bytes) -> bytes:
    """Return the key of a queued row."""
    return QUEUE + host + tail


def timed_key(tail: bytes) -> bytes:
    """Return the key of a row in the timed range."""
    return TIMED + tail


def sequence_of(tail: bytes) -> int:
    """Return the sequence number at the end of either tail."""
    return int.from_bytes(tail[-8:], "big")


def due_of(key: bytes) -> float:
    """Return when a timed row is due, seconds since the epoch."""
    return int.from_bytes(key[1:9], "big") / 1000


def priority_of(key: bytes) -> int:
    """Return the priority of a queued row's key."""
    return key[9]


def relax_key(depth: int, url: str) -> bytes:
    """Return the key of a lowered distance still to propagate: lowest depth first."""
    return _RELAX_HEAD.pack(RELAX, depth) + _digest(_RELAX_ID, url)


def page_key(url: str) -> bytes:
    """Return the key of a record: the report is a walk over these, in the order of the URLs' bytes."""
    return PAGE + url.encode()


def origin_key(origin: str) -> bytes:
    """Return the key of what is known of an origin's robots.txt."""
    return ORIGIN + _digest(_ORIGIN_ID, origin)


@lru_cache(4096)  # three accounts a page, most of them the same ones
def template_key(template: str) -> bytes:
    """Return the key of the account of a template, or of a host by its name."""
    return TEMPLATE + _digest(_TEMPLATE_ID, template)


def memory_key(account: bytes) -> bytes:
    """Return the key of what is remembered of the pages of a template or a host."""
    return MEMORY + account[1:]


def held_letter_key(host: bytes, url: str) -> bytes:
    """Return the key of a link from another partition to `url` that waits likewise, after all pages."""
    return held_range(host) + bytes((MAX_PRIORITY,)) + _digest(_HELD_ID, f"{url}\n")


def held_range(host: bytes) -> bytes:
    """Return the prefix of the pages whose links wait, of the host with the account `host`."""
    return HELD + host[1:]


def held_key(host: bytes, depth: int, url: str) -> bytes:
    """Return the key of one such page: lowest depth first."""
    digest = _digest(_HELD_ID, url)
    return held_range(host) + bytes((min(depth, MAX_PRIORITY),)) + digest


def refusal_range(host: bytes) -> bytes:
    """Return the prefix of the URLs of a host that were refused."""
    return REFUSAL + host


def refusal_key(host: bytes, url: str) -> bytes:
    """Return the key of what kept a URL out."""
    return REFUSAL + host + url_id(url)


def sitemap_key(url: str) -> bytes:
    """Return the key of what is known of a sitemap."""
    return SITEMAP + blake2b(url.encode(), digest_size=16, person=b"crawlkit.smap").digest()


def waiting_sitemaps_range(host: bytes) -> bytes:
    """Return the prefix of a host's sitemaps that wait."""
    return WAITING_SITEMAP + host


def waiting_sitemap_key(host: bytes, url: str) -> bytes:
    """Return the key of a sitemap that waits."""
    return waiting_sitemaps_range(host) + url_id(url)


def note_key(url: str) -> bytes:
    """Return the key of what sitemaps say of a URL."""
    return NOTE + url.encode()


def archive_file_key(number: int) -> bytes:
    """Return the key of a file of the archive."""
    return _FILE.pack(ARCHIVE_FILE, number)


def extent_key(file: int, offset: int) -> bytes:
    """Return the key of what lies in the archive at a place: its order is that of the files."""
    return _PLACED.pack(EXTENT, file, offset)


def archived_range(url: str) -> bytes:
    """Return the prefix of the places where a URL lies in the archive."""
    return ARCHIVED + _digest(_ARCHIVED_ID, url)


def payload_key(digest: bytes) -> bytes:
    """Return the key of the place where a body (its SHA-256) was archived first."""
    return PAYLOAD + digest


def numbered_key(prefix: bytes, number: int) -> bytes:
    """Return the key of the `number`-th seed or run."""
    return _NUMBERED.pack(prefix, number)


def meta_key(name: str) -> bytes:
    """Return the key of a single value."""
    return META + name.encode()


def recent_key(batch: int) -> bytes:
    """Return the key under which a batch leaves its number, for as long as it is one of the last `RECENT_BATCHES`."""
    return RECENT + bytes((batch % RECENT_BATCHES,))


def digest_range(digest: str) -> bytes:
    """Return the prefix of the pages whose body has this digest."""
    return DIGEST + _digest(_DIGEST_ID, digest)


def digest_key(digest: str, url: str) -> bytes:
    """Return the key of one such page: the smallest URL comes first."""
    return digest_range(digest) + url.encode()


def turned(band: int, simhash: int) -> int:
    """Return 64 bits turned left, so that the band's 16 come first."""
    return (simhash << 16 * band | simhash >> 64 - 16 * band) & (1 << 64) - 1


def band_range(band: int, simhash: int) -> bytes:
    """Return the prefix of the pages whose SimHash has the same 16 bits in this band."""
    return BAND + bytes((band,)) + turned(band, simhash).to_bytes(8, "big")[:2]


def band_key(band: int, simhash: int, url: str) -> bytes:
    """Return the key of one such page: those of one hash together, the smallest URL first."""
    return BAND + bytes((band,)) + turned(band, simhash).to_bytes(8, "big") + url.encode()


def content_key(url: str) -> bytes:
    """Return the key of what is kept of a page beside its record."""
    return CONTENT + url.encode()


def after(prefix: bytes) -> bytes:
    """Return the smallest key greater than all that start with `prefix`."""
    return (int.from_bytes(prefix, "big") + 1).to_bytes(len(prefix), "big")


def bucket_of(key: bytes) -> bytes | None:
    """Return the range that `key` is scanned in, None for keys that are only looked up.

    What was seen, queued or refused of a host is a range of its own each; hosts, retries, distances to propagate and pages
    that wait are one range each.
    """
    length = _BUCKET_BYTES.get(key[0])
    return None if length is None else key[:length]


INDEXED = meta_key("indexed")
"""Is there if the crawl keeps rows by digest."""
