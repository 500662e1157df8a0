import base64
import hashlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlkit.model import Facts, Response
from crawlkit.policy.disposition import REDIRECTS
from crawlkit.policy.facts import read_answer
from crawlkit.policy.novelty import BREAK, sketch_of
from crawlkit.policy.urls import normalise
from crawlkit.policy.wanted import Wanted
from tests.shared_cases import bugs

URL = "http://h.example/dir/page"
HTML = (b"content-type", b"text/html; charset=utf-8")
LINKS = b"<title>T</title><meta http-equiv=refresh content='0;url=/r'><link rel=canonical href=/c><a href=/a>a</a>"


def answer(body: bytes = LINKS, *headers: tuple[bytes, bytes], status: int = 200) -> Facts:
    return read_answer(URL, Response(status, headers, body))


def test_a_page_gives_all_its_facts() -> None:
    body = "<title>T</title><meta name=robots content=NOINDEX><a href=/é>x</a><a rel=nofollow href=/b>b</a>".encode()
    response = Response(203, (HTML, (b"retry-after", b"7")), body, truncated=True)
    assert read_answer(URL, response) == Facts(
        status=203,
        content_type="text/html",
        charset="utf-8",
        body_bytes=len(body),
        truncated=True,
        title="T",
        digest="sha256:" + hashlib.sha256(body).hexdigest(),
        links=("http://h.example/%C3%A9", "http://h.example/b"),
        nofollow=(1,),
        retry_after="7",
        directives=("noindex",),
        sketch=sketch_of(BREAK.join("Txb"), URL),
        headings=(0, 0, 0, 0, 0, 0),
        words=2,
        text_digest="sha256:" + hashlib.sha256(b"xb").hexdigest(),
    )


def test_a_page_gives_what_it_says_of_itself() -> None:
    body = b"""<html lang=en_gb><title>T</title><meta name=description content=" All  of it "><link rel=alternate hreflang=de
        href=/de><link rel="alternate" hreflang="X-Default" href="/"><h1>A</h1><h2>b</h2><h2>c</h2>"""
    headers = ((b"etag", b'W/"\xe9"'), (b"last-modified", b"yesterday"), (b"content-language", b"fr"))
    facts = answer(body, HTML, *headers, (b"link", b'</fr>; rel=alternate; hreflang=fr, </no>; rel=alternate; hreflang="de"'))
    assert (facts.description, facts.language, facts.headings) == ("All of it", "en-GB", (1, 2, 0, 0, 0, 0))
    assert facts.alternates == tuple(
        (name, f"http://h.example/{path}") for name, path in (("de", "de"), ("x-default", ""), ("fr", "fr"))
    )
    assert (facts.etag, facts.last_modified, facts.words) == ('W/"\xe9"', "yesterday", 3)


@pytest.mark.parametrize("status", [200, 301, 404])
def test_validators_and_the_language_are_read_of_any_answer(status: int) -> None:
    facts = answer(b"x", (b"content-type", b"image/png"), (b"etag", b'"1"'), (b"content-language", b"PT-br"), status=status)
    assert (facts.etag, facts.language) == ('"1"', "pt-BR")
    assert (facts.headings, facts.words, facts.text_digest, facts.alternates) == ((), None, None, ())


@pytest.mark.parametrize("values", [[b"en, de"], [b"en", b"de"], [b"mul tae"], [b""]])
def test_several_languages_or_none_are_no_language(values: list[bytes]) -> None:
    assert answer(LINKS, HTML, *((b"content-language", value) for value in values)).language is None


def test_an_empty_answer_has_a_digest_and_no_type() -> None:
    empty = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    assert answer(b"") == Facts(status=200, digest=empty)


@pytest.mark.parametrize("status", [300, 304, 301, 307, 404, 410, 500, 503, 199, 999])
def test_only_success_is_read_for_links(status: int) -> None:
    facts = answer(LINKS, HTML, (b"refresh", b"0;url=/h"), (b"link", b"</l>; rel=canonical"), status=status)
    assert (facts.links, facts.title, facts.canonical) == ((), None, None)
    assert facts.content_type == "text/html"
    assert facts.body_bytes == len(LINKS)


@pytest.mark.parametrize("content_type", [b"text/plain", b"application/xml", b"image/svg+xml"])
def test_only_html_is_read_for_links(content_type: bytes) -> None:
    facts = answer(LINKS, (b"content-type", content_type))
    assert (facts.links, facts.title) == ((), None)


def test_html_without_a_type_is_read_for_links_and_has_no_type() -> None:
    facts = answer(b"<!doctype html><a href='/x'>x</a>")
    assert facts.links == ("http://h.example/x",)
    assert (facts.content_type, facts.charset) == (None, "windows-1252")


def test_binary_that_claims_to_be_html_is_not_read() -> None:
    facts = answer(b"%PDF-1.5\n\0\1<a href='/x'>", (b"content-type", b"text/html"))
    assert facts.links == ()
    assert (facts.content_type, facts.charset) == ("text/html", None)


def test_a_byte_order_mark_is_no_text_of_the_page() -> None:
    assert answer(b"\xef\xbb\xbf<frameset><frame src=/f></frameset>", HTML).links == ("http://h.example/f",)


def test_charset_is_what_html_was_read_in_or_else_what_was_declared() -> None:
    assert answer(b"\xef\xbb\xbf<p>", (b"content-type", b"text/html;charset=gbk")).charset == "utf-8"
    assert answer(b"<meta charset=gbk>", (b"content-type", b"text/html")).charset == "gbk"
    assert answer(b"x", (b"content-type", b"text/plain;charset=Latin1")).charset == "windows-1252"
    assert answer(b"x", (b"content-type", b"text/plain")).charset is None
    assert answer(b"x", (b"content-type", b"text/html;charset=gbk"), status=404).charset == "gbk"


def test_xhtml_is_read_as_such() -> None:
    facts = answer(b"<html><script/><a href='/x'/></html>", (b"content-type", b"application/xhtml+xml"))
    assert facts.links == ("http://h.example/x",)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16be", "windows-1252", "gb18030", "iso2022_jp"])
def test_a_page_is_read_in_its_encoding(encoding: str) -> None:
    label = {"utf-8-sig": "utf-8", "iso2022_jp": "iso-2022-jp"}.get(encoding, encoding)
    letter = "日" if encoding == "iso2022_jp" else "é"
    body = f"<title>{letter}</title><a href=/a>".encode(encoding)
    facts = answer(body, (b"content-type", f"text/html; charset={label}".encode()))
    assert facts.title == letter
    assert facts.links == ("http://h.example/a",)


@pytest.mark.parametrize("case", [c for c in bugs("charset") if c.id == "chr-11"])
def test_bytes_outside_the_declared_encoding_cost_no_link(case: Any) -> None:
    content_type = case["input"]["content_type"].encode()
    facts = answer(base64.b64decode(case["input"]["body_b64"]), (b"content-type", content_type))
    assert [link.removeprefix("http://h.example") for link in facts.links] == case["expected"]["links"]


@pytest.mark.parametrize("header", [b"nofollow", b"None", b"noindex, nofollow", b"crawlkit: nofollow"])
def test_a_page_that_says_nofollow_admits_nothing(header: bytes) -> None:
    facts = answer(LINKS, HTML, (b"x-robots-tag", header))
    assert facts.links == ("http://h.example/a", "http://h.example/r")
    assert facts.nofollow == (0, 1)
    assert facts.canonical == "http://h.example/c"
    assert not facts.admits_canonical


def test_a_page_says_nofollow_by_meta_too() -> None:
    facts = answer(LINKS + b"<meta name=robots content=none>", HTML)
    assert (facts.nofollow, facts.admits_canonical, facts.directives) == ((0, 1), False, ("none",))


def test_directives_for_other_robots_are_not_in_force() -> None:
    facts = answer(LINKS, HTML, (b"x-robots-tag", b"otherbot: nofollow"), (b"x-robots-tag", b"noarchive"))
    assert facts.directives == ("noarchive",)
    assert (facts.nofollow, facts.admits_canonical) == ((), True)


def test_directives_are_joined_and_sorted_and_kept_of_any_answer() -> None:
    headers = (b"x-robots-tag", b"noindex"), (b"x-robots-tag", b"crawlkit: all, NoIndex")
    assert answer(b"<meta name=robots content=nosnippet>", HTML, *headers).directives == ("all", "noindex", "nosnippet")
    assert answer(b"x", *headers, status=404).directives == ("all", "noindex")


def test_our_product_token_is_the_one_given() -> None:
    response = Response(200, (HTML, (b"x-robots-tag", b"mybot: noindex")), b"<meta name=MyBot content=noarchive>")
    assert read_answer(URL, response, Wanted("mybot")).directives == ("noarchive", "noindex")
    assert read_answer(URL, response).directives == ()


def test_a_refresh_header_is_a_link_like_a_meta_refresh() -> None:
    assert answer(b"<a href=/a>", HTML, (b"refresh", b"3; url=/h")).links == ("http://h.example/a", "http://h.example/h")


@pytest.mark.parametrize(
    ("link", "canonical"),
    [
        (b"</c>; rel=canonical", "http://h.example/c"),
        (b'</n>; rel="next", <c;d?e,f#g>; title="a, <b>" ; REL="x Canonical"', "http://h.example/dir/c;d?e,f"),
        (b"<mailto:x>; rel=canonical, </c>;rel=canonical", "http://h.example/c"),
        (b"</caf\xe9>;rel=canonical", "http://h.example/caf%E9"),
        (b"</c>; rel=canonical; anchor='/other'", None),
        (b"</c>; rel=canonicals", None),
        (b"</c>; title=canonical", None),
        (b"</c>, rel=canonical; <", None),
        (b"</c>; rel=x; rel=canonical", None),
        (b"<>; rel=canonical", None),
    ],
)
def test_canonical_of_a_link_header(link: bytes, canonical: str | None) -> None:
    assert answer(b"%PDF", (b"content-type", b"application/pdf"), (b"link", link)).canonical == canonical


def test_the_pages_own_canonical_goes_before_the_headers() -> None:
    assert answer(LINKS, HTML, (b"link", b"</l>; rel=canonical")).canonical == "http://h.example/c"
    assert answer(b"", HTML, (b"link", b"<x>; rel=y"), (b"link", b"<l>; rel=canonical")).canonical == "http://h.example/dir/l"


def _locations(given_input: Any) -> list[bytes]:
    if "location_b64" in given_input:
        return [base64.b64decode(given_input["location_b64"])]
    values = given_input["location"] or []
    return [value.encode() for value in ([values] if isinstance(values, str) else values)]


# What a single answer tells of these. rdr-03 lets 300 be final, rdr-12, 14 and 15 are about what follows: the engine's.
@pytest.mark.parametrize("case", bugs("redirect", leave_out=frozenset({"rdr-03", "rdr-12", "rdr-14", "rdr-15"})))
def test_redirect_bugs_of_other_crawlers(case: Any) -> None:
    headers = tuple((b"location", value) for value in _locations(case["input"]))
    facts = read_answer(case["input"]["url"], Response(case["input"]["status"], headers, b""))
    expected = case["expected"]["follow"]
    # rdr-08 leaves the choice: the first of two, or none.
    assert facts.location in ((None,) if expected and " or null" in expected else (expected,))


@pytest.mark.parametrize("status", sorted(REDIRECTS))
def test_a_redirect_has_a_location_and_no_links(status: int) -> None:
    facts = answer(LINKS, HTML, (b"location", b" ../n#x "), (b"location", b"../n#x"), status=status)
    assert (facts.location, facts.links, facts.title) == ("http://h.example/n", (), None)


@pytest.mark.parametrize("location", [b"", b"http://[", b"mailto:x@h.example", b"data:,x"])
def test_an_unusable_location_is_none(location: bytes) -> None:
    assert answer(b"", (b"location", location), status=301).location is None


@pytest.mark.parametrize("status", [200, 201, 300, 304, 305, 404])
def test_other_answers_have_no_location(status: int) -> None:
    assert answer(b"", (b"location", b"/n"), status=status).location is None


NAMES = [b"content-type", b"x-robots-tag", b"refresh", b"link", b"location", b"retry-after"]
VALUES = [b"text/html", b'text/html;charset="gbk', b"none", b"crawlkit: none", b"0;url=/x\xff", b"<\xff>;rel=canonical", b"//"]


@given(
    st.sampled_from([200, 301, 404]),
    st.lists(st.tuples(st.sampled_from(NAMES), st.sampled_from(VALUES) | st.binary())),
    st.binary() | st.sampled_from([LINKS, b"\xff\xfe<\0", b"<meta charset=gbk><a href='/\xbc\xd2?\xbc\xd2'>"]),
)
def test_no_answer_raises(status: int, headers: list[tuple[bytes, bytes]], body: bytes) -> None:
    facts = read_answer(URL, Response(status, tuple(headers), body))
    urls = [*facts.links, *filter(None, (facts.canonical, facts.location))]
    assert all(normalise(url) == url for url in urls)
    assert facts.body_bytes == len(body)


def test_a_page_with_more_links_than_are_kept_is_truncated() -> None:
    response = Response(200, (HTML,), b"<a href=/1>x</a><a href=/2>x</a>")
    assert read_answer(URL, response, Wanted(most_links=2)).truncated is False
    facts = read_answer(URL, response, Wanted(most_links=1))
    assert (facts.links, facts.truncated) == (("http://h.example/1",), True)
