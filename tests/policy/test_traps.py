"""Traps that show in the URL alone: each rule at its limit, honest URLs that come near, and what the rules cost."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlkit.config import Config
from crawlkit.model import Refusal
from crawlkit.policy.traps import Traps
from crawlkit.policy.urls import normalise
from tests.shared_cases import bugs

HOST = "http://h.example"
TRAPS = Traps.of(Config())
TOLD_FROM_URLS = {refusal for refusal in Refusal if refusal.startswith("trap.")} - {Refusal.TRAP_TEMPLATE, Refusal.TRAP_SITEMAP}


def judge(path: str) -> Refusal | None:
    url = normalise(HOST + path)
    assert url is not None
    return TRAPS.judge(url)


@pytest.mark.parametrize(
    ("path", "refusal"),
    [
        ("/" + "x" * 2032, Refusal.TRAP_LENGTH),
        ("/a/a/a/a", Refusal.TRAP_PATH_REPEAT),
        ("/x/a/a/a/a/", Refusal.TRAP_PATH_REPEAT),
        ("/a/b/a/b/a/b/a/b/page.html", Refusal.TRAP_PATH_REPEAT),
        ("/start/a/b/c/a/b/c/a/b/c/a/b/c", Refusal.TRAP_PATH_REPEAT),
        ("/infra/www/infra/www/infra/www/infra/www/", Refusal.TRAP_PATH_REPEAT),
        ("/n/1/1/1/1/", Refusal.TRAP_PATH_REPEAT),
        ("/a/1/a/2/a/3/a/4/a/5/a/6/a", Refusal.TRAP_PATH_REPEAT),
        ("/////x", Refusal.TRAP_PATH_REPEAT),
        ("/h.example/h.example/", Refusal.TRAP_HOST_IN_PATH),
        ("/about/www.h.example/x/www.h.example/", Refusal.TRAP_HOST_IN_PATH),
        ("/?a=1&a=1&a=1&a=1", Refusal.TRAP_PARAM_REPEAT),
        ("/?" + "&".join(f"f={n}" for n in range(10)), Refusal.TRAP_PARAM_REPEAT),
        ("/?x=1&&&&", Refusal.TRAP_PARAM_REPEAT),
        ("/?" + "&".join(f"p{n}=1" for n in range(33)), Refusal.TRAP_PARAM_COUNT),
        ("/?q=%25252520", Refusal.TRAP_ESCAPE),
        ("/a%2525252520b", Refusal.TRAP_ESCAPE),
        ("/?a=1&amp;amp;b=2", Refusal.TRAP_ESCAPE),
        ("/?a=1&AMP%3Bamp%3bb=2", Refusal.TRAP_ESCAPE),
        ("/?a=1&amp%253Bamp%253Bb=2", Refusal.TRAP_ESCAPE),
        ("/?q=%5C%5C%5C%5C%22", Refusal.TRAP_ESCAPE),
        ("/?q=\\\\\\\\x", Refusal.TRAP_ESCAPE),
    ],
)
def test_each_rule_refuses_with_its_code(path: str, refusal: Refusal) -> None:
    assert judge(path) is refusal


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/" + "x" * 2031,
        "/a/a/a/",
        "/a/b/a/b/a/b/a/",
        "/2024/01/01/",
        "/2024/01/01/01",
        "/docs/docs/docs.html",
        "/en/en/help/en/",
        "/a/1/a/2/a/3/a/4/a/5/a/6",
        "/web/2020/http://h.example/",
        "/site/h.example/",
        "/whois/other.example/other.example/",
        "/tiles/3/3/3.png",
        "////x",
        "/?a=1&a=1&a=1",
        "/?" + "&".join(f"f={n}" for n in range(9)),
        "/?" + "&".join(f"p{n}=1" for n in range(32)),
        "/?",
        "/?a=1&amp;b=2",
        "/?next=%252Fa%253Fb%253D%25252F",
        "/?next=http%3A%2F%2Fx%2F%3Fq%3D%252520",
        "/?share=%5C%5Cserver%5Cfile",
        "/example/camp;amp-stories/",
    ],
)
def test_honest_urls_pass(path: str) -> None:
    assert judge(path) is None


def test_limits_are_settings() -> None:
    traps = Traps(max_url_length=30, max_path_repeats=1, max_param_repeats=1, max_params=2)
    assert traps.judge(f"{HOST}/8901234567890") is None
    assert traps.judge(f"{HOST}/89012345678901") is Refusal.TRAP_LENGTH
    assert traps.judge(f"{HOST}/a/b/a") is None
    assert traps.judge(f"{HOST}/a/a") is Refusal.TRAP_PATH_REPEAT
    assert traps.judge(f"{HOST}/a/b/a/b") is Refusal.TRAP_PATH_REPEAT
    assert traps.judge(f"{HOST}/?a=1&a=1") is Refusal.TRAP_PARAM_REPEAT
    assert traps.judge(f"{HOST}/?a=1&a=2") is None
    assert traps.judge(f"{HOST}/?a&b&c") is Refusal.TRAP_PARAM_COUNT


@pytest.mark.parametrize("case", bugs("long_url"))
def test_a_long_url_is_refused_whole_never_cut(case: dict[str, dict[str, str]]) -> None:
    url = normalise(case["input"]["url_template"] + "%3F" * 2000)
    assert url is not None
    assert len(url) > 6000
    assert TRAPS.judge(url) is Refusal.TRAP_LENGTH


@given(st.lists(st.sampled_from(["a", "b", "c", ""]), max_size=14), st.integers(1, 4))
def test_repeats_agree_with_a_search_of_all_runs(segments: list[str], most: int) -> None:
    traps = Traps(2048, most, 3, 32)
    in_a_row = any(
        segments[start : start + length] * (most + 1) == segments[start : start + length * (most + 1)]
        for length in range(1, len(segments) + 1)
        for start in range(len(segments) - length + 1)
    )
    expected = in_a_row or any(segments.count(segment) > 2 * most for segment in segments)
    assert (traps.judge(f"{HOST}/{'/'.join(segments)}") is Refusal.TRAP_PATH_REPEAT) is expected


@given(
    st.lists(st.sampled_from(["a", "b", "/", "?", "&", "=", "%", "%25", "%2525", "amp;", "\\", ".", "h.example"])).map("".join)
)
def test_no_url_makes_it_fail(text: str) -> None:
    url = normalise(f"{HOST}/{text}")
    assert url is None or TRAPS.judge(url) in {None, *TOLD_FROM_URLS}
