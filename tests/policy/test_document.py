"""What a document's beginning tells plainly is what looking at all of it tells."""

from hypothesis import example, given
from hypothesis import strategies as st

from crawlkit.policy.charset import detect
from crawlkit.policy.content_type import ContentType, sniff
from crawlkit.policy.document import markup_of

_TAGS = (
    "<!DOCTYPE html>|<!doctype html public '>'>|<html lang='en'>|<html>|<head>|<title>t</title>|<!-- > -->|<p>"
    "|<meta charset=utf-8>|<meta charset='UTF-8' />|<meta charset=latin1>"
    "|<meta http-equiv=content-type content='text/html; charset=koi8-r'>"
    "|<?xml version='1.0' encoding='koi8-r'?>"
)
_OTHERS = "\xef\xbb\xbf|\xff\xfe|\xfe\xff|<|>| |\n|\x0b|\0|\x01|charset|\xc3\xa9|\xe9"
_PIECES = st.sampled_from([*f"{_TAGS}|{_OTHERS}".encode("latin-1").split(b"|"), b" " * 600, b" " * 900])
_TYPES = st.sampled_from(["text/html", "application/xhtml+xml", "unknown/unknown", "text/plain", None])
_CHARSETS = st.sampled_from([None, "utf-8", "windows-1252", "utf-16le"])


@given(st.lists(_PIECES, max_size=8).map(b"".join), st.builds(ContentType, _TYPES, _CHARSETS))
@example(b"\xef\xbb\xbf" + b" " * 2000 + b"<html>", ContentType("text/html", "windows-1252"))
def test_type_and_encoding_are_those_of_the_whole_document(body: bytes, declared: ContentType) -> None:
    markup = markup_of(body, declared)
    if sniff(body, declared.essence) is None:
        assert markup is None
    else:
        assert markup is not None
        assert markup.charset == detect(body, declared.charset)
