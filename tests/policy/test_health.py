"""The breaker and the slowed rate, as tables and properties."""

from hypothesis import given
from hypothesis import strategies as st

from crawlkit.model import Health, Reason
from crawlkit.policy.health import (
    FIRST_PAUSE_S,
    LONGEST_PAUSE_S,
    MOST_SLOWDOWN,
    OPENS_TO_GIVE_UP,
    STRIKES_TO_OPEN,
    Change,
    Signal,
    after,
    concurrency_of,
    signal_of,
    slowed_gap_s,
)


def follow(signals: list[Signal], health: Health | None = None) -> list[Change]:
    changes = []
    health = health or Health()
    for signal in signals:
        changes.append(after(health, signal))
        health = changes[-1].health
    return changes


def test_what_each_answer_says_of_its_host() -> None:
    assert signal_of(200, None) is Signal.GOOD
    assert signal_of(302, None) is Signal.GOOD
    assert signal_of(404, Reason.CLIENT_ERROR) is Signal.REFUSAL
    assert signal_of(999, Reason.OTHER_STATUS) is Signal.REFUSAL
    assert signal_of(None, Reason.PROTOCOL) is Signal.REFUSAL
    assert signal_of(429, Reason.TOO_MANY_REQUESTS) is Signal.COMPLAINT
    assert signal_of(503, Reason.SERVER_ERROR) is Signal.COMPLAINT
    assert signal_of(500, Reason.SERVER_ERROR) is Signal.ERROR
    assert signal_of(None, Reason.CONNECT) is Signal.NO_CONTACT
    assert signal_of(None, Reason.TIMEOUT) is Signal.NO_CONTACT
    assert signal_of(None, Reason.ADDRESS) is Signal.NOTHING, "our own refusal says nothing of the host"


def test_the_breaker_opens_after_consecutive_failures_and_not_before() -> None:
    changes = follow([Signal.NO_CONTACT] * STRIKES_TO_OPEN)
    assert [change.pause_s for change in changes] == [0.0] * (STRIKES_TO_OPEN - 1) + [FIRST_PAUSE_S]
    broken_off = [*[Signal.NO_CONTACT] * (STRIKES_TO_OPEN - 1), Signal.GOOD] * 3
    assert all(change.pause_s == 0 for change in follow(broken_off))
    answered = [*[Signal.NO_CONTACT] * (STRIKES_TO_OPEN - 1), Signal.REFUSAL] * 3
    assert all(change.pause_s == 0 for change in follow(answered)), "who says 404 is there"
    not_asked = follow([*[Signal.NO_CONTACT] * (STRIKES_TO_OPEN - 1), Signal.NOTHING, Signal.NO_CONTACT])
    assert not_asked[-1].pause_s == FIRST_PAUSE_S


def test_half_open_one_failed_probe_doubles_the_pause_and_the_bound_gives_up() -> None:
    opened = follow([Signal.NO_CONTACT] * STRIKES_TO_OPEN)[-1].health
    assert concurrency_of(opened, 8) == 1
    probes = follow([Signal.NO_CONTACT] * OPENS_TO_GIVE_UP, opened)
    assert [p.pause_s for p in probes[:-1]] == [FIRST_PAUSE_S * 2**n for n in range(1, OPENS_TO_GIVE_UP)]
    assert not any(p.health.given_up for p in probes[:-1])
    assert probes[-1].health.given_up


def test_one_good_probe_closes_the_breaker() -> None:
    opened = follow([Signal.NO_CONTACT] * STRIKES_TO_OPEN)[-1].health
    closed = after(opened, Signal.GOOD).health
    assert closed.opens == 0
    assert concurrency_of(closed, 8) == 8
    assert after(closed, Signal.NO_CONTACT).pause_s == 0


def test_a_host_that_answers_little_but_errors_is_left_alone() -> None:
    changes = follow([Signal.ERROR] * 60)
    first = next(n for n, change in enumerate(changes) if change.pause_s)
    assert 25 <= first <= 40
    mixed = follow([Signal.ERROR, Signal.GOOD] * 100)
    assert all(change.pause_s == 0 for change in mixed)


def test_complaints_halve_the_rate_and_good_answers_recover_it_slowly() -> None:
    slowed = follow([Signal.COMPLAINT] * 2)[-1].health
    assert slowed_gap_s(1.0, slowed) == 4.0
    assert slowed_gap_s(0.0, slowed) > 0, "a crawl without gap gets one"
    recovering = follow([Signal.GOOD] * 10, slowed)[-1].health
    assert 2.0 < slowed_gap_s(1.0, recovering) < 4.0
    assert slowed_gap_s(1.0, follow([Signal.GOOD] * 100, slowed)[-1].health) == 1.0


@given(st.lists(st.sampled_from(Signal), max_size=200))
def test_bounds_hold_whatever_a_host_does(signals: list[Signal]) -> None:
    for change in follow(signals):
        assert 0 <= change.pause_s <= LONGEST_PAUSE_S
        assert 1.0 <= change.health.slowdown <= MOST_SLOWDOWN
        assert 0.0 <= change.health.error_share <= 1.0


@given(st.lists(st.sampled_from([signal for signal in Signal if signal is not Signal.GOOD]), max_size=50))
def test_what_is_no_good_answer_never_speeds_a_host_up(signals: list[Signal]) -> None:
    gaps = [slowed_gap_s(1.0, change.health) for change in follow(signals)]
    assert gaps == sorted(gaps)
