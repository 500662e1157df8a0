"""What a page says of itself beside its links: description, language, headings, versions in other languages."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

import msgspec
from selectolax.lexbor import LexborNode

from crawlkit.policy.language import language_tag
from crawlkit.policy.urls import Joiner

HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6")

MOST_DESCRIPTION = 5_000
"""Characters kept of a description: search engines show 160 or so."""
MOST_ALTERNATES = 500
"""Versions in other languages that are kept of a page."""

Parts = defaultdict[str, list[LexborNode]]
"""Elements of a page by their name, each kind in document order."""
Attributes = Mapping[str, str | None]


class Said(msgspec.Struct, frozen=True):
    """What the meta elements of a page say, in their order: what each is about, in lower case, and its content.

    `named` are those with a name, which is stripped; `pragmas` those with a `http-equiv`, which is not.
    """

    named: list[tuple[str, str]]
    pragmas: list[tuple[str, str]]

    @classmethod
    def by(cls, metas: Iterable[LexborNode]) -> "Said":
        """Return what these meta elements say."""
        said = cls([], [])
        for node in metas:
            attributes = node.attributes
            if name := attributes.get("name"):
                said.named.append((name.strip().lower(), attributes.get("content") or ""))
            if pragma := attributes.get("http-equiv"):
                said.pragmas.append((pragma.lower(), attributes.get("content") or ""))
        return said


class Metadata(msgspec.Struct, frozen=True):
    """`headings` are the numbers of h1 to h6, none for what is no page; `alternates` pairs of language and URL, as found."""

    description: str | None = None
    language: str | None = None
    headings: tuple[int, ...] = ()
    alternates: tuple[tuple[str, str], ...] = ()


def read_metadata(root: LexborNode | None, said: Said, links: Iterable[Attributes], parts: Parts, joiner: Joiner) -> Metadata:
    """Return what the page with the element `root` says of itself.

    `said` is what its meta elements say, `links` are the attributes of its link elements.
    """
    translated = [attributes for attributes in links if "hreflang" in attributes]
    return Metadata(
        description=_description(said),
        language=_language(root, said),
        headings=tuple([len(parts[tag]) for tag in HEADINGS]),
        alternates=first_of_each(_alternates(translated, joiner)) if translated else (),
    )


def first_of_each(pairs: Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """Return the first URL of each language, up to a bound."""
    found: dict[str, str] = {}
    for language, url in pairs:
        if len(found) == MOST_ALTERNATES:
            break
        found.setdefault(language, url)
    return tuple(found.items())


def _description(said: Said) -> str | None:
    """Return the first description that is not empty, on one line."""
    for name, content in said.named:
        if name == "description" and (line := " ".join(content.split())):
            return line[:MOST_DESCRIPTION]
    return None


def _language(root: LexborNode | None, said: Said) -> str | None:
    """Return the language of the root element, else that of a `meta http-equiv=content-language` (HTML Standard 4.2.5.3)."""
    attributes: Attributes = {} if root is None else root.attributes
    language = language_tag(attributes.get("lang")) or language_tag(attributes.get("xml:lang"))
    if language is None:
        for pragma, content in said.pragmas:
            if pragma.strip() == "content-language":
                return language_tag(content)
    return language


def _alternates(links: Iterable[Attributes], joiner: Joiner) -> Iterator[tuple[str, str]]:
    for attributes in links:
        if "alternate" not in (attributes.get("rel") or "").lower().split():
            continue
        language = language_tag(attributes["hreflang"])
        if language and (reference := attributes.get("href")) and (url := joiner.join(reference)):
            yield language, url
