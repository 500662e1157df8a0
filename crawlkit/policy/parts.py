"""The elements of a page that say something, by their names."""

from collections import defaultdict

from selectolax.lexbor import LexborHTMLParser

from crawlkit.policy.metadata import HEADINGS, Parts
from crawlkit.policy.page_text import LANDMARKS

_NAMES = ("base", "meta", "title", "link", "a", "area", "frame", "iframe", "script", "style", *HEADINGS, *LANDMARKS)
_BUT_LINKS = ",".join(name for name in _NAMES if name != "a")


def _ids() -> dict[int, str]:
    """Return the names by the numbers that lexbor has for them, the same in every tree."""
    maker = LexborHTMLParser("")
    return {maker.create_node(name).tag_id: name for name in _NAMES}


_NAME_OF = _ids()


def parts_of(tree: LexborHTMLParser) -> Parts:
    """Return the elements that say something: half the time of `found_parts`, but an object for each element of the tree."""
    parts: Parts = defaultdict(list)
    name_of = _NAME_OF.get
    for node in tree.tags("*"):
        name = name_of(node.tag_id)
        if name is not None:
            parts[name].append(node)
    return parts


def found_parts(tree: LexborHTMLParser) -> Parts:
    """Return the same for a tree of any size: one walk, a fourth of one for each name."""
    parts: Parts = defaultdict(list)
    for node in tree.css(_BUT_LINKS):
        parts[node.tag or ""].append(node)
    parts["a"] = tree.tags("a")
    return parts
