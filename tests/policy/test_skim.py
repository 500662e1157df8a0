"""What is skimmed says what its tree would have said; and what could hurt the tree builder is skimmed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from selectolax.lexbor import LexborHTMLParser

from crawlkit.policy.links import Page, read_page
from crawlkit.policy.novelty import BREAK
from crawlkit.policy.skim import TREE_TAGS, TreeSize, is_costly, skim, tree_size
from crawlkit.policy.tree_cost import MOST_BYTES, MOST_TAGS
from crawlkit.policy.wanted import Wanted

URL = "http://h.example/dir/page"

# In front, a comment changes nothing of what a page says; a page with so many `<` is skimmed.
FILLER = b"<!--%b-->" % (b"<" * MOST_TAGS)


def _read(markup: bytes) -> Page:
    return read_page(markup, URL, "utf-8", Wanted(most_links=10_000))


def _words(page: Page) -> list[str]:
    assert page.texts is not None
    return page.texts.main.replace(BREAK.strip(), " ").split()


def _as_tree(markup: bytes) -> Page:
    assert not is_costly(markup)
    return _read(markup)


def _as_skimmed(markup: bytes) -> Page:
    assert is_costly(FILLER + markup)
    return _read(FILLER + markup)


@pytest.mark.parametrize(
    "markup",
    [
        "plain text",
        "<title>A &amp; B</title><p>text<a href=/a>one</a> and <A HREF='/b'>two</A>, <area href=/c> &lt;a href=/no>",
        "<a href=/1/>x</a><a href=/2 / >x<a/href=/3>x<a\nhref\n=\n/4\n>x",
        "<a href=\"/a>b\">x</a><a title='>' href=/c>x</a><a title=\">'\" href='/d\"e'>x</a>",
        "<a href=/a href=/b>x</a><a HREF=/c hReF=/d>x</a>",
        "<a href>empty</a><a href=''>empty</a><a name=x>none</a><abbr href=/no>x</abbr>",
        '<a title=it\'s href=/a>x</a><a href=/b?x="y">x</a><a =href=/no>x</a><a href =/c>x</a>',
        "<a href=/a?x=1&amp;y=2>x</a><a href='/b?x=1&y=2'>x</a><a href='/&quot;&#x41;'>x</a>",
        "<!-- <a href=/no> --><a href=/1>x</a><!--><a href=/2>x</a><!---><a href=/3>x</a><!-- --!><a href=/4>x</a>",
        "<!-- - -- -> <a href=/no> ---><a href=/1>x</a><!-- never closed <a href=/no>",
        "<!doctype html><a href=/1>x</a><?php <a href=/no>?><a href=/2>x</a></ <a href=/no>x</3 <a href=/no><a href=/3>",
        "< a href=/no>x</a><<a href=/1>x</a>x<3<a href=/2>x",
        "<script>'<a href=/no>'</script><style><a href=/no></style><a href=/1>x</a><SCRIPT><a href=/no></Script ><a href=/2>x",
        "<script><a href=/no></scripts></script><a href=/1>x</a><script>never closed</p><a href=/no>",
        "<textarea><a href=/no>x</textarea>y<a href=/1>x</a><xmp><a href=/no></xmp><noembed><a href=/no></noembed>",
        "<noscript><a href=/1>x</a></noscript><noframes><a href=/no></noframes><plaintext><a href=/no></plaintext><a href=/no>",
        "<template><a href=/no>x</a><template><title>no</title></template><a href=/no></template><a href=/1>x</a>",
        "</template><a href=/1>x</a><template><a href=/no>",
        "<svg><title>no</title><a href=/1>x</a></svg><title>yes</title><title>no</title>",
        "<title>a <b>tag</b></title><p>x",
        "<base href=/base/><base href=/no/><a href=x>x</a><iframe src=y><a href=/no></iframe><frame src=/no>",
        "<frameset><frame src=/1><frame src=/2></frameset>",
        "<meta name=robots content='noindex, nofollow'><meta http-equiv=refresh content='0; url=/r'><p>x",
        "<link rel=icon href=/no><link rel='next canonical' href=/c><a rel='x nofollow' href=/a>x</a><a href=/b rel=nofollow>x",
        "<html lang=de><head><meta name=description content=d><link rel=alternate hreflang=fr href=/fr><h1>x</h1><h2>y</h2>",
        "<!doctype html>\n<html lang=de><h3>x<h3>y</h3><nav><a href=/1>x</a></nav><article><h2>z</h2></article><html lang=fr>",
        "<p>x</p><a href=/1>y</a><a href=/no",
        "<p>x</p><a href=/1>y</a><a href='/no>z</a><p>x",
        "<p>x</p><a href=/1>y</a><a href=/2 x='>",
        "<div><p>a<table><tr><td>b<td><a href=/1>c</a></table><ul><li>d<li><a href=/2>e</a></ul></div>",
        "<b><p><i><a href=/1>x</b></p></i></a><a href=/2><a href=/3>x</a></a>",
        "<p>a\0b<a href='/x\0y'>c</a>é<a href=/é?é>ü</a>",
    ],
)
def test_a_skimmed_page_says_what_its_tree_says(markup: str) -> None:
    skimmed, whole = _as_skimmed(markup.encode()), _as_tree(markup.encode())
    assert replace(skimmed, texts=None) == replace(whole, texts=None)


_TEXT = st.text(alphabet="ab <>&;\"'=\u00e9", max_size=6).map(lambda text: text.replace("<", "&lt;"))
_VALUE = st.text(alphabet="ab/?#&. \u00e9", max_size=6).map(lambda text: text.replace("&", "&amp;"))
_ATTRIBUTES = st.lists(
    st.builds('{}="{}"'.format, st.sampled_from(["href", "rel", "name", "content", "src", "class", "HREF"]), _VALUE), max_size=3
).map(" ".join)
_LEAVES = st.one_of(
    _TEXT,
    st.builds("<a {}>{}</a>".format, _ATTRIBUTES, _TEXT),
    st.builds("<{} {}>".format, st.sampled_from(["area", "base", "br", "img", "link", "meta"]), _ATTRIBUTES),
    st.builds("<iframe {}></iframe><!--{}-->".format, _ATTRIBUTES, _TEXT),
    st.builds("<script>{}</script><title>{}</title>".format, _TEXT, _TEXT),
    st.builds("<svg><title>{}</title><a {}><path/></a></svg>".format, _TEXT, _ATTRIBUTES),
)
_TREES = st.recursive(
    _LEAVES,
    lambda inner: st.builds(
        "<{0} {1}>{2}</{0}>".format,
        st.sampled_from(["div", "ul", "section", "b", "template", "noscript"]),
        _ATTRIBUTES,
        st.lists(inner, max_size=4).map("".join),
    ),
    max_leaves=20,
)


@given(_TREES)
def test_a_skimmed_well_formed_page_says_what_its_tree_says(body: str) -> None:
    markup = f"<!doctype html><body>{body}".encode()
    assert replace(_as_skimmed(markup), texts=None) == replace(_as_tree(markup), texts=None)


@given(st.text(alphabet="<>/!-ab =\"'\n", max_size=40))
def test_tags_are_told_from_text_as_the_tree_builder_tells_them(noise: str) -> None:
    markup = f"<body>{noise}<a href=/after>x</a>".encode()
    assert _as_skimmed(markup).links == _as_tree(markup).links


def test_an_honest_page_is_not_skimmed() -> None:
    article = "<p>Some <b>bold</b> and <i>italic</i> text with <a href=/{}>a link</a>.</p><div><span>x</span></div>"
    large = "".join(map(article.format, range(2_500))).encode()
    page = _as_tree(large)
    assert len(page.links) == 2_500
    assert not page.cut


def test_an_honest_page_that_is_skimmed_is_not_marked() -> None:
    page = _as_skimmed("".join(map("<a href=/{}>x</a>".format, range(5_000))).encode())
    assert len(page.links) == 5_000
    assert not page.cut


@pytest.mark.parametrize(
    ("markup", "costly"),
    [
        (b"<div>" * TREE_TAGS, False),
        (b"<div>" * 12_000, True),
        (b"x" * MOST_BYTES, False),
        (b"x" * MOST_BYTES + b"x", True),
        (b"<br>" * MOST_TAGS, False),
        (b"<br>" * MOST_TAGS + b"<", True),
        (b"<p><b>" * 2_000, False),
        (b"<p>x<i>y</i>" * 1_000, False),
        (b"".join([b"<p><b a%d>" % n for n in range(700)]), True),
        (b"".join([b"<P><FONT A%d>" % n for n in range(700)]), True),
        (b"<b><i><em><u>" + b"<div></b>" * 1_700, False),
        (b"<b><i><em><u>" + b"<div></b>" * 4_700, True),
        (b"<div></b><p>x</p>" * 100, False),
        (b"<img" + b" a=b" * 39 + b">" + b" " * 40_000, False),
        (b"<img" + b" a='>'b" * 49 + b">" + b" " * 40_000, False),
        (b"<img" + b" a='>'b" * 51 + b">" + b" " * 40_000, True),
        (b"a=<b/" * 9_000, False),
        (b"<p><a>" * 2_000, False),
        (b"<p><a href=x class=y>" * 2_000, False),
        (b"<p><b" + b" a=b" * 1_000 + b">" + b"<p>x" * 600, True),
        (b"<p><A" + b" a='>'b" * 500 + b">" + b"<p>x" * 900, True),
        (b"<p><div" + b" a=b" * 1_000 + b">" + b"<p>x" * 400, False),
    ],
)
def test_tags_bytes_and_formatting_make_a_page_costly(markup: bytes, costly: bool) -> None:
    assert is_costly(markup) is costly


@given(
    st.sampled_from(["<p>", "<i a b>", "<a<a x=y>", "<b c='<d'>", "<s a='x'b>"]),
    st.lists(
        st.sampled_from(
            # A value without quotes ends at white space alone: a slash behind it would be a part of it.
            [" a", "/a", " a=b ", " a='>'", ' a=">"', " a='x'b", "\n a = '<i x>'", ' a="%s"' % ("<b>" * 400), " a=<b "]
        ),
        min_size=101,
        max_size=140,
    ),
)
def test_a_laden_tag_is_seen_however_its_attributes_are_written(before: str, attributes: list[str]) -> None:
    assert is_costly(f"{before}<img{''.join(attributes)}>{' ' * 40_000}".encode())


@pytest.mark.parametrize(
    "unit", [b"<p><b a=%d>", b"<b a=%d><p>", b"<p><b><i><u><s><tt a=%d>", b"<b a=%d><div></div>", b"<p>%d<b><i>"]
)
def test_a_small_tree_has_few_elements_whatever_is_made_anew(unit: bytes) -> None:
    sizes = {n: tree_size(b"".join([unit % i for i in range(n)])) for n in range(100, 3_000, 200)}
    largest = max(n for n, size in sizes.items() if size is TreeSize.SMALL)
    assert len(LexborHTMLParser(b"".join([unit % i for i in range(largest)])).tags("*")) < 100_000


def test_an_honest_page_has_a_small_tree() -> None:
    article = "<p>Some <b>bold</b> and <i>italic</i> text with <a href=/{} class=y>a link</a>.</p><div><span>x</span></div>"
    assert tree_size("".join(map(article.format, range(300))).encode()) is TreeSize.SMALL


def test_what_is_left_out_marks_the_page() -> None:
    assert _read(FILLER + b"<a href=/1>x<a href='/%b'>y<a href=/2>z" % (b"x" * 70_000)).links == (
        "http://h.example/1",
        "http://h.example/2",
    )
    assert skim(b"<a href='%b'>" % (b"x" * 70_000), 9)[1]
    assert skim(b"<p>" + b"x" * (4 << 20) + b"x<a href=/1>", 9)[1]
    assert not skim(b"<p>" + b"x" * (4 << 20) + b"<a href=/1>", 9)[1]
    assert skim(b"<a>" * 10, 9)[1]
    assert not skim(b"<a>" * 9, 9)[1]
    assert skim(b"<meta>" * 10_001, 9)[1]
    assert not skim(b"<meta>" * 10_000, 9)[1]
    assert skim(b"<p>" * 400_001, 9)[1]


def test_the_text_of_a_skimmed_page_is_that_of_its_tree() -> None:
    markup = (
        b"<title>A &lt; B</title><style>no</style><p>one<b>two</b> three</p><textarea>4 < <b>5</textarea><svg>six</svg>seven"
    )
    assert _words(_as_skimmed(markup)) == _words(_as_tree(markup))
    assert _words(_as_skimmed(b"<template>no</template><!--no--><script>no</script>")) == []
    sections = b"<nav>no</nav><header>no</header><article><header>yes</header><h1>one</h1>two</article>three<footer>no</footer>"
    assert _words(_as_skimmed(sections)) == _words(_as_tree(sections)) == ["yes", "one", "two", "three"]
