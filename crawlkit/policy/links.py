"""Read a page: its title and base, what it links to, and what it says to robots.

The tree is the HTML Standard's, by `selectolax` on lexbor, with scripting off: what is in `<noscript>` counts, what is
in comments, scripts and templates does not.

A page that the tree builder could be hurt by is reduced before, by `skim`.
"""

import itertools
import re
from collections.abc import Iterable, Sequence

import msgspec
from selectolax.lexbor import LexborDocumentOptions, LexborHTMLParser, LexborNode

from crawlkit.model import FieldValue
from crawlkit.policy.anchors import read_anchors
from crawlkit.policy.extract import pick_fields
from crawlkit.policy.metadata import Attributes, Metadata, Said, read_metadata
from crawlkit.policy.page_text import Texts, read_texts
from crawlkit.policy.parts import found_parts, parts_of
from crawlkit.policy.skim import TreeSize, skim, tree_size
from crawlkit.policy.urls import Joiner
from crawlkit.policy.wanted import NOTHING_MORE, Wanted

# Patterns that few pages need are compiled for the first of those: that takes 1 ms of a start.

# The shared declarative refresh steps of the HTML Standard (section 4.2.5.3): a time, then a separator, then the rest;
# in it an optional `url=`, and perhaps a quote, which ends the reference at the next of its kind.
_REFRESH = r"(?s)[\t\n\f\r ]*+(?:[0-9]|(?=\.))[0-9.]*+(?=[;,\t\n\f\r ])[\t\n\f\r ]*+[;,]?+[\t\n\f\r ]*+(.+)"
_REFRESH_URL = r"""(?si)(?:url[\t\n\f\r ]*+=[\t\n\f\r ]*+)?+(?:"([^"]*+)|'([^']*+)|(.+))"""

# The directives that are kept: a closed list, so that a page cannot fill its record with words of its own.
_DIRECTIVES = frozenset(
    {"all", "follow", "index", "indexifembedded", "noai", "noarchive", "nocache", "nofollow", "noimageai"}
    | {"noimageindex", "noindex", "none", "noodp", "nositelinkssearchbox", "nosnippet", "notranslate", "noydir"}
)
_DIRECTIVE = r"""(?x)(unavailable_after) \s*+ : \s*+ (?:[a-z]{3,9}+,)?+ [^,]*+
    | (max-(?:image-preview|snippet|video-preview)) \s*+ : \s*+ ([a-z0-9-]{1,20})
    | ([a-z][a-z0-9_-]*+) \s*+ (:?)"""

# Elements whose content is text, where XML lets them close themselves.
_SELF_CLOSED = rb"""(?x)<((script|style|title|textarea|iframe|noframes|noembed|xmp)(?=[\s/])
    (?:[^<>"'/]|"[^"]*+"|'[^']*+')*+)/>"""

# Where a link's start tag begins; within comments and scripts too, which only makes a bound be reached sooner.
_LINK_TAG = rb"(?i)<(?:a|area|i?frame)[\t\n\f\r />]"

# Of a page with this many times more link elements than links are kept, the rest is not parsed: most pages repeat a link some
# times, none repeats all of them so often.
_TAGS_A_LINK = 5

# Without events: a `<selectedcontent>` stays as it is written. Else each is filled with a copy of the option's content, of
# which a page can be made that grows with its square.
_OPTIONS = int(LexborDocumentOptions.WO_EVENTS)

# How far above a title an svg element is looked for: to the root, a page of nested titles would take its square.
_SVG_LEVELS = 32


class Page(msgspec.Struct, frozen=True):
    """What one HTML document says. URLs are in normal form.

    `links` holds each http(s) link once: `a` and `area` in document order, then frames, then the target of a refresh.
    `nofollow` are the indices into `links` of those that are `rel=nofollow` wherever they stand. `base` is what
    references resolve against. `canonical` is the first usable `<link rel=canonical>`. `directives` is what its robots
    meta elements say, as `robots_directives` gives it. `cut` tells that there may be more links than were asked for.
    """

    title: str | None
    base: str
    links: tuple[str, ...]
    nofollow: tuple[int, ...]
    canonical: str | None
    directives: frozenset[str]
    metadata: Metadata
    fields: dict[str, FieldValue]
    anchors: tuple[tuple[str, str], ...]
    texts: Texts | None
    cut: bool = False


def read_page(markup: bytes, url: str, charset: str, wanted: Wanted = NOTHING_MORE, refresh: Sequence[str] = ()) -> Page:
    """Return what the document at `url` says. Never raises.

    `markup` is UTF-8; `charset` names the encoding it came in, in which the queries of its links are sent. A meta
    element named like our product token counts like one named robots. `refresh` are the values of the Refresh header;
    the first refresh with a target counts, and the header goes before the page. Time is linear in
    the size of the page; memory is bounded by that and by `wanted.most_links`, the number of links kept.
    """
    size = tree_size(markup)
    bounded, is_cut = _bounded(markup, size, wanted)
    tree = LexborHTMLParser(bounded, options=_OPTIONS)
    told = parts_of(tree) if size is TreeSize.SMALL else found_parts(tree)
    base = _base(told["base"], url, charset)
    joiner = Joiner.at(base, charset)
    said = Said.by(told["meta"])
    relations = [node.attributes for node in told["link"]]
    others = [node.attributes.get("src") for node in (*told["frame"], *told["iframe"])]
    others.append(_target_of_first([*refresh, *[content for pragma, content in said.pragmas if pragma == "refresh"]]))
    nodes = tree.css("a,area") if told["area"] else told["a"]
    follow, is_more = _links(nodes, others, joiner, wanted.most_links)
    return Page(
        title=_title(told["title"]),
        base=base,
        links=tuple(follow),
        nofollow=() if all(follow.values()) else tuple([i for i, followed in enumerate(follow.values()) if not followed]),
        canonical=_canonical(relations, joiner),
        directives=_meta_directives(said, wanted.agent),
        metadata=read_metadata(tree.root, said, relations, told, joiner),
        anchors=read_anchors(nodes, follow, joiner) if wanted.anchors else (),
        fields=pick_fields(tree, wanted.rules, base),
        texts=read_texts(tree, told),  # the last: it takes the tree apart
        cut=is_more or is_cut,
    )


def refresh_target(content: str) -> str | None:
    """Return the reference that a refresh names (HTML Standard section 4.2.5.3); None if it is invalid or reloads."""
    rest = re.match(_REFRESH, content)
    target = re.match(_REFRESH_URL, rest[1]) if rest else None
    return (target[1] or target[2] or target[3]) if target else None


def robots_directives(text: str, agent: str) -> frozenset[str]:
    """Return the known robots directives of a meta element or an X-Robots-Tag header that are meant for `agent`.

    They are in lower case, like `noindex` or `max-snippet:20`. A name and a colon address what follows to that robot
    alone, up to the next name (Google's documentation of X-Robots-Tag; there is no standard).
    """
    found: set[str] = set()
    for_us = True
    for dated, limit, value, word, colon in re.findall(_DIRECTIVE, text.lower()):
        if colon:
            for_us = word == agent
        elif for_us and (not word or word in _DIRECTIVES):
            found.add(f"{limit}:{value}" if limit else dated or word)
    return frozenset(found)


def xhtml_as_html(markup: bytes) -> bytes:
    """Return XHTML with end tags for `<script/>` and its like: to an HTML parser all that follows would be its text."""
    return re.sub(_SELF_CLOSED, rb"<\1></\2>", markup)


def _base(nodes: Iterable[LexborNode], url: str, charset: str) -> str:
    """Return the base URL: the first base with an href decides, usable or not (HTML Standard section 2.4.3)."""
    for node in nodes:
        attributes = node.attributes
        if "href" in attributes:
            return Joiner.at(url, charset).join(attributes["href"] or "") or url
    return url


def _bounded(markup: bytes, size: TreeSize, wanted: Wanted) -> tuple[bytes, bool]:
    """Return markup of which a tree can be built, and whether there may be more in the page than it tells."""
    most_tags = wanted.most_links * _TAGS_A_LINK
    if size is TreeSize.COSTLY:
        outline, is_cut = skim(markup, most_tags)
        return outline, is_cut or bool(wanted.rules)  # which look for elements that are gone
    if len(markup) <= most_tags * len(b"<a>") or markup.count(b"<") <= most_tags:
        return markup, False
    tag = next(itertools.islice(re.finditer(_LINK_TAG, markup), most_tags, None), None)
    return markup[: tag and tag.start()], tag is not None


def _links(
    nodes: Iterable[LexborNode], others: Iterable[str | None], joiner: Joiner, most: int
) -> tuple[dict[str, bool], bool]:
    """Return up to `most` links, each with whether it is followed, in the order of `Page.links`, and whether there are more.

    This is the hottest loop of all, 60 turns a page: hence no generator, `in` in the place of `get`, which is a call, and
    no counting as it goes: how many tags are parsed has a bound.
    """
    join, known = joiner.join, joiner.known
    follow: dict[str, bool] = {}
    for node in nodes:
        attributes = node.attributes
        if "href" not in attributes:  # an SVG link may have xlink:href, which is a name of its own
            continue
        reference = attributes["href"] or ""
        link = known[reference] if reference in known else join(reference)
        if link is None:
            continue
        if "rel" not in attributes or not _has_token(attributes["rel"], "nofollow"):
            follow[link] = True
        elif link not in follow:
            follow[link] = False
    for source in others:
        if source and (link := join(source)) is not None:
            follow[link] = True
    if len(follow) <= most:
        return follow, False
    return dict(itertools.islice(follow.items(), most)), True


def _target_of_first(refreshes: Iterable[str]) -> str | None:
    """Return the target of the first refresh that has one."""
    for content in refreshes:
        if target := refresh_target(content):
            return target
    return None


def _meta_directives(said: Said, agent: str) -> frozenset[str]:
    found: frozenset[str] = frozenset()
    for name, content in said.named:
        if name in ("robots", agent):
            found |= robots_directives(content, agent)
    return found


def _canonical(relations: Iterable[Attributes], joiner: Joiner) -> str | None:
    for attributes in relations:
        reference = attributes.get("href")
        if reference and _has_token(attributes.get("rel"), "canonical") and (url := joiner.join(reference)):
            return url
    return None


def _title(nodes: Iterable[LexborNode]) -> str | None:
    """Return the first title on one line; an image's own title is not the page's."""
    for node in nodes:
        if not _is_in_svg(node):
            return " ".join(node.text().split()) or None
    return None


def _is_in_svg(node: LexborNode) -> bool:
    ancestor = node.parent
    for _ in range(_SVG_LEVELS):
        if ancestor is None or (name := ancestor.tag) == "head":  # where most titles are, and no SVG
            return False
        if name == "svg":
            return True
        ancestor = ancestor.parent
    return False


def _has_token(value: str | None, token: str) -> bool:
    """Whether a set of space-separated tokens has `token`, which is in lower case (HTML Standard section 2.3.7)."""
    return value is not None and token in value.lower().split()
