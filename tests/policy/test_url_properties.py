"""What holds of every text: nothing raises, normalising twice changes nothing, the parts of a URL make the whole."""

from urllib.parse import quote_from_bytes

from ada_url import URL
from hypothesis import example, given
from hypothesis import strategies as st

from crawlkit.errors import UsageError
from crawlkit.policy.urls import Joiner, host_of, normalise, origin_of, parse_seed, path_of, resolve_location

_PIECES = [
    "http:", "https:", "HTTP:", "ftp:", "javascript:", "//", "/", "\\", "@", ":", "?", "#", ".", "..", "%2e", "%2F",
    "%", "[::1]", "127.1", "0x7f", ":80", ":443", ":8080", "example.com", "xn--", "bücher", "ß", "\u3002", "\u00ad",
    "a", "'", " ", "\t", "\n", "\0", "\ud800", "é", "漢", "&", "=", "|",
]  # fmt: skip
_SURROGATES = st.text(st.characters(codec=None))
_TEXT = st.one_of(st.lists(st.sampled_from(_PIECES), max_size=12).map("".join), st.text(), _SURROGATES)
_LIKELY = st.tuples(st.sampled_from(["http://", "https://"]), _TEXT).map("".join)
_BASES = st.sampled_from(
    [
        "http://example.com/a/b?c",
        "https://example.com:8443/",
        "https://[::1]/x/",
        "file:///a/b",
        "data:,x",
        "no base",
        "",
    ]
)
_CHARSETS = st.sampled_from(["utf-8", "windows-1252", "shift_jis", "iso-2022-jp", "gb18030", "big5", "utf-16le"])


@given(st.one_of(_TEXT, _LIKELY))
@example("http://a%25/")
@example("http://xn--/")
def test_normalising_never_raises_and_is_idempotent(text: str) -> None:
    url = normalise(text)
    if url is not None:
        assert normalise(url) == url
        assert url.isascii()
        assert "#" not in url


@given(_LIKELY)
def test_the_parts_of_a_normal_form_are_what_the_parser_says(text: str) -> None:
    url = normalise(text)
    if url is None:
        return
    parsed = URL(url)
    assert host_of(url) == parsed.hostname
    assert origin_of(url) == parsed.origin
    assert origin_of(url) + path_of(url) == url
    assert (parsed.username, parsed.password, parsed.hash) == ("", "", "")


@given(_BASES, _TEXT, _CHARSETS)
def test_joining_never_raises_and_gives_normal_forms(base: str, reference: str, charset: str) -> None:
    url = Joiner(base, charset).join(reference)
    assert url is None or normalise(url) == url


@given(_BASES, st.one_of(_TEXT, _LIKELY))
def test_joining_gives_what_the_parser_gives_without_fragment_and_credentials(base: str, reference: str) -> None:
    try:
        parsed = URL(reference, base)
        parsed.username = parsed.password = ""
    except ValueError:
        return
    expected = parsed.href.partition("#")[0] if parsed.protocol in ("http:", "https:") else None
    assert Joiner(base).join(reference) == expected


_HOSTS = st.lists(
    st.sampled_from(["a", "b-", "-c", "xn--", "xn--a", "0x1", "1", "A", "example", "com", "c1", "x--n", "_", "a:1", ""]),
    max_size=4,
).map(".".join)
_RESTS = st.text(alphabet="//..aB?#%'|^~!$&()*+,;=:@_-\"<>`{}[]\\ \n", max_size=12)


@given(st.sampled_from(["http", "https"]), _HOSTS, _RESTS)
def test_what_is_plain_is_what_the_parser_gives(scheme: str, host: str, rest: str) -> None:
    for text, base in ((f"{scheme}://{host}/{rest}", None), (f"/{rest}", f"{scheme}://h.example:1/x")):
        try:
            parsed = URL(text) if base is None else URL(text, base)
            parsed.username = parsed.password = ""
            expected = parsed.href.partition("#")[0]
        except ValueError:
            expected = None
        assert (normalise(text) if base is None else Joiner(base).join(text)) == expected


@given(_TEXT, _CHARSETS)
def test_the_charset_changes_nothing_before_the_query(reference: str, charset: str) -> None:
    base = "https://example.com/a/b"
    in_utf8, in_charset = Joiner(base).join(reference), Joiner(base, charset).join(reference)
    if in_utf8 is not None:
        assert in_charset is not None
        assert in_charset.partition("?")[0] == in_utf8.partition("?")[0]


@given(st.binary())
def test_a_location_of_any_octets_is_a_target_or_none(raw: bytes) -> None:
    url = resolve_location("http://example.com/a/b", raw)
    assert url is None or normalise(url) == url


@given(st.binary().filter(lambda raw: not raw.isascii()))
def test_the_octets_of_a_location_come_back_as_they_were(raw: bytes) -> None:
    octets = bytes(b for b in raw if b >= 0x80)
    assert resolve_location("http://example.com/", b"/" + octets) == "http://example.com/" + quote_from_bytes(octets)


@given(st.one_of(_TEXT, _LIKELY))
def test_a_seed_is_a_normal_form_or_a_usage_error(text: str) -> None:
    try:
        url = parse_seed(text)
    except UsageError as error:
        said = str(error)
    else:
        said = ""
        assert normalise(text) == url
    assert said.isprintable()
