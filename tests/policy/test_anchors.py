import pytest
from selectolax.lexbor import LexborHTMLParser

from crawlkit.model import Content, Response
from crawlkit.policy.anchors import MOST_TEXT, read_anchors
from crawlkit.policy.facts import read_answer
from crawlkit.policy.links import read_page
from crawlkit.policy.page_text import MOST_KEPT
from crawlkit.policy.urls import Joiner
from crawlkit.policy.wanted import Wanted

URL = "http://h.example/"


def anchors(markup: str) -> dict[str, tuple[str, str]]:
    page = read_page(markup.encode(), URL, "utf-8", Wanted(anchors=True))
    return dict(zip([link.removeprefix("http://h.example") for link in page.links], page.anchors, strict=True))


@pytest.mark.parametrize(
    ("markup", "expected"),
    [
        ("<a href=/a> The\n <b>text</b> </a>", {"/a": ("The text", "")}),
        ("<a href=/a rel=' Nofollow  UGC '>x</a>", {"/a": ("x", "nofollow ugc")}),
        ("<a href=/a>one</a><a href=/a#2 rel=next>two</a><a href=/b>three</a>", {"/a": ("one", ""), "/b": ("three", "")}),
        ("<a href=/a><img src=x alt=' The  logo '></a>", {"/a": ("The logo", "")}),
        ("<a href=/a><img src=x alt=logo>text</a>", {"/a": ("text", "")}),
        ("<a href=/a></a><iframe src=/f></iframe>", {"/a": ("", ""), "/f": ("", "")}),
        ("<map><area href=/a alt=Region></map>", {"/a": ("Region", "")}),
        ("<a name=x>no link</a><a href=mailto:a@b>mail</a>", {}),
        (f"<a href=/a>{'é' * 300}</a>", {"/a": ("é" * MOST_TEXT, "")}),
        ("<frameset><frame src=/f></frameset>", {"/f": ("", "")}),
    ],
)
def test_each_link_has_the_text_and_rel_of_its_first_anchor(markup: str, expected: dict[str, tuple[str, str]]) -> None:
    assert anchors(markup) == expected


def content(markup: str, **wanted: bool) -> Content | None:
    response = Response(200, ((b"content-type", b"text/html; charset=utf-8"),), markup.encode())
    return read_answer(URL, response, Wanted(**wanted)).content  # type: ignore[arg-type]


def test_content_is_what_was_asked_for() -> None:
    markup = "<title>T</title><nav>menu</nav><p>One\n <b>two</b>&nbsp;é<a href=/a>x</a>"
    assert content(markup) is None
    assert content(markup, text=True) == Content("One two é x")
    assert content(markup, anchors=True) == Content(None, (("x", ""),))
    assert content("", text=True) == Content("")
    assert content("<p>no link", anchors=True) is None


def test_a_text_is_cut() -> None:
    kept = content("<p>" + "ab " * MOST_KEPT, text=True)
    assert kept is not None
    assert len(kept.text or "") == MOST_KEPT


def test_what_is_no_page_has_no_content() -> None:
    response = Response(404, ((b"content-type", b"text/html"),), b"<p>text")
    assert read_answer(URL, response, Wanted(text=True, anchors=True)).content is None


def test_the_text_read_of_anchors_within_one_another_is_bounded() -> None:
    count, text = 400, "word " * 8_000
    markup = "".join(f"<a href=/{number}><table><td>" for number in range(count)) + text
    tree = LexborHTMLParser(markup.encode())
    links = {f"{URL}{number}": True for number in range(count)}
    texts = [text for text, _ in read_anchors(tree.tags("a"), links, Joiner(URL))]
    assert len(texts) == count
    assert texts[0]
    assert texts[50]
    assert not texts[-1]  # 16 MB otherwise
