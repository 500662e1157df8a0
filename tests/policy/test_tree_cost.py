"""What keeps its tree: honest pages, large and careless ones too; and that markup made to deceive the estimate does not."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser

from crawlkit.policy import tree_cost
from crawlkit.policy.tree_cost import is_tree_costly

_LARGE = 2_500
_MANY = 45_000
HONEST = {
    "article": (
        "<h2 id=s{0}><span>S</span><a href=/e/{0} title='Edit'>edit</a></h2><p>A <b>bold</b> and <i>it <a href=/w/{0}>page</a>"
        "</i> text <sup><a href='#{0}'>[1]</a></sup>.</p>"
    ),
    "index": "<dl class=f><dt id=f{0}><code>f<em>{0}</em></code><a href='#f{0}'>#</a></dt><dd><p>Text</p></dd></dl>",
    "icons": "<li><a href=/{0}><svg viewBox='0 0 9 9'><title>icon</title><path d='M0 0z'/></svg> <span>x</span></a></li>",
    "formulas": "<p>x <math><semantics><mrow><mi>x</mi><mo>=</mo><mn>{0}</mn></mrow></semantics></math></p>",
    "options": "<p><select><option value={0}>a<option>b</select><label for=x{0}>x</label>",
    "no ends": "<p>a<p><a name=x{0}>b<div><p>c</div>",
    "nested lists": "<ul><li>a<ul><li>b</li></ul></li></ul>",
    "form in rows": "<table><tr><form action=/{0}><td><input><td><button>go</button></td></form></tr></table>",
    "scripts": "<script><!--\nif (a < b) w('<p>') //--></script><style>a>b {{}}</style><noscript><img src=/{0}></noscript>",
    "components": "<x-card><template><style>b {{}}</style><div><slot></slot></div></template><h3>{0}</h3></x-card>",
}
ROWS = "<tr class=r><td>{0}<td><a href=/x/{0}>x</a><td class=num>{0}<td><b>{0}</b>\n"


@pytest.mark.parametrize("name", HONEST)
def test_an_honest_page_keeps_its_tree(name: str) -> None:
    unit = HONEST[name]
    assert not is_tree_costly("".join(unit.format(number) for number in range(_LARGE)).encode())


def test_an_honest_table_keeps_its_tree() -> None:
    assert not is_tree_costly(f"<table>{''.join(map(ROWS.format, range(_LARGE)))}</table>".encode())


@pytest.mark.parametrize(
    "unit",
    [
        b"<div>",
        b"<div><table></div></table>",
        b"<span><p></span></p>",
        b"<span><li></span></li>",
        b"<h1><h2></h1>",
        b"<h1><div><h2></h1></div>",
        b"<noscript><div></noscript></div>",
        b"<b><p><b></p></b>",
        b"<form><object></form></object></form>",
        b"<form><object><form></form></object></form>",
        b"<a><template><object></a></template></object>",
        b"<a><table><object><tr></tr></object></table>",
        b"<svg><p></svg>",
        b"<svg><foreignObject><b></foreignObject></svg>",
        b"<svg><title><b></title></svg>",
        b"<svg><col></svg x>",
        b"<svg><![CDATA[></svg>]]>",
        b"<svg><path d=x/></svg>",
        b"<template><col><script></script x></template>",
        b"<div><script><!--<script></script></div></script>--></script>",
        b"<div><select><title></div></title></select>",
    ],
)
def test_nesting_that_end_tags_do_not_undo_is_seen(unit: bytes) -> None:
    """Each makes a tree as deep as it is often repeated, or is not followed."""
    assert is_tree_costly(unit * (_MANY // unit.count(b"<")))


@pytest.mark.parametrize(
    "markup",
    [
        b"".join([b"<p><b a%d>" % number for number in range(900)]),
        b"<table>" * 99 + b"<b><i><u><s><tt>" * 9 + b"<div></b>" * 9_000,
        b"".join([b"<html a%d>" % number for number in range(12_000)]),
        b"".join([b"<p a b c d e f g h i j k l m n o p q r s t u v w x y z>"] * 30_000),
        b"<p " + b"a " * 101 + b">",
        b"<frameset>" + b"<frame>" * 9,
        b"<a><table><td>" * 99 + b"x" * 600_000,
        b"<div>" * 900 + b"x" * 3_000_000,
    ],
)
def test_what_takes_time_or_memory_is_costly(markup: bytes) -> None:
    assert is_tree_costly(markup)


_NAMES = re.findall(
    r"\S+",
    "a b p li ul dd dl td th tr tbody table caption col colgroup select option optgroup button form h1 h2 svg g path title desc"
    " foreignObject math mi template object div span x-y textarea script iframe noscript center ruby rt hr html body",
)
_TOKENS = st.one_of(
    st.builds("<{}{}>".format, st.sampled_from(_NAMES), st.sampled_from(["", "", " a", "/"])),
    st.builds("</{}>".format, st.sampled_from(_NAMES)),
    st.sampled_from(["x", "<!-- -->", "<![CDATA[", "]]>", "</br>"]),
)
_TIMES = 40


@given(st.lists(_TOKENS, min_size=1, max_size=8).map("".join), st.lists(_TOKENS, max_size=4).map("".join))
def test_the_estimate_of_depth_is_not_too_low(unit: str, before: str) -> None:
    markup = (before + unit * _TIMES).encode()
    estimate = tree_cost.estimate(markup)
    if estimate is not None:
        # Rows and their groups are made for tables that lack them, and a paragraph may be open in each button or cell.
        assert _depth(LexborHTMLParser(markup)) <= 4 * estimate.deepest + 20


def _depth(tree: LexborHTMLParser) -> int:
    deepest, depth, node = 1, 1, tree.root
    while node is not None:
        deepest = max(deepest, depth)
        if node.first_child is not None:
            node, depth = node.first_child, depth + 1
            continue
        while node is not None and node.next is None:
            node, depth = node.parent, depth - 1
        node = node and node.next
    return deepest
