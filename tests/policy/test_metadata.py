import pytest

from crawlkit.policy.links import read_page
from crawlkit.policy.metadata import MOST_ALTERNATES, MOST_DESCRIPTION, Metadata

URL = "http://h.example/dir/page"


def read(markup: str) -> Metadata:
    return read_page(markup.encode(), URL, "utf-8").metadata


@pytest.mark.parametrize(
    ("markup", "description"),
    [
        ("<meta name=description content=Text>", "Text"),
        ('<META NAME=" Description " CONTENT="\n a\t b\xa0c ">', "a b c"),
        ("<meta name=description content='&lt;b&gt; &amp; &eacute;'>", "<b> & é"),
        ("<meta name=description content=''><meta name=description content=second>", "second"),
        ("<meta name=description content=first><meta name=description content=second>", "first"),
        ("<body><p><meta name=description content=late>", "late"),
        ("<meta property=og:description content=x><meta name=descriptions content=y>", None),
        ("<meta name=description>", None),
        ("<!-- <meta name=description content=x> --><script>'<meta name=description content=x>'</script>", None),
        ("<template><meta name=description content=x></template>", None),
    ],
)
def test_the_description_is_the_first_that_says_anything(markup: str, description: str | None) -> None:
    assert read(markup).description == description


def test_a_description_is_cut() -> None:
    assert read(f"<meta name=description content='{'é' * (MOST_DESCRIPTION + 9)}'>").description == "é" * MOST_DESCRIPTION


@pytest.mark.parametrize(
    ("markup", "language"),
    [
        ("<html lang=de>", "de"),
        ("<HTML LANG='EN-us'>", "en-US"),
        ("<!doctype html><html xml:lang=fr><p>", "fr"),
        ("<html lang=de xml:lang=fr>", "de"),
        ("<html lang=''><meta http-equiv=Content-Language content=it>", "it"),
        ("<html lang='{{lang}}'>", None),
        ("<html lang=de><meta http-equiv=content-language content=it>", "de"),
        ("<meta http-equiv=content-language content='en,fr'>", None),
        ("<p lang=de>", None),
        ("<body><html lang=sv>", "sv"),  # a second start tag adds what the first lacks (HTML Standard section 13.2.6.4.7)
    ],
)
def test_the_language_is_the_document_s(markup: str, language: str | None) -> None:
    assert read(markup).language == language


def test_headings_are_counted_wherever_they_stand() -> None:
    markup = "<h1>a</h1><div><h2>b<h2>c</h2><H3></H3></div><!--<h4>--><svg><h5></svg><template><h6></h6></template>"
    assert read(markup).headings == (1, 2, 1, 0, 1, 0)
    assert read("").headings == (0, 0, 0, 0, 0, 0)


@pytest.mark.parametrize(
    ("markup", "alternates"),
    [
        ("<link rel=alternate hreflang=de href=/de>", [("de", "http://h.example/de")]),
        ("<link rel='ALTERNATE x' hreflang=EN_gb href=en>", [("en-GB", "http://h.example/dir/en")]),
        ("<base href=//o.example/><link rel=alternate hreflang=de href=de>", [("de", "http://o.example/de")]),
        ("<body><link rel=alternate hreflang=x-default href=''>", []),
        ("<link rel=alternate hreflang=de href=/1><link rel=alternate hreflang=DE href=/2>", [("de", "http://h.example/1")]),
        ("<link rel=alternate hreflang=de><link rel=alternate hreflang=de href=/2>", [("de", "http://h.example/2")]),
        ("<link rel=alternate hreflang=de href='data:,x'>", []),
        ("<link rel=alternate hreflang='de fr' href=/2>", []),
        ("<link rel=alternate type=application/atom+xml href=/feed>", []),
        ("<link rel=stylesheet hreflang=de href=/x><a rel=alternate hreflang=de href=/y>", []),
    ],
)
def test_alternates_are_link_elements_with_a_language(markup: str, alternates: list[tuple[str, str]]) -> None:
    assert read(markup).alternates == tuple(alternates)


def test_alternates_are_bounded() -> None:
    many = "".join(f"<link rel=alternate hreflang=de-x-a{n} href=/{n}>" for n in range(MOST_ALTERNATES + 5))
    assert len(read(many).alternates) == MOST_ALTERNATES
