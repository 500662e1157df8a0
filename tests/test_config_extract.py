"""The items of `extract`: their shape, that wrong ones are refused in one line, and what a selector may cost."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlkit.config import Config
from crawlkit.config_extract import MOST_RULES, ExtractRule, chains_of, check_extract, parse_extract
from crawlkit.errors import ConfigError


@pytest.mark.parametrize(
    ("item", "rule"),
    [
        ("price=span.price", ("price", False, "span.price", None)),
        ("images[]=img@src", ("images", True, "img", "src")),
        (" a-b_1 = ul > li @ href ".replace("@ ", "@"), ("a-b_1", False, "ul > li", "href")),
        ("x=a[href*='@']", ("x", False, "a[href*='@']", None)),
        ("x=a[href*='=@b']@title", ("x", False, "a[href*='=@b']", "title")),
        ("x=svg@xlink:href", ("x", False, "svg", "xlink:href")),
        ("d=meta[property='og:description']@content", ("d", False, "meta[property='og:description']", "content")),
        ("é=h1", None), ("1=h1", None), ("=h1", None), ("h1", None), ("x=", None), ("x=@href", None), ("x y=h1", None),
        (f"{'n' * 65}=h1", None),
    ],
)  # fmt: skip
def test_an_item_is_a_name_a_selector_and_perhaps_an_attribute(item: str, rule: ExtractRule | None) -> None:
    if rule is None:
        with pytest.raises(ConfigError, match=r"extract: expected NAME=CSS or NAME=CSS@ATTR"):
            Config(extract=(item,))
    else:
        assert parse_extract(item) == rule
        assert parse_extract(Config(extract=(item,)).extract[0]) == rule


@pytest.mark.parametrize(
    ("selector", "told"),
    [
        *(
            (selector, "cannot be read")
            for selector in ("h1 >", "h1 ]", "a,", "//div", "a:contains(x)", "p:first", "a@", "$", "a{}")
        ),
        *((selector, "without ::text") for selector in ("p::text", "a::attr(href)", "p ::text")),
        ("x" * 501, "at most 500 characters"),
        ("a ~ b ~ c", "once at most"),
        ("a:has(b:has(c))", "once at most"),
        ("d a:not(b c d)", "once at most"),
    ],
)
def test_a_bad_selector_is_told_in_one_line_that_shows_it(selector: str, told: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Config(extract=(f"name={selector}",))
    assert told in str(caught.value)
    assert selector[:20] in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize(
    ("selector", "chains"),
    [
        ("a", [[("a", 0)]]),
        (" a\n\tb > c  d ", [[("a", 0), ("b > c", 1), ("d", 0)]]),
        ("a>b>c+d~e", [[("a>b>c+d~e", 2)]]),
        ("a , b c", [[("a", 0)], [("b", 0), ("c", 0)]]),
        ("a[title='x y > z'] b", [[("a[title='x y > z']", 0), ("b", 0)]]),
        ("a[ t = x ] b", [[("a[ t = x ]", 0), ("b", 0)]]),
        ("a:is(b c, d > e) f", [[("a:is(b c, d > e)", 0), ("f", 0)]]),
        (r"a\ b c", [[(r"a\ b", 0), ("c", 0)]]),
        ("a/* , > */b c", [[("ab", 0), ("c", 0)]]),
    ],
)
def test_a_selector_is_taken_apart_at_its_steps(selector: str, chains: list[list[tuple[str, int]]]) -> None:
    assert [list(map(tuple, chain)) for chain in chains_of(selector)] == chains


@pytest.mark.parametrize("selector", ["a ~ b c ~ d", "li:nth-child(2 of a) b c d e f", "a[x~=y][z~=w]", "a:not(b c) d:has(e)"])
def test_steps_are_bounded_one_by_one(selector: str) -> None:
    assert Config(extract=(f"x={selector}",))


def test_a_name_is_given_once_and_fields_are_not_too_many() -> None:
    with pytest.raises(ConfigError, match=r"^extract: two fields are named a$"):
        Config(extract=("a=h1", "b=h2", "a[]=h3"))
    with pytest.raises(ConfigError, match=f"more than {MOST_RULES}"):
        Config(extract=tuple(f"a{n}=h1" for n in range(MOST_RULES + 1)))


@given(st.text(alphabet=" abp>+~,.#[]='\"()@:*\\/é-0", max_size=30))
def test_any_text_is_checked_or_refused(selector: str) -> None:
    try:
        regular = check_extract(f"x={selector}")
    except ValueError:
        return
    assert check_extract(regular) == regular
