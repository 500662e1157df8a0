"""How far a crawl in partitions is: what its partitions say of themselves, together and one by one."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from crawlkit.engine.figures import Live, first_hosts
from crawlkit.engine.lately import Lately, merged_lately
from crawlkit.engine.pace import Pace
from crawlkit.engine.partitions import Partitions
from crawlkit.state.checkpoint import Summary, merged_summary, read_summary
from crawlkit.state.directory import is_held
from crawlkit.surfaces.control.client import NoAnswer, ask
from crawlkit.surfaces.control.messages import Answer, Do, Request
from crawlkit.surfaces.status import CrawlCondition, PartitionStatus, Status, live_status, status_of


class _Found(NamedTuple):
    """A partition: what it answers if it runs, else (and if it does not answer) what its last checkpoint says."""

    summary: Summary
    live: Live | None
    running: bool
    lately: Lately | None = None


def partitioned_status(partitions: Partitions, hosts: int) -> Status:
    """Return the status of a crawl in partitions, with up to `hosts` hosts of those that answer.

    It runs if any partition does, or who runs them; it has finished if all of them have.
    """
    request = Request(do=Do.STATUS, hosts=hosts)
    return _status(partitions, [_look(member, request) for member in partitions.members], hosts)


def watched_partitions(partitions: Partitions, hosts: int) -> tuple[Status, Lately]:
    """Return the status with what those partitions met lately that answer; NoAnswer if none does."""
    request = Request(do=Do.WATCH, hosts=hosts)
    found = [_look(member, request) for member in partitions.members]
    lately = [part.lately for part in found if part.lately is not None]
    if not lately:
        raise NoAnswer(f"no partition of the crawl in {partitions.directory} answers: they are being started or ended")
    return _status(partitions, found, hosts), merged_lately(lately)


def _status(partitions: Partitions, found: Sequence[_Found], hosts: int) -> Status:
    running = is_held(partitions.directory) or any(part.running for part in found)
    summary = merged_summary(partitions.table.crawl_id, [part.summary for part in found])
    lives = [part.live for part in found if part.live is not None]
    if lives:
        status = live_status(_together(summary, lives, hosts), partitions.directory)
        status = msgspec.structs.replace(status, live=all(part.live is not None for part in found if part.running))
    else:
        status = status_of(summary, partitions.directory, running=running)
    owned = [partitions.table.owners.count(number) for number in range(len(found))]
    each = [_status_of(number, part, owned[number]) for number, part in enumerate(found)]
    return msgspec.structs.replace(status, partitions=each)


def _look(member: Path, request: Request) -> _Found:
    if is_held(member):
        try:
            answer = ask(member, request)
        except NoAnswer:  # it is being made or opened, or has just ended
            answer = Answer()
        if answer.live is not None:
            return _Found(answer.live.summary, answer.live, running=True, lately=answer.lately)
    summary, running = read_summary(member), is_held(member)
    if not running:
        summary.in_flight = 0  # of a run that was killed
    return _Found(summary, None, running)


def _together(summary: Summary, lives: Sequence[Live], hosts: int) -> Live:
    pace = Pace(sum(live.pace.settled for live in lives), max(live.pace.over_s for live in lives))
    waiting = first_hosts([host for live in lives for host in live.hosts], hosts)
    return Live(summary, pace, all(live.paused for live in lives), waiting)


def _status_of(number: int, part: _Found, nodes: int) -> PartitionStatus:
    counters = part.summary.counters
    at_rest = CrawlCondition.FINISHED if counters.finished else CrawlCondition.STOPPED
    return PartitionStatus(
        number=number,
        state=CrawlCondition.RUNNING if part.running else at_rest,
        live=part.live is not None,
        nodes=nodes,
        pages=counters.pages,
        failures=counters.failures,
        queued=counters.queued - part.summary.in_flight,
        in_flight=part.summary.in_flight,
        seen=counters.seen,
        hosts=counters.hosts,
        requests=counters.requests,
    )
