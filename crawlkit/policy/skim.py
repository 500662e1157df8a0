"""Reduce markup that could hurt the tree builder to the few tags that a page is read for.

Building a tree as the HTML Standard says is not linear: a start tag may look through all open elements, each paragraph makes
all unclosed formatting elements anew, an attribute is compared with those before it. In lexbor 20,000 nested `<div>` take
0.6 s and 100,000 take 15 s; 24 KB of `<p><b a=N>` take 2 s and 700 MB. What bounds that must not be fooled by what the page
says, nor depend on the machine, so it is counts over the bytes, tags in scripts and comments included: `tree_size`
overestimates. What it does not acquit so is looked at tag by tag, by `tree_cost`.

A skimmed page has no tree, only tokens: links, title, base, canonical and what is said to robots come out as from the tree,
but where the tree builder moves or drops tags that are out of place.
"""

import itertools
import re
from collections.abc import Collection
from enum import Enum, auto

from crawlkit.policy.metadata import HEADINGS
from crawlkit.policy.novelty import BREAK
from crawlkit.policy.page_text import LANDMARKS
from crawlkit.policy.tokens import ATTRIBUTE, NAME_AND_VALUE, TEXT_ENDS, end_of_declaration, end_of_text

# Within these bounds the dearest markup found by random search takes 0.2 s and 100 MiB to parse.
_TREE_BYTES = 1024 * 1024
TREE_TAGS = 10_000
"""Of more tags no tree is built before each is looked at."""
# An attribute is compared with all before it. In so many bytes, all of one tag, that takes 80 ms.
_FEW_BYTES = 32 * 1024
# Each tag may make all formatting elements anew with all their attributes.
_TREE_TAGS_TIMES_FORMATTING = 600_000
# Each end tag of one may look through all other elements and all formatting elements, to move some: 12 ns each.
_TREE_TAGS_TIMES_MOVES = 20_000_000
# Where tags times bytes are no more, neither is the other product much.
_SMALL = 1_500_000
# Where this estimate, five times too high at best, is no higher, each element may become an object of Python: 8 MB, 8 ms.
_FEW_ELEMENTS = 400_000
_MOST_OVERLAP = 8
# Up to so many tags only formatting with attributes is looked for: what has none makes no more than three of each name.
_FEW_TAGS = 1_000
_KEPT_WITHOUT_ATTRIBUTES = 3 * 14

_MOST_TOKENS = 400_000
_MOST_OTHER_TAGS = 10_000
_MOST_ATTRIBUTES = 256
_MOST_VALUE_BYTES = 64 * 1024

_MOST_SECTIONS = 1_000
# Text is copied several times to be counted and compared, in up to four bytes a character.
_MOST_TEXT_BYTES = 4 * 1024 * 1024

_LINKS = frozenset((b"a", b"area", b"iframe", b"frame"))
_OTHERS = frozenset((b"base", b"link", b"meta"))
_SECTIONS = frozenset((*(name.encode() for name in LANDMARKS), b"main", b"article"))
_HEADINGS = frozenset(name.encode() for name in HEADINGS)
_ENDS = frozenset((b"/template", b"/svg", *(b"/" + name for name in _SECTIONS)))
_READ = _LINKS | _OTHERS | _SECTIONS | _HEADINGS | _ENDS | {b"template", b"svg", b"frameset", b"html"}
_ATTRIBUTES = frozenset((b"href", b"rel", b"src", b"name", b"content", b"http-equiv", b"hreflang", b"lang"))

# Patterns that few pages need are compiled for the first of those: that takes 5 ms of a start.
# A bounded number of them at a time: while a pattern is matched no other thread runs.
_REST_OF_TAG = rb"(?:%b){0,1000}+[\t\n\f\r /]*+(>)?" % ATTRIBUTE
# A tag, or what begins a comment or the like; all other `<` are text.
_MARKUP = rb"<(?=[a-zA-Z/!?])(?:(/?[a-zA-Z][^\t\n\f\r />]*+)%b|[/!?])" % _REST_OF_TAG

# Start and end tags of formatting elements; also `form`, `style` and a few others, which costs little: only the first letters
# are compared, for speed. Of `a` no two are open at once, so that only one laden with attributes matters; most plainly have
# few. What most look like stands first: to tell one so takes half the time.
_PLAIN = rb"""(?: href="[^"]*+" (?: [ ] [a-z]{1,9}+ = "[^"]*+" ){0,3}+ >
    | (?: [^"'>]{0,32}+ (?<=[a-zA-Z-]=) "[^"]*+" ){0,4}+ [^"'>]{0,32}+ > )"""
# Formatting start tags with attributes and laden links, in one pass without branches: it runs on each page.
_WITH_ATTRIBUTES = re.compile(
    rb"<[abcefinstuABCEFINSTU](?:[imotIMOT][a-zA-Z]{0,4}+)?+([\t\n\f\r /](?!(?<=<[aA][\t\n\f\r /])%b)(?:%b)*+)"
    % (_PLAIN, ATTRIBUTE),
    re.X,
)
_LADEN_LINK = rb"[aA](?=[\t\n\f\r /]) (?!%b) ((?:%b){40,}+)" % (_PLAIN, ATTRIBUTE)
_FORMATTING_TAG = (
    rb"""(/?+)(?=[bcefinstuBCEFINSTU][\t\n\f\r />imotIMOT])
    ((?:[bisuBISU](?=[\t\n\f\r />])|[bB][iI]|[cCfFnN][oO]|[eE][mM]|[sS][mMtT]|[tT]{2})(?:%b)*+)"""
    % ATTRIBUTE
)
_FORMATTING = rb"<(?: %b | %b )" % (_LADEN_LINK, _FORMATTING_TAG)
# In a larger page no tag is laden, or it is not looked for formatting.
_FORMATTING_BUT_LINKS = rb"<() %b" % _FORMATTING_TAG
# The name of a tag, unless it plainly has few attributes, as nearly all have: that saves two thirds of the time of looking at
# each. How far is looked has a bound: it is done where each tag seems to begin, and what seems to be one may lie in another.
_TAG_NAME = rb"""<[a-zA-Z](?! [^\t\n\f\r />]{0,32}+
    (?: [\t\n\f\r ]++ [^\t\n\f\r />="'<]{1,32}+ (?: = (?: "[^"]{0,999}+" | '[^']{0,999}+' | [^\t\n\f\r >"']{1,99}+ ) )?+ ){0,8}+
    [\t\n\f\r /]*+ > ) [^\t\n\f\r />]*+"""
_LADEN = rb"(?:%b){0,39}+(%b)?+" % (ATTRIBUTE, ATTRIBUTE)
_SEPARATORS = b"\t\n\f\r /="

_SEPARATOR = BREAK.encode()


class TreeSize(Enum):
    """What the tree of a page takes, at most."""

    SMALL = auto()  # so few elements that each may become an object
    FAIR = auto()
    COSTLY = auto()  # it may take long to build, or much memory


def tree_size(markup: bytes) -> TreeSize:
    """Return what the tree of `markup` takes. 22 us for a page of 18 KB.

    A page that is large, or has much formatting, takes 2 us a tag.
    """
    tags = markup.count(b"<")
    copies = _copies(markup, tags)
    if copies is None:
        from crawlkit.policy.tree_cost import is_tree_costly  # noqa: PLC0415  (takes 3 ms of a start, for few pages)

        return TreeSize.COSTLY if is_tree_costly(markup) else TreeSize.FAIR
    return TreeSize.SMALL if tags + copies <= _FEW_ELEMENTS else TreeSize.FAIR


def is_costly(markup: bytes) -> bool:
    """Whether a tree of `markup` might take long to build, or much memory."""
    return tree_size(markup) is TreeSize.COSTLY


def _copies(markup: bytes, tags: int) -> int | None:
    """Return how many elements formatting may make anew, about and at most; None where that or its time may be much."""
    if len(markup) <= _FEW_BYTES and tags <= _FEW_TAGS:
        if tags * len(markup) <= _SMALL:
            return 0
        kept = _KEPT_WITHOUT_ATTRIBUTES + _weight(_WITH_ATTRIBUTES.findall(markup))
        # At best one half of the tags closes what the other half opens.
        if tags * kept <= _TREE_TAGS_TIMES_FORMATTING and tags * kept * tags // 2 <= _TREE_TAGS_TIMES_MOVES:
            return tags * kept
    return _copies_of_each(markup, tags)


def _copies_of_each(markup: bytes, tags: int) -> int | None:
    if len(markup) > _TREE_BYTES or tags > TREE_TAGS:
        return None
    if len(markup) > _FEW_BYTES and _has_laden_tag(markup):
        return None
    if tags * len(markup) <= _SMALL:
        return 0
    found = re.compile(_FORMATTING_BUT_LINKS if len(markup) > _FEW_BYTES else _FORMATTING, re.X).findall(markup)
    opened = [laden + tag for laden, slash, tag in found if not slash]
    # Of elements that are all alike the Standard keeps three.
    kept = min(_weight(opened), 3 * _weight(set(opened)))
    closed = len(found) - len(opened)
    if tags * kept > _TREE_TAGS_TIMES_FORMATTING or tags * kept * closed > _TREE_TAGS_TIMES_MOVES:
        return None
    return tags * kept


def _has_laden_tag(markup: bytes) -> bool:
    """Whether a tag has 40 attributes, or tags seem to lie within tags all over: what looks like a tag may be no tag."""
    left = _MOST_OVERLAP * len(markup)
    laden = re.compile(_LADEN, re.X)
    for name in re.compile(_TAG_NAME, re.X).finditer(markup):
        attributes = laden.match(markup, name.end())
        assert attributes is not None  # it matches nothing, too
        left -= attributes.end() - name.end()
        if attributes[1] or left < 0:
            return True
    return False


def _weight(tags: Collection[bytes]) -> int:
    """Return how many elements and attributes these tags make, at most."""
    inside = b"".join(tags)
    # No attribute but one that follows a quoted value is without a space or a slash before it.
    return len(tags) + len(inside) - len(inside.translate(None, _SEPARATORS))


def skim(markup: bytes, most_links: int) -> tuple[bytes, bool]:
    """Return a document with what `markup` says that a page is read for, and whether there may be more of it.

    It holds up to `most_links` tags that lead elsewhere, others that count up to a bound, each with the attributes that are
    read, headings without their text, and the text. Time is linear: about 1 us a tag.
    """
    outline = _Outline(markup, most_links)
    search = re.compile(_MARKUP, re.X).search
    at = 0
    tokens_left = _MOST_TOKENS
    while found := search(markup, at):
        start, opened = found.span()
        if start > at:
            outline.add_text(at, start)
        tokens_left -= 1
        if not tokens_left:
            return outline.document(), True
        name, is_closed = found.groups()
        if name is None:
            at = end_of_declaration(markup, start)
            continue
        at = opened if is_closed else _end_of_tag(markup, opened)
        if not at:  # the tag runs over the end of the bytes, and is none
            return outline.document(), outline.is_cut
        name = name.lower()
        if name in TEXT_ENDS:
            opened = at
            at = end_of_text(markup, opened, name)
            outline.add_content(name, opened, at)
        if name in _READ and not outline.add(name, start, at):
            return outline.document(), True
    outline.add_text(at, len(markup))
    return outline.document(), outline.is_cut


def _end_of_tag(markup: bytes, at: int) -> int:
    """Return where the tag ends among whose attributes this is; 0 if nowhere."""
    go_on = re.compile(_REST_OF_TAG, re.X)
    while at < len(markup):
        rest = go_on.match(markup, at)
        assert rest is not None  # it matches nothing, too
        at = rest.end()
        if rest[1]:
            return at
    return 0


class _Outline:
    """What has been kept of a page, in order."""

    def __init__(self, markup: bytes, most_links: int) -> None:
        self.is_cut = False
        self._markup = markup
        self._attributes = re.compile(NAME_AND_VALUE, re.X)
        self._parts: list[bytes] = []
        self._text_left = _MOST_TEXT_BYTES
        self._links_left = most_links
        self._others_left = _MOST_OTHER_TAGS
        self._sections_left = _MOST_SECTIONS
        self._open = {b"template": 0, b"svg": 0}
        self._has_title = self._has_frames = False

    def document(self) -> bytes:
        return b"".join(self._parts)

    def add_text(self, start: int, end: int) -> None:
        """Take in text."""
        if not self._open[b"template"]:
            text = self._markup[start : min(end, start + self._text_left)]
            self._text_left -= len(text)
            self.is_cut |= start + len(text) < end
            if text and not text.isspace():
                self._parts += (text, _SEPARATOR)

    def add_content(self, name: bytes, start: int, end: int) -> None:
        """Take in the content of an element whose content is text."""
        if self._open[b"template"]:
            return
        if name == b"title" and not self._has_title and not self._open[b"svg"]:
            self._has_title = True
            self._parts += (b"<title>", self._markup[start : min(end, start + _MOST_VALUE_BYTES)], b"</title>")
        elif name == b"textarea" and start < end:
            self._parts.append(b"<textarea>")
            self.add_text(start, end)
            self._parts.append(b"</textarea>")

    def add(self, name: bytes, start: int, end: int) -> bool:
        """Take in a tag; return False when there are too many of its kind."""
        element = name.removeprefix(b"/")
        if element in self._open:
            self._open[element] = max(0, self._open[element] + (1 if element == name else -1))
        elif self._open[b"template"]:
            pass
        elif name == b"frameset":
            self._has_frames = True
        elif name == b"html":
            self._add_root(start, end)
        elif name in _HEADINGS:
            self._parts.append(b"<%b></%b>" % (name, name))
        elif element in _SECTIONS:
            self._sections_left -= 1
            if self._sections_left >= 0:
                self._parts.append(b"<%b>" % name)
        elif name in _OTHERS:
            self._others_left -= 1
            self._add_tag(name, start, end)
        else:
            self._links_left -= 1
            if name != b"frame" or self._has_frames:
                self._add_tag(name, start, end)
        return self._links_left >= 0 and self._others_left >= 0

    def _add_root(self, start: int, end: int) -> None:
        """Take in the page's language, which is only said before all else."""
        if not self._parts:
            self._add_tag(b"html", start, end)

    def _add_tag(self, name: bytes, start: int, end: int) -> None:
        values: dict[bytes, bytes] = {}
        attributes = self._attributes.finditer(self._markup, start + 1 + len(name), end - 1)
        for attribute in itertools.islice(attributes, _MOST_ATTRIBUTES):
            key = attribute[1].lower()
            if key in _ATTRIBUTES and key not in values:
                values[key] = b"" if attribute.lastindex == 1 else attribute[attribute.lastindex or 1]
        if any(len(value) > _MOST_VALUE_BYTES for value in values.values()):
            self.is_cut = True
            return
        inside = b"".join([b' %b="%b"' % (key, value.replace(b'"', b"&quot;")) for key, value in values.items()])
        # The tree builder drops a frame outside of a frameset; an inline one says the same.
        shown = b"iframe" if name == b"frame" else name
        self._parts.append(b"<%b%b>" % (shown, inside) if name not in _LINKS else b"<%b%b></%b>" % (shown, inside, shown))
