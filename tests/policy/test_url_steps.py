"""The steps from text to normal form: named one by one, and none where nothing changed."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from crawlkit.policy.url_steps import NoUrl, UrlStep, read_url
from crawlkit.policy.urls import normalise

U = UrlStep

CASES: list[tuple[str, str, list[tuple[UrlStep, str, str]]]] = [
    ("http://a.test/", "http://a.test/", []),
    ("http://a.test/%7e?q=%zz&&", "http://a.test/%7e?q=%zz&&", []),
    (" http://a.test/\n", "http://a.test/", [(U.SPACE, " http://a.test/\n", "http://a.test/")]),
    ("http://a.te\tst/x", "http://a.test/x", [(U.SPACE, "http://a.te\tst/x", "http://a.test/x")]),
    ("HTTP://a.test/", "http://a.test/", [(U.SCHEME, "HTTP", "http")]),
    ("http:\\\\a.test\\x", "http://a.test/x", [(U.SLASHES, "\\\\\\x", "///x")]),
    ("http:a.test/", "http://a.test/", [(U.SLASHES, "/", "///")]),
    ("http:////a.test/", "http://a.test/", [(U.SLASHES, "/////", "///")]),
    ("http://u:secret@a.test/", "http://a.test/", [(U.USER_INFO, "***@", "")]),
    ("http://A.TEST/", "http://a.test/", [(U.HOST_CASE, "A.TEST", "a.test")]),
    ("http://bücher.de/", "http://xn--bcher-kva.de/", [(U.HOST_IDN, "bücher.de", "xn--bcher-kva.de")]),
    ("http://0x7f.1/", "http://127.0.0.1/", [(U.HOST_FORM, "0x7f.1", "127.0.0.1")]),
    ("http://%61.test/", "http://a.test/", [(U.HOST_FORM, "%61.test", "a.test")]),
    ("http://a.test:80/", "http://a.test/", [(U.PORT, ":80", "")]),
    ("https://a.test:0443/", "https://a.test/", [(U.PORT, ":0443", "")]),
    ("http://a.test:08080/", "http://a.test:8080/", [(U.PORT, ":08080", ":8080")]),
    ("http://[::1]:80/", "http://[::1]/", [(U.PORT, ":80", "")]),
    ("http://[0::1]:8080/", "http://[::1]:8080/", [(U.HOST_FORM, "[0::1]", "[::1]")]),
    ("http://a.test", "http://a.test/", [(U.ROOT, "", "/")]),
    ("http://a.test?x", "http://a.test/?x", [(U.ROOT, "", "/")]),
    ("http://a.test/b/../c/./d", "http://a.test/c/d", [(U.DOTS, "/b/../c/./d", "/c/d")]),
    ("http://a.test/b/%2E%2e", "http://a.test/", [(U.DOTS, "/b/%2E%2e", "/")]),
    ("http://a.test/../..", "http://a.test/", [(U.DOTS, "/../..", "/")]),
    ("http://a.test/a//../b/.", "http://a.test/a/b/", [(U.DOTS, "/a//../b/.", "/a/b/")]),
    ("http://a.test/ä b", "http://a.test/%C3%A4%20b", [(U.ENCODED, "/ä b", "/%C3%A4%20b")]),
    ("http://a.test/#top", "http://a.test/", [(U.FRAGMENT, "#top", "")]),
    (
        "HTTPS://me@Ex.test:443/x/..#f",
        "https://ex.test/",
        [
            (U.SCHEME, "HTTPS", "https"),
            (U.USER_INFO, "***@", ""),
            (U.HOST_CASE, "Ex.test", "ex.test"),
            (U.PORT, ":443", ""),
            (U.DOTS, "/x/..", "/"),
            (U.FRAGMENT, "#f", ""),
        ],
    ),
]


@pytest.mark.parametrize(("text", "url", "steps"), CASES, ids=[text for text, *_ in CASES])
def test_each_step_is_named_with_what_stood_there(text: str, url: str, steps: list[tuple[UrlStep, str, str]]) -> None:
    reading = read_url(text)
    assert reading.url == url
    assert [(step.step, step.before, step.after) for step in reading.steps] == steps


def test_every_step_has_a_case() -> None:
    assert {step for *_, steps in CASES for step, *_ in steps} == set(UrlStep)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("mailto:me@a.test", NoUrl.SCHEME),
        (" FTP://a.test/", NoUrl.SCHEME),
        ("javascript:void(0)", NoUrl.SCHEME),
        ("", NoUrl.INVALID),
        ("a.test/x", NoUrl.INVALID),
        ("localhost:8080/x", NoUrl.INVALID),
        ("/x", NoUrl.INVALID),
        ("http://", NoUrl.INVALID),
        ("http://a.test:99999/", NoUrl.INVALID),
        ("http://a b/", NoUrl.INVALID),
    ],
)
def test_what_is_no_url_of_a_crawl_says_why(text: str, problem: NoUrl) -> None:
    reading = read_url(text)
    assert (reading.url, reading.steps, reading.problem) == (None, (), problem)


_PIECES = [
    "http:", "HTTPS:", "//", "/", "\\", "@", ":", "?", "#", ".", "..", "%2e", "[::1]", "127.1", ":80", ":443", "a.test",
    "B.test", "ü", " ", "\t", "\n", "\0", "\ud800", "x", "'", "|",
]  # fmt: skip
_TEXT = st.lists(st.sampled_from(_PIECES), max_size=10).map("".join)


@given(st.one_of(_TEXT, _TEXT.map(lambda text: f"http://{text}"), st.text()))
@example("http://a.test/\n")
@example("http://@a.test/")
@example("http://a.test:/")
def test_there_are_steps_exactly_where_something_changed(text: str) -> None:
    reading = read_url(text)
    assert reading.url == normalise(text)
    assert (reading.problem is None) == (reading.url is not None)
    if reading.url is not None:
        assert (not reading.steps) == (reading.url == text)
        assert read_url(reading.url).steps == ()
        assert len({step.step for step in reading.steps}) == len(reading.steps)
