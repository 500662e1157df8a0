"""Items of repeatable settings: networks, headers, places of secrets."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlkit.config import Config
from crawlkit.config_items import (
    SECRET_HEADERS,
    Credential,
    Header,
    SecretPlace,
    check_credential,
    check_header,
    parse_credential,
    parse_header,
    parse_networks,
)
from crawlkit.errors import ConfigError


@pytest.mark.parametrize(
    ("text", "regular"),
    [
        ("10.0.0.0/8", "10.0.0.0/8"), (" 10.0.0.7 ", "10.0.0.7/32"), ("FD00::/8", "fd00::/8"), ("::1", "::1/128"),
        ("10.0.0.0/255.0.0.0", "10.0.0.0/8"), ("All", "all"),
    ],
)  # fmt: skip
def test_a_network_is_an_address_with_its_leading_bits_or_all(text: str, regular: str) -> None:
    assert Config(allow_private=(text,)).allow_private == (regular,)


@pytest.mark.parametrize("text", ["10.0.0.1/8", "10.0.0.0/33", "localhost", "http://10.0.0.1/", "7", "none", "[::1]"])
def test_another_network_is_refused_and_shown(text: str) -> None:
    with pytest.raises(ConfigError, match=r"allow_private: expected a network like 10\.0\.0\.0/8") as caught:
        Config(allow_private=(text,))
    assert repr(text) in str(caught.value)


def test_all_networks_are_both_families() -> None:
    assert [str(network) for network in parse_networks(("10.0.0.0/8", "all"))] == ["0.0.0.0/0", "::/0"]


@pytest.mark.parametrize(
    ("text", "regular"),
    [
        ("Accept-Language: de", "Accept-Language: de"), ("x-a:1", "x-a: 1"), (" X: a, b;q=0.5\tc ", "X: a, b;q=0.5\tc"),
        ("Cookie2: a=b; c=d", "Cookie2: a=b; c=d"), ("Cookie:env:A", "Cookie: env:A"), ("X: a: b", "X: a: b"),
    ],
)  # fmt: skip
def test_a_header_is_a_token_and_a_value(text: str, regular: str) -> None:
    assert check_header(text) == regular == check_header(regular)


@pytest.mark.parametrize(
    "text",
    [
        "X", "X:", "X: ", ": 1", "X Y: 1", "X : 1", "Ü: 1", "X: ü", "X: a\rY: b", "X: a\nY: b", "X: a\r\n b", "X: \0",
        "X: a\x7f", "X(: 1",
    ],
)  # fmt: skip
def test_what_would_not_be_one_header_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="NAME: VALUE, one line"):
        check_header(text)


@pytest.mark.parametrize(
    "name",
    ["Host", "content-length", "Transfer-Encoding", "CONNECTION", "Accept-Encoding", "Expect", "TE", "Range", "If-None-Match"],
)
def test_headers_that_are_the_crawler_s_own_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match="the crawler's own"):
        check_header(f"{name}: 1")


@pytest.mark.parametrize(
    ("name", "setting"),
    [("Authorization", "auth"), ("User-Agent", "user_agent"), ("From", "contact"), ("Proxy-Authorization", "proxy_auth")],
)
def test_headers_with_a_setting_of_their_own_are_refused_by_its_name(name: str, setting: str) -> None:
    with pytest.raises(ValueError, match=f"the setting {setting}$"):
        check_header(f"{name}: 1")


@pytest.mark.parametrize(
    ("item", "header"),
    [
        ("Accept-Language: de", Header("Accept-Language", "de")),
        ("X: env:A_1", Header("X", None, SecretPlace.ENV, "A_1")),
        ("Cookie: file:/a b/c:d", Header("Cookie", None, SecretPlace.FILE, "/a b/c:d")),
        ("X: env: A", Header("X", "env: A")),
        ("X: environment", Header("X", "environment")),
    ],
)
def test_a_header_has_its_value_or_where_that_is(item: str, header: Header) -> None:
    assert parse_header(check_header(item)) == header


@pytest.mark.parametrize("name", sorted(SECRET_HEADERS))
def test_headers_known_for_secrets_take_only_a_reference_and_say_so(name: str) -> None:
    with pytest.raises(ValueError, match=f"^{name.title()}: env:NAME or {name.title()}: file:PATH") as caught:
        check_header(f"{name.title()}: hunter2")
    assert "hunter" not in str(caught.value)
    assert check_header(f"{name}: env:TOKEN") == f"{name}: env:TOKEN"


@pytest.mark.parametrize(
    ("text", "credential"),
    [
        ("A.example=env:TOKEN", Credential("a.example", SecretPlace.ENV, "TOKEN")),
        (" a.example=file:/a b/=:c ", Credential("a.example", SecretPlace.FILE, "/a b/=:c")),
        ("[0::1]=env:_a1", Credential("::1", SecretPlace.ENV, "_a1")),
        ("127.0.0.1=env:A", Credential("127.0.0.1", SecretPlace.ENV, "A")),
    ],
)
def test_a_credential_is_a_host_and_where_its_secret_is(text: str, credential: Credential) -> None:
    assert parse_credential(text) == credential == parse_credential(check_credential(text))


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("auth", "a.example=me:hunter2"),
        ("auth", "a.example=env:hunter 2"),
        ("auth", "a.example:80=env:hunter2"),
        ("auth", "bücher.example=env:hunter2"),
        ("auth", "hunter2"),
        ("header", "Authorization: Basic hunter2"),
        ("header", "Token hunter2"),
        ("header", "Cookie: session=hunter2"),
        ("header", "x-api-key: hunter2"),
        ("header", "X-Auth-Token: env:hunter 2"),
    ],
)
def test_a_wrong_item_that_may_hold_a_secret_is_not_shown(key: str, text: str) -> None:
    values: dict[str, Any] = {key: (text,)}
    with pytest.raises(ConfigError, match=f"^{key}: expected ") as caught:
        Config(**values)
    assert "hunter" not in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "http://me:hunter2@proxy.test:3128", "https://hunter2@proxy.test", "me:hunter2@proxy.test", "hunter2:3128",
        "socks5://hunter2", "http://hunter2/x", "http://hunter2:0", "http://hunter2:65536", "http://[hunter2]",
        "http://hunter2.test:3128?x", "http://h\u00fcnter2hunter2/",
    ],
)  # fmt: skip
def test_a_proxy_is_the_url_of_a_host_and_a_password_in_it_is_refused_with_the_way_out(text: str) -> None:
    with pytest.raises(ConfigError, match=r"^proxy: expected ") as caught:
        Config(proxy=text)
    assert ("proxy_auth, as env:NAME or file:PATH" in str(caught.value)) == ("@" in text)
    assert "hunter" not in str(caught.value)


@pytest.mark.parametrize("text", ["me:hunter2", "env:", "env:hunter 2", "file:", "a.test=env:hunter2", "ENV:hunter2"])
def test_the_place_of_the_proxy_s_secret_is_a_variable_or_a_file(text: str) -> None:
    with pytest.raises(ConfigError, match=r"^proxy_auth: expected env:NAME or file:PATH.*not shown") as caught:
        Config(proxy_auth=text)
    assert "hunter" not in str(caught.value)


@given(st.text() | st.from_regex(r"[!-~]{1,9}: ?[ -~\r\n]{0,9}"))
def test_no_header_that_is_taken_holds_more_than_one_line(text: str) -> None:
    try:
        taken = check_header(text)
    except ValueError:
        return
    assert taken.isascii()
    assert not set(taken) & set("\r\n\0")
