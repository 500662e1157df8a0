"""However the elements of a page are found, they are the same ones in the same order."""

import re
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser

from crawlkit.policy.metadata import Parts
from crawlkit.policy.parts import found_parts, parts_of

_NAMES = re.findall(r"\S+", "base meta title link a area frame iframe script style h1 h2 h3 h4 h5 h6 nav aside header footer")
_OTHERS = re.findall(r"\S+", "p b div svg math template table tr select frameset foreignObject image ahref headers h7 noscript")
_PIECES = st.one_of(
    st.builds("<{}{}>".format, st.sampled_from(["", "/"]), st.sampled_from([*_NAMES, *_OTHERS])),
    st.sampled_from(["x", "<A HREF=x>", "<Svg:a>", "<math:title>", "<!--", "-->", "<![CDATA[<a>]]>"]),
)


def _ids(parts: Parts) -> dict[str, list[int]]:
    return {name: [node.mem_id for node in parts[name]] for name in _NAMES}


@given(st.lists(_PIECES, max_size=40).map("".join))
def test_both_ways_find_the_same_elements(markup: str) -> None:
    tree = LexborHTMLParser(markup)
    assert _ids(parts_of(tree)) == _ids(found_parts(tree))


@pytest.mark.parametrize("find", [parts_of, found_parts])
def test_each_element_is_found_by_its_name(find: Callable[[LexborHTMLParser], Parts]) -> None:
    markup = "".join(f"<{name}></{name}>" for name in _NAMES if name != "frame") + "<svg><title></title></svg><b></b>"
    parts = find(LexborHTMLParser(markup))
    counts = {name: len(nodes) for name, nodes in parts.items()}
    assert counts == {name: 1 + (name == "title") for name in _NAMES if name != "frame"}
    framed = find(LexborHTMLParser("<frameset><frame><frame></frameset>"))
    assert [node.tag for node in framed["frame"]] == ["frame", "frame"]
