"""Pick fields from a page by CSS selectors: the setting `extract`.

A text is the element's whole text, white space made one space. An attribute is that of the first element that has it;
where it holds a reference (`href`, `src` and their like) it is made absolute, as a browser's script would see it, and kept
as written where it cannot be. What is too long is cut, and ends in an ellipsis then.
"""

from collections.abc import Iterable, Iterator

import ada_url
from selectolax.lexbor import LexborHTMLParser, LexborNode

from crawlkit.config_extract import Chain, ExtractRule, chains_of
from crawlkit.model import FieldValue

MOST_VALUE = 20_000
"""Characters of one value."""
MOST_VALUES = 1_000
"""Values of one list."""
FEW_STEPS = 2
"""Compounds up to which lexbor is quick: the time is their power of a page's depth."""

CUT = "…"

_REFERENCES = frozenset({"action", "background", "cite", "data", "formaction", "href", "longdesc", "manifest", "poster", "src"})


def pick_fields(tree: LexborHTMLParser, rules: Iterable[ExtractRule], base: str) -> dict[str, FieldValue]:
    """Return the fields that `rules` give on the page; `base` is what its references resolve against.

    Where nothing matches a field is None, a list is empty.
    """
    fields: dict[str, FieldValue] = {}
    for rule in rules:
        values = _values(select(tree, rule), rule.attribute, base)
        fields[rule.name] = _bounded(values) if rule.many else next(values, None)
    return fields


def select(tree: LexborHTMLParser, rule: ExtractRule) -> list[LexborNode]:
    """Return the elements that a rule's selector matches, in document order, in time linear in the page for each step."""
    chains = chains_of(rule.selector)
    if max(map(len, chains)) <= FEW_STEPS:
        return _distinct(tree.css(rule.selector))
    chosen = {key for chain in chains for key in _matched(tree, chain)}
    last = ",".join(chain[-1].selector for chain in chains)
    return _distinct(node for node in tree.css(last) if node.mem_id in chosen)


def _distinct(nodes: Iterable[LexborNode]) -> list[LexborNode]:
    """Return each element once: lexbor names one that several alternatives match as often."""
    return list({node.mem_id: node for node in nodes}.values())


def _matched(tree: LexborHTMLParser, chain: Chain) -> set[int]:
    """Return the ids of the elements that a chain matches."""
    within: set[int] | None = None
    for step in chain:
        nodes = tree.css(step.selector)
        if within is not None:
            below: dict[int, bool] = {}
            nodes = [node for node in nodes if _is_below(_above(node, step.levels), within, below)]
        within = {node.mem_id for node in nodes}
    return within or set()


def _above(node: LexborNode, levels: int) -> LexborNode | None:
    above: LexborNode | None = node
    for _ in range(levels):
        above = above and above.parent
    return above


def _is_below(node: LexborNode | None, within: set[int], below: dict[int, bool]) -> bool:
    """Whether an ancestor of `node` is in `within`; `below` remembers for which elements that was found out."""
    passed: list[int] = []
    answer = False
    while node is not None:
        known = below.get(node.mem_id)
        if known is not None:
            answer = known
            break
        passed.append(node.mem_id)
        node = node.parent
        if node is not None and node.mem_id in within:
            answer = True
            break
    below.update(dict.fromkeys(passed, answer))
    return answer


def _values(nodes: Iterable[LexborNode], attribute: str | None, base: str) -> Iterator[str]:
    for node in nodes:
        if attribute is None:
            yield _cut(" ".join(node.text().split()))
        else:
            attributes = node.attributes
            name = attribute if attribute in attributes else attribute.lower()
            if name in attributes:
                yield _cut(_absolute(name, attributes[name] or "", base))


def _absolute(name: str, value: str, base: str) -> str:
    if name not in _REFERENCES:
        return " ".join(value.split())
    try:
        return ada_url.join_url(base, value.strip())
    except ValueError:
        return value.strip()


def _bounded(values: Iterator[str]) -> tuple[str, ...]:
    kept: list[str] = []
    for value in values:
        if len(kept) == MOST_VALUES:
            return (*kept, CUT)
        kept.append(value)
    return tuple(kept)


def _cut(text: str) -> str:
    return text if len(text) <= MOST_VALUE else text[:MOST_VALUE] + CUT
