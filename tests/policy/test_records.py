"""Records made from what a fetch led to."""

import msgspec

from crawlkit.model import Facts, Fetched, FetchFailure, Kind, PageJob, Reason, Record
from crawlkit.policy.disposition import Done
from crawlkit.policy.records import Place, record_of

URL, VIA = "http://a.test/x", "http://a.test/"
PLACE = Place(URL, depth=2, hops=1, sources=5, attempts=3, via=VIA)
FACTS = Facts(
    status=200,
    content_type="text/html",
    charset="utf-8",
    body_bytes=1234,
    truncated=True,
    title="Title",
    digest="sha256:00",
    links=("http://a.test/1", "http://a.test/2"),
    nofollow=(1,),
    canonical="http://a.test/c",
    admits_canonical=False,
    retry_after="7",
    directives=("nofollow",),
)


def fetched(answer: Facts | FetchFailure) -> Fetched:
    return Fetched(PageJob(URL, "a.test", 3, VIA), started_s=100.0, ended_s=100.25, answer=answer)


def test_a_page_has_all_that_its_answer_says() -> None:
    assert record_of(PLACE, Done(Kind.PAGE), fetched(FACTS)) == Record(
        url=URL,
        kind=Kind.PAGE,
        depth=2,
        hops=1,
        sources=5,
        status=200,
        content_type="text/html",
        charset="utf-8",
        body_bytes=1234,
        truncated=True,
        title="Title",
        digest="sha256:00",
        links=("http://a.test/1", "http://a.test/2"),
        nofollow=(1,),
        canonical="http://a.test/c",
        admits_canonical=False,
        directives=("nofollow",),
        fetched_at=100.0,
        elapsed_ms=250,
        attempts=4,
        via=VIA,
    )


def test_a_redirect_has_its_target() -> None:
    record = record_of(PLACE, Done(Kind.REDIRECT), fetched(Facts(301, location="http://b.test/")))

    assert (record.kind, record.status, record.redirect_to) == (Kind.REDIRECT, 301, "http://b.test/")


def test_a_failure_without_an_answer_has_its_reason_and_nulls() -> None:
    done = Done(Kind.FAILURE, Reason.TIMEOUT, "10 s")

    assert record_of(PLACE, done, fetched(FetchFailure(Reason.TIMEOUT, "10 s"))) == Record(
        url=URL,
        kind=Kind.FAILURE,
        depth=2,
        hops=1,
        sources=5,
        reason=Reason.TIMEOUT,
        message="10 s",
        fetched_at=100.0,
        elapsed_ms=250,
        attempts=4,
        via=VIA,
    )


def test_what_needed_no_request_has_no_time_and_no_attempts() -> None:
    done = Done(Kind.EXCLUDED, Reason.ROBOTS_DISALLOW, "line 2: Disallow: /")

    assert record_of(PLACE, done, None) == Record(
        url=URL,
        kind=Kind.EXCLUDED,
        depth=2,
        hops=1,
        sources=5,
        reason=Reason.ROBOTS_DISALLOW,
        message="line 2: Disallow: /",
        via=VIA,
    )


def test_a_record_reads_back_as_it_was_stored() -> None:
    record = record_of(PLACE, Done(Kind.PAGE), fetched(FACTS))

    assert msgspec.msgpack.decode(msgspec.msgpack.encode(record), type=Record) == record
