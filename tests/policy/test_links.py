import base64
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlkit.policy.charset import decode, detect
from crawlkit.policy.content_type import read_content_type
from crawlkit.policy.links import Page, read_page, refresh_target, robots_directives, xhtml_as_html
from crawlkit.policy.urls import normalise
from crawlkit.policy.wanted import Wanted
from tests.shared_cases import bugs, suite

URL = "http://h.example/dir/page"


def read(markup: str, url: str = URL, charset: str = "utf-8", refresh: tuple[str, ...] = ()) -> Page:
    return read_page(markup.encode(), url, charset, refresh=refresh)


def _page(given_input: Any) -> Page:
    """Read a case's page: text is UTF-8, bytes are decoded by header and declaration."""
    url = normalise(given_input["url"])
    assert url is not None
    encoded = given_input.get("html_b64") or given_input.get("body_b64")
    text = given_input.get("html") or given_input.get("body")
    charset = read_content_type([given_input.get("content_type", "text/html").encode()]).charset
    body = base64.b64decode(encoded) if encoded else text.encode()
    charset = detect(body, charset) if encoded or charset else "utf-8"
    return read_page(decode(body, charset).encode(), url, charset)


@pytest.mark.parametrize("case", suite("html_links_scrapy"))
def test_links_are_those_of_scrapys_pages(case: Any) -> None:
    assert list(_page(case["input"]).links) == case["expected"]["links"]


@pytest.mark.parametrize("case", bugs("links"))
def test_link_bugs_of_other_crawlers(case: Any) -> None:
    assert list(_page(case["input"]).links) == case["expected"]["links"]


# w3m-077 (optional) calls the page itself the target of a bare number: the same as no new link, which is what we say.
@pytest.mark.parametrize("case", suite("html_base_meta", leave_out=frozenset({"w3m-077"})))
def test_base_and_refresh_are_read_as_the_html_standard_says(case: Any) -> None:
    given_input, expected = case["input"], case["expected"]
    refresh = expected.get("refresh") or {}
    if "content" in given_input:
        target = refresh_target(given_input["content"])
        # The URL parser takes these off.
        plain = target and target.strip(" ").replace("\t", "").replace("\n", "").replace("\r", "")
        assert plain == (refresh.get("url") or None)
        return
    page = _page(given_input)
    if "base" in expected:
        assert page.base == expected["base"]
    if "refresh" in expected:
        assert page.links == ((refresh["url"],) if refresh.get("url") else ())
    if "links" in expected:
        assert list(page.links) == expected["links"]


@pytest.mark.parametrize("case", bugs("meta_refresh"))
def test_refresh_bugs_of_other_crawlers(case: Any) -> None:
    target = case["expected"]["refresh"]["url"]
    assert (target in _page(case["input"]).links) == (target is not None)


@pytest.mark.parametrize("case", bugs("robots_meta"))
def test_rel_is_a_list_of_tokens(case: Any) -> None:
    page = _page(case["input"])
    unfollowed = [page.links[i] for i in page.nofollow]
    assert unfollowed == case["expected"]["nofollow"]
    assert [link for link in page.links if link not in unfollowed] == case["expected"]["follow"]


@pytest.mark.parametrize("case", bugs("deep_nesting"))
def test_deep_nesting_hides_no_link(case: Any) -> None:
    page = read("<div>" * 20_000 + '<a href="/deep">x</a>', case["input"]["url"])
    assert list(page.links) == case["expected"]["links"]


def test_links_are_in_the_contracts_order_each_once() -> None:
    page = read(
        '<meta http-equiv=refresh content="0;url=r"><iframe src="i"></iframe><area href="b"><a href="c">'
        '<a href="b#x"><iframe src="c"></iframe><a href="i2"><iframe src="i2"></iframe><iframe></iframe>'
    )
    names = [link.removeprefix("http://h.example/dir/") for link in page.links]
    assert names == ["b", "c", "i2", "i", "r"]


def test_frames_of_a_frameset_are_links() -> None:
    page = read("<frameset><frame src=a><frame src='javascript:b'><frame></frameset>")
    assert page.links == ("http://h.example/dir/a",)


def test_a_link_without_a_reference_is_none_and_an_empty_one_is_the_page() -> None:
    assert read("<a>x</a><a name=y>").links == ()
    assert read("<a href>x</a>").links == (URL,)
    assert read("<a href=''>x</a>").links == (URL,)


def test_what_is_no_html_link_is_none() -> None:
    markup = "<svg><a xlink:href='/s'>x</a></svg><template><a href=/t>x</a></template><textarea><a href=/u></textarea>"
    assert read(markup + "<link rel=next href=/n><img src=/i><form action=/f>").links == ()


def test_a_link_that_once_stands_without_nofollow_is_followed() -> None:
    page = read("<a rel=nofollow href=a>1</a><a rel='x NOFOLLOW' href=b>2</a><a href=a#y>3</a><a rel=nofollow href=a>4</a>")
    assert [link[-1] for link in page.links] == ["a", "b"]
    assert page.nofollow == (1,)


def test_a_frame_makes_a_nofollow_link_followed() -> None:
    assert read("<a rel=nofollow href=a>1</a><iframe src=a></iframe>").nofollow == ()


def test_the_query_of_a_link_is_sent_in_the_documents_encoding() -> None:
    assert read("<a href='/é?é'>", charset="windows-1252").links == ("http://h.example/%C3%A9?%E9",)


@pytest.mark.parametrize("first", ["", "data:,x", "javascript:0", "http://[", "ftp://f.example/"])
def test_an_unusable_first_base_leaves_the_page_its_base(first: str) -> None:
    page = read(f"<base target=x><base href='{first}'><base href='/other/'><a href=a>")
    assert page.base == URL
    assert page.links == ("http://h.example/dir/a",)


def test_base_goes_before_its_place_and_for_frames_refresh_and_canonical_too() -> None:
    page = read(
        "<a href=a></a><link rel=canonical href=c><meta http-equiv=refresh content='1;f'>"
        "<base href='//o.example/x/'><iframe src=b></iframe>"
    )
    assert page.links == tuple(f"http://o.example/x/{name}" for name in "abf")
    assert page.canonical == "http://o.example/x/c"


def test_the_first_refresh_with_a_target_counts_the_header_first() -> None:
    markup = "<meta http-equiv=refresh content=5><meta http-equiv=Refresh content='5;a'><meta http-equiv=refresh content='5;b'>"
    assert read(markup).links == ("http://h.example/dir/a",)
    assert read(markup, refresh=("7", "0; URL=h", "0;url=i")).links == ("http://h.example/dir/h",)


@pytest.mark.parametrize(
    ("content", "target"),
    [("0;url=''", None), ("0;url=", None), ("0;'a'b", "a"), ("0;'a", "a"), ('0 url = "a\'b"c', "a'b"), ("0;urls", "urls")],
)
def test_refresh_edges(content: str, target: str | None) -> None:
    assert refresh_target(content) == target


@pytest.mark.parametrize(
    ("markup", "canonical"),
    [
        ("<link rel='x Canonical' href=/c>", "http://h.example/c"),
        ("<link rel=canonical><link rel=canonical href=''><link rel=canonical href=/c>", "http://h.example/c"),
        (
            "<link rel=canonical href='mailto:x'><link rel=canonical href=/c#x><link rel=canonical href=/d>",
            "http://h.example/c",
        ),
        ("<link rel=canonicals href=/c><a rel=canonical href=/c>", None),
        ("<link href=/c>", None),
    ],
)
def test_canonical_is_the_first_usable_one_and_no_link(markup: str, canonical: str | None) -> None:
    assert read(markup).canonical == canonical


@pytest.mark.parametrize(
    ("markup", "title"),
    [
        ("<title>\n A \t B&amp;C&nbsp;\n</title>", "A B&C"),
        ("<svg><title>icon</title></svg><title>page</title><title>second</title>", "page"),
        ("<svg><g><title>icon</title></g></svg>", None),
        ("<title> </title>", None),
        ("<title><b>x</b></title>", "<b>x</b>"),
        ("<p>x", None),
        ("", None),
    ],
)
def test_title_is_one_line_or_none(markup: str, title: str | None) -> None:
    assert read(markup).title == title


@pytest.mark.parametrize(
    ("text", "directives"),
    [
        ("NoIndex, nofollow", {"noindex", "nofollow"}),
        ("noindex nofollow", {"noindex", "nofollow"}),
        ("noindex,,words,x-y", {"noindex"}),
        ("max-snippet: -1, max-image-preview:Large", {"max-snippet:-1", "max-image-preview:large"}),
        ("unavailable_after: Wed, 03 Dec 2025 13:09:53 GMT, noindex", {"unavailable_after", "noindex"}),
        ("unavailable_after: 2025-12-03T13:09:53+01:00, none", {"unavailable_after", "none"}),
        ("otherbot: noindex, nofollow", set()),
        ("noarchive, otherbot: noindex, CrawlKit: nofollow, max-snippet:3", {"noarchive", "nofollow", "max-snippet:3"}),
        ("crawlkit-news: noindex", set()),
        ("", set()),
    ],
)
def test_directives_are_the_known_ones_for_us(text: str, directives: set[str]) -> None:
    assert robots_directives(text, "crawlkit") == directives


def test_meta_directives_are_those_for_robots_and_for_us() -> None:
    page = read(
        "<meta name=Robots content=noindex><meta name=crawlkit content=nofollow><meta name=otherbot content=none>"
        "<meta name=robots><meta content=noarchive><meta property=robots content=noarchive>"
    )
    assert page.directives == {"noindex", "nofollow"}


def test_an_empty_xhtml_script_swallows_no_links() -> None:
    markup = b"<html><head><script src='a/>b'/><title/><style type=x /></head><a href='/x'/><iframe src='/y'/><br/></html>"
    page = read_page(xhtml_as_html(markup), URL, "utf-8")
    assert page.links == ("http://h.example/x", "http://h.example/y")


def test_xhtml_without_such_elements_stays_as_it_is() -> None:
    markup = b"<html><script>a</script><scripts/><a title='<script/'/><!-- x --></html>"
    assert xhtml_as_html(markup) == markup


PIECES = ["<a href=", "<base href=", "<meta name=robots content=", "<meta http-equiv=refresh content=", "<svg>", "</svg>"]
PIECES += ["<title>", "</title>", "<iframe src=", "<link rel=canonical href=", " rel=nofollow", '"', "'", ">", "/", "=", "#"]
PIECES += [
    "0;url=",
    "http://",
    "//h.example",
    "javascript:",
    "?q=",
    "é",
    "\0",
    "\udc80",
    "&#x",
    "<!--",
    "-->",
    " ",
    "none,",
    "<title/>",
]
MARKUP = st.lists(st.sampled_from(PIECES) | st.text(max_size=3), max_size=40).map("".join)


@given(st.binary() | MARKUP.map(lambda text: text.encode("utf-8", "surrogatepass")), st.sampled_from(["utf-8", "gbk"]))
def test_no_markup_raises_and_what_it_gives_is_in_normal_form(markup: bytes, charset: str) -> None:
    page = read_page(markup, URL, charset)
    assert all(normalise(link) == link for link in page.links)
    assert len(set(page.links)) == len(page.links)
    assert all(0 <= i < len(page.links) for i in page.nofollow)
    as_html = xhtml_as_html(markup)
    assert xhtml_as_html(as_html) == as_html


@given(MARKUP)
def test_no_content_makes_refresh_or_directives_raise(content: str) -> None:
    target = refresh_target(content)
    assert target is None or target in content
    directives = robots_directives(content, "crawlkit")
    assert robots_directives(", ".join(directives), "crawlkit") == directives


def capped(markup: bytes, most: int) -> Page:
    return read_page(markup, URL, "utf-8", Wanted(most_links=most))


FIVE = b"<title>T</title>" + b"".join(b"<a href=/%d>x</a>" % n for n in range(4)) + b"<iframe src=/4></iframe>"


@pytest.mark.parametrize("most", range(1, 7))
def test_the_first_links_are_kept_up_to_the_cap_and_more_are_told_of(most: int) -> None:
    page, whole = capped(FIVE, most), capped(FIVE, 100)
    assert len(whole.links) == 5
    assert (page.links, page.cut, page.title) == (whole.links[:most], most < 5, "T")


def test_a_repeated_link_counts_once_and_its_following_holds_beyond_the_cap() -> None:
    page = capped(b"<a rel=nofollow href=/1>x</a><a href=/2>x</a><a href=/1>x</a><a href=/2>x</a>", 2)
    assert (len(page.links), page.nofollow, page.cut) == (2, (), False)
    page = capped(b"<a rel=nofollow href=/1>x</a><a href=/2>x</a><a href=/3>x</a><a href=/1>x</a>", 2)
    assert (len(page.links), page.nofollow, page.cut) == (2, (), True)


@pytest.mark.parametrize(
    "tag", [b"<a href=/x>", b"<A\nHREF=/x>", b"<area href=/x>", b"<iframe src=/x></iframe>", b"<a/href=/x>"]
)
def test_a_page_is_parsed_no_further_than_five_link_elements_for_each_link_kept(tag: bytes) -> None:
    assert not capped(tag * 50, 10).cut
    page = capped(tag * 50 + b"<p>not read" + tag + b"<p>never read", 10)
    assert page.cut
    assert page.texts is not None
    assert "not read" in page.texts.visible
    assert "never read" not in page.texts.visible


def test_elements_that_are_no_links_do_not_count() -> None:
    assert not capped(b"<abbr>x</abbr><article><i><font><address>" * 100, 1).cut


MILLION = """
import resource
from crawlkit.policy.links import read_page
from crawlkit.policy.wanted import Wanted
markup = b"".join(b"<a href=/%x>" % n for n in range(1_000_000))
read_page(markup[:10_000], "http://a.example/", "utf-8")
before_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
page = read_page(markup, "http://a.example/", "utf-8", Wanted(most_links=10_000))
assert page.cut and len(page.links) == 10_000
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kib)
"""


def test_a_page_of_a_million_links_takes_little_memory() -> None:
    done = subprocess.run([sys.executable, "-c", MILLION], check=True, capture_output=True, text=True, timeout=60)
    assert int(done.stdout) < 100 * 1024
