"""The events of a run: what is told of claims, records, robots.txt and hosts, and when."""

from pathlib import Path
from typing import Any

from crawlkit.engine.events import (
    Claimed,
    Event,
    HostGivenUp,
    HostPaused,
    HostRecovered,
    Retrying,
    RobotsRead,
    Settled,
)
from crawlkit.model import Facts, FetchFailure, Kind, Reason
from crawlkit.policy.health import FIRST_PAUSE_S, OPENS_TO_GIVE_UP, STRIKES_TO_OPEN
from tests.engine.driver import SEED, A, Answer, Driver, Web, file, page


def told(tmp_path: Path, web: Web, **settings: Any) -> list[Event]:
    events: list[Event] = []
    times: list[float] = []

    def on_event(event: Event, at_s: float) -> None:
        events.append(event)
        times.append(at_s)

    with Driver(tmp_path / "crawl", web, on_event=on_event, **settings) as driver:
        driver.drain()
    assert times == sorted(times)
    return events


def test_a_page_is_claimed_then_settled_and_its_robots_txt_read_before(tmp_path: Path) -> None:
    events = told(tmp_path, {f"{A}/robots.txt": file("User-agent: *\nDisallow: /no"), SEED: page(f"{A}/no"), f"{A}/no": page()})

    shown = [type(event).__name__ for event in events]
    assert shown == ["Claimed", "RobotsRead", "Claimed", "Settled", "Settled"]
    assert isinstance(events[0], Claimed)
    assert (events[0].what, events[0].url, events[0].attempt) == ("robots", f"{A}/robots.txt", 1)
    assert isinstance(events[1], RobotsRead)
    assert (events[1].origin, events[1].verdict) == (A, "rules")
    assert isinstance(events[3], Settled)
    assert (events[3].url, events[3].kind, events[3].depth) == (SEED, Kind.PAGE, 0)
    assert isinstance(events[4], Settled)
    assert (events[4].reason, events[4].message) == (Reason.ROBOTS_DISALLOW, "line 3: Disallow: /no")


def test_each_try_that_fails_is_told_and_the_record_once(tmp_path: Path) -> None:
    answers: list[Answer] = [Facts(503), FetchFailure(Reason.TIMEOUT, "slow"), page()]
    events = told(tmp_path, {SEED: answers}, robots=False, retries=3)

    tries = [event for event in events if isinstance(event, Retrying)]
    assert [(each.attempt, each.status, each.reason, each.message) for each in tries] == [
        (1, 503, None, None),
        (2, None, Reason.TIMEOUT, "slow"),
    ]
    assert [event.kind for event in events if isinstance(event, Settled)] == [Kind.PAGE]
    assert [event.attempt for event in events if isinstance(event, Claimed)] == [1, 2, 3]


def test_a_host_is_paused_and_recovers(tmp_path: Path) -> None:
    down = FetchFailure(Reason.CONNECT, "refused")
    events = told(tmp_path, {SEED: [*[down] * STRIKES_TO_OPEN, page()]}, robots=False, retries=10)

    hosts = [event for event in events if isinstance(event, HostPaused | HostRecovered | HostGivenUp)]
    assert [type(event) for event in hosts] == [HostPaused, HostRecovered]
    assert isinstance(hosts[0], HostPaused)
    assert (hosts[0].host, hosts[0].opens) == ("a.test", 1)
    assert hosts[0].until_s > FIRST_PAUSE_S


def test_a_host_that_stays_down_is_given_up_once(tmp_path: Path) -> None:
    down = FetchFailure(Reason.CONNECT, "refused")
    events = told(tmp_path, {SEED: down}, robots=False, retries=30)

    hosts = [event for event in events if isinstance(event, HostPaused | HostRecovered | HostGivenUp)]
    assert [type(event) for event in hosts] == [*[HostPaused] * OPENS_TO_GIVE_UP, HostGivenUp]
