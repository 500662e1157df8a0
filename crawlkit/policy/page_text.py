"""The text of a page: all that is visible, and the main part of it, which is counted and compared.

The main text is the visible text of the body outside of `nav`, `aside`, and of those `header` and `footer` that are the
page's own, not those of a `main` or an `article`; where that leaves nothing, all of the body's. What styles or attributes
hide is not known and counts as visible.
"""

import hashlib

import msgspec
from bitarray import bitarray
from selectolax.lexbor import LexborHTMLParser, LexborNode

from crawlkit.policy.metadata import Parts
from crawlkit.policy.novelty import BREAK

LANDMARKS = ("nav", "aside", "header", "footer")
"""The elements that may be outside of the main text."""
MOST_KEPT = 1_000_000
"""Characters of a text that are kept: about as many as a thick book has."""
_LANDMARKS = ",".join(LANDMARKS)

_OF_A_SECTION = frozenset({"article", "main"})

# How far above a header its article is looked for: to the root, a page of nested headers would take its square.
_LEVELS = 32

# White space, and control characters, BREAK's among them.
_BLANKS = bytes(range(33))
_IS_LETTER = bytes(byte not in _BLANKS for byte in range(256))
_BYTES_AT_ONCE = 65_536


class Texts(msgspec.Struct, frozen=True):
    """The text of all nodes, and the main text; nodes are separated by `BREAK`."""

    visible: str
    main: str


def read_texts(tree: LexborHTMLParser, parts: Parts) -> Texts:
    """Return the texts of a page. `parts` has all scripts, styles and landmarks, which are taken out of the tree.

    Nothing else can be read of the tree after this, nor of `parts`.
    """
    for node in (*parts["script"], *parts["style"]):
        child = node.child
        # In SVG they may hold elements, one another too: freeing the outer one would free the inner one twice.
        if child is None or (child.tag == "-text" and child.next is None):
            node.decompose()
    if tree.root is None:
        return Texts("", "")
    visible = tree.root.text(separator=BREAK, skip_empty=True)
    body = _body_text(tree, visible)
    if not parts.keys().isdisjoint(LANDMARKS) and take_out(tree):
        return Texts(visible, _text(tree.body) or body)
    return Texts(visible, body)


def _body_text(tree: LexborHTMLParser, visible: str) -> str:
    """Return the visible text without that of the head, which comes first."""
    return visible.removeprefix(_text(tree.head)).removeprefix(BREAK)


def _text(node: LexborNode | None) -> str:
    return "" if node is None else node.text(separator=BREAK, skip_empty=True)


def take_out(tree: LexborHTMLParser) -> bool:
    """Take the landmarks that are outside of the main text out of the tree; whether there were any.

    What is below one that was taken out is gone with it and must not be touched: it comes next, in document order.
    """
    taken = False
    below = 0
    for node in tree.css(_LANDMARKS):
        if below:
            below -= 1
        elif node.tag in ("nav", "aside") or not _is_in_a_section(node):
            below = sum(other.mem_id != node.mem_id for other in node.css(_LANDMARKS))
            node.decompose()
            taken = True
    return taken


def _is_in_a_section(node: LexborNode) -> bool:
    ancestor = node.parent
    for _ in range(_LEVELS):
        if ancestor is None or ancestor.tag in _OF_A_SECTION:
            return ancestor is not None
        ancestor = ancestor.parent
    return False


class TextFacts(msgspec.Struct, frozen=True):
    """How many words a text has, and `sha256:...` of it without white space, None where there is no word."""

    words: int
    digest: str | None


def weigh(text: str) -> TextFacts:
    """Return the facts of a text: words are what stands between white space. About 30 us for 1,700 words."""
    if not text.isascii():
        text = text.replace("\xa0", " ").replace("\u3000", " ")
    encoded = text.encode(errors="replace")
    words = _count_words(encoded)
    squeezed = encoded.translate(None, _BLANKS)
    return TextFacts(words, f"sha256:{hashlib.sha256(squeezed).hexdigest()}" if words else None)


def _count_words(encoded: bytes) -> int:
    """Return how many words there are: letters that follow a blank, or begin the text.

    Eight bytes are looked at at once, without a branch that depends on the text: 12 us for 10 KB, of which translating
    takes 8. Splitting takes five times as long, one large number in the place of the bits twice.
    """
    letters = encoded.translate(_IS_LETTER)
    words = 0
    for at in range(0, len(letters), _BYTES_AT_ONCE):
        lanes = bitarray(buffer=letters[at : at + _BYTES_AT_ONCE])
        words += (lanes & ~(lanes >> 8)).count()
        if at:  # a word that goes on here has been counted
            words -= letters[at - 1] & letters[at]
    return words


def one_line(text: str) -> str:
    """Return a text on one line, its white space made single spaces, cut at `MOST_KEPT` characters."""
    return " ".join(text.replace(BREAK, " ").split())[:MOST_KEPT]
