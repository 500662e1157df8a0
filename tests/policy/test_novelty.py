"""What makes a template, what a sketch sees of a page, and when a page is fresh."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlkit.model import Response
from crawlkit.policy.facts import read_answer
from crawlkit.policy.novelty import (
    BREAK,
    MEMORY_BYTES,
    MOST_SHINGLES,
    is_fresh,
    own_shingles,
    remember,
    sketch_of,
    template_of,
)

URL = "http://h.example/item/1"


def words(seed: object, count: int) -> str:
    chosen = random.Random(str(seed))
    return " ".join("".join(chosen.choices("abcdefghijklmnopqrstuvwxyz", k=chosen.randint(2, 9))) for _ in range(count))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("/item/1", "/item/22"),
        ("/item/red-shoes", "/item/blue-hats"),
        ("/2024/11/a-post", "/2023/02/another"),
        ("/about", "/contact"),
        ("/cal?year=2026&month=11", "/cal?month=1&year=1999"),
        ("/x?p1=a", "/x?p22=b"),
        ("/wiki/a/b/c", "/wiki/d"),
        ("/(S(a8f3))/page.aspx", "/(S(b9d2))/page.aspx"),
        ("/" + "x" * 25 + "/p", "/" + "y" * 30 + "/p"),
    ],
)
def test_urls_of_one_shape_share_a_template(one: str, other: str) -> None:
    assert template_of("http://h.example" + one) == template_of("http://h.example" + other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("http://h.example/item/1", "http://g.example/item/1"),
        ("http://h.example/item/1", "http://h.example/list/1"),
        ("http://h.example/item/1", "http://h.example/item"),
        ("http://h.example/x?a=1", "http://h.example/x?a=1&b=1"),
        ("http://h.example/x?a=1", "http://h.example/x"),
        ("http://h.example/x?a=1", "http://h.example/y?a=1"),
        ("http://h.example/d/x.pdf", "http://h.example/d/x.html"),
    ],
)
def test_urls_of_other_shapes_do_not(one: str, other: str) -> None:
    assert template_of(one) != template_of(other)


def test_numbers_case_and_punctuation_are_not_seen() -> None:
    assert sketch_of("Events of November 30, 2026: none!", URL) == sketch_of("events of november 1 1999 none", URL)
    assert sketch_of("12 34 56", URL) == ()


def test_words_of_the_own_folders_and_query_are_not_seen_the_name_is() -> None:
    one = sketch_of("shoes in red and large", "http://h.example/shoes/?color=red&size=large")
    other = sketch_of("hats in blue and small", "http://h.example/hats/?color=blue&size=small")
    assert one == other
    named = {sketch_of(f"all about {name} here", f"http://h.example/wiki/{name}") for name in ("zebra", "lion")}
    assert len(named) == 2


def test_shingles_end_with_their_text_node() -> None:
    nodes = [f"{words(n, 3)}" for n in range(9)]
    shuffled = nodes[::-1]
    assert sketch_of(BREAK.join(nodes), URL) == sketch_of(BREAK.join(shuffled), URL)
    assert sketch_of(" ".join(nodes), URL) != sketch_of(" ".join(shuffled), URL)


@pytest.mark.parametrize("count", [1, 50, 96, 97, 300, 384, 385, 1000, 1152, 1153, 3000, 30_000])
def test_a_sketch_is_small_and_large_enough_whatever_the_length(count: int) -> None:
    sketch = sketch_of(words("text", count), URL)
    assert min(count, 8) <= len(sketch) <= MOST_SHINGLES
    assert list(sketch) == sorted(sketch)


@pytest.mark.parametrize("alphabet", ["абвгдежзиклмнопрст", "日本語文字列漢字仮名", "abc"])
def test_a_sketch_sees_text_of_any_script(alphabet: str) -> None:
    chosen = random.Random(alphabet)
    text = " ".join("".join(chosen.choices(alphabet, k=5)) for _ in range(700))
    assert len(sketch_of(text, URL)) >= 16


@given(st.text(max_size=300))
def test_no_text_makes_a_sketch_fail(text: str) -> None:
    sketch = sketch_of(text, URL)
    assert len(sketch) <= MOST_SHINGLES
    assert list(sketch) == sorted(set(sketch))


def test_what_two_long_pages_share_is_chosen_on_both() -> None:
    frame = words("frame", 500)
    one = set(sketch_of(frame + BREAK + words("a", 100), URL))
    other = set(sketch_of(frame + BREAK + words("b", 100), URL))
    assert len(one & other) > 20


def fresh_pages(texts: list[str]) -> list[bool]:
    memory = bytearray(MEMORY_BYTES)
    before: tuple[int, ...] = ()
    fresh = []
    for text in texts:
        sketch = sketch_of(text, URL)
        own = own_shingles(sketch, before)
        fresh.append(is_fresh(own, memory))
        remember(own, memory)
        before = sketch
    return fresh


def test_a_page_that_only_repeats_is_stale() -> None:
    assert fresh_pages([words(1, 40)] * 3) == [True, False, False]


def test_pages_with_their_own_text_stay_fresh_however_large_their_frame() -> None:
    for frame_words, share in ((50, 1.0), (300, 0.9), (1000, 0.6), (3000, 0.3)):
        frame = words("frame", frame_words)
        fresh = fresh_pages([frame + BREAK + words(n, 20) for n in range(400)])
        assert sum(fresh) >= share * len(fresh), frame_words


def test_a_calendar_is_stale_after_its_twelve_months() -> None:
    months = [words(f"month {n}", 1) for n in range(12)]
    texts = [f"{months[n % 12]} {2000 + n // 12}{BREAK}no events in {months[n % 12]}" for n in range(48)]
    assert not any(fresh_pages(texts)[12:])


def test_listings_of_a_few_things_in_every_order_become_stale() -> None:
    things = [words(n, 5) for n in range(40)]
    texts = [BREAK.join(random.Random(n).sample(things, 10)) for n in range(300)]
    assert not any(fresh_pages(texts)[50:])


def test_a_little_that_is_new_beside_much_that_was_met_is_not_enough() -> None:
    old = [words(n, 3) for n in range(3)]
    new = words("new", 1)
    assert fresh_pages([*old, BREAK.join((*old, new))]) == [True, True, True, False]
    assert fresh_pages([*old, BREAK.join((old[2], new))]) == [True] * 4


def read(markup: str) -> tuple[int, ...] | None:
    return read_answer(URL, Response(200, ((b"content-type", b"text/html"),), markup.encode())).sketch


def test_the_sketch_of_a_page_is_of_its_visible_text() -> None:
    page = "<title>A title</title><p>some text <b>here</b></p>"
    assert read(page) == sketch_of(BREAK.join(("A title", "some text ", "here")), URL)
    hidden = "<script>var x = 'not seen'</script><style>p { color: red }</style><!-- nor this --><template>nor that</template>"
    assert read(page + hidden) == read(page)


def test_scripts_within_scripts_do_no_harm() -> None:
    svg = "<svg><script>x<script>y</script><style>z<style>w</style></style></script></svg>"
    assert read("<p>some text here</p>" + svg) is not None


@pytest.mark.parametrize(("content_type", "status"), [(b"text/plain", 200), (b"text/html", 404), (b"text/html", 302)])
def test_what_is_not_a_page_has_no_sketch(content_type: bytes, status: int) -> None:
    assert read_answer(URL, Response(status, ((b"content-type", content_type),), b"<p>text")).sketch is None


def test_an_empty_page_has_an_empty_sketch() -> None:
    assert read("") == ()
