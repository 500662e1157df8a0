"""Our request and answer stand in for httpx's: they have all that its constructors set."""

import asyncio

import httpx
import pytest

from crawlkit.net.request import Get, Origin, Received, fields_of, lines_of

URL = "http://h.example/a?b"
FIELDS = [(b"Content-Type", b"text/html"), (b"X", b"1"), (b"X", b"2")]


def _get() -> Get:
    headers = httpx.Headers([(b"Host", b"h.example")])
    return Get(URL, Origin.of(URL), b"/a?b", headers, lines_of(headers))


def test_a_get_is_what_httpx_would_have_made() -> None:
    made = httpx.Request(
        "GET", URL, headers=[(b"Host", b"h.example")], stream=httpx.ByteStream(b""), extensions={"target": b"/a?b"}
    )
    ours = _get()
    for name in vars(made).keys() - {"stream"}:
        assert getattr(ours, name) == getattr(made, name), name
    assert isinstance(ours.stream, httpx.AsyncByteStream)


@pytest.mark.parametrize("looked_at", [False, True])
def test_an_answer_is_what_httpx_would_have_made(looked_at: bool) -> None:
    request, stream = _get(), httpx.ByteStream(b"body")
    made = httpx.Response(200, headers=FIELDS, stream=stream, request=request, extensions={"a": b"b"})
    ours = Received(200, FIELDS, stream, request, {"a": b"b"})
    if looked_at:
        for name in vars(made):
            assert getattr(ours, name) == getattr(made, name), name
    assert fields_of(ours) == fields_of(made) == FIELDS
    assert asyncio.run(ours.aread()) == b"body"
    assert ours.text == "body"


def test_headers_that_would_be_others_on_the_wire_are_refused() -> None:
    assert lines_of(httpx.Headers([(b"A", b"1"), (b"a", b"2")])) == b"A: 1\r\na: 2\r\n"
    with pytest.raises(httpx.LocalProtocolError):
        lines_of(httpx.Headers([(b"A", b"1\r\nB: 2")]))
