import base64
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from webencodings.labels import LABELS

from crawlkit.policy.charset import FALLBACK, PRESCAN_BYTES, decode, detect, encoding_name, prescan
from crawlkit.policy.content_type import read_content_type
from tests.shared_cases import bugs, suite

NAMES = sorted(set(LABELS.values()))

# Optional cases where we do what the case calls fine as well.
NOT_OURS = frozenset(
    {
        "w3e-b115",  # "get an XML encoding", since 2021 the end of the prescan (HTML Standard section 13.2.3.2)
        "w3e-u125",  # nothing declared, and UTF-8 by its bytes
        "w3e-u126",  # the same
        "wpt-enc-3",  # the same
    }
)


def _body(given_input: Any) -> bytes:
    if "body_b64" in given_input:
        return base64.b64decode(given_input["body_b64"])
    return str(given_input["body"]).encode()


def _header_charset(given_input: Any) -> str | None:
    value = given_input.get("content_type")
    return read_content_type([value.encode()]).charset if value else None


@pytest.mark.parametrize("case", suite("encoding", leave_out=NOT_OURS))
def test_encoding_is_found_as_browsers_find_it(case: Any) -> None:
    given_input, expected = case["input"], case["expected"]
    if "http_charset" in expected:
        assert _header_charset(given_input) == expected["http_charset"]
        return
    body = _body(given_input)
    if "declared" in expected:
        assert prescan(body[:PRESCAN_BYTES]) == expected["declared"]
        return
    encoding = detect(body, _header_charset(given_input))
    assert encoding == expected["encoding"]
    if "text" in expected:
        assert decode(body, encoding) == expected["text"]


# chr-11 is about links (test_facts), chr-14 gives a template: it is below.
@pytest.mark.parametrize("case", bugs("charset", leave_out=frozenset({"chr-11", "chr-14"})))
def test_charset_bugs_of_other_crawlers(case: Any) -> None:
    body = _body(case["input"])
    encoding = detect(body, _header_charset(case["input"]))
    assert encoding == case["expected"]["encoding"]
    assert case["expected"]["text_contains"] in decode(body, encoding)


@pytest.mark.parametrize("case", [c for c in bugs("charset") if c.id == "chr-14"])
def test_a_declaration_below_the_first_kilobyte_counts(case: Any) -> None:
    body = b"<!doctype html><!-- " + b"x" * 2000 + b' --><meta charset="gbk"><p>\xbc\xd2'
    encoding = detect(body, None)
    assert encoding == case["expected"]["encoding"]
    assert case["expected"]["text_contains"] in decode(body, encoding)


@pytest.mark.parametrize(
    ("label", "name"),
    [("Latin1", "windows-1252"), (" ascii\n", "windows-1252"), ("gb2312", "gbk"), ("utf-7", None), ("\u212aoi8", None)],
)
def test_labels_are_the_standards_not_pythons(label: str, name: str | None) -> None:
    assert encoding_name(label) == name


@pytest.mark.parametrize(
    ("body", "header", "encoding"),
    [
        (b"\xff\xfe<\0", "utf-8", "utf-16le"),
        (b"<meta charset=gbk>", "koi8-r", "koi8-r"),
        (b"<meta charset=gbk>", "nonsense", "gbk"),
        (b"<meta charset=nonsense>", None, FALLBACK),
        (b"<meta charset=utf-16>", None, "utf-8"),
        (b"<meta charset=x-user-defined>", None, FALLBACK),
        (b"<\0?\0x\0m\0l\0", None, "utf-16le"),
        (b"\0<\0?\0x\0m\0l", None, "utf-16be"),
        (b"<?xml version='1.0' encoding = 'koi8-r' ?>", None, "koi8-r"),
        (b"<?xml encoding='koi8-r'?><meta charset=gbk>", None, "gbk"),
        (b" <?xml encoding='koi8-r'?>", None, FALLBACK),
        (b"", None, FALLBACK),
    ],
)
def test_what_is_declared_is_taken_in_the_standards_order(body: bytes, header: str | None, encoding: str) -> None:
    assert detect(body, header) == encoding


@pytest.mark.parametrize(
    "markup",
    [
        b"<metax charset=gbk>",
        b"<meta charset='gbk>",
        b"<meta charset=gbk",
        b"<meta charset=gbk x",
        b"<!-- <meta charset=gbk> ",
        b"<a title='<meta charset=gbk>'>",
        b"</a title='<meta charset=gbk>'>",
        b"<? <meta charset=gbk>",
        b"<meta content='charset=gbk'>",
        b"<meta http-equiv=refresh content='charset=gbk'>",
        b"<meta http-equiv=content-type content='charset=&quot;gbk'>",
    ],
)
def test_what_only_looks_like_a_declaration_is_none(markup: bytes) -> None:
    assert prescan(markup) is None


@pytest.mark.parametrize(
    "markup",
    [
        b"<!--><meta charset=gbk>",
        b"<META/charset=gbk />",
        b"<meta charset=gbk charset=utf-8>",
        b"<meta content='text/html; charset=gbk' http-equiv=Content-Type>",
        b"<meta http-equiv=content-type content='charset charset = \"gbk\"'>",
        b"<a title='>'><meta name=x charset=gbk>",
        b"<!x><meta charset=gbk>",
        b"< <meta charset=gbk>",
    ],
)
def test_a_declaration_is_found_where_the_standard_finds_it(markup: bytes) -> None:
    assert prescan(markup) == "gbk"


_BEGINNINGS = st.lists(
    st.sampled_from(
        [
            *(
                "<!doctype html>",
                "<!DOCTYPE>",
                "<!doctype",
                "<html>",
                '<html lang="en" x:y="a">',
                "<html lang=en>",
                "<html a='>'>",
            ),
            *("<head>", "<head x>", "\n", " ", "<meta charset=utf-8>", '<META\nCHARSET="UTF-8" />', "<meta charset='utf-8'x>"),
            *(
                "<meta charset=utf-8/>",
                "<meta charset=utf-8",
                '<meta charset="utf-8"',
                "<meta charset=koi8-r>",
                "<meta x>",
                "<!--",
                "-->",
            ),
        ]
    ),
    max_size=7,
).map(lambda pieces: "".join(pieces).encode())


@given(_BEGINNINGS)
def test_a_plain_beginning_declares_what_the_prescan_finds(head: bytes) -> None:
    assert detect(head, None) == (prescan(head) or FALLBACK)
    late = b"<!doctype html>" + b" " * (PRESCAN_BYTES - 30) + head
    assert detect(late, None) == (prescan(late[:PRESCAN_BYTES]) or prescan(late) or FALLBACK)


def test_undeclared_utf_8_is_found_even_if_its_last_character_is_cut() -> None:
    assert detect("<p>é€".encode(), None) == "utf-8"
    assert detect("<p>é€".encode()[:-1], None) == "utf-8"


def test_undeclared_latin_1_is_not_taken_for_utf_8() -> None:
    assert detect("<p>café</p>".encode("latin-1"), None) == FALLBACK
    assert detect("<p>café".encode("latin-1"), None) == FALLBACK


@pytest.mark.parametrize(
    ("body", "encoding", "text"),
    [
        (b"\x81\x8d\x80", "windows-1252", "\x81\x8d\u20ac"),
        (b"\xd2\x9f", "windows-1253", "\ufffd\x9f"),
        (b"\x81\x30\x81\x30", "gbk", "\x80"),
        (b"\x87\x40", "shift_jis", "\u2460"),
        (b"\x81\x41", "euc-kr", "\uac02"),
        (b"\x80\xff", "x-user-defined", "\uf780\uf7ff"),
        (b"\x1b$)C<p>", "replacement", "\ufffd"),
        (b"", "replacement", ""),
        (b"\xe0", "iso-8859-8-i", "\u05d0"),
        (b"\xef\xbb\xbfa", "utf-8", "a"),
        (b"\xff\xfea\0\0", "utf-16le", "a\ufffd"),
        (b"a\xff", "utf-8", "a\ufffd"),
        (b"\x93", "no such encoding", "\u201c"),
    ],
)
def test_bytes_are_decoded_as_the_encoding_standard_says(body: bytes, encoding: str, text: str) -> None:
    assert decode(body, encoding) == text


@pytest.mark.parametrize("name", [n for n in NAMES if n.startswith(("windows-", "iso-8859-", "koi8-"))])
def test_a_single_byte_encoding_gives_a_character_a_byte(name: str) -> None:
    text = decode(bytes(range(256)), name)
    assert len(text) == 256
    assert "\ufffd" not in text[:0xA0]


@given(st.binary(), st.none() | st.sampled_from(NAMES) | st.text())
def test_no_body_makes_detection_raise_and_its_answer_decodes(body: bytes, header_charset: str | None) -> None:
    encoding = detect(body, header_charset)
    assert encoding in NAMES
    decode(body, encoding).encode()


@given(st.binary(), st.sampled_from(NAMES))
def test_no_body_makes_decoding_raise(body: bytes, encoding: str) -> None:
    text = decode(body, encoding)
    assert text.encode().decode() == text


PIECES = [b"<meta ", b"<META/", b"</", b"<!--", b"-->", b"<?xml ", b">", b"=", b'"', b"'", b" ", b"charset", b"content"]
PIECES += [b"http-equiv=content-type", b"encoding", b"utf-8", b"gbk", b"utf-16", b"x-user-defined", b"\xff", b"a", b"<"]


@given(st.lists(st.sampled_from(PIECES), max_size=30).map(b"".join))
def test_no_markup_makes_the_prescan_raise(head: bytes) -> None:
    assert prescan(head) in {None, "utf-8", "gbk", FALLBACK}


@given(st.text(min_size=1))
def test_text_survives_utf_8_and_utf_16(text: str) -> None:
    plain = text.lstrip("\ufeff")
    assert decode(plain.encode(), "utf-8") == plain
    assert decode(("\ufeff" + plain).encode("utf-16-be"), "utf-16be") == plain
