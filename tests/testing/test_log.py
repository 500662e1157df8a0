"""The log says what was asked, when, and how much of it at once."""

import threading
from pathlib import Path

from crawlkit.testing.clock import ManualClock
from crawlkit.testing.log import Request, RequestLog, encode, read_log

HEADERS = (("user-agent", "test"),)


def test_a_request_is_logged_when_it_arrives_and_again_when_it_ends() -> None:
    clock = ManualClock(10.0)
    log = RequestLog(clock.now)
    index = log.begin("h", "/a", HEADERS)
    assert list(log) == [Request(10.0, None, "h", "/a", HEADERS)]
    clock.advance(2.5)
    log.end(index)
    assert list(log) == [Request(10.0, 12.5, "h", "/a", HEADERS)]


def test_requests_stay_in_the_order_of_their_arrival() -> None:
    log = RequestLog()
    first, second = log.begin("h", "/1", ()), log.begin("h", "/2", ())
    log.end(second)
    log.end(first)
    assert [request.target for request in log] == ["/1", "/2"]
    assert [request.target for request in log[1:]] == ["/2"]


def test_most_in_flight_is_counted_by_host() -> None:
    log = RequestLog(lambda: 0.0)
    first, second, other = log.begin("h1", "/", ()), log.begin("h1", "/", ()), log.begin("h2", "/", ())
    for index in (first, second, other):
        log.end(index)
    log.end(log.begin("h1", "/", ()))
    assert log.in_flight_max == {"h1": 2, "h2": 1}


def test_a_thread_can_wait_for_what_another_logs() -> None:
    log = RequestLog()
    writer = threading.Thread(target=lambda: [log.begin("h", f"/{n}", ()) for n in range(3)])
    writer.start()
    assert log.wait_for(lambda log: len(log) == 3)
    writer.join()


def test_waiting_in_vain_says_so() -> None:
    assert not RequestLog().wait_for(lambda log: len(log) > 0, timeout_s=0.0)


def test_lines_read_back_and_one_half_written_is_left_out(tmp_path: Path) -> None:
    ended = Request(1.25, 2.5, "h:80", "/ä?q=\\", (("accept", "*/*"), ("x", "\xff")))
    path = tmp_path / "log"
    path.write_bytes(encode(ended) * 2 + encode(ended)[:-5])
    assert read_log(path) == [ended, ended]


def test_each_ended_request_is_handed_on() -> None:
    handed: list[Request] = []
    log = RequestLog(lambda: 1.0, on_end=handed.append)
    index = log.begin("h", "/", ())
    assert handed == []
    log.end(index)
    assert handed == [Request(1.0, 1.0, "h", "/", ())]
