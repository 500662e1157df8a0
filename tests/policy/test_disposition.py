"""What one fetch leads to, as a table."""

import pytest

from crawlkit.model import Facts, FetchFailure, Kind, Reason
from crawlkit.policy.disposition import Again, Done, dispose, is_transient

URL = "http://a.test/x"
NOW = 1_000_000.0
NEXT = "http://a.test/next"
DAY_S = 86_400.0


@pytest.mark.parametrize("status", [200, 204, 206, 300, 304, 399])
def test_an_answer_below_400_is_a_page(status: int) -> None:
    disposition = dispose(URL, 0, Facts(status), 3, NOW, DAY_S)

    assert disposition.outcome == Done(Kind.PAGE)
    assert disposition.hold_s == 0


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_one_only_with_a_usable_location(status: int) -> None:
    assert dispose(URL, 0, Facts(status, location=NEXT), 3, NOW, DAY_S).outcome == Done(Kind.REDIRECT)
    assert dispose(URL, 0, Facts(status), 3, NOW, DAY_S).outcome == Done(Kind.FAILURE, Reason.NO_LOCATION)


@pytest.mark.parametrize("status", [300, 304])
def test_a_location_does_not_make_a_redirect_of_a_status_that_is_none(status: int) -> None:
    assert dispose(URL, 0, Facts(status, location=NEXT), 3, NOW, DAY_S).outcome == Done(Kind.PAGE)


@pytest.mark.parametrize(
    ("answer", "reason", "retried"),
    [
        (Facts(400), Reason.CLIENT_ERROR, False),
        (Facts(404), Reason.CLIENT_ERROR, False),
        (Facts(410), Reason.CLIENT_ERROR, False),
        (Facts(429), Reason.TOO_MANY_REQUESTS, True),
        (Facts(500), Reason.SERVER_ERROR, True),
        (Facts(503), Reason.SERVER_ERROR, True),
        (Facts(600), Reason.OTHER_STATUS, False),
        (FetchFailure(Reason.DNS, "no such name"), Reason.DNS, True),
        (FetchFailure(Reason.CONNECT, "refused"), Reason.CONNECT, True),
        (FetchFailure(Reason.RESET, "by peer"), Reason.RESET, True),
        (FetchFailure(Reason.TIMEOUT, "10 s"), Reason.TIMEOUT, True),
        (FetchFailure(Reason.TLS, "expired"), Reason.TLS, False),
        (FetchFailure(Reason.PROTOCOL, "garbage"), Reason.PROTOCOL, False),
        (FetchFailure(Reason.ADDRESS, "10.0.0.1"), Reason.ADDRESS, False),
    ],
)
def test_failures_that_may_pass_are_tried_again_as_often_as_retries_say_and_no_more(
    answer: Facts | FetchFailure, reason: Reason, retried: bool
) -> None:
    for failed_before in range(5):
        outcome = dispose(URL, failed_before, answer, 3, NOW, DAY_S).outcome
        if retried and failed_before < 3:
            assert isinstance(outcome, Again)
            assert outcome.reason is reason
            assert outcome.wait_s > 0
        else:
            assert isinstance(outcome, Done)
            assert (outcome.kind, outcome.reason) == (Kind.FAILURE, reason)


def test_with_no_retries_the_first_failure_is_the_last() -> None:
    assert isinstance(dispose(URL, 0, FetchFailure(Reason.TIMEOUT, ""), 0, NOW, DAY_S).outcome, Done)


@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize("retries", [0, 3])
def test_429_and_503_hold_the_whole_host_for_as_long_as_they_ask_whether_tried_again_or_not(status: int, retries: int) -> None:
    disposition = dispose(URL, 0, Facts(status, retry_after="120"), retries, NOW, DAY_S)

    assert disposition.hold_s == 120
    if retries:
        assert disposition.outcome == Again(120, Reason.TOO_MANY_REQUESTS if status == 429 else Reason.SERVER_ERROR)


@pytest.mark.parametrize(("asked", "hold_s"), [("120", 90.0), ("60", 60.0)])
def test_a_host_is_held_for_no_longer_than_the_cap_whatever_it_asks(asked: str, hold_s: float) -> None:
    assert dispose(URL, 0, Facts(429, retry_after=asked), 3, NOW, 90.0).hold_s == hold_s


@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize("asked", [None, "soon", "0"])
def test_without_a_usable_retry_after_the_host_is_held_for_our_own_wait(status: int, asked: str | None) -> None:
    disposition = dispose(URL, 1, Facts(status, retry_after=asked), 3, NOW, DAY_S)

    assert isinstance(disposition.outcome, Again)
    assert disposition.hold_s == disposition.outcome.wait_s > 0


@pytest.mark.parametrize("answer", [Facts(500, retry_after="120"), Facts(502), FetchFailure(Reason.TIMEOUT, ""), Facts(404)])
def test_what_fails_for_one_url_does_not_hold_its_host(answer: Facts | FetchFailure) -> None:
    assert dispose(URL, 0, answer, 3, NOW, DAY_S).hold_s == 0


def test_waits_grow_from_one_attempt_to_the_next() -> None:
    waits = [dispose(URL, failed, FetchFailure(Reason.RESET, ""), 9, NOW, DAY_S).outcome for failed in range(6)]

    grown = [again.wait_s for again in waits if isinstance(again, Again)]
    assert len(grown) == 6
    assert grown == sorted(grown)


def test_the_librarys_words_are_kept_beside_the_reason() -> None:
    assert dispose(URL, 0, FetchFailure(Reason.TLS, "certificate expired"), 3, NOW, DAY_S).outcome == Done(
        Kind.FAILURE, Reason.TLS, "certificate expired"
    )
    assert dispose(URL, 0, Facts(404), 3, NOW, DAY_S).outcome == Done(Kind.FAILURE, Reason.CLIENT_ERROR, "HTTP 404")


TRANSIENT = {
    Reason.DNS,
    Reason.CONNECT,
    Reason.PROXY,
    Reason.RESET,
    Reason.TIMEOUT,
    Reason.TOO_MANY_REQUESTS,
    Reason.SERVER_ERROR,
    Reason.HOST_UNREACHABLE,
    Reason.ROBOTS_UNREACHABLE,
}


@pytest.mark.parametrize("reason", Reason)
def test_a_record_is_transient_where_another_time_might_have_ended_it_otherwise(reason: Reason) -> None:
    assert is_transient(reason) is (reason in TRANSIENT)


def test_a_page_is_not_transient() -> None:
    assert not is_transient(None)
