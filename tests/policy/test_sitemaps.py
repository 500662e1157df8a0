"""Reading sitemaps: the shared cases, what must not happen, and the caps."""

import gzip
import time
from base64 import b64decode
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlkit.policy import sitemaps
from crawlkit.policy.content_type import read_content_type
from crawlkit.policy.lastmod import lastmod_utc
from crawlkit.policy.sitemaps import read_sitemap
from crawlkit.policy.urls import normalise
from crawlkit.sitemap import MOST_BYTES, Sitemap, SitemapEntry, SitemapForm
from tests.shared_cases import bugs, suite

AT = "https://h.example/maps/sitemap.xml"

# By location (ccs-l0 to l3) the protocol lets a sitemap name only what lies below it; here every location goes through the
# crawl's scope instead, as the suite's note allows.
BY_LOCATION = frozenset({"ccs-l0", "ccs-l1", "ccs-l2", "ccs-l3"})
# Expected is that the entry with a bare ampersand is left out or, "a bonus", read as it was meant: see below.
BONUS = frozenset({"smap-13"})
OUTSIDE = suite("sitemaps_crawler_commons", leave_out=BY_LOCATION)


def read(xml: str | bytes, **options: Any) -> list[str]:
    return [entry.url for entry in read_sitemap(AT, xml.encode() if isinstance(xml, str) else xml, **options).entries]


def urlset(*entries: str) -> str:
    return f"<urlset>{''.join(f'<url>{entry}</url>' for entry in entries)}</urlset>"


def run_case(case: Any) -> Sitemap:
    given = case["input"]
    body = b64decode(given["body_b64"]) if "body_b64" in given else given["body"].encode()
    charset = read_content_type([given["content_type"].encode()]).charset
    return read_sitemap(given["url"], body, charset)


@pytest.mark.parametrize("case", [*OUTSIDE, *bugs("sitemap", leave_out=BONUS)])
def test_shared_cases(case: Any) -> None:
    if "lastmod" in case["input"]:
        assert lastmod_utc(case["input"]["lastmod"]) == case["expected"]["utc"]
        return
    sitemap = run_case(case)
    assert [entry.url for entry in sitemap.entries] == [normalise(url) for url in case["expected"]["locs"]]
    if case["expected"].get("kind", "urlset") != "urlset":
        assert sitemap.form.value == case["expected"]["kind"]
    assert not sitemap.cut


def test_a_bare_ampersand_stands_for_itself() -> None:
    assert read(urlset("<loc>https://h.example/a-&-b/</loc>", "<loc>/c?x=1&y=2</loc>")) == [
        "https://h.example/a-&-b/",
        "https://h.example/c?x=1&y=2",
    ]


@pytest.mark.parametrize(
    ("xml", "found"),
    [
        (urlset("<loc>../b</loc>", "<loc>//other.example/</loc>"), ["https://h.example/b", "https://other.example/"]),
        (urlset("<loc>ftp://h.example/</loc>", "<loc>mailto:a@h.example</loc>", "<loc>a sentence of words</loc>"), []),
        # another namespace's locations are images and videos
        (urlset("<loc>/a</loc><image:image><image:loc>https://h.example/i</image:loc></image:image>"), ["https://h.example/a"]),
        (urlset("<loc></loc><image:image><image:loc>https://h.example/i</image:loc></image:image>"), []),
        (urlset("https://h.example/bare<changefreq>daily</changefreq>"), ["https://h.example/bare"]),
        (urlset("<changefreq>daily</changefreq><loc>/a</loc>"), ["https://h.example/a"]),
        (urlset("<loc>/a?x=&#49;&#x32;&eacute;</loc>"), ["https://h.example/a?x=12%C3%A9"]),
        (urlset("<loc>/a?x=&none;</loc>", "<loc>/&#xD800;</loc>", "<loc>/b</loc>"), ["https://h.example/b"]),
        (urlset('<loc class="1 > 0" x=\'"\'>/a</loc>'), ["https://h.example/a"]),
        ("<!-- <urlset> --><?x <urlset>?><!DOCTYPE urlset [<!ELEMENT a ']'> ] >" + urlset("<loc>/a</loc>"), ["https://h.example/a"]),
        ("<URLSET><Url><LOC>/A</LOC></Url></URLSET>", ["https://h.example/A"]),
        ("<urlset><url><loc>/a<url><loc>/b</loc>", ["https://h.example/a", "https://h.example/b"]),
        ("<urlset><url><loc>/a</loc><loc>/cut-off-he", ["https://h.example/a"]),
        ("<urlset><url><loc><![CDATA[/cut-off-he", []),
        ("<urlset><url><loc>/a</loc></url", ["https://h.example/a"]),
        ("<html><url><loc>/a</loc></url></html>", []),
        ("<urlset>< url><loc>/a</loc></urlset>", []),
        ("<feed><entry><link href='/a'/><link href='/b'/></entry><entry><link rel='self' href='/c'/></entry></feed>",
         ["https://h.example/a"]),
        ("<a:feed xmlns:a='x'><a:entry><a:link href='/a&amp;b'/></a:entry></a:feed>", ["https://h.example/a&b"]),
        ("<rdf:RDF><item><link>/a</link></item></rdf:RDF>", ["https://h.example/a"]),
        ("<rss><channel><link>/main</link><item><atom:link href='/x'/><link>/a</link><guid>/b</guid></item></channel></rss>",
         ["https://h.example/a"]),
        ("<rss><item><guid>12345</guid></item><item><guid isPermaLink='true'>https://h.example/g</guid></item></rss>",
         ["https://h.example/g"]),
        ("https://h.example/a\r\n\r\n /relative\r\nhttps://h.example/b c\n", ["https://h.example/a", "https://h.example/b%20c"]),
        ("", []),
        ("no\nhttps://h.example/a", []),
        ("\0\0", []),
    ],
)  # fmt: skip
def test_odd_ones(xml: str, found: list[str]) -> None:
    assert read(xml) == found


def test_lastmod_and_priority_are_kept() -> None:
    dated = "<loc>/a</loc><lastmod> 2014-06-03T10:30:45-05:00 </lastmod><priority>0.8</priority>"
    odd = "<lastmod>yesterday</lastmod><priority>high</priority><loc>/b</loc>"
    over = "<priority>1.5</priority><loc>/c</loc>"
    assert read_sitemap(AT, urlset(dated, odd, over).encode()).entries == (
        SitemapEntry("https://h.example/a", "2014-06-03T15:30:45Z", 0.8),
        SitemapEntry("https://h.example/b", None, None),
        SitemapEntry("https://h.example/c", None, 1.0),
    )
    rss = "<rss><item><link>/a</link><pubDate>Sun, 06 Sep 2009 16:20:00 +0200</pubDate></item></rss>"
    assert read_sitemap(AT, rss.encode()).entries == (SitemapEntry("https://h.example/a", "2009-09-06T14:20:00Z"),)
    atom = "<feed><updated>2000-01-01</updated><entry><updated>2003-12-13</updated><link href='/a'/></entry></feed>"
    assert read_sitemap(AT, atom.encode()).entries == (SitemapEntry("https://h.example/a", "2003-12-13T00:00:00Z"),)


@pytest.mark.parametrize(
    "text",
    ["", "2014-13-01", "0001-01-01T00:00:00+14:00", "20140603", "Mon, 99 Foo 2009", "2" * 9, "9999-12-31T23:59:59-23:59"],
)
def test_moments_that_are_none(text: str) -> None:
    assert lastmod_utc(text) is None


@pytest.mark.parametrize(
    ("encoding", "declared", "header"),
    [
        ("iso-8859-1", "iso-8859-1", None),
        ("iso-8859-1", None, "iso-8859-1"),
        ("utf-16", "utf-16", None),
        ("utf-16-le", "utf-16", None),
        ("windows-1251", "windows-1251", None),
        ("utf-8", None, None),
        ("utf-8-sig", "utf-8", None),
    ],
)
def test_encodings(encoding: str, declared: str | None, header: str | None) -> None:
    word = "ж" if encoding == "windows-1251" else "é"
    declaration = f'<?xml version="1.0" encoding="{declared}"?>' if declared else ""
    body = (declaration + urlset(f"<loc>/{word}</loc>")).encode(encoding)
    assert read(body, charset=header) == [normalise(f"https://h.example/{word}")]


def test_gzip_is_told_by_its_first_bytes_and_may_be_broken() -> None:
    plain = urlset(*(f"<loc>/{number}</loc>" for number in range(500))).encode()
    packed = gzip.compress(plain)
    assert read(packed) == read(plain) == read(gzip.compress(packed)) == read(packed + b"\0\0rubbish")
    assert len(read(gzip.compress(plain[:200]) + gzip.compress(plain[200:]))) == 500
    cut = read_sitemap(AT, packed[: len(packed) // 2])
    assert cut.cut
    assert 0 < len(cut.entries) < 500
    assert list(cut.entries) == [SitemapEntry(url) for url in read(plain)][: len(cut.entries)]
    assert read_sitemap(AT, b"\x1f\x8bnothing") == Sitemap(SitemapForm.NONE, (), True)


def test_what_is_beyond_the_caps_is_cut_and_said(monkeypatch: pytest.MonkeyPatch) -> None:
    assert (sitemaps.MOST_ENTRIES, MOST_BYTES) == (50_000, 52_428_800)
    monkeypatch.setattr(sitemaps, "MOST_ENTRIES", 100)
    for some in (urlset(*["<loc>/a</loc>"] * 100), "http://h.example/\n" * 100):
        whole = read_sitemap(AT, some.encode())
        assert (len(whole.entries), whole.cut) == (100, False)
        more = read_sitemap(AT, some.replace("</urlset>", "").encode() + b"<url><loc>/b</loc></url>\nhttp://h.example/b")
        assert (len(more.entries), more.cut) == (100, True)
    text = b"https://h.example/a\nhttps://h.example/bcd"
    monkeypatch.setattr(sitemaps, "MOST_BYTES", len(text) - 2)
    for body in (text, gzip.compress(text)):
        cut = read_sitemap(AT, body)
        assert (cut.entries, cut.cut) == ((SitemapEntry("https://h.example/a"),), True)


def test_a_body_that_was_not_whole_says_so_and_loses_no_more_than_its_end() -> None:
    sitemap = read_sitemap(AT, b"https://h.example/a\nhttps://h.example/b", whole=False)
    assert (sitemap.entries, sitemap.cut) == ((SitemapEntry("https://h.example/a"),), True)


BOMB = "<!DOCTYPE urlset [<!ENTITY a 'ha'>" + "".join(
    f"<!ENTITY {after} '{f'&{before};' * 10}'>" for before, after in zip("abcdefgh", "bcdefghi", strict=True)
) + "]>"  # fmt: skip


@pytest.mark.parametrize(
    "hostile",
    [
        BOMB + urlset("<loc>/&i;</loc>"),
        "<urlset><url><loc>" + "<a" * 150_000,
        "<urlset>" + "<!a[>" * 200_000,
        "<urlset>" + "<!--" * 200_000,
        "<urlset>" + "<![CDATA[" * 100_000,
        "<urlset>" + "<a '\"" * 200_000,
        "<urlset>" + "<a '<a \"" * 100_000,
        "<urlset>" + "<url x='" * 50_000,
        "<urlset><url><loc>" + "&#1;" * 250_000 + "</loc>",
        "<urlset><url>" + "<loc>/a" * 20_000,
        "<urlset><url><loc>" + "x<a>" * 100_000 + "</loc>",
        "<" * 300_000,
        "]" * 300_000,
    ],
    ids=range(13),
)
def test_hostile_ones_take_time_in_proportion_to_their_size(hostile: str) -> None:
    began_s = time.process_time()
    read_sitemap(AT, hostile.encode())
    assert time.process_time() - began_s < 2.0


@given(st.binary(max_size=200) | st.lists(st.sampled_from(
    ["<urlset>", "<url>", "</url>", "<loc>", "</loc>", "/a", "<!--", "-->", "<![CDATA[", "]]>", "&amp;", "&", "<", ">", "'",
     "<rss>", "<item>", "<link href='/b'/>", "<link>", "</link>", "<guid>", "<feed>", "<entry>",
     "http://h.example/", " ", "<!x[", "\0"]
)).map(lambda pieces: "".join(pieces).encode()))  # fmt: skip
def test_any_bytes_will_do(body: bytes) -> None:
    for entry in read_sitemap(AT, body).entries:
        assert normalise(entry.url) == entry.url
