import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlkit.policy.language import language_tag


@pytest.mark.parametrize(
    ("text", "tag"),
    [
        *(("en", "en"), ("EN", "en"), (" de\n", "de"), ("en-gb", "en-GB"), ("en_US", "en-US"), ("ZH-hant-tw", "zh-Hant-TW")),
        *(("es-419", "es-419"), ("de-DE-1901", "de-DE-1901"), ("X-DEFAULT", "x-default"), ("en-a-BBBB-CC", "en-a-bbbb-cc")),
        *(("i-KLINGON", "i-klingon"), ("fil", "fil"), ("sr-Latn-RS", "sr-Latn-RS")),
        *((None, None), ("", None), ("en, de", None), ("en;q=1", None), ("deutsch-", None), ("abcdefghi", None)),
        *(("en--US", None), ("1", None), ("日本語", None), ("en-" * 9 + "a", None), ("{{ lang }}", None)),
    ],
)
def test_a_tag_has_one_spelling(text: str | None, tag: str | None) -> None:
    assert language_tag(text) == tag


@given(st.from_regex(r"[A-Za-z]{1,8}([-_][A-Za-z0-9]{1,8}){0,7}", fullmatch=True))
def test_spelling_a_tag_once_more_changes_nothing(text: str) -> None:
    tag = language_tag(text)
    assert tag is not None
    assert language_tag(tag) == tag
    assert tag.lower() == text.lower().replace("_", "-")
