"""Sort-friendly URLs: what the wayback machine's canonicaliser (package surt 0.3.1) makes of the same URLs."""

import hypothesis.strategies as st
import pytest
from hypothesis import given

from crawlkit.archive.surt import surt_of


@pytest.mark.parametrize(
    ("url", "key"),
    [
        ("http://www.example.com/Path/?b=2&a=1", "com,example)/path?a=1&b=2"),
        ("https://example.com:8443/", "com,example:8443)/"),
        ("http://127.0.0.1:8000/a", "1,0,0,127:8000)/a"),
        ("http://www3.b.example.com/A/", "com,example,b)/a"),
        ("http://wwwx.test/", "test,wwwx)/"),
        ("http://xn--bcher-kva.de/%7Efoo?sid=9682993c8daa2c5497996114facdc805", "de,xn--bcher-kva)/~foo"),
        ("http://a.test/?x&sid=9682993c8daa2c5497996114facdc805&b", "test,a)/?b&x"),
        ("http://a.test/x|y[z]?q=%e9", "test,a)/x|y[z]?q=%e9"),
        ("http://a.test/%252541", "test,a)/a"),
        ("http://a.test//b///c//", "test,a)/b/c"),
        ("http://a.test/=/a%2F..", "test,a)/="),
        ("http://a.test/?", "test,a)/"),
        ("http://a.test/?B=1&a&b=0", "test,a)/?a&b=0&b=1"),
        ("http://a.test/(S(abcdefghijklmnopqrstuvwx))/p.aspx", "test,a)/p.aspx"),
    ],
)
def test_a_key_is_that_of_the_wayback_machine(url: str, key: str) -> None:
    assert surt_of(url) == key


@given(
    st.lists(st.sampled_from(["a", "B", "/", "%2F", "%25", "%", "%e9", "?", "&", "=", ".", "..", "+", "%20", "é"]), max_size=12)
)
def test_a_key_is_one_word_of_ascii(parts: list[str]) -> None:
    key = surt_of("http://www.a.test/" + "".join(parts))
    assert key.isascii()
    assert key.startswith("test,a)/")
    assert not any(char.isspace() for char in key)
