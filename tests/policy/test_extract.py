"""Fields picked from pages: the cases a user meets, bounds, and pages made to be slow."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser

from crawlkit.config_extract import ExtractRule, check_extract, parse_extract
from crawlkit.model import FieldValue, Response
from crawlkit.policy.extract import MOST_VALUE, MOST_VALUES, select
from crawlkit.policy.facts import read_answer
from crawlkit.policy.links import read_page
from crawlkit.policy.wanted import Wanted

URL = "http://h.example/dir/page?q"
PAGE = """<!doctype html><html lang=de><head><base href=/b/><title> A  title </title><meta property=og:title content=" OG ">
<script type=application/ld+json>{"a": 1}</script></head><body>
<h1>Caf&eacute; <b>Müller</b>
 &amp; Co</h1><span class=price data-cents=1250>€<b>12</b>.50</span><span class=price>13</span>
<a>no reference</a><a href="x?y=ä#z">one</a><a href=" mailto:a@b.example ">two</a><a href="http://[">three</a><a href>four</a>
<img src=//img.example/1.png alt="  an   image "><input checked value=""><ul><li>1</li><li> </li><li>3</li></ul>
<template><h2>never</h2></template></body></html>"""


def picked(*items: str, markup: str = PAGE) -> dict[str, FieldValue]:
    rules = tuple(parse_extract(check_extract(item)) for item in items)
    return read_page(markup.encode(), URL, "utf-8", Wanted(rules=rules)).fields


@pytest.mark.parametrize(
    ("item", "value"),
    [
        ("x=h1", "Café Müller & Co"),
        ("x=title", "A title"),
        ("x=.price", "€12.50"),
        ("x[]=span.price", ("€12.50", "13")),
        ("x=span.price@data-cents", "1250"),
        ("x=span.price@DATA-CENTS", "1250"),
        ("x[]=.price@data-cents", ("1250",)),
        ("x=a@href", "http://h.example/b/x?y=%C3%A4#z"),
        ("x[]=a@href", ("http://h.example/b/x?y=%C3%A4#z", "mailto:a@b.example", "http://[", "http://h.example/b/")),
        ("x=img@src", "http://img.example/1.png"),
        ("x=img@alt", "an image"),
        ("x=input@checked", ""),
        ("x=input@value", ""),
        ("x=input@nothing", None),
        ("x[]=input@nothing", ()),
        ("x=h2", None),
        ("x[]=h2", ()),
        ("x[]=li", ("1", "", "3")),
        ("x=li:last-child", "3"),
        ("x=meta[property='og:title']@content", "OG"),
        ("x=script[type='application/ld+json']", '{"a": 1}'),
        ("x=html@lang", "de"),
        ("x[]=.price, span", ("€12.50", "13")),
        ("x[]=h1, title", ("A title", "Café Müller & Co")),
        ("x=body > h1 ~ ul li", "1"),
    ],
)
def test_a_field_is_text_or_attribute_of_what_matches(item: str, value: FieldValue) -> None:
    assert picked(item) == {"x": value}


def test_fields_come_in_the_order_asked_for() -> None:
    assert list(picked("b=h1", "a=title", "c[]=h2")) == ["b", "a", "c"]


def test_only_pages_of_html_have_fields() -> None:
    wanted = Wanted(rules=(parse_extract("t=title"),))

    def fields_of(content_type: bytes, status: int = 200) -> dict[str, FieldValue]:
        return dict(read_answer(URL, Response(status, ((b"content-type", content_type),), PAGE.encode()), wanted).fields)

    assert fields_of(b"text/html; charset=utf-8") == {"t": "A title"}
    assert fields_of(b"application/xhtml+xml") == {"t": "A title"}
    assert fields_of(b"text/plain") == fields_of(b"text/html", 404) == {}


@pytest.mark.parametrize(
    ("charset", "text"), [("shift_jis", "日本語"), ("koi8-r", "Привет"), ("utf-16le", "Ж"), ("windows-1252", "“é”")]
)
def test_a_field_is_read_in_the_page_s_encoding(charset: str, text: str) -> None:
    body = f"<h1>{text}</h1>".encode("cp1252" if charset == "windows-1252" else charset)
    response = Response(200, ((b"content-type", f"text/html; charset={charset}".encode()),), body)
    assert read_answer(URL, response, Wanted(rules=(parse_extract("t=h1"),))).fields == {"t": text}


def test_what_is_too_long_is_cut_and_ends_in_an_ellipsis() -> None:
    assert picked("x=p", markup=f"<p>{'é' * MOST_VALUE}") == {"x": "é" * MOST_VALUE}
    assert picked("x=p", markup=f"<p>{'é' * (MOST_VALUE + 1)}") == {"x": "é" * MOST_VALUE + "…"}
    assert picked("x[]=i", markup="<i>a</i>" * MOST_VALUES)["x"] == ("a",) * MOST_VALUES
    assert picked("x[]=i", markup="<i>a</i>" * (MOST_VALUES + 1))["x"] == ("a",) * MOST_VALUES + ("…",)


_SELECTORS = st.lists(
    st.tuples(
        st.sampled_from(["a", "div", "p", ".c", "*", "div:not(p)", ":is(a, p)"]),
        st.sampled_from([" ", " ", " > ", " + ", " ~ ", ", "]),
    ),
    min_size=3,
    max_size=6,
).map(lambda pairs: "".join(part + joint for part, joint in pairs[:-1]) + pairs[-1][0])
_TREES = st.recursive(
    st.just("<p class=c></p>"),
    lambda inner: st.builds(
        lambda n, c: f"<{n}>{''.join(c)}</{n.split()[0]}>",
        st.sampled_from(["div", "a", "p", "div class=c"]),
        st.lists(inner, max_size=3),
    ),
    max_leaves=12,
)


def test_a_step_begins_below_where_the_one_before_it_ends() -> None:
    two, three = "<div><div><a>x</a></div></div>", "<div><div><div><a>x</a></div></div></div>"
    assert picked("x=div div div > a", markup=two) == {"x": None}
    assert picked("x=div div div > a", markup=three) == {"x": "x"}


@given(_SELECTORS, st.lists(_TREES, max_size=3))
def test_a_selector_taken_apart_matches_the_same(selector: str, trees: list[str]) -> None:
    tree = LexborHTMLParser("".join(trees))
    rule = ExtractRule("x", True, selector, None)
    assert [node.mem_id for node in select(tree, rule)] == list(dict.fromkeys(node.mem_id for node in tree.css(selector)))


@pytest.mark.parametrize(
    "item", ["x=p div div div div div a", "x=p div > div div div:has(b) a", "x=b ~ p", "x=div:has(p)", "x=li:nth-last-child(2)"]
)
def test_no_page_of_the_size_of_a_page_takes_long(item: str) -> None:
    for markup in ("<div>" * 2_000 + "<a>" * 200, "<div>" * 90 + "<div></div>" * 2_000, "<p>x</p>" * 2_000, "<li>" * 2_000):
        start = time.process_time()
        picked(item, markup=markup)
        assert time.process_time() - start < 1
