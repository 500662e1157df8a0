"""What a run met lately: bounded whatever comes, percentiles near the truth, failures with what happens next."""

import random

import pytest

from crawlkit.config import Config
from crawlkit.engine.lately import MOST_FAILURES, MOST_POINTS, Answers, Failing, Lately, Point, Timeline, Witness, merged_lately
from crawlkit.model import Facts, Fetched, FetchFailure, Job, PageJob, Reason, Response, RobotsJob

CONFIG = Config(retries=2)


def fetched(
    answer: Facts | FetchFailure | Response, *, at_s: float = 100.0, took_s: float = 0.05, job: Job | None = None
) -> Fetched:
    return Fetched(job or PageJob("http://a.test/", "a.test"), at_s - took_s, at_s, answer)


def test_answers_are_counted_by_the_second() -> None:
    answers = Answers()
    for at_s in (7.0, 7.9, 9.1):
        answers.add(at_s, 10)
    timeline = answers.timeline()
    assert timeline.width_s == 1
    assert [(point.at_s, point.answers) for point in timeline.points] == [(7, 2), (9, 1)]


@pytest.mark.parametrize("span_s", [MOST_POINTS, 10_000, 40_000_000])
def test_a_long_run_has_no_more_points_than_a_short_one_and_loses_no_answer(span_s: int) -> None:
    answers = Answers()
    moments = [random.Random(1).uniform(0, span_s) for _ in range(3)] + [n * span_s / 2_000 for n in range(2_001)]
    for at_s in moments:
        answers.add(at_s, 10)
    timeline = answers.timeline()
    assert len(timeline.points) <= MOST_POINTS
    assert sum(point.answers for point in timeline.points) == len(moments)
    assert timeline.points[-1].at_s >= span_s - timeline.width_s
    assert timeline.width_s < 4 * max(1, span_s / MOST_POINTS)


def test_answers_may_come_in_any_order() -> None:
    one, other = Answers(), Answers()
    moments = [n * 7.0 for n in range(1_000)]
    for answers, order in ((one, moments), (other, moments[::-1])):
        for at_s in order:
            answers.add(at_s, 10)
    assert one.timeline() == other.timeline()


def test_percentiles_are_within_a_tenth() -> None:
    answers = Answers()
    for ms in range(100, 1_100):
        answers.add(5.0, ms)
    (point,) = answers.timeline().points
    assert point.median_ms == pytest.approx(600, rel=0.1)
    assert point.p95_ms == pytest.approx(1_050, rel=0.1)


@pytest.mark.parametrize("ms", [0.0, -3.0, 0.4, 1e9])
def test_any_latency_has_a_class(ms: float) -> None:
    answers = Answers()
    answers.add(5.0, ms)
    (point,) = answers.timeline().points
    assert point.median_ms == pytest.approx(max(0.0, ms), rel=0.1, abs=0.3)


def test_a_failure_says_whether_it_is_tried_again() -> None:
    witness = Witness(CONFIG)
    timeout = FetchFailure(Reason.TIMEOUT, "no complete answer within 10 s")
    for attempts in (0, 1, 2):
        witness.fetched(fetched(timeout, job=PageJob("http://a.test/x", "a.test", attempts)))
    witness.fetched(fetched(Facts(404)))
    witness.fetched(fetched(Facts(301)))
    witness.fetched(fetched(Facts(301, location="http://a.test/y")))
    witness.fetched(fetched(Facts(200)))
    lately = witness.lately()
    assert [(f.reason, f.message, f.attempt, f.again) for f in lately.failures] == [
        (Reason.NO_LOCATION, "HTTP 301", 1, False),
        (Reason.CLIENT_ERROR, "HTTP 404", 1, False),
        (Reason.TIMEOUT, "no complete answer within 10 s", 3, False),
        (Reason.TIMEOUT, "no complete answer within 10 s", 2, True),
        (Reason.TIMEOUT, "no complete answer within 10 s", 1, True),
    ]
    assert lately.statuses == {"200": 1, "301": 2, "404": 1, "net.timeout": 3}


def test_a_robots_txt_counts_only_as_a_failure() -> None:
    witness = Witness(CONFIG)
    job = RobotsJob("http://a.test", "http://a.test/robots.txt", "a.test")
    witness.fetched(fetched(Response(404, (), b""), job=job))
    witness.fetched(fetched(FetchFailure(Reason.CONNECT, "refused"), job=job))
    lately = witness.lately()
    assert (lately.statuses, lately.timeline.points) == ({}, [])
    assert [failing.url for failing in lately.failures] == ["http://a.test/robots.txt"]


def test_only_the_latest_failures_are_kept_and_no_message_is_long() -> None:
    witness = Witness(CONFIG)
    for number in range(MOST_FAILURES + 10):
        job = PageJob(f"http://a.test/{number}", "a.test")
        witness.fetched(fetched(FetchFailure(Reason.TLS, "x" * 100_000), job=job))
    failures = witness.lately().failures
    assert [failing.url.rpartition("/")[2] for failing in failures] == [str(n) for n in range(MOST_FAILURES + 9, 9, -1)]
    assert max(len(failing.message or "") for failing in failures) < 1_000


def test_what_partitions_met_is_put_together() -> None:
    def failing(at_s: float) -> Failing:
        return Failing(at_s=at_s, url=f"http://a.test/{at_s}", reason=Reason.CONNECT, message=None, attempt=1, again=False)

    one = Lately(
        Timeline(1, [Point(10, 1, 5.0, 6.0), Point(11, 3, 9.0, 20.0), Point(14, 2, None, None)]), {"200": 4}, [failing(9.0)]
    )
    other = Lately(Timeline(2, [Point(10, 4, 1.0, 2.0), Point(12, 1, 7.0, 7.0)]), {"200": 1, "404": 2}, [failing(12.0)])
    merged = merged_lately([one, other])
    assert merged.timeline == Timeline(
        2, [Point(10, 8, round((5 + 27 + 4) / 8, 1), 20.0), Point(12, 1, 7.0, 7.0), Point(14, 2, None, None)]
    )
    assert merged.statuses == {"200": 5, "404": 2}
    assert [found.at_s for found in merged.failures] == [12.0, 9.0]
    assert len(merged_lately([Lately(one.timeline, {}, [failing(at)] * 40) for at in (1.0, 2.0)]).failures) == 50
