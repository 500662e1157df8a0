"""robots.txt: RFC 9309 and the cases of three other parsers, and agreement with a slow matcher written another way."""

import base64
import time
from functools import cache
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from crawlkit.model import FetchFailure, Reason, Response
from crawlkit.policy.robots import (
    MAX_ROBOTS_BYTES,
    MAX_ROBOTS_REDIRECTS,
    ROBOTS_TTL_S,
    Access,
    Rules,
    access_of,
    parse,
    target_of,
)
from crawlkit.policy.urls import origin_of
from tests.shared_cases import bugs, suite


def rules_of(case: dict[str, Any]) -> Rules:
    given_ = case["input"]
    if "robots_b64" in given_:
        return parse(base64.b64decode(given_["robots_b64"]), given_["agent"])
    text = case.get("texts", {}).get(given_["robots"], given_["robots"])
    if text.startswith("b64:"):
        return parse(base64.b64decode(text[4:]), given_["agent"])
    return parse(text.encode(), given_["agent"])


def expecting(cases: list[Any], answer: str) -> list[Any]:
    """The cases that expect `answer` (a skipped suite, which has no cases, stays)."""
    return [p for p in cases if p.values[0] is None or answer in p.values[0]["expected"]]


JUDGED = [*suite("robots_google"), *suite("robots_crawler_commons"), *suite("robots_protego"), *bugs("robots")]


@pytest.mark.parametrize("case", expecting(JUDGED, "allowed"))
def test_a_url_is_allowed_exactly_when_the_standard_says_so(case: dict[str, Any]) -> None:
    assert rules_of(case).judge(case["input"]["url"]).allowed is case["expected"]["allowed"]


@pytest.mark.parametrize("case", [*expecting(JUDGED, "crawl_delay"), *bugs("crawl_delay")])
def test_a_crawl_delay_is_that_of_the_names_directly_above_it(case: dict[str, Any]) -> None:
    assert rules_of(case).crawl_delay_s == case["expected"]["crawl_delay"]


@pytest.mark.parametrize("case", expecting(suite("robots_google"), "match_path"))
def test_rules_are_matched_against_path_and_query(case: dict[str, Any]) -> None:
    assert target_of(case["input"]["url"]) == case["expected"]["match_path"]


@pytest.mark.parametrize("case", bugs("robots_time"))
def test_wildcards_are_matched_in_linear_time(case: dict[str, Any]) -> None:
    started_s = time.perf_counter()
    rules_of(case).judge(case["input"]["url"])
    assert (time.perf_counter() - started_s) * 1000 < case["expected"]["max_ms"]


def test_a_rule_of_a_thousand_wildcards_and_a_long_url_take_no_time() -> None:
    rules = parse(b"User-agent: *\nDisallow: /" + b"*a" * 1000 + b"b\n", "crawlkit")
    started_s = time.perf_counter()
    assert rules.judge("/" + "a" * 100_000).allowed
    assert time.perf_counter() - started_s < 0.05


# What a fetch of robots.txt means

WORDS = {
    Access.RULES: {"by rules", "by rules of the final file, applied to the first host", "allow all or by rules"},
    Access.ALLOW: {"allow all", "allow all or by rules", "allow all or disallow all"},
    Access.DEFER: {"defer"},
    Access.UNREACHABLE: {"disallow all", "disallow all for now", "disallow all, retry after 120 s"},
}
ERRORS: dict[str, Response | FetchFailure] = {
    "timeout": FetchFailure(Reason.TIMEOUT, ""),
    "dns": FetchFailure(Reason.DNS, ""),
    "connection refused": FetchFailure(Reason.CONNECT, ""),
    "tls": FetchFailure(Reason.TLS, ""),
    "truncated body": Response(200, (), b"User-agent: *\nDis", truncated=True),
}


def answer_of(given_: dict[str, Any]) -> Response | FetchFailure:
    """What the caller ends with: it follows MAX_ROBOTS_REDIRECTS redirects and passes on the next one."""
    if "error" in given_:
        return ERRORS[given_["error"]]
    redirects = given_.get("redirects", 0)
    if redirects == "loop" or redirects > MAX_ROBOTS_REDIRECTS:
        return Response(302, ((b"location", b"/robots.txt"),), b"")
    status = given_["status"] if "status" in given_ else given_["final"]
    return Response(status, (), given_.get("body", "").encode())


def status_cases() -> list[Any]:
    """All but acc-19 to acc-24, which are no answers: tested below (but acc-19: both answers are fine)."""
    others = frozenset({"acc-19", "acc-20", "acc-21", "acc-22", "acc-23", "acc-24"})
    redirected = frozenset({"rob-33"})  # a chain, which is the caller's to follow
    return [*suite("robots_access", leave_out=others), *bugs("robots_fetch", leave_out=redirected)]


@pytest.mark.parametrize("case", status_cases())
def test_the_answer_decides_whether_there_are_rules(case: dict[str, Any]) -> None:
    answer = answer_of(case["input"])
    access = access_of(answer)
    if access is Access.RULES and case["expected"]["access"] == "allow all":
        assert isinstance(answer, Response)
        assert parse(answer.body, "crawlkit").judge("/x").allowed  # a file without rules
    else:
        assert case["expected"]["access"] in WORDS[access]


def test_rules_had_over_redirects_hold_for_the_origin_asked_first() -> None:
    rules = parse(b"User-agent: *\nDisallow: /x", "crawlkit")  # rob-33: the engine's test follows the chain
    assert [rules.judge(f"http://h.example{path}").allowed for path in ("/x", "/y")] == [False, True]


@pytest.mark.parametrize("status", [100, 199, 500, 599, 600, 999])
def test_what_is_no_answer_fails_closed(status: int) -> None:
    assert access_of(Response(status, (), b"")) is Access.UNREACHABLE


@pytest.mark.parametrize("reason", list(Reason))
def test_every_failed_fetch_fails_closed(reason: Reason) -> None:
    assert access_of(FetchFailure(reason, "")) is Access.UNREACHABLE


def test_a_body_cut_where_parsing_ends_anyway_still_gives_rules() -> None:
    assert access_of(Response(200, (), b"#" * (MAX_ROBOTS_BYTES + 1), truncated=True)) is Access.RULES
    assert access_of(Response(200, (), b"#" * MAX_ROBOTS_BYTES, truncated=True)) is Access.UNREACHABLE


def test_each_scheme_and_port_has_its_own_robots_txt_for_a_day_at_most() -> None:
    assert ROBOTS_TTL_S == 24 * 3600  # acc-20
    assert origin_of("https://example.com:8443/a") + "/robots.txt" == "https://example.com:8443/robots.txt"  # acc-23
    assert origin_of("http://example.com/a") != origin_of("https://example.com/a")  # acc-24


# Size


def test_the_last_of_twenty_thousand_rules_counts() -> None:
    pad = "".join(f"Disallow: /pad{n}/\n" for n in range(20_000))  # rob-36
    rules = parse(f"User-agent: *\n{pad}Disallow: /secret/\n".encode(), "crawlkit")
    assert not rules.judge("/secret/x").allowed
    assert not rules.judge("/pad19999/x").allowed
    assert rules.judge("/pad20000/x").allowed


def test_five_hundred_kib_are_parsed_and_no_more() -> None:
    head = b"User-agent: *\n"
    at_499 = head + b"# pad\n" * ((499 * 1024 - len(head)) // 6) + b"Disallow: /in\n"  # acc-21
    body = at_499 + b"# pad\n" * 20_000 + b"Disallow: /out\n"  # acc-22
    assert len(body) > 600 * 1024
    rules = parse(body, "crawlkit")
    assert not rules.judge("/in").allowed
    assert rules.judge("/out").allowed


@pytest.mark.parametrize("end", [b"\n", b"\r", b"\r\n"])
def test_a_rule_cut_off_by_the_limit_is_dropped(end: bytes) -> None:
    head = b"User-agent: *" + end + b"Disallow: /a" + end
    cut = b"Disallow: /b"
    body = head + b"#" * (MAX_ROBOTS_BYTES - len(head) - len(end) - len(cut)) + end + cut + b"/only/this" + end
    assert parse(body, "crawlkit").judge("/b").allowed
    assert not parse(body, "crawlkit").judge("/a").allowed
    assert not parse(body[:MAX_ROBOTS_BYTES], "crawlkit").judge("/b").allowed


def test_a_utf_16_file_beyond_the_limit_keeps_its_last_whole_rule() -> None:
    text = "User-agent: *\nDisallow: /first\n" + "# pad\n" * 42_600
    room = (MAX_ROBOTS_BYTES - 2) // 2 - len(text)
    text += "Disallow: /" + "b" * (room - 12) + "\n" + "# beyond\n"
    rules = parse(b"\xff\xfe" + text.encode("utf-16-le"), "crawlkit")
    assert not rules.judge("/first").allowed
    assert not rules.judge("/" + "b" * (room - 12)).allowed


def test_a_group_named_ten_thousand_times_holds_its_rules_once() -> None:
    body = b"User-agent:*\n" * 10_000 + b"Disallow:/*a\n" * 10_000
    started_s = time.perf_counter()
    assert not parse(body, "crawlkit").judge("/a").allowed
    assert time.perf_counter() - started_s < 2


# The verdict and the rest of the file


def test_a_verdict_names_the_line_that_decided() -> None:
    rules = parse(b"# ours\r\nUser-agent: *\r\nDisallow: /a # why\r\nAllow: /a/b*c\r\n", "crawlkit")
    refused, allowed, unmatched = rules.judge("http://h.example/a"), rules.judge("/a/bc"), rules.judge("/z")
    assert (refused.allowed, refused.line, refused.text) == (False, 3, "Disallow: /a")
    assert (allowed.allowed, allowed.line, allowed.text) == (True, 4, "Allow: /a/b*c")
    assert (unmatched.allowed, unmatched.line, unmatched.text) == (True, None, None)


def test_of_two_equal_rules_the_first_is_named_and_allow_wins_in_any_order() -> None:
    rules = parse(
        b"User-agent: *\nDisallow: /a\nAllow: /a\nAllow: /a\nDisallow: /b*\nAllow: /b*\nDisallow: /ab\nAllow: /*b", "x"
    )
    assert rules.judge("/a").line == 3
    assert rules.judge("/b").line == 6
    assert rules.judge("/ab").line == 8


def test_robots_txt_itself_is_allowed_and_nothing_like_it() -> None:
    rules = parse(b"User-agent: *\nDisallow: /\n", "crawlkit")
    assert rules.judge("https://h.example/robots.txt").allowed
    assert not rules.judge("https://h.example/robots.txt.bak").allowed
    assert not rules.judge("https://h.example/a/robots.txt").allowed


def test_sitemaps_belong_to_the_whole_file_and_end_no_group() -> None:
    body = b"Sitemap: http://h.example/a\nUser-agent: x\nSITEMAP : /b\nSitemap:\nUser-agent: crawlkit\nDisallow: /\n"
    rules = parse(body, "crawlkit")
    assert rules.sitemaps == ("http://h.example/a", "/b")
    assert not rules.judge("/").allowed
    assert not parse(body, "x").judge("/").allowed


def test_our_groups_are_merged_and_everyones_are_not_added() -> None:
    ours = b"User-agent: CrawlKit\nDisallow: /a\n"
    everyones = b"User-agent: *\nDisallow: /b\n"
    body = ours + everyones + b"User-agent: x\nUser-agent: CRAWLKIT/2\nDisallow: /c\n"
    rules = parse(body, "crawlkit")
    assert [rules.judge(path).allowed for path in ("/a", "/b", "/c")] == [False, True, False]
    assert [parse(body, "other").judge(path).allowed for path in ("/a", "/b", "/c")] == [True, False, True]


@pytest.mark.parametrize(
    ("value", "delay_s"),
    [
        *[("10", 10.0), ("0.5", 0.5), ("10s", 10.0), ("0", 0.0)],
        *[(garbage, None) for garbage in ("", "-5", "1e9", "nan", "inf", "1.2.3", "1,5", "0x10", "9" * 400)],
    ],
)
def test_garbage_is_no_crawl_delay(value: str, delay_s: float | None) -> None:
    rules = parse(f"User-agent: *\nCrawl-delay: {value}\n".encode(), "crawlkit")
    assert rules.crawl_delay_s == delay_s


def test_of_several_crawl_delays_the_longest_holds_and_another_names_delay_is_not_ours() -> None:
    body = b"User-agent: a\nCrawl-delay: 1\nUser-agent: b\nCrawl-delay: 2\nDisallow: /\nCrawl-delay: 3\nCrawl-delay: 2\n"
    assert parse(body, "a").crawl_delay_s == 1
    assert parse(body, "b").crawl_delay_s == 3
    assert not parse(body, "a").judge("/").allowed


@pytest.mark.parametrize(
    ("rule", "path"),
    [
        *[("/a|b", "/a%7Cb"), ("/%7ea", "/~a"), ("/a b", "/a%20b"), ("/\u00fc", "/%c3%bc"), ("/a%zz", "/a%zz")],
        *[("/*%", "/a%2Fb"), ("/a$b", "/a%24b"), ("/a%2ab", "/a*b"), ("/a%2fb", "/a%2Fb")],
        *[("/a*$", "/ab"), ("*b$", "/ab")],
    ],
)
def test_both_sides_are_compared_in_one_form(rule: str, path: str) -> None:
    assert not parse(f"User-agent: *\nDisallow: {rule}\n".encode(), "crawlkit").judge(path).allowed


def test_two_pieces_of_a_pattern_never_share_an_octet() -> None:
    rules = parse(b"User-agent: *\nDisallow: /*aa*aa\nDisallow: /b*b$\n", "crawlkit")
    assert [rules.judge(path).allowed for path in ("/aaa", "/aaaa", "/b", "/bb")] == [True, False, True, False]


def test_a_star_that_starts_a_name_does_not_mean_everyone() -> None:
    assert parse(b"User-agent: *bot\nDisallow: /\n", "crawlkit").judge("/a").allowed
    assert not parse(b"User-agent: */1.0\nDisallow: /\n", "crawlkit").judge("/a").allowed


# Properties


SCRAPS = [
    *b"user-agent * : allow disallow / $ % # crawl-delay 1".split(),
    b"\nuser-agent: *\ndisallow: /",
    b" ",
    b"\n",
    b"\r",
    b"\0",
    b"\xff",
    b"\xfe",
]


@given(st.binary() | st.lists(st.sampled_from(SCRAPS)).map(b"".join), st.text())
@example(b"", "\ud800")  # no UTF-8 of its own
def test_no_body_and_no_url_raises(body: bytes, url: str) -> None:
    for name in ("crawlkit", url):
        rules = parse(body, name)
        verdict = rules.judge(url)
        assert verdict.allowed or verdict.line is not None  # what is not allowed, a line disallows
        assert rules.judge("/robots.txt").allowed


PIECES = ["a", "b", "/", "%61", "%2F", "%2f", "%2A", "%24", "\u00fc", "%C3%BC", "?", " ", "%", "$"]
PATTERNS = st.lists(st.sampled_from([*PIECES, "*", "*"]), max_size=8).map("".join)
TARGETS = st.lists(st.sampled_from([*PIECES, "*"]), max_size=10).map(lambda pieces: "/" + "".join(pieces))


def units(text: str) -> list[str]:
    """Text as the octets that are compared: unreserved ones bare, all that is escaped or should be, escaped."""
    out: list[str] = []
    octets = [chr(octet) for octet in text.encode()]
    while octets:
        octet = octets.pop(0)
        if octet == "%" and len(octets) > 1 and all(digit in "0123456789abcdefABCDEF" for digit in octets[:2]):
            code = int(octets.pop(0) + octets.pop(0), 16)
            escaped = chr(code)
            out.extend(escaped if escaped.isascii() and escaped.isalnum() else f"%{code:02X}")
        elif octet in "*$ " or not octet.isascii():
            out.extend(f"%{ord(octet):02X}")
        else:
            out.append(octet)
    return out


def pattern_units(pattern: str) -> list[str]:
    """A pattern's units; `ANY` and `END` are its operators."""
    anchored = pattern.endswith("$")
    parts = [units(part) for part in pattern.removesuffix("$").split("*")]
    out = parts[0]
    for part in parts[1:]:
        out = [*out, "ANY", *part]
    return [*out, "END"] if anchored else out


def slow_match(pattern: list[str], target: list[str]) -> bool:
    @cache
    def match(at_pattern: int, at_target: int) -> bool:
        if at_pattern == len(pattern):
            return True
        unit = pattern[at_pattern]
        if unit == "END":
            return at_target == len(target)
        if unit == "ANY":
            return any(match(at_pattern + 1, after) for after in range(at_target, len(target) + 1))
        return at_target < len(target) and unit == target[at_target] and match(at_pattern + 1, at_target + 1)

    return match(0, 0)


@given(st.lists(st.tuples(st.booleans(), PATTERNS.map(lambda p: "/" + p) | PATTERNS), max_size=6), TARGETS)
def test_judging_agrees_with_a_slow_matcher(rules: list[tuple[bool, str]], target: str) -> None:
    body = "User-agent: *\n" + "".join(f"{'Allow' if allow else 'Disallow'}: {pattern}\n" for allow, pattern in rules)
    matching = [
        (len(pattern_units(pattern.strip())), allow)
        for allow, pattern in rules
        if pattern.strip().startswith(("/", "*")) and slow_match(pattern_units(pattern.strip()), units(target))
    ]
    verdict = parse(body.encode(), "crawlkit").judge(target)
    assert verdict.allowed is (max(matching)[1] if matching else True)
    assert (verdict.line is None) is (not matching)
