from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlkit.policy.charset import encoding_name
from crawlkit.policy.content_type import HTML, SNIFF_BYTES, XHTML, ContentType, read_content_type, sniff
from tests.shared_cases import suite

PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"


@pytest.mark.parametrize("case", suite("http_content_type"))
def test_content_type_is_read_as_the_fetch_standard_says(case: Any) -> None:
    values = [value.encode("latin-1") for value in case["input"]["headers"]]
    expected = ContentType(case["expected"]["essence"], case["expected"]["charset"])
    assert read_content_type(values) == expected


@pytest.mark.parametrize(
    ("values", "essence", "charset"),
    [
        ([], None, None),
        ([b"text/html;;charset=UTF-8"], "text/html", "utf-8"),
        ([b"Text/HTML"], "text/html", None),
        ([b"text/html;charset=;charset=gbk"], "text/html", "gbk"),
        ([b'text/html;charset="g\\bk";charset=utf-8'], "text/html", "gbk"),
        ([b'text/html;charset="gbk\\'], "text/html", "gbk"),
        ([b'text/html;x="a,b;charset=utf-8";charset=gbk'], "text/html", "gbk"),
        ([b"text/html;charset=gbk, text/html, text/html;charset=utf-8"], "text/html", "utf-8"),
        ([b"text/html;charset=gbk, text/html, text/html"], "text/html", "gbk"),
        ([b"Text/HTML;charset=gbk", b"Text/HTML"], "text/html", "gbk"),
        ([b"text/html;charset=\xe9"], "text/html", None),
        ([b"text /html"], None, None),
    ],
)
def test_content_type_survives_what_servers_send(values: list[bytes], essence: str, charset: str) -> None:
    assert read_content_type(values) == ContentType(essence, charset)


@pytest.mark.parametrize("start", [b"<!DOCTYPE html>", b" \r\n<html >", b"<p>x", b"<!-- x", b"\xef\xbb\xbf<!doctype html>"])
@pytest.mark.parametrize("declared", [None, "unknown/unknown", "application/unknown"])
def test_what_has_no_type_is_html_if_it_starts_so(start: bytes, declared: str | None) -> None:
    assert sniff(start, declared) == HTML


@pytest.mark.parametrize("start", [b"", b"hello <p>", b"<para>", b"<?xml version='1.0'?><rss>", b"%PDF-1.7\n<html>", PNG])
def test_what_has_no_type_is_not_html_if_it_starts_otherwise(start: bytes) -> None:
    assert sniff(start, None) is None


def test_what_has_no_type_is_xhtml_after_an_xml_declaration() -> None:
    assert sniff(b"<?xml version='1.0'?>\n<!-- - -- x -->\n<!DOCTYPE html PUBLIC '-//W3C//DTD XHTML 1.0'>", None) == XHTML
    assert sniff(b"<?xml version='1.0'?><html xmlns='http://www.w3.org/1999/xhtml'>", None) == XHTML


@pytest.mark.parametrize("declared", ["text/plain", "application/xml", "image/png", "application/octet-stream"])
def test_a_declared_type_is_believed(declared: str) -> None:
    assert sniff(b"<!DOCTYPE html>", declared) is None


@pytest.mark.parametrize("declared", [HTML, XHTML])
@pytest.mark.parametrize("body", [b"", b"words", b"<custom-tag>", b"\x1b$B<p>", b"<p>\0", "\ufeff<p>".encode("utf-16-le")])
def test_text_that_is_declared_as_html_is_html(declared: str, body: bytes) -> None:
    assert sniff(body, declared) == declared


@pytest.mark.parametrize("text", ["<html>", " <html>"])
@pytest.mark.parametrize("codec", ["utf-16-le", "utf-16-be"])
def test_utf_16_without_a_byte_order_mark_is_no_binary(text: str, codec: str) -> None:
    assert sniff(text.lstrip().encode(codec), HTML) == HTML


@pytest.mark.parametrize("body", [PNG, b"%PDF-1.5\n\0\1<a href='/x'>", b"\x1f\x8b\x08\0\0\0"])
def test_binary_is_never_html(body: bytes) -> None:
    assert sniff(body, HTML) is None
    assert sniff(body, None) is None


def test_only_the_start_of_a_body_is_looked_at() -> None:
    assert sniff(b"x" * SNIFF_BYTES + b"\0", HTML) == HTML
    assert sniff(b"x" * (SNIFF_BYTES - 1) + b"\0", HTML) is None


PIECES = [
    b"text/html",
    b"TEXT/",
    b"x",
    b"/",
    b";",
    b"charset",
    b"=",
    b"utf-8",
    b"latin1",
    b'"',
    b"'",
    b"\\",
    b",",
    b" ",
    b"\x80",
]


@given(st.lists(st.binary() | st.lists(st.sampled_from([*PIECES, b";charset="])).map(b"".join)))
def test_no_header_raises(values: list[bytes]) -> None:
    found = read_content_type(values)
    assert found.essence is None or (found.essence.count("/"), found.essence) == (1, found.essence.lower())
    assert found.charset is None or encoding_name(found.charset) == found.charset


@given(st.binary(), st.sampled_from([None, HTML, XHTML, "text/plain"]))
def test_no_body_makes_sniffing_raise(body: bytes, declared: str | None) -> None:
    assert sniff(body, declared) in (None, HTML, XHTML)
