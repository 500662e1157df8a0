"""Which URLs belong to a crawl: the four modes, the patterns, and what a verdict says."""

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlkit.config import Config, ScopeMode
from crawlkit.errors import ConfigError
from crawlkit.model import Refusal, Verdict
from crawlkit.policy.scope import Scope, registrable_domain
from crawlkit.policy.urls import host_of, parse_seed, path_of
from tests.shared_cases import bugs

_MODES_OF_CASES = {
    "same registrable host or subdomains": ScopeMode.DOMAIN,
    "domain": ScopeMode.DOMAIN,
    "path prefix": ScopeMode.PREFIX,
}


def admits(mode: ScopeMode, seeds: str, url: str) -> bool:
    normal = [parse_seed(seed) for seed in seeds.split()]
    return Scope.of(normal, Config(scope=mode)).judge(parse_seed(url)).accepted


@pytest.mark.parametrize("case", bugs("scope"))
def test_scope_compares_whole_labels_and_whole_segments(case: Any) -> None:
    mode = _MODES_OF_CASES[case["input"]["mode"]]
    assert admits(mode, case["input"]["seed"], case["input"]["url"]) is case["expected"]["in_scope"]


@pytest.mark.parametrize(
    ("seeds", "url", "inside"),
    [
        ("https://example.com/a", "https://example.com/b?c", True),
        ("https://example.com/a", "http://example.com:8080/", True),
        ("https://example.com/", "https://www.example.com/", False),
        ("https://www.example.com/", "https://example.com/", False),
        ("https://example.com/", "https://notexample.com/", False),
        ("https://example.com/", "https://example.com.evil.test/", False),
        ("https://example.com/", "https://example.com./", False),
        ("https://a.test/ https://b.test/", "https://b.test/x", True),
        ("https://a.test/ https://b.test/", "https://c.test/x", False),
        ("http://[::1]:8080/", "http://[::1]/", True),
        ("http://127.0.0.1/", "http://0x7f.1:1/", True),
    ],
)
def test_host_admits_the_seeds_hosts_on_any_port(seeds: str, url: str, inside: bool) -> None:
    assert admits(ScopeMode.HOST, seeds, url) is inside


@pytest.mark.parametrize(
    ("seeds", "url", "inside"),
    [
        ("https://www.example.com/", "http://example.com:8080/", True),
        ("https://example.com/", "https://a.b.example.com/", True),
        ("https://example.com/", "https://a.example.com./", True),
        ("https://example.com/", "https://example.org/", False),
        ("https://example.com/", "https://notexample.com/", False),
        ("https://a.co.uk/", "https://www.a.co.uk/", True),
        ("https://a.co.uk/", "https://b.co.uk/", False),
        ("https://alice.github.io/", "https://bob.github.io/", False),
        ("https://alice.github.io/", "https://x.alice.github.io/", True),
        ("https://github.io/", "https://github.io/x", True),
        ("https://github.io/", "https://bob.github.io/", False),
        ("https://www.ck/", "https://a.www.ck/", True),
        ("https://a.b.ck/", "https://c.b.ck/", False),
        ("https://食狮.公司.cn/", "https://www.食狮.公司.cn/", True),
        ("https://食狮.公司.cn/", "https://x.公司.cn/", False),
        ("https://a.unknown-suffix/", "https://b.a.unknown-suffix/", True),
        ("http://localhost/", "http://localhost:1/", True),
        ("http://localhost/", "http://a.localhost/", False),
        ("http://10.0.0.1/", "http://10.0.0.1:8080/", True),
        ("http://10.0.0.1/", "http://11.0.0.1/", False),
        ("http://[::1]/", "http://[::1]:8080/", True),
        ("http://[::1]/", "http://[::2]/", False),
    ],
)
def test_domain_admits_what_the_same_party_registered(seeds: str, url: str, inside: bool) -> None:
    assert admits(ScopeMode.DOMAIN, seeds, url) is inside


@pytest.mark.parametrize(
    ("seeds", "url", "inside"),
    [
        ("https://h.test/news", "https://h.test/news", True),
        ("https://h.test/news", "http://h.test:8080/news/", True),
        ("https://h.test/news", "https://h.test/news/1/2", True),
        ("https://h.test/news", "https://h.test/news?x=1", True),
        ("https://h.test/news", "https://h.test/newsletter", False),
        ("https://h.test/news", "https://h.test/news%2F1", False),
        ("https://h.test/news", "https://h.test/News", False),
        ("https://h.test/news", "https://h.test/", False),
        ("https://h.test/news", "https://other.test/news", False),
        ("https://h.test/news?a=/b/", "https://h.test/news?c", True),
        ("https://h.test/news/", "https://h.test/news/1", True),
        ("https://h.test/news/", "https://h.test/news/?x", True),
        ("https://h.test/news/", "https://h.test/news", False),
        ("https://h.test/news/", "https://h.test/news/../x", False),
        ("https://h.test/a/b.html", "https://h.test/a/b.html", True),
        ("https://h.test/a/b.html", "https://h.test/a/c.html", False),
        ("https://h.test/", "https://h.test/anything", True),
        ("https://h.test", "https://h.test/?x", True),
        ("https://h.test//", "https://h.test/a", False),
        ("https://h.test//", "https://h.test//a", True),
        ("https://h.test/a https://h.test/b/", "https://h.test/b/x", True),
        ("https://h.test/a https://g.test/b", "https://h.test/b", False),
        ("https://h.test/a/b/c https://h.test/x", "https://h.test/a/b", False),
        ("https://h.test/x?u=https://g.test/y/", "https://h.test/x/z", True),
    ],
)
def test_prefix_admits_a_seeds_path_and_what_is_below_it(seeds: str, url: str, inside: bool) -> None:
    assert admits(ScopeMode.PREFIX, seeds, url) is inside


_HOSTS = st.sampled_from(["a.test", "b.a.test", "[::1]", "127.0.0.1"])
_PATHS = st.lists(st.sampled_from(["", "a", "b", "ab"]), max_size=5).map(lambda segments: "/" + "/".join(segments))
_URLS = st.builds(lambda host, path, query: f"http://{host}{path}{query}", _HOSTS, _PATHS, st.sampled_from(["", "?/a/"]))


@given(st.lists(_URLS, max_size=5), _URLS)
def test_prefix_agrees_with_its_definition(seeds: list[str], url: str) -> None:
    def is_inside(seed: str) -> bool:
        start, path = path_of(seed).partition("?")[0], path_of(url).partition("?")[0]
        below = path.startswith(start) if start.endswith("/") else path == start or path.startswith(start + "/")
        return host_of(seed) == host_of(url) and below

    scope = Scope.of(seeds, Config(scope=ScopeMode.PREFIX))
    assert scope.judge(url).accepted is any(map(is_inside, seeds))


@given(st.lists(_URLS, min_size=1, max_size=5), _URLS, st.sampled_from(ScopeMode))
def test_seeds_are_inside_and_a_verdict_is_consistent(seeds: list[str], url: str, mode: ScopeMode) -> None:
    scope = Scope.of(seeds, Config(scope=mode, include=("/b",), exclude=("a$",)))
    assert all(scope.judge(seed).accepted for seed in seeds)
    verdict = scope.judge(url)
    assert verdict.accepted is (verdict.refusal is None)
    assert verdict.rule
    assert scope.refusal(url) is verdict.refusal
    assert Scope.of(seeds, Config(scope=mode)).refusal(url) is Scope.of(seeds, Config(scope=mode)).judge(url).refusal


@pytest.mark.parametrize(
    ("mode", "url", "verdict"),
    [
        (ScopeMode.HOST, "https://www.example.com/x", Verdict(True, "scope=host: www.example.com")),
        (ScopeMode.HOST, "https://a.test/x", Verdict(False, "scope=host: no seed spans a.test", Refusal.SCOPE)),
        (ScopeMode.DOMAIN, "https://x.example.com/x", Verdict(True, "scope=domain: example.com")),
        (ScopeMode.DOMAIN, "https://b.a.test/x", Verdict(False, "scope=domain: no seed spans a.test", Refusal.SCOPE)),
        (ScopeMode.PREFIX, "https://www.example.com/news/1", Verdict(True, "scope=prefix: www.example.com/news")),
        (ScopeMode.PREFIX, "https://a.test/x?y", Verdict(False, "scope=prefix: no seed spans a.test/x", Refusal.SCOPE)),
        (ScopeMode.ANY, "https://a.test/x", Verdict(True, "scope=any")),
    ],
)
def test_a_verdict_names_the_rule_that_decided(mode: ScopeMode, url: str, verdict: Verdict) -> None:
    assert Scope.of(["https://www.example.com/news"], Config(scope=mode)).judge(url) == verdict


@pytest.mark.parametrize(
    ("url", "verdict"),
    [
        ("https://h.test/blog/1", Verdict(True, "include[0]: /blog/")),
        ("https://h.test/x?next=/docs/", Verdict(True, "include[1]: //docs/$/")),
        ("https://h.test/x", Verdict(False, "include: no pattern matches", Refusal.INCLUDE)),
        ("https://h.test/blog/a.pdf", Verdict(False, r"exclude[1]: /\.pdf$/", Refusal.EXCLUDE)),
        ("https://h.test/blog/private/a.pdf", Verdict(False, "exclude[0]: //private//", Refusal.EXCLUDE)),
        ("https://h.test/private/", Verdict(False, "include: no pattern matches", Refusal.INCLUDE)),
        ("https://g.test/blog/1", Verdict(False, "scope=host: no seed spans g.test", Refusal.SCOPE)),
        ("https://h.test/start.pdf", Verdict(True, "scope=host: h.test")),
    ],
)
def test_some_include_must_match_and_no_exclude_may_except_for_seeds(url: str, verdict: Verdict) -> None:
    config = Config(include=("blog", "/docs/$"), exclude=("/private/", r"\.pdf$"))
    assert Scope.of(["https://h.test/start.pdf"], config).judge(url) == verdict


def test_patterns_hold_where_any_host_is_in_scope() -> None:
    scope = Scope.of(["https://h.test/"], Config(scope=ScopeMode.ANY, exclude=("^https://[^/]*evil",)))
    assert scope.judge("https://very.evil.test/") == Verdict(False, "exclude[0]: /^https://[^/]*evil/", Refusal.EXCLUDE)
    assert scope.judge("https://good.test/evil").accepted


@pytest.mark.parametrize(
    ("key", "patterns", "says"),
    [
        ("exclude", ("a", "b("), "exclude[1]: 'b(' is not a regular expression: missing ), unterminated subpattern"),
        ("exclude", ("ab(",), "at position 2"),
        ("include", ("*",), "include[0]: '*' is not a regular expression: nothing to repeat at position 0"),
        ("include", ("a{99999999999}",), "include[0]: 'a{99999999999}' is not a usable regular expression"),
    ],
)
def test_a_bad_pattern_is_a_settings_error_that_names_it(key: str, patterns: tuple[str, ...], says: str) -> None:
    config = Config()
    # Config refuses such patterns when it is made; one that got past it is told all the same.
    object.__setattr__(config, key, patterns)
    with pytest.raises(ConfigError) as caught:
        Scope.of([], config)
    assert says in str(caught.value)


@pytest.mark.parametrize("host", ["localhost", "com", "github.io", "127.0.0.1", "[::1]", "a..b", "co.uk.", "a" * 300])
def test_a_host_that_nobody_registered_stands_for_itself(host: str) -> None:
    assert registrable_domain(host) == host


def test_a_host_name_that_is_too_long_is_judged_all_the_same() -> None:
    assert registrable_domain("a" * 1000 + ".www.example.co.uk") == "example.co.uk"


def test_judging_takes_no_longer_for_ten_thousand_seeds_or_a_hostile_path() -> None:
    seeds = [f"https://h.test/{n}/index" for n in range(10_000)]
    scope = Scope.of(seeds, Config(scope=ScopeMode.PREFIX))
    hostile = "https://h.test/" + "a/" * 100_000
    started = time.perf_counter()
    for _ in range(100):
        assert scope.judge("https://h.test/9999/index/deep").accepted
        assert not scope.judge(hostile).accepted
    assert time.perf_counter() - started < 10.0


@pytest.mark.parametrize(
    ("mode", "covered"),
    [
        (ScopeMode.HOST, {"www.example.co.uk"}),
        (ScopeMode.PREFIX, {"www.example.co.uk"}),
        (ScopeMode.DOMAIN, {"www.example.co.uk", "cdn.example.co.uk"}),
        (ScopeMode.ANY, {"www.example.co.uk", "cdn.example.co.uk", "other.co.uk"}),
    ],
)
def test_hosts_are_covered_by_what_the_seeds_span(mode: ScopeMode, covered: set[str]) -> None:
    scope = Scope.of(["https://www.example.co.uk/docs/"], Config(scope=mode, exclude=("docs",)))
    hosts = {"www.example.co.uk", "cdn.example.co.uk", "other.co.uk"}
    assert {host for host in hosts if scope.covers(host)} == covered


@pytest.mark.parametrize(
    "url", ["http://a.test/", "https://a.test/x", "http://a.test:8080/", "https://[::1]:8443/", "http://[::1]/"]
)
def test_what_is_in_scope_begins_with_one_of_its_prefixes(url: str) -> None:
    scope = Scope.of(["http://a.test/", "http://[::1]/"], Config())
    assert url.startswith(scope.prefixes)
    assert scope.refusal(url) is None


@pytest.mark.parametrize(
    "url", ["http://a.tes/", "http://a.test.b/", "http://b.a.test/", "http://b/http://a.test/", "http://[::11]/"]
)
def test_what_begins_otherwise_is_out_of_scope(url: str) -> None:
    scope = Scope.of(["http://a.test/", "http://[::1]/"], Config())
    assert not url.startswith(scope.prefixes)
    assert scope.refusal(url) is Refusal.SCOPE


@pytest.mark.parametrize("mode", [mode for mode in ScopeMode if mode is not ScopeMode.HOST])
def test_only_hosts_that_are_few_tell_by_a_prefix(mode: ScopeMode) -> None:
    assert Scope.of(["http://a.test/"], Config(scope=mode)).prefixes == ("",)
    assert Scope.of([f"http://{n}.test/" for n in range(100)], Config()).prefixes == ("",)
    assert Scope.of([], Config()).prefixes == ("",)
