"""Which text is the main one, and how it is counted: fixed cases, and that no page can make the reader touch what is gone."""

import hashlib
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser

from crawlkit.policy.links import read_page
from crawlkit.policy.novelty import BREAK
from crawlkit.policy.page_text import LANDMARKS, take_out, weigh


def main_of(markup: str) -> str:
    texts = read_page(markup.encode(), "http://h.example/", "utf-8").texts
    assert texts is not None
    return " ".join(texts.main.replace(BREAK, " ").split())


@pytest.mark.parametrize(
    ("markup", "text"),
    [
        ("<title>T</title><p>a <b>b</b> c", "a b c"),
        ("<head><title>a</title></head><body>a b", "a b"),
        ("<nav>menu</nav><p>text</p><aside>ad</aside>", "text"),
        ("<header>top</header>text<footer>end</footer>", "text"),
        ("<main><header>head</header>text<footer>foot</footer></main>", "head text foot"),
        ("<article><header><h1>head</h1><nav>menu</nav></header>text<aside>ad</aside></article>", "head text"),
        ("<header>a<nav>b<aside>c</aside></nav>d</header>e<footer>f<nav>g</nav></footer>h", "e h"),
        ("<nav>a<nav>b</nav>c</nav>d<nav>e</nav>f", "d f"),
        ("<nav>a<article>b</article></nav>c", "c"),
        ("<nav>only a menu</nav>", "only a menu"),
        ("<body><nav>menu</nav> \n <script>x</script></body>", "menu"),
        ("<body><script>a</script><style>b</style><template>c</template><!-- d --><noscript>e</noscript>f", "e f"),
        ("<title>T</title>", ""),
        ("", ""),
        ("<frameset><frame src=/f></frameset>", ""),
        ("<p>a&nbsp;b &#x3000;c &eacute;", "a b c é"),
        ("<nav><svg><style>x<nav>y</nav></style></svg></nav>z", "z"),
    ],
)
def test_the_main_text_is_what_is_outside_of_menus(markup: str, text: str) -> None:
    assert main_of(markup) == text


def test_a_header_far_below_its_article_is_a_page_s() -> None:
    assert main_of(f"<article>{'<div>' * 40}<header>top</header>text") == "text"
    assert main_of(f"<article>{'<div>' * 20}<header>top</header>text") == "top text"


_NAMES = st.sampled_from(
    ["nav", "aside", "header", "footer", "main", "article", "script", "style", "svg", "p", "template", "select"]
)
_TREES = st.recursive(
    st.sampled_from(["x ", ""]),
    lambda inner: st.builds(lambda n, c: f"<{n}>{''.join(c)}</{n}>", _NAMES, st.lists(inner, max_size=4)),
)


@given(st.lists(_TREES, max_size=6), st.text(alphabet="<>/nav header", max_size=20))
def test_any_nesting_is_read_the_same_each_time(trees: list[str], rest: str) -> None:
    markup = "".join(trees) + rest
    assert main_of(markup) == main_of(markup)


class Landmark:
    """Stands in for an element of lexbor's tree, of which nothing may be touched once it, or one above it, is gone."""

    def __init__(self, tag: str, inner: "list[Landmark]") -> None:
        self._tag = tag
        self._inner = inner
        self._gone = False
        self.parent: Landmark | None = None
        for landmark in inner:
            landmark.parent = self

    @property
    def tag(self) -> str:
        assert not self._gone
        return self._tag

    @property
    def mem_id(self) -> int:
        assert not self._gone
        return id(self)

    def css(self, _: str) -> "list[Landmark]":
        assert not self._gone
        return [self, *(found for landmark in self._inner for found in landmark.css(_))]

    def decompose(self) -> None:
        assert not self._gone
        for landmark in self._inner:
            landmark.decompose()
        self._gone = True


class Landmarks:
    """Stands in for the tree."""

    def __init__(self, inner: list[Landmark]) -> None:
        self._inner = inner

    def css(self, selector: str) -> list[Landmark]:
        return [found for landmark in self._inner for found in landmark.css(selector)]


_NAMED = st.sampled_from(LANDMARKS)
_LANDMARKS = st.recursive(
    st.builds(Landmark, _NAMED, st.just([])),
    lambda inner: st.builds(Landmark, _NAMED, st.lists(inner, max_size=3)),
    max_leaves=8,
)


@given(st.lists(_LANDMARKS, max_size=4))
def test_nothing_is_touched_once_it_is_gone(landmarks: list[Landmark]) -> None:
    assert take_out(cast("LexborHTMLParser", Landmarks(landmarks))) is bool(landmarks)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        *(("", 0), (" \n\t", 0), ("a", 1), (" a ", 1), ("a b", 2), ("a\xa0b\u3000c", 3), ("a\n\n b\x0bc", 3)),
        *((f"a{BREAK}b{BREAK}", 2), ("Straße, größer! 日本 語", 4), ("\ud800 x", 2), ("it's e-mail", 2)),
    ],
)
def test_words_are_what_stands_between_white_space(text: str, words: int) -> None:
    assert weigh(text).words == words


@given(
    st.text(
        alphabet=st.characters(exclude_characters="\u3000\xa0", exclude_categories=["Zs", "Zl", "Zp", "Cs"])
        | st.sampled_from(" \n\t")
    )
)
def test_words_are_those_of_a_split(text: str) -> None:
    assert weigh(text).words == len(
        text.replace("\x7f", "x").replace("\x85", "x").translate(dict.fromkeys(range(33), " ")).split()
    )


@pytest.mark.parametrize("before", range(65_533, 65_539))
def test_words_of_a_long_text_are_counted_once(before: int) -> None:
    assert weigh("a" * before + " bc d").words == 3
    assert weigh("a " * (before // 2) + "bc d").words == before // 2 + 2
    assert weigh(" " * before + "bc " * 50_000).words == 50_000


def test_the_digest_is_that_of_the_text_without_white_space() -> None:
    assert weigh(f" a\n b{BREAK}é\xa0").digest == f"sha256:{hashlib.sha256('abé'.encode()).hexdigest()}"
    assert weigh("a b") == weigh(f"a{BREAK} \n b")
    assert weigh("a b").digest != weigh("a c").digest
    assert weigh(BREAK).digest is None
