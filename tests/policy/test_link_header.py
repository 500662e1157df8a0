import pytest

from crawlkit.policy.link_header import linked_alternates, linked_canonical

URL = "https://h.example/dir/page"


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([b"</de>; rel=alternate; hreflang=de"], [("de", "https://h.example/de")]),
        ([b'<de>; REL="alternate"; HREFLANG="DE-at"'], [("de-AT", "https://h.example/dir/de")]),
        ([b'</a>; hreflang=fr; rel="nofollow ALTERNATE"'], [("fr", "https://h.example/a")]),
        ([b"</a>; rel=alternate; hreflang=de; hreflang=en"], [("de", "https://h.example/a"), ("en", "https://h.example/a")]),
        ([b"</a>; rel=alternate; hreflang=de, </b>; rel=alternate; hreflang=x-default"],
         [("de", "https://h.example/a"), ("x-default", "https://h.example/b")]),
        ([b"</a>; rel=alternate; hreflang=de", b"</b>; rel=alternate; hreflang=fr"],
         [("de", "https://h.example/a"), ("fr", "https://h.example/b")]),
        ([b"</feed>; rel=alternate; type=application/rss+xml"], []),
        ([b"</a>; rel=canonical; hreflang=de"], []),
        ([b"</a>; rel=alternate; hreflang=de; anchor=/x"], []),
        ([b"</a>; rel=alternate; hreflang=''"], []),
        ([b"<mailto:a@b.c>; rel=alternate; hreflang=de"], []),
        ([b"</a; rel=alternate; hreflang=de"], []),
        ([], []),
    ],
)  # fmt: skip
def test_alternates_are_those_with_a_language(values: list[bytes], expected: list[tuple[str, str]]) -> None:
    assert list(linked_alternates(URL, values)) == expected


def test_a_canonical_link_is_the_first_that_is_usable() -> None:
    assert (
        linked_canonical(URL, [b"<mailto:x>; rel=canonical, </c>; rel=canonical", b"</d>; rel=canonical"])
        == "https://h.example/c"
    )
    assert linked_canonical(URL, [b"</a>; rel=alternate; hreflang=de"]) is None
