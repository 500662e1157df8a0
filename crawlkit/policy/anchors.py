"""What a page calls its links: the text and the rel of the first anchor that leads to each."""

from collections.abc import Iterable, Mapping

from selectolax.lexbor import LexborNode

from crawlkit.policy.urls import Joiner

MOST_TEXT = 200
"""Characters of an anchor's text."""
_MOST_REL = 200

_MOST_TEXT_READ = 4_000_000
"""Characters read of all anchors of a page, after which the others count as without text: thousands of anchors within one
another, each with the text of all below it, would take gigabytes to be copied."""


def read_anchors(nodes: Iterable[LexborNode], links: Mapping[str, object], joiner: Joiner) -> tuple[tuple[str, str], ...]:
    """Return text and rel for each of `links`, in their order, from the `a` and `area` elements `nodes`.

    Both are empty for what no anchor leads to, such as frames. The text of an image is its alt. The rel is as written, in
    lower case.
    """
    found: dict[str, tuple[str, str]] = {}
    left = _MOST_TEXT_READ
    for node in nodes:
        attributes = node.attributes
        if "href" not in attributes or (link := joiner.join(attributes["href"] or "")) is None:
            continue
        if link in links and link not in found:
            text = _text(node, attributes) if left > 0 else ""
            left -= len(text)
            found[link] = (text[:MOST_TEXT], _one_line(attributes.get("rel"))[:_MOST_REL].lower())
    return tuple(found.get(link, ("", "")) for link in links)


def _text(node: LexborNode, attributes: Mapping[str, str | None]) -> str:
    if node.tag == "area":
        return _one_line(attributes.get("alt"))
    text = _one_line(node.text())
    if not text and (image := node.css_first("img")) is not None:
        text = _one_line(image.attributes.get("alt"))
    return text


def _one_line(text: str | None) -> str:
    return " ".join((text or "").split())
