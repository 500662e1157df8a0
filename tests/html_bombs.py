"""Pages made to hurt a parser: each as large as a body may be by default, or as small as does harm."""

from collections.abc import Callable

_LARGE = 10 * 1024 * 1024


def _filled(unit: bytes, start: bytes = b"") -> Callable[[], bytes]:
    return lambda: (start + unit * (_LARGE // len(unit)))[:_LARGE]


def _numbered(unit: bytes, times: int, start: bytes = b"") -> Callable[[], bytes]:
    return lambda: start + b"".join([unit % number for number in range(times)])


def _three_of_each() -> bytes:
    names = b"b big code em font i nobr s small strike strong tt u".split()
    return b"".join([b"<%b>" % name * 3 for name in names])


def _mixed_up() -> bytes:
    """Closing a formatting element deep down moves what is in between: at 4,000 tags this takes 2.5 s."""
    return _three_of_each() + b"<h2></option><div>x" * 1_300 + b"</code><option>" * 1_300


BOMBS: dict[str, Callable[[], bytes]] = {
    # depth
    "div": _filled(b"<div>"),
    "20,000 div": lambda: b"<div>" * 20_000,
    "svg": _filled(b"<g>", b"<svg>"),
    "template": _filled(b"<template>"),
    # formatting elements
    "few formatting": _numbered(b"<p><b a=%d>", 2_000),
    "formatting": _numbered(b"<p><b a=%d>", 700_000),
    "formatting in svg": _numbered(b"<b a=%d><svg><p>", 3_300),
    "formatting and blocks": lambda: _numbered(b"<b a=%d><div>", 3_300)() + b"</b>" * 3_300,
    "three of each": lambda: _three_of_each() + b"<p>x" * 2_500_000,
    "mixed up": _mixed_up,
    "nested links": _numbered(b"<a href=%d><div>", 500_000),
    # many small things
    "abbr": _filled(b"<abbr>"),
    "lt": _filled(b"<"),
    "lt and space": _filled(b"< "),
    "dashes": _filled(b"-", b"<!--"),
    "textareas": _filled(b"<textarea>x</textarea>"),
    "ends in a script": _filled(b"</s", b"<script>"),
    "NUL": _filled(b"\0"),
    "option": _filled(b"<option>", b"<select><button><selectedcontent></button>"),
    # attributes
    "attributes": _numbered(b" a%d", 1_300_000, b"<a"),
    "attributes of many": _filled(b"<a a b c d e f g h i j k l m n o p q r s t u v w x y z>"),
    "empty values": _filled(b"a= ", b"<a "),
    "one value": _filled(b"a ", b'<a href="'),
    "open quotes": _filled(b'<a b="'),
    "laden formatting": lambda: b"<p><b" + b"".join([b" a%d" % n for n in range(4_000)]) + b">" + b"<p>x" * 400,
    "laden link": lambda: b"<p><a" + b"".join([b" a%d='>'" % n for n in range(2_000)]) + b">" + b"<p>x" * 500,
    # as much as has its tree
    "deep": lambda: b"<div>" * 580 + b"</section>" * 99_000,
    "wide": lambda: b"<p a b c d e f g h>" * 53_000 + "\U0001f600".encode() * 50_000,
    "much text": lambda: b"<br>" * 90_000 + "\U0001f600".encode() * 900_000,
    # links
    "links": _numbered(b"<a href=%d>", 900_000),
    "long links": _numbered(b'<a href="/%d' + b" " * 60_000 + b'">', 170),
    "canonical": _numbered(b"<link rel=canonical href=mailto:%d>", 350_000),
    "frames": _filled(b"<iframe src=x></iframe>"),
}
