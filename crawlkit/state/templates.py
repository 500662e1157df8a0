"""Templates: what is durable about URLs of one shape and about hosts as a whole, and the pages whose links wait for credit.

What is counted for what is decided by the engine (`engine.budget`); here it is kept.
"""

from bisect import insort
from collections import OrderedDict

import msgspec
import zstandard

from crawlkit.state import keys
from crawlkit.state.damage import damaged
from crawlkit.state.letters import Letter
from crawlkit.state.store import Store

ACCOUNTS_IN_MEMORY = 2_048
"""How many accounts are in memory; those that remember pages take 17 KB."""

UNSAVED_PAGES = 16
"""Pages after which a memory is written again: after a kill so many may seem new once more. Written with each checkpoint it
would be most of what a broad crawl writes."""

ROWS_A_LOOK = 64
KEYS_IN_A_WINDOW = 128

_encode = msgspec.msgpack.Encoder().encode


class AccountRecord(msgspec.Struct, array_like=True):
    """What is durable about a template, or a host.

    `drawn` is what a template took of what its host could spare; of a host, how many fresh pages it had since its held ones
    were walked. `held` counts a host's pages whose links wait, `grants` how often it was found to be finite after all.
    """

    credit: int = 0
    drawn: int = 0
    pages: int = 0
    held: int = 0
    grants: int = 0


class MemoryRecord(msgspec.Struct, array_like=True):
    """What is remembered of the pages of a template or a host (`policy.novelty`).

    `marks` are fingerprints of the shingles that were met, `before` is the sketch of the last page.
    """

    marks: bytes
    before: tuple[int, ...] = ()


class HeldRow(msgspec.Struct, frozen=True, array_like=True):
    """A page whose links wait, from the `position`-th edge on; or `letter`, a single link from another partition to `url`."""

    url: str
    position: int = 0
    letter: Letter | None = None


_held_decoder = msgspec.msgpack.Decoder(HeldRow)


class Account:
    """A template or a host in memory. Whoever changes it tells `Templates.changed`.

    `unsaved_pages` counts what `memory` was told since it was staged. `window` holds keys of held rows that come next, in
    order; `cursor` is where they are read on, so that no look-up passes over those that were taken.
    """

    __slots__ = (
        "before", "credit", "cursor", "drawn", "grants", "held", "key", "memory", "pages", "unsaved_pages", "window",
    )  # fmt: skip

    def __init__(self, key: bytes, record: AccountRecord, memory: MemoryRecord | None) -> None:
        self.key = key
        self.credit = record.credit
        self.drawn = record.drawn
        self.pages = record.pages
        self.held = record.held
        self.grants = record.grants
        self.before = () if memory is None else memory.before
        self.memory = None if memory is None else bytearray(memory.marks)
        self.unsaved_pages = 0
        self.window: list[bytes] = []
        self.cursor = b""

    def record(self) -> AccountRecord:
        """Return what is durable with each checkpoint."""
        return AccountRecord(self.credit, self.drawn, self.pages, self.held, self.grants)


class Templates:
    """Look-ups and staged changes of accounts, of which a bounded number is in memory."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._loaded: OrderedDict[bytes, Account] = OrderedDict()
        self._dirty: dict[bytes, Account] = {}
        self._cursor = keys.HELD
        self._compress = zstandard.ZstdCompressor(level=1).compress

    def get(self, name: str, credit: int = 0) -> Account:
        """Return the account of a template or a host, with `credit` if it is new."""
        key = keys.template_key(name)
        return self._loaded.get(key) or self.at(key, credit)  # some seven times a page

    def at(self, key: bytes, credit: int = 0) -> Account:
        """Return the account under `key`, with `credit` if it is new."""
        account = self._loaded.get(key)
        if account is None:
            value = self._store.get(key)
            if value is None:
                account = Account(key, AccountRecord(credit), None)
            else:
                memory = self._store.get(keys.memory_key(key))
                account = Account(key, decode_account(value), None if memory is None else decode_memory(memory))
            self._loaded[key] = account
        return account

    def peek(self, name: str) -> AccountRecord | None:
        """Return what is known of the account of a template or a host, which is not loaded for it; None if nothing is."""
        key = keys.template_key(name)
        account = self._loaded.get(key)
        if account is not None:
            return account.record()
        value = self._store.get(key)
        return None if value is None else decode_account(value)

    def is_held(self, host: str, depth: int, url: str) -> bool:
        """Whether links of a page of `host` wait for credit."""
        return self._store.get(keys.held_key(keys.template_key(host), depth, url)) is not None

    def inherit(self, key: bytes, record: AccountRecord, memory: MemoryRecord | None) -> None:
        """Take over the account of another crawl, with none of its pages waiting."""
        account = Account(key, msgspec.structs.replace(record, held=0), memory)
        account.unsaved_pages = 0 if memory is None else UNSAVED_PAGES
        self._loaded[key] = account
        self.changed(account)

    def changed(self, account: Account) -> None:
        """Note that an account differs from what is staged."""
        self._dirty[account.key] = account

    def stage_changed(self) -> None:
        """Stage all accounts that changed since the last call."""
        for account in self._dirty.values():
            self._stage(account, UNSAVED_PAGES)
        self._dirty.clear()

    def stage_memories(self) -> None:
        """Stage all that is remembered, however little that is, as before an end."""
        for account in self._loaded.values():
            self._stage_memory(account, 1)

    def trim(self, most: int = ACCOUNTS_IN_MEMORY) -> None:
        """Let go of accounts beyond `most`, those that were loaded longest ago. Only between steps, as for hosts."""
        for _ in range(len(self._loaded) - most):
            key, account = self._loaded.popitem(last=False)
            if self._dirty.pop(key, None) is not None:
                self._stage(account, 1)
            else:
                self._stage_memory(account, 1)

    def _stage(self, account: Account, unsaved: int) -> None:
        self._store.stage(account.key, msgspec.msgpack.encode(account.record()))
        self._stage_memory(account, unsaved)

    def _stage_memory(self, account: Account, unsaved: int) -> None:
        if account.memory is not None and account.unsaved_pages >= unsaved:
            account.unsaved_pages = 0
            record = MemoryRecord(bytes(account.memory), account.before)
            self._store.stage(keys.memory_key(account.key), self._compress(msgspec.msgpack.encode(record)))

    # Held pages ------------------------------------------------------------------------------------------------------

    def hold(self, host: Account, depth: int, row: HeldRow) -> bool:
        """Let the links of a page wait, in the order of depth; False if they did already.

        One that comes before those that are next is released before them, so that the nearest pages are not passed over.
        """
        key = keys.held_key(host.key, depth, row.url)
        new = self._store.get(key) is None
        if new and key + b"\0" != host.cursor and key < (host.window[-1] if host.window else host.cursor):
            insort(host.window, key)
            del host.window[KEYS_IN_A_WINDOW:]
        host.held += new
        self.changed(host)
        self._store.stage(key, _encode(row))
        return new

    def hold_letter(self, host: Account, letter: Letter) -> bool:
        """Let a link from another partition wait; False if one to its URL did already: then the two are one."""
        key = keys.held_letter_key(host.key, letter.url)
        value = self._store.get(key)
        before = None if value is None else decode_held(value).letter
        if before is not None:
            letter = msgspec.structs.replace(
                letter,
                depth=min(letter.depth, before.depth),
                hops=min(letter.hops, before.hops),
                source=letter.source | before.source,
            )
        host.held += before is None
        self.changed(host)
        self._store.stage(key, msgspec.msgpack.encode(HeldRow(letter.url, letter=letter)))
        return before is None

    def release(self, host: Account) -> HeldRow:
        """Take out the next page of those that wait for a host; after the last one the first is next."""
        prefix = keys.held_range(host.key)
        for start in (host.cursor or prefix, prefix):
            if not host.window:
                rows = self._store.scan(keys.HELD, start, ROWS_A_LOOK)
                host.window = [key for key, _ in rows if key.startswith(prefix)]
            if host.window:
                key = host.window.pop(0)
                value = self._store.get(key)
                if value is None:
                    break
                host.cursor = key + b"\0"
                host.held -= 1
                self.changed(host)
                self._store.unstage(key)
                return decode_held(value)
        raise damaged("pages should wait for the budget of a template, but there are none")

    def turn_back(self, host: Account) -> bool:
        """Let the page of a host that was released last come next again; False if it does not wait any more."""
        key = host.cursor[:-1]
        if self._store.get(key) is None:
            return False
        host.window.insert(0, key)
        host.cursor = key
        return True

    def holder(self) -> Account:
        """Return the next host for which pages wait; after the last host the first is next."""
        for start in (self._cursor, keys.HELD):
            rows = self._store.scan(keys.HELD, start, 1)
            if rows:
                self._cursor = keys.after(rows[0][0][:9])
                return self.at(keys.TEMPLATE + rows[0][0][1:9])
        raise damaged("pages should wait for the budget of a template, but there are none")


def decode_memory(value: bytes) -> MemoryRecord:
    """Return what a memory's row holds; StateDamaged if it cannot be read."""
    try:
        return msgspec.msgpack.decode(zstandard.decompress(value), type=MemoryRecord)
    except (msgspec.DecodeError, zstandard.ZstdError, MemoryError) as error:  # MemoryError: a length that cannot be
        raise damaged(f"what a template remembers cannot be read: {error}") from error


def decode_account(value: bytes) -> AccountRecord:
    """Return the record of `value`; StateDamaged if it is none."""
    try:
        return msgspec.msgpack.decode(value, type=AccountRecord)
    except msgspec.DecodeError as error:
        raise damaged(f"what is stored of a template cannot be read: {error}") from error


def decode_held(value: bytes) -> HeldRow:
    """Return the row of `value`; StateDamaged if it is none."""
    try:
        return _held_decoder.decode(value)
    except msgspec.DecodeError as error:
        raise damaged(f"a page that waits for a template's budget cannot be read: {error}") from error
