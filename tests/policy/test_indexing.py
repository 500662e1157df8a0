"""Which pages count as themselves."""

import pytest

from crawlkit.model import Kind, Record
from crawlkit.policy.indexing import is_html, is_indexable

URL = "http://a.test/"


def record(**facts: object) -> Record:
    told = {"kind": Kind.PAGE, "status": 200, "content_type": "text/html", "charset": "utf-8", **facts}
    return Record(url=URL, depth=0, **told)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("facts", "indexable"),
    [
        ({}, True),
        ({"content_type": "application/xhtml+xml"}, True),
        ({"content_type": None}, True),
        ({"canonical": URL}, True),
        ({"directives": ("nofollow", "noarchive")}, True),
        ({"canonical": "http://a.test/other"}, False),
        ({"directives": ("noindex",)}, False),
        ({"directives": ("none",)}, False),
        ({"status": 203}, False),
        ({"kind": Kind.FAILURE, "status": 404}, False),
        ({"kind": Kind.REDIRECT, "status": 301}, False),
        ({"content_type": "text/plain"}, False),
        ({"content_type": None, "charset": None}, False),
    ],
)
def test_a_page_counts_as_itself_or_not(facts: dict[str, object], indexable: bool) -> None:
    assert is_indexable(record(**facts)) is indexable


def test_html_is_told_by_its_type_or_by_having_been_read() -> None:
    assert is_html(record(content_type=None))
    assert not is_html(record(content_type=None, charset=None))
    assert not is_html(record(content_type="application/pdf"))
