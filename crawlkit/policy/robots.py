"""What a robots.txt allows us: RFC 9309, parsed for one product token and matched in linear time.

Only the group that applies is kept: all groups that name our product token (case-insensitively), merged; where there
is none, all groups that name `*`; where there is none of those either, everything is allowed. Of the rules of the group
that match, the one of most octets wins, and an allow rule wins a tie (section 2.2.2).

Both sides are brought to one form before they are compared (2.2.2): escapes of unreserved characters are undone, other
escapes get upper-case digits, what may not stand bare in a URL is escaped as UTF-8. A bare `*` or `$` in a URL is
escaped too, and so is a `$` that is not at a rule's end: they equal `%2A` and `%24` (2.2.3).

Taken over from Google's parser (github.com/google/robotstxt), because sites rely on it: `key value` without a colon
where the line has just these two words; an incomplete byte order mark; what follows a token in a user-agent line is
ignored. Beyond it a file that starts with a UTF-16 mark is read as such. Misspelt keys are unknown lines (RFC).
"""

import codecs
import math
import re
from collections.abc import Mapping
from enum import Enum

import msgspec

from crawlkit.model import FetchFailure, Response

MAX_ROBOTS_BYTES = 500 * 1024
"""How much of a body is parsed (section 2.5 asks for at least 500 KiB); a line cut off there is dropped."""

MAX_ROBOTS_REDIRECTS = 5
"""Redirects to follow from a robots.txt, to other hosts too; one more and it counts as unavailable (2.3.1.2)."""

ROBOTS_TTL_S = 24 * 3600.0
"""How long an answer may be used, unless the file is unreachable afterwards (2.4)."""


class Access(Enum):
    """What the answer to a fetch of robots.txt means for the URLs of its origin (section 2.3.1)."""

    RULES = "rules"  # parse the body and ask it
    ALLOW = "allow"  # unavailable: everything is allowed
    DEFER = "defer"  # 429: wait and ask again; if it outlasts the retries, as UNREACHABLE
    UNREACHABLE = "unreachable"  # nothing is allowed for now; ask again later


def access_of(answer: Response | FetchFailure) -> Access:
    """Return what `answer`, the end of a fetch of robots.txt, means.

    The caller follows redirects, at most MAX_ROBOTS_REDIRECTS of them, and passes what it ends with; a redirect status
    that gets here leads on too far, in a circle or nowhere, and is ALLOW. A 2xx whose body is not whole is UNREACHABLE,
    since it may have lost rules, unless there is more of it than is parsed: fetch with a cap above MAX_ROBOTS_BYTES.
    """
    if isinstance(answer, FetchFailure):
        return Access.UNREACHABLE
    if 200 <= answer.status < 300:
        lost_rules = answer.truncated and len(answer.body) <= MAX_ROBOTS_BYTES
        return Access.UNREACHABLE if lost_rules else Access.RULES
    if answer.status == 429:
        return Access.DEFER
    return Access.ALLOW if 300 <= answer.status < 500 else Access.UNREACHABLE


class RobotsVerdict(msgspec.Struct, frozen=True):
    """Whether a URL may be fetched, and the line that decided: number from 1 and text, None where no rule matched."""

    allowed: bool
    line: int | None = None
    text: str | None = None


_NO_RULE = RobotsVerdict(allowed=True)
_END = "\n"  # closes a target, and stands for a rule's final `$`: no normalised text holds one


class _Pattern(msgspec.Struct, frozen=True):
    """A rule with wildcards: `head` starts the target, then `pieces` follow in order, with anything between."""

    octets: int
    head: str
    pieces: tuple[str, ...]
    verdict: RobotsVerdict

    def matches(self, target: str) -> bool:
        """Take the leftmost place for each piece: no backtracking, since a later place never leaves more room."""
        if not target.startswith(self.head):
            return False
        at = len(self.head)
        for piece in self.pieces:
            at = target.find(piece, at)
            if at < 0:
                return False
            at += len(piece)
        return True


class Rules(msgspec.Struct, frozen=True):
    """What a robots.txt says to one product token; made by `parse`.

    `group` is what the group that applies is named by: our product token, `*`, or None where neither is named.
    `crawl_delay_s` is its Crawl-delay (no part of RFC 9309), the longest if there are several; `sitemaps` are
    the values of all Sitemap lines of the file, as written. Rules without wildcards are found by their text, longest
    first, so that a file of thousands of them costs no more than one of a few.
    """

    group: str | None
    crawl_delay_s: float | None
    sitemaps: tuple[str, ...]
    _literals: Mapping[str, RobotsVerdict]
    _lengths: tuple[int, ...]
    _patterns: tuple[_Pattern, ...]
    _free: frozenset[str]
    """Letters and digits that begin no path of a rule: most URLs are told apart by theirs, in a third of the time."""

    def judge(self, target_or_url: str) -> RobotsVerdict:
        """Return the verdict on a URL, or on its path and query; `/robots.txt` itself is always allowed (2.2.2)."""
        target = target_of(target_or_url)
        if target[1:2] in self._free:
            return _NO_RULE
        if not target.isascii():
            target = target.encode("utf-8", "surrogatepass").decode("latin-1")
        target = _normal(target) + _END
        if target == "/robots.txt" + _END:
            return _NO_RULE
        octets, verdict = self._longest_literal(target)
        for pattern in self._patterns:
            if pattern.octets < octets or (pattern.octets == octets and verdict.allowed):
                break
            if pattern.matches(target):
                return pattern.verdict
        return verdict

    def _longest_literal(self, target: str) -> tuple[int, RobotsVerdict]:
        for length in self._lengths:
            prefix = target[:length]
            verdict = self._literals.get(prefix)
            if verdict is not None:
                return len(prefix), verdict
        return 0, _NO_RULE


def parse(body: bytes, product_token: str) -> Rules:
    """Return what `body` says to `product_token`. Any bytes will do: what is no robots.txt holds no rules."""
    reader = _Reader(product_token)
    for number, line in enumerate(_lines(body), start=1):
        reader.take(number, line)
    return reader.rules()


_AUTHORITY = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*://[^/?#]*")


def target_of(url: str) -> str:
    """Return path and query of a URL, which is what rules are matched against; without a path it is `/`."""
    authority = None if url.startswith("/") else _AUTHORITY.match(url)
    target = url[authority.end() :] if authority else url
    target = target.partition("#")[0]
    return target if target.startswith("/") else "/" + target


_PLAIN = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789")
_UNRESERVED = _PLAIN | frozenset("-._~")
# escapes of other than ASCII that are in upper case already, the bulk of all, are passed over
_NOT_NORMAL = re.compile(r"%(?![89A-F][0-9A-F])[0-9A-Fa-f]{2}|[^A-Za-z0-9\-._~:/?#\[\]@!&'()+,;=%]")


def _normal(octets: str) -> str:
    """Bring a target, or a piece of a rule, to the form in which they are compared. A `%` that escapes nothing stays.

    Each character stands for one octet (latin-1), since the octets of a rule need not be UTF-8.
    """
    return _NOT_NORMAL.sub(_escape, octets)


def _escape(match: re.Match[str]) -> str:
    text = match.group()
    if text[0] != "%":
        return f"%{ord(text):02X}"
    char = chr(int(text[1:], 16))
    return char if char in _UNRESERVED else text.upper()


def _lines(body: bytes) -> list[bytes]:
    text = body[:MAX_ROBOTS_BYTES]
    if text.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        text = text.decode("utf-16", "replace").encode()
    if len(body) > MAX_ROBOTS_BYTES:
        text = text[: max(text.rfind(b"\n"), text.rfind(b"\r")) + 1]
    for octet in (b"\xef", b"\xbb", b"\xbf"):
        if not text.startswith(octet):
            break
        text = text[1:]
    return text.splitlines()


def _record(line: bytes) -> tuple[bytes, bytes] | None:
    """Split a line, free of its comment, into lower-case key and value; None if it is no record."""
    key, colon, value = line.partition(b":")
    if colon:
        return key.rstrip().lower(), value.lstrip()
    words = line.split()
    return (words[0].lower(), words[1]) if len(words) == 2 else None


_TOKEN = re.compile(rb"[A-Za-z_-]+|\*(?![A-Za-z_-])")
_DELAY = re.compile(rb"(\d+(?:\.\d+)?)(?![\d.,eExX])")


def _delay_s(value: bytes) -> float | None:
    match = _DELAY.match(value)
    delay_s = float(match[1]) if match else math.inf
    return delay_s if math.isfinite(delay_s) else None


class _Group(msgspec.Struct, eq=False):
    """All groups of one name, merged: `rules` holds line number, line, whether it allows, and the path pattern."""

    named: bool = False
    rules: list[tuple[int, bytes, bool, bytes]] = msgspec.field(default_factory=list)
    delay_s: float | None = None


class _Reader:
    """One pass over the lines, for one product token.

    A rule line ends the list of names above it; the next user-agent line starts a new group, and nothing else does
    (sections 2.1 and 2.2.4). A Crawl-delay is for the names directly above it: it ends a list of names of its own.
    """

    def __init__(self, product_token: str) -> None:
        self._token = product_token.encode("utf-8", "surrogatepass").lower()
        self._ours = _Group()
        self._everyone = _Group()
        self._sitemaps: list[str] = []
        self._rules_for: set[_Group] = set()  # sets, since a file may name one group thousands of times
        self._delay_for: set[_Group] = set()
        self._rule_seen = False
        self._delay_seen = False

    def take(self, number: int, line: bytes) -> None:
        """Read the line `number`; what is no known record is skipped."""
        line = line.partition(b"#")[0].strip()
        record = _record(line)
        if record is None:
            return
        key, value = record
        match key:
            case b"allow" | b"disallow":
                self._rule_seen = True
                for group in self._rules_for:
                    group.rules.append((number, line, key == b"allow", value))
            case b"user-agent":
                self._name(value)
            case b"crawl-delay":
                self._delay_seen = True
                self._delay(_delay_s(value))
            case b"sitemap" if value:
                self._sitemaps.append(value.decode("utf-8", "replace"))
            case _:
                pass

    def _name(self, value: bytes) -> None:
        if self._rule_seen:
            self._rules_for = set()
        if self._rule_seen or self._delay_seen:
            self._delay_for = set()
        self._rule_seen = self._delay_seen = False
        match = _TOKEN.match(value)
        token = match.group().lower() if match else b""
        if token not in (self._token, b"*"):
            return
        group = self._everyone if token == b"*" else self._ours
        group.named = True
        self._rules_for.add(group)
        self._delay_for.add(group)

    def _delay(self, delay_s: float | None) -> None:
        if delay_s is None:
            return
        for group in self._delay_for:
            group.delay_s = max(delay_s, group.delay_s or 0.0)

    def rules(self) -> Rules:
        """Return what was said to our token."""
        if self._ours.named:
            return _compile(self._ours, self._token.decode("utf-8", "surrogatepass"), tuple(self._sitemaps))
        return _compile(self._everyone, "*" if self._everyone.named else None, tuple(self._sitemaps))


def _compile(group: _Group, name: str | None, sitemaps: tuple[str, ...]) -> Rules:
    literals: dict[str, RobotsVerdict] = {}
    patterns: list[_Pattern] = []
    for number, line, allow, value in group.rules:
        text = _pattern_text(value.decode("latin-1"))
        if not text.startswith(("/", "*")):
            continue
        verdict = RobotsVerdict(allow, number, line.decode("utf-8", "replace"))
        if "*" in text:
            head, *pieces = text.split("*")
            patterns.append(_Pattern(len(text), head, tuple(filter(None, pieces)), verdict))
        elif text not in literals or (allow and not literals[text].allowed):
            literals[text] = verdict
    patterns.sort(key=lambda pattern: (-pattern.octets, not pattern.verdict.allowed))
    lengths = tuple(sorted({len(text) for text in literals}, reverse=True))
    heads = [*literals, *(pattern.head for pattern in patterns)]
    free = _PLAIN.difference(head[1:2] for head in heads) if all(len(head) > 1 for head in heads) else frozenset()
    return Rules(name, group.delay_s, sitemaps, literals, lengths, tuple(patterns), free)


def _pattern_text(value: str) -> str:
    """Return a rule's path pattern in normal form, its wildcards bare and a final `$` as _END."""
    path, dollar = (value[:-1], _END) if value.endswith("$") else (value, "")
    return "*".join(_normal(piece) for piece in path.split("*")) + dollar
