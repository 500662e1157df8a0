"""What a site says must not drive the terminal that shows it."""

from hypothesis import given
from hypothesis import strategies as st

from crawlkit.surfaces.terminal import printable


def test_control_characters_are_seen_and_not_obeyed() -> None:
    assert printable("a\x1b[31mb\x9b\r\n\u202e\u2028é") == "a\ufffd[31mb\ufffd\ufffd\ufffd\ufffd\ufffdé"


@given(st.text(st.characters(exclude_categories=["Cc", "Cf", "Zl", "Zp", "Cs"])))
def test_other_text_stays(text: str) -> None:
    assert printable(text) == text
