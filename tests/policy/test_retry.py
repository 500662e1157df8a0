"""Retries: what may pass, how long to wait, and what a Retry-After says."""

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlkit.model import Reason
from crawlkit.policy.retry import (
    MAX_BACKOFF_S,
    RULES,
    backoff_s,
    hold_s,
    may_retry,
    reason_of_status,
    retry_after_s,
)
from tests.shared_cases import bugs, suite

TRANSIENT = {
    Reason.DNS,
    Reason.CONNECT,
    Reason.RESET,
    Reason.TIMEOUT,
    Reason.PROXY,
    Reason.TOO_MANY_REQUESTS,
    Reason.SERVER_ERROR,
}


def epoch_s(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def test_every_reason_has_a_row() -> None:
    assert set(RULES) == set(Reason)


def test_only_timeouts_connection_errors_429_and_5xx_may_pass() -> None:
    assert {reason for reason, rule in RULES.items() if rule.may_pass} == TRANSIENT


def test_what_may_pass_has_a_wait_and_what_may_not_has_none() -> None:
    assert all((rule.base_s > 0) is rule.may_pass for rule in RULES.values())


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        (200, None),
        (304, None),
        (399, None),
        (400, Reason.CLIENT_ERROR),
        (428, Reason.CLIENT_ERROR),
        (429, Reason.TOO_MANY_REQUESTS),
        (430, Reason.CLIENT_ERROR),
        (499, Reason.CLIENT_ERROR),
        (500, Reason.SERVER_ERROR),
        (599, Reason.SERVER_ERROR),
        (600, Reason.OTHER_STATUS),
        (999, Reason.OTHER_STATUS),
    ],
)
def test_a_status_of_400_or_more_is_a_failure_with_its_reason(status: int, reason: Reason | None) -> None:
    assert reason_of_status(status) is reason


def test_three_retries_make_four_fetches() -> None:
    assert [may_retry(Reason.TIMEOUT, attempts, retries=3) for attempts in (1, 2, 3, 4)] == [True, True, True, False]
    assert not may_retry(Reason.TIMEOUT, 1, retries=0)


def test_what_will_not_pass_is_never_retried() -> None:
    assert not any(may_retry(reason, 1, retries=3) for reason in set(Reason) - TRANSIENT)


@given(st.text(), st.integers(1, 20), st.floats(0.01, 10))
def test_waits_grow_to_the_cap_and_stay_within_half_of_the_exponential(key: str, attempts: int, base_s: float) -> None:
    full_s = min(base_s * 2 ** (attempts - 1), MAX_BACKOFF_S)
    assert full_s / 2 <= backoff_s(key, attempts, base_s) <= full_s
    if base_s * 2**attempts <= MAX_BACKOFF_S:
        assert backoff_s(key, attempts, base_s) <= backoff_s(key, attempts + 1, base_s)


def test_the_same_failure_waits_the_same_time_and_others_come_back_apart() -> None:
    waits_s = [backoff_s(f"https://h.example/{n}", 1) for n in range(1000)]
    assert waits_s == [backoff_s(f"https://h.example/{n}", 1) for n in range(1000)]
    assert len(set(waits_s)) == 1000
    assert max(waits_s) - min(waits_s) > 0.49
    assert backoff_s("h", 20) != backoff_s("h", 21)


def test_any_text_can_be_a_key() -> None:
    assert backoff_s("\ud800", 1) > 0


def test_the_wait_is_the_same_in_every_process() -> None:
    assert backoff_s("https://h.example/", 1) == 0.6232528847347018


def test_a_thousand_attempts_wait_no_longer_than_the_cap() -> None:
    assert 5.0 <= backoff_s("h", 10_000, cap_s=10.0) <= 10.0


@pytest.mark.parametrize("case", [*suite("http_retry_after"), *bugs("retry_after")])
def test_a_retry_after_is_read_as_the_standard_says(case: dict[str, Any]) -> None:
    given_ = case["input"]
    assert retry_after_s(given_["retry_after"], epoch_s(given_["now"]), DAY_S) == case["expected"]["wait_s"]


NOON_S = epoch_s("2026-11-30T12:00:00Z")
DAY_S = 86_400.0


@pytest.mark.parametrize("value", ["86401", "9" * 5000, "Fri, 31 Dec 9999 23:59:59 GMT"])
@pytest.mark.parametrize("cap_s", [0.0, 90.0, DAY_S])
def test_no_server_parks_us_for_longer_than_the_cap(value: str, cap_s: float) -> None:
    assert retry_after_s(value, NOON_S, cap_s) == cap_s


@pytest.mark.parametrize(
    "value",
    [
        "\u0665",
        "10 20",
        "1e3",
        "120 s",
        "Mon, 30 Nov 2026",
        "Mon, 99 Nov 2026 12:00:00 GMT",
        "Mon, \u0663\u0660 Nov 2026 12:02:00 GMT",
        "+99999999999999999999 Nov +1 12:00 +0200",
    ],
)
def test_what_is_neither_seconds_nor_a_date_is_no_answer(value: str) -> None:
    assert retry_after_s(value, NOON_S, DAY_S) is None


@given(st.integers(-100_000, 86_400))
def test_any_date_is_the_time_until_then(ahead_s: int) -> None:
    value = format_datetime(datetime.fromtimestamp(NOON_S, UTC) + timedelta(seconds=ahead_s), usegmt=True)
    assert retry_after_s(value, NOON_S, DAY_S) == max(ahead_s, 0)


WORDS = [
    "Mon,",
    "Mon",
    "Jun",
    "3",
    "03",
    "-5",
    "2019",
    "19",
    "11:30:12",
    "GMT",
    "+0200",
    "+" + "9" * 20,
    ":",
    "-",
    ",",
    "0",
]


@given(st.text() | st.lists(st.sampled_from(WORDS), max_size=7).map(" ".join), st.floats(0, 1e11))
def test_no_header_raises_or_asks_for_an_impossible_wait(value: str, now_s: float) -> None:
    asked_s = retry_after_s(value, now_s, DAY_S)
    assert asked_s is None or 0 <= asked_s <= DAY_S


def test_the_server_may_lengthen_our_wait_but_not_shorten_it() -> None:
    own_s = backoff_s("h", 2, RULES[Reason.SERVER_ERROR].base_s)
    assert hold_s(Reason.SERVER_ERROR, "h", 2) == own_s
    assert hold_s(Reason.SERVER_ERROR, "h", 2, asked_s=0.0) == own_s
    assert hold_s(Reason.SERVER_ERROR, "h", 2, asked_s=120.0) == 120.0


def test_a_host_that_says_slow_down_is_left_alone_longer() -> None:
    assert hold_s(Reason.TOO_MANY_REQUESTS, "h", 1) > hold_s(Reason.SERVER_ERROR, "h", 1)
