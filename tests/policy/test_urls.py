"""The normal form, links, redirect targets and parts of URLs: hand-made tables and the public suites."""

import base64
import tracemalloc
from typing import Any

import pytest
from ada_url import URL

from crawlkit.errors import UsageError
from crawlkit.policy.charset import decode
from crawlkit.policy.urls import Joiner, host_of, normalise, origin_of, parse_seed, path_of, resolve_location
from tests.shared_cases import bugs, suite


@pytest.mark.parametrize("case", suite("url_wpt"))
def test_every_reference_is_resolved_as_browsers_do(case: Any) -> None:
    base, url = case["input"]["base"], case["input"]["url"]
    got = normalise(url) if base is None else Joiner(base).join(url)
    assert got == case["expected"].get("normal")


@pytest.mark.parametrize("case", [*suite("url_w3lib"), *bugs("normalize")])
def test_an_absolute_url_has_one_normal_form(case: Any) -> None:
    assert normalise(case["input"]["url"]) == case["expected"]["normal"]


@pytest.mark.parametrize("case", suite("url_normalizer_crawler_commons"))
def test_the_normal_form_merges_no_two_pages(case: Any) -> None:
    base, url = case["input"].get("base"), case["input"]["url"]
    expected = case["expected"]["normal"] if "normal" in case["expected"] else normalise(case["expected"]["href"])
    assert (normalise(url) if base is None else Joiner(base).join(url)) == expected


@pytest.mark.parametrize("case", [*suite("url_rfc3986_resolution"), *bugs("resolve")])
def test_a_reference_is_resolved_by_the_standard_algorithm(case: Any) -> None:
    reference = case["input"].get("url", case["input"].get("href"))
    assert Joiner(case["input"]["base"]).join(reference) == normalise(case["expected"]["href"])


@pytest.mark.parametrize("case", suite("url_toascii"))
def test_an_international_host_becomes_punycode_or_the_url_is_none(case: Any) -> None:
    host = case["expected"]["host"]
    assert normalise(f"https://{case['input']['host']}/x") == (host and f"https://{host}/x")


# Both are optional: Python's codecs write these characters otherwise than the Encoding Standard does.
_CODECS_DIFFER = frozenset({"pe-005", "pe-009"})


@pytest.mark.parametrize("case", suite("url_query_encoding", leave_out=_CODECS_DIFFER))
def test_a_query_is_encoded_in_the_documents_charset(case: Any) -> None:
    joiner = Joiner("https://h.example/p", case["input"]["document_encoding"])
    assert joiner.join("?" + case["input"]["text"]) == "https://h.example/p?" + case["expected"]["query"]


# Not about a target: no Location at all (rdr-01), two of them (rdr-08, rdr-09), what the crawl does next (the others).
_MORE_THAN_A_TARGET = frozenset({"rdr-01", "rdr-08", "rdr-09", "rdr-12", "rdr-14", "rdr-15"})
# No Location at all.
_NO_LOCATION = frozenset({"scr-020", "scr-026", "scr-053"})


@pytest.mark.parametrize(
    "case", [*suite("redirects_scrapy", leave_out=_NO_LOCATION), *bugs("redirect", leave_out=_MORE_THAN_A_TARGET)]
)
def test_a_location_names_its_target_by_the_octets_received(case: Any) -> None:
    base = normalise(case["input"]["url"])
    assert base is not None
    follow = case["expected"]["follow"]
    allowed = {None, follow.removesuffix(" or null")} if follow and follow.endswith(" or null") else {follow}
    assert resolve_location(base, _octets(case["input"])) in allowed


def _octets(given: Any) -> bytes:
    if "location_b64" in given:
        return base64.b64decode(given["location_b64"])
    location = given["location"]
    return location.encode() if isinstance(location, str) else base64.b64decode(location["b64"])


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("HTTP://Example.COM:80/A/../b/./c?B=1&a=2#f", "http://example.com/b/c?B=1&a=2"),
        ("https://user:pass@example.com/", "https://example.com/"),
        ("https://user@example.com:8443/@x?y=@z", "https://example.com:8443/@x?y=@z"),
        ("https://:pass@example.com", "https://example.com/"),
        ("https://a@b@example.com/", "https://example.com/"),
        ("https://example.com/@user", "https://example.com/@user"),
        ("https://example.com?@", "https://example.com/?@"),
        ("https://user:p@[::1]:8443/", "https://[::1]:8443/"),
        ("https://example.com/#", "https://example.com/"),
        ("https://example.com/?", "https://example.com/?"),
        ("https://example.com/a//b/%7e%zz", "https://example.com/a//b/%7e%zz"),
        ("https://example.com./", "https://example.com./"),
        ("http://0x7f.1/", "http://127.0.0.1/"),
        ("ftp://example.com/", None),
        ("mailto:a@example.com", None),
        ("example.com/", None),
        ("/a", None),
        ("", None),
        ("https://", None),
        ("https://example.com:99999/", None),
        ("https://exa mple.com/", None),
        ("https://example.com/\ud800", None),
        ("https://example.com/\0x", "https://example.com/%00x"),
        ("\0 https://example.com/a\tb\n", "https://example.com/ab"),
    ],
)
def test_the_normal_form_drops_what_names_no_other_page_and_keeps_the_rest(text: str, normal: str | None) -> None:
    assert normalise(text) == normal


def test_a_giant_url_is_kept_whole() -> None:
    url = "http://h.example/p?redirect=" + "%3F" * 2_000_000
    assert normalise(url) == url
    assert Joiner("http://h.example/").join(url) == url


@pytest.mark.parametrize(
    ("base", "reference", "target"),
    [
        ("https://u:p@example.com/a/b?c#d", "", "https://example.com/a/b?c"),
        ("https://u:p@example.com/a/b?c#d", "#e", "https://example.com/a/b?c"),
        ("https://u:p@example.com/a/b?c#d", " #e", "https://example.com/a/b?c"),
        ("https://example.com/a/b?c", "?d #e", "https://example.com/a/b?d%20"),
        ("https://example.com/a/b", "/\\other.example/x", "https://other.example/x"),
        ("http://example.com:8080/a/b", "//other.example", "http://other.example/"),
        ("http://example.com:8080/a/b", "/x", "http://example.com:8080/x"),
        ("http://example.com/a/b", "http:x", "http://example.com/a/x"),
        ("http://example.com/a/b", "https:x", "https://x/"),
        ("http://example.com/a/b", " HTTPS://Other.example ", "https://other.example/"),
        ("http://example.com/a/b", "https://[", None),
        ("http://example.com/a/b", "JavaScript:void(0)", None),
        ("http://example.com/a/b", "javascript:void(0)", None),
        ("http://example.com/a/b", "java\nscript:void(0)", None),
        ("http://example.com/a/b", "mailto:a@example.com", None),
        ("http://example.com/a/b", "tel:+1", None),
        ("http://example.com/a/b", "data:," + "x" * 1000, None),
        ("http://example.com/a/b", "./data:x", "http://example.com/a/data:x"),
        ("http://example.com/a/b", "x" * 1000, "http://example.com/a/" + "x" * 1000),
        ("http://example.com/" + "a" * 1000 + "/b", "c", "http://example.com/" + "a" * 1000 + "/c"),
        ("http://example.com/" + "a" * 1000 + "/b", "/c", "http://example.com/c"),
        ("file:///a/b", "c", None),
        ("file:///a/b", "/c", None),
        ("file:///a/b", "//example.com/c", None),
        ("file:///a/b", "http://example.com/c", "http://example.com/c"),
        ("data:text/html,x", "#a", None),
        ("not a url", "a", None),
        ("not a url", "", None),
        ("http://example.com/", "/\ud800", None),
    ],
)
def test_a_link_leads_where_a_browser_would_go(base: str, reference: str, target: str | None) -> None:
    joiner = Joiner(base)
    assert [joiner.join(reference), joiner.join(reference)] == [target, target]


def test_joining_keeps_no_long_text_in_memory() -> None:
    # Each reference and base is a new one, so that a memo that took them would hold 60 MB.
    tracemalloc.start()
    try:
        for n in range(20):
            assert Joiner("https://h.example/").join(f"/{n}" + "a" * 1_000_000)
            assert Joiner("https://h.example/" + "a" * 1_000_000).join(f"b{n}")
            assert Joiner("https://" + "a" * 1_000_000).join(f"/{n}")
        kept_bytes = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert kept_bytes < 4_000_000


def test_the_same_reference_leads_elsewhere_from_another_page() -> None:
    bases = ["https://a.example/1/x", "https://a.example/2/x", "https://b.example/1/x", "http://a.example/1/x"]
    assert [Joiner(b).join("y") for b in bases] == [b[:-1] + "y" for b in bases]
    assert [Joiner(b).join("/y") for b in bases] == [origin_of(b) + "/y" for b in bases]


_IN_ONE_FOLDER = ["https://h.example/d/p", "https://h.example/d/q?x", "https://h.example/d/?y/z", "https://h.example/d/p?x"]


@pytest.mark.parametrize(
    "reference",
    [
        *("", " ", "?q", " ?q", "\t?q", "#f", " #f", "x", "./x", ".", "..", "\\x", "?", "x?q", "%2e", "\xa0?q", "ü", ";x"),
        *("https:", "https:?q", "https:#f", "https:x", "h\nttps:?q", "HTTPS:?q", "https:/x", "//h.example", "/"),
        *("x:y", "./x:y"),
    ],
)
def test_what_is_known_from_another_page_of_the_folder_holds_on_this_one(reference: str) -> None:
    for base in [*_IN_ONE_FOLDER, *reversed(_IN_ONE_FOLDER)]:
        parsed = URL(reference, base)
        expected = parsed.href.partition("#")[0] if parsed.protocol == "https:" else None
        assert Joiner(base).join(reference) == Joiner.at(base, "utf-8").join(reference) == expected


def test_what_is_known_is_what_joining_gives_and_nothing_in_another_charset() -> None:
    url = "https://h.example/1?%D0%BF"
    assert Joiner.at("https://h.example/a", "utf-8").join("/1?п") == url
    assert Joiner.at("https://h.example/b/c", "utf-8").known["/1?п"] == url
    assert not Joiner.at("https://h.example/b/c", "windows-1251").known
    assert "/1?п" not in Joiner.at("https://i.example/b/c", "utf-8").known


def test_no_more_references_are_remembered_than_fit() -> None:
    tracemalloc.start()
    try:
        for n in range(60_000):
            joiner = Joiner.at(f"https://{n % 40_000}.example/", "utf-8")
            assert joiner.join(f"/{n}") == f"https://{n % 40_000}.example/{n}"
        kept_bytes = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert kept_bytes < 16_000_000


@pytest.mark.parametrize(
    ("charset", "reference", "target"),
    [
        ("windows-1251", "/п?п#п", "https://h.example/%D0%BF?%EF"),
        ("windows-1251", "п", "https://h.example/d/%D0%BF"),
        ("windows-1251", "#п?п", "https://h.example/d/"),
        ("windows-1251", "x#п?п", "https://h.example/d/x"),
        ("windows-1251", "?a=1&b=п漢&c='\"<%D0", "https://h.example/d/?a=1&b=%EF%26%2328450%3B&c=%27%22%3C%D0"),
        ("windows-1251", "\t ?п \t", "https://h.example/d/?%EF"),
        ("windows-1251", "?п #x", "https://h.example/d/?%EF%20"),
        ("windows-1251", "https://u:p@п.example?п", "https://xn--o1a.example/?%EF"),
        ("windows-1251", "mailto:п?п", None),
        ("iso-2022-jp", "?漢\n字", "https://h.example/d/?%1B$B4A;z%1B(B"),
        ("iso-2022-jp", "?#漢", "https://h.example/d/?"),
        ("iso-8859-8-i", "?א", "https://h.example/d/?%E0"),
        ("windows-874", "?ก", "https://h.example/d/?%A1"),
        ("utf-16le", "?п", "https://h.example/d/?%D0%BF"),
        ("utf-16be", "?п", "https://h.example/d/?%D0%BF"),
        ("replacement", "?п", "https://h.example/d/?%D0%BF"),
        ("x-user-defined", "?\uf7ffп", "https://h.example/d/?%FF%26%231087%3B"),
        ("shift_jis", "?№", "https://h.example/d/?%87%82"),
        ("euc-kr", "?갂", "https://h.example/d/?%81A"),
        ("windows-1252", "?\x81\x80", "https://h.example/d/?%81%26%23128%3B"),
        ("big5", "?\x81", "https://h.example/d/?%26%23129%3B"),
        ("no-such-charset", "?п", "https://h.example/d/?%D0%BF"),
    ],
)
def test_only_the_query_is_written_in_the_documents_charset(charset: str, reference: str, target: str | None) -> None:
    assert Joiner("https://h.example/d/", charset).join(reference) == target


_SINGLE_BYTE = [
    *("ibm866", "koi8-r", "koi8-u", "macintosh", "windows-874", "x-mac-cyrillic", "iso-8859-8-i"),
    *(f"iso-8859-{n}" for n in (2, 3, 4, 5, 6, 7, 8, 10, 13, 14, 15, 16)),
    *(f"windows-{n}" for n in range(1250, 1259)),
]


@pytest.mark.parametrize("charset", _SINGLE_BYTE)
def test_a_query_goes_back_in_the_octets_it_was_written_in(charset: str) -> None:
    joiner = Joiner("https://h.example/", charset)
    texts = {octet: decode(bytes([octet]), charset) for octet in range(0x80, 0x100)}
    got = {octet: joiner.join("?" + text) for octet, text in texts.items() if text != "\ufffd"}
    assert got == {octet: f"https://h.example/?%{octet:02X}" for octet in got}
    assert len(got) > 64


@pytest.mark.parametrize(
    ("raw", "target"),
    [
        (b"/caf\xe9", "http://h.example/caf%E9"),
        (b"?q=\xe9", "http://h.example/d/p?q=%E9"),
        ("http://bücher.example/ü".encode(), "http://xn--bcher-kva.example/%C3%BC"),
        (b"http://b\xfccher.example/", None),
        (b" \t/x \t", "http://h.example/x"),
        (b"/a b\tc", "http://h.example/a%20bc"),
        (b"//other.example", "http://other.example/"),
        (b"https://u:p@other.example/#f", "https://other.example/"),
        (b"#f", "http://h.example/d/p?x"),
        (b"", None),
        (b" \t", None),
        (b"data:,x", None),
        (b"https://:443/", None),
    ],
)
def test_a_location_is_used_or_none(raw: bytes, target: str | None) -> None:
    assert resolve_location("http://h.example/d/p?x", raw) == target


@pytest.mark.parametrize(
    ("url", "host", "origin", "path"),
    [
        ("http://a/", "a", "http://a", "/"),
        ("https://a/", "a", "https://a", "/"),
        ("https://example.com:8443/x?y=:@/", "example.com", "https://example.com:8443", "/x?y=:@/"),
        ("http://example.com/a:1?b", "example.com", "http://example.com", "/a:1?b"),
        ("http://[::1]/?", "[::1]", "http://[::1]", "/?"),
        ("https://[2001:db8::1]:444/a", "[2001:db8::1]", "https://[2001:db8::1]:444", "/a"),
        ("http://127.0.0.1:8080/", "127.0.0.1", "http://127.0.0.1:8080", "/"),
    ],
)
def test_the_parts_of_a_normal_form_are_its_slices(url: str, host: str, origin: str, path: str) -> None:
    assert normalise(url) == url
    assert (host_of(url), origin_of(url), path_of(url)) == (host, origin, path)


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("https://example.com", "https://example.com/"),
        ("  HTTP://Example.com:80/a#f\n", "http://example.com/a"),
        ("http:/h.example/a", "http://h.example/a"),
        ("http://bücher.example/", "http://xn--bcher-kva.example/"),
        ("http://@example.com/", "http://example.com/"),
        ("http://example.com/@a:b", "http://example.com/@a:b"),
        ("http://127.0.0.1:8080", "http://127.0.0.1:8080/"),
    ],
)
def test_a_seed_becomes_its_normal_form(text: str, url: str) -> None:
    assert parse_seed(text) == url


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "a seed is empty"),
        (" \n", "a seed is empty"),
        ("example.com", "no scheme; did you mean https://example.com?"),
        ("example.com/a:b?c", "no scheme; did you mean https://example.com/a:b?c?"),
        ("localhost:8080/x", "no scheme; did you mean https://localhost:8080/x?"),
        ("localhost:8080", "no scheme; did you mean https://localhost:8080?"),
        ("//example.com/", "no scheme; did you mean https://example.com/?"),
        ("not a url", "seed 'not a url' has no scheme"),
        ("example.com/\xad", "seed 'example.com/\\xad' has no scheme"),
        ("ftp://example.com/", "not an http or https URL"),
        ("mailto:a@example.com", "not an http or https URL"),
        ("file:///etc/hosts", "not an http or https URL"),
        ("https://", "not a valid URL"),
        ("https://exa mple.com/", "not a valid URL"),
        ("https://example.com:99999/", "not a valid URL"),
        ("https://example.com/\udce9", "not a valid URL"),
        ("https://ex\nam\x00ple.com/", "not a valid URL"),
        ("https://[" + "x" * 10_000, "not a valid URL"),
        ("https://user:secret@example.com/", "'https://example.com/' was given with a user name or password; pass"),
        ("https://user@example.com/#f", "--auth"),
        ("https://:secret@example.com/", "--auth"),
    ],
)
def test_a_wrong_seed_is_told_in_one_line_what_is_wrong(text: str, says: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_seed(text)
    message = str(caught.value)
    assert says in message
    assert message.isprintable()
    assert len(message) < 500
    assert "secret" not in message
