"""Estimate from above what the tree of a page costs: a second opinion, for pages that their size alone does not acquit.

One pass over the tags follows which elements are open. What it believes to be open has all that the tree builder has open,
whatever the page says: an end tag takes back one element of its own name, and only where no element is open inside of it
that could make the tree builder ignore that tag; what else that tag closes stays open here. So a page whose tags are in
order is estimated exactly, a careless one somewhat high, and one made to deceive not too low. Where the two could part,
mostly in SVG and frames, the answer is that the page is costly.
"""

import re
from collections import Counter

from crawlkit.policy.tokens import ATTRIBUTE, TEXT_ENDS, end_of_declaration, end_of_text

MOST_BYTES = 4 * 1024 * 1024
MOST_TAGS = 100_000
"""No tree is built of a larger page, nor of more tags."""

# Looking at one open element takes 3 ns; a tag may look at all some times.
_MOST_STEPS = 60_000_000
# When a formatting element is closed around blocks, those may be moved: 12 ns for each pair of block and formatting element.
_STEPS_A_MOVE = 4
_MOST_MEMORY = 110 * 1024 * 1024
# In bytes, measured: an element with its text, an attribute, an element or attribute that is made anew.
_OF_TAG = 150
_OF_ATTRIBUTE = 220
_OF_COPY = 180
_WIDE = re.compile(b"[\xf0-\xff]")
_SLASH = ord("/")
_HEADING = b"h"
_OLD_FORM = b"form/"
_MOST_ALIKE = 3
# An element's text is copied where its selector asks for it, so that nested ones take a multiple of the page.
_MOST_TEXT_OF_NESTED = 2_000_000_000
_MOST_TEXT_OF_LINKS = 50_000_000
# How far below the innermost element the one that an end tag names is looked for.
_MOST_SOUGHT = 64

_VOID = frozenset(
    b"area base basefont bgsound br col embed frame hr image img input keygen link meta param source track wbr".split()
)
_ROOTS = frozenset((b"html", b"head", b"body"))  # no more than one of each is ever open
_FORMATTING = frozenset(b"a b big code em font i nobr s small strike strong tt u".split())
_CELLS = frozenset((b"td", b"th"))
_ROW_GROUPS = frozenset((b"tbody", b"thead", b"tfoot"))
_IN_TABLE = _CELLS | _ROW_GROUPS | {b"tr", b"caption", b"colgroup"}
_HEADINGS = frozenset((b"h1", b"h2", b"h3", b"h4", b"h5", b"h6"))
_CLOSES_P = _HEADINGS | frozenset(
    b"address article aside blockquote center dd details dir div dl dt fieldset figcaption figure footer form header hgroup hr"
    b" li listing main menu nav ol p plaintext pre section summary ul xmp".split()
)

# What an end tag does not see through (HTML Standard section 13.2.4.2); more can only make the estimate higher.
_SCOPE = frozenset(b"applet caption marquee object select table td template th".split())
_BUTTON_SCOPE = _SCOPE | {b"button"}
_LIST_SCOPE = _SCOPE | {b"ol", b"ul"}
_TABLE_SCOPE = frozenset((b"table", b"template", b"select"))
_SPECIAL = (
    _SCOPE
    | _CLOSES_P
    | _IN_TABLE
    | frozenset(b"button dialog iframe noembed noframes noscript script search style textarea title h".split())
)
_LIST_ITEM_SCOPE = _SPECIAL - {b"address", b"div", b"p"}
_SCOPES = {
    **dict.fromkeys(_CLOSES_P | frozenset(b"applet button h marquee object".split()), _SCOPE),
    **dict.fromkeys(_IN_TABLE, _TABLE_SCOPE),
    b"li": _LIST_SCOPE,
    b"p": _BUTTON_SCOPE,
    b"select": _SCOPE - {b"select"},
    b"table": _TABLE_SCOPE - {b"table"},
    b"template": frozenset[bytes](),
}
"""Of the elements whose end tags see through special ones."""

_P, _A, _FORM, _TR, _LI, _BUTTON = (frozenset((name,)) for name in (b"p", b"a", b"form", b"tr", b"li", b"button"))
_D = frozenset((b"dd", b"dt"))
_TABLE_PARTS = _ROW_GROUPS | {b"table", b"tr"}
# What a start tag closes: the first of these that there is.
_CLOSED_BEFORE = {
    b"li": ((_LI, _LIST_ITEM_SCOPE),),
    b"button": ((_BUTTON, _SCOPE),),
    b"tr": ((_TR, _TABLE_SCOPE),),
    **dict.fromkeys(_D, ((_D, _LIST_ITEM_SCOPE),)),
    **dict.fromkeys(_CELLS, ((_CELLS, _TABLE_SCOPE),)),
    **dict.fromkeys(_ROW_GROUPS, ((_ROW_GROUPS, _TABLE_SCOPE), (_TR, _TABLE_SCOPE))),
}

# Where one of these is closed by another's end tag, links around it are out of sight for good: no other link closes them.
_MARKERS = frozenset(b"applet caption marquee object template".split())
_FOREIGN = frozenset((b"svg", b"math"))
_INTEGRATION = frozenset(b"annotation-xml desc foreignobject mi mn mo ms mtext title".split())
# What ends SVG and MathML (HTML Standard section 13.2.6.5).
_BREAKS_OUT = frozenset(
    b"b big blockquote body br center code dd div dl dt em embed font h1 h2 h3 h4 h5 h6 head hr i img li listing menu meta nobr"
    b" ol p pre ruby s small span strong strike sub sup table tt u ul var".split()
)

_TAG = re.compile(
    rb"<(?=[a-zA-Z/!?])(?:(/?[a-zA-Z][^\t\n\f\r />]*+)((?:%b){0,100}+)([\t\n\f\r /]*+)(>)?|[/!?])" % ATTRIBUTE, re.X
)
_COUNTED = re.compile(ATTRIBUTE, re.X)
_SCRIPT_IN_COMMENT = re.compile(rb"<!--.*?<script", re.S | re.I)


def is_tree_costly(markup: bytes) -> bool:
    """Whether the tree of `markup` may take more than about 0.5 s or 150 MiB to build and to read. About 2 us a tag."""
    if len(markup) > MOST_BYTES or markup.count(b"<") > MOST_TAGS:
        return True
    followed = estimate(markup)
    return followed is None or followed.is_high()


def estimate(markup: bytes) -> "Estimate | None":
    """Return what the tree of `markup` costs at most; None where the tree builder cannot be followed."""
    costs = Estimate(markup)
    at = 0
    while found := _TAG.search(markup, at):
        start, opened = found.span()
        costs.text_bytes += start - at
        name, attributes, rest, is_whole = found.groups()
        if name is None:
            at = costs.end_of_declaration(start)
            continue
        if not is_whole:  # it has a hundred attributes; or it runs over the end, and is none
            return None if opened < len(markup) else costs
        at = opened
        name = name.lower()
        if name[0] == _SLASH:
            is_sure = costs.end(name[1:])
        else:
            is_sure = costs.start(name, attributes, is_closed=rest.endswith(b"/"))
            if name in TEXT_ENDS and not costs.is_foreign:
                at = end_of_text(markup, opened, name)
                is_sure = is_sure and costs.content(name, markup[opened:at])
        if not is_sure:
            return None
    costs.text_bytes += len(markup) - at
    return costs


class Estimate:
    """What is open, and what the tags so far have cost at most.

    `start`, `end` and `content` tell whether the tree builder is followed still.
    """

    def __init__(self, markup: bytes) -> None:
        self.text_bytes = 0
        self._markup = markup
        self._a_character = 16 if _WIDE.search(markup) else 4 if markup.isascii() else 8
        self._open: list[bytes] = []
        self._tags: list[tuple[bytes, int] | None] = []
        """For each open formatting element what its tag says, and its weight."""
        self._count: Counter[bytes] = Counter()
        self._alike: Counter[tuple[bytes, int]] = Counter()
        self._weight = 0
        """Of the open formatting elements with their attributes; of those that are alike no more than three are kept."""
        self._foreign_from: int | None = None
        self._hides_links = False
        self._of_root = 0
        self._steps = 0
        self._memory = 2 * len(markup)
        self.deepest = self._most_links = 1

    @property
    def is_foreign(self) -> bool:
        """Whether this is inside of SVG or MathML."""
        return self._foreign_from is not None

    def is_high(self) -> bool:
        """Whether the costs so far are too high."""
        return (
            self._steps > _MOST_STEPS
            or self._memory + self.text_bytes * self._a_character > _MOST_MEMORY
            or self.deepest * len(self._markup) > _MOST_TEXT_OF_NESTED
            or self._most_links * len(self._markup) > _MOST_TEXT_OF_LINKS
        )

    def start(self, name: bytes, attributes: bytes, *, is_closed: bool) -> bool:
        """Take in a start tag."""
        number = len(_COUNTED.findall(attributes)) if attributes else 0
        self._steps += len(self._open) + number * number
        self._memory += _OF_TAG + _OF_ATTRIBUTE * number + _OF_COPY * self._weight
        if self.is_foreign:
            return self._start_foreign(name, is_closed=is_closed)
        if name in _ROOTS:
            self._of_root += number
            self._steps += self._of_root * number
            return True
        self._close_before(name)
        if name in _VOID or name in TEXT_ENDS:
            return name != b"col" or not self._count[b"template"]
        if name in _FORMATTING:
            self._steps += self._weight * number
            self._push(name, (name + attributes, 1 + number))
        elif name in _FOREIGN:
            if not is_closed:
                self._foreign_from = len(self._open)
                self._push(name)
        elif name == b"frameset" or (name == b"colgroup" and self._count[b"template"]):
            return False
        else:
            # Of several forms only the first is known to be the one that an end tag is for.
            self._push(_HEADING if name in _HEADINGS else _OLD_FORM if name == b"form" and self._count[name] else name)
        return self._steps <= _MOST_STEPS

    def _close_before(self, name: bytes) -> None:
        """Take back the elements that a start tag closes."""
        if name in _CLOSES_P:
            self._close(_P, _BUTTON_SCOPE)
        if name in _CLOSED_BEFORE:
            for names, scope in _CLOSED_BEFORE[name]:
                if self._close(names, scope):
                    break
        elif name in (b"option", b"optgroup"):
            if self._open and self._open[-1] == b"option":
                self._pop(-1)
        elif name in (b"a", b"nobr") and self._count[name]:
            self._move()
            if name == b"a" and not self._hides_links:
                self._close(_A, _SCOPE)
        elif name in _MARKERS and self._count[b"a"]:
            self._hides_links = True

    def end(self, name: bytes) -> bool:
        """Take in an end tag."""
        opened = self._open
        self._steps += len(opened)
        self._memory += _OF_TAG
        if name in _HEADINGS:
            name = _HEADING
        if opened and opened[-1] == name:
            self._pop(-1)
        elif self.is_foreign:
            return not self._count[name] and name not in (b"p", b"br")
        elif name in _FORMATTING:
            if self._count[name]:
                self._move()
                self._close(frozenset((name,)), _SPECIAL)
        elif name == b"form":
            self._end_form()
        elif name in (b"option", b"optgroup"):
            if opened[-2:] == [b"optgroup", b"option"] and name == b"optgroup":
                self._pop(-2)
        else:
            self._close(frozenset((name,)), _SCOPES.get(name, _SPECIAL))
        self._memory += _OF_COPY * self._weight
        return True

    def content(self, name: bytes, content: bytes) -> bool:
        """Take in the content of an element whose content is text."""
        if name == b"script":
            return not _SCRIPT_IN_COMMENT.search(content)
        if name != b"style":
            self.text_bytes += len(content)
        return not self._count[b"select"]  # in which other tags may be ignored

    def end_of_declaration(self, start: int) -> int:
        """Take in the comment or the like that starts here; return where it ends."""
        self._memory += _OF_TAG
        return end_of_declaration(self._markup, start, in_foreign=self.is_foreign)

    def _start_foreign(self, name: bytes, *, is_closed: bool) -> bool:
        if name in _BREAKS_OUT or self._open[-1] in _INTEGRATION:
            return False
        if not is_closed:
            self._push(name)
        return True

    def _end_form(self) -> None:
        """Take back the form; where the end tag is ignored, no later one is for it either."""
        if self._count[b"form"] and not self._close(_FORM, _SCOPE):
            self._open[self._open.index(b"form")] = _OLD_FORM
            self._count[b"form"] -= 1

    def _move(self) -> None:
        self._steps += _STEPS_A_MOVE * len(self._open) * self._weight

    def _close(self, names: frozenset[bytes], scope: frozenset[bytes]) -> bool:
        """Take back the innermost element of one of `names`, if it is certain to be closed; whether there is one."""
        count = self._count
        if not any(map(count.__getitem__, names)):
            return False
        opened = self._open
        last = len(opened) - 1
        for at in range(last, max(-1, last - _MOST_SOUGHT), -1):
            if opened[at] in names:
                if opened[at] in _TABLE_PARTS:
                    for above in range(last, at, -1):
                        if opened[above] in _IN_TABLE:
                            self._pop(above)
                elif opened[at] == b"select" and opened[last] == b"option" and at + 1 == last:
                    self._pop(last)
                self._pop(at)
                return True
            if opened[at] in scope:
                return False
        return False

    def _push(self, name: bytes, tag: tuple[bytes, int] | None = None) -> None:
        self._open.append(name)
        self._tags.append(tag)
        self._count[name] += 1
        self.deepest = max(self.deepest, len(self._open))
        if tag:
            self._alike[tag] += 1
            self._weight += tag[1] if self._alike[tag] <= _MOST_ALIKE else 0
            self._most_links = max(self._most_links, self._count[b"a"])

    def _pop(self, at: int) -> None:
        self._count[self._open.pop(at)] -= 1
        if tag := self._tags.pop(at):
            self._alike[tag] -= 1
            self._weight -= tag[1] if self._alike[tag] < _MOST_ALIKE else 0
        if self._foreign_from == len(self._open):
            self._foreign_from = None
