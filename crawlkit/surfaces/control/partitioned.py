"""Orders to a crawl in partitions: each goes to the partition that it concerns, a pause to all that run."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import assert_never

import msgspec

from crawlkit.engine.partitions import Partitions
from crawlkit.engine.session import read_seeds
from crawlkit.engine.steering import read_host
from crawlkit.errors import StateError, StateLocked, UsageError
from crawlkit.policy.urls import host_of
from crawlkit.state.directory import DirectoryLock, is_held
from crawlkit.state.partitions import member_directory, read_span
from crawlkit.surfaces.control.messages import Do, Request

Deliver = Callable[[Path, Request, Sequence[str]], str]
"""Has an order carried out in the directory of a partition, running or not, by the seeds that span the scope of the crawl."""


def order_partitions(partitions: Partitions, request: Request, deliver: Deliver) -> list[str]:
    """Have an order carried out by the partitions that it concerns; return what was done, each sentence once.

    StateError and its kinds, UsageError for what the order names.
    """
    match request.do:
        case Do.PAUSE | Do.CONTINUE:
            running = [number for number, member in enumerate(partitions.members) if is_held(member)]
            requests = dict.fromkeys(running or [0], request)
        case Do.HOLD | Do.RELEASE | Do.DROP:
            partitions.check_settled()
            requests = {partitions.owner_of(read_host(request.host)): request}
        case Do.ADD:
            partitions.check_settled()
            requests = _dealt(partitions, request)
        case Do.STATUS | Do.READ | Do.WATCH | Do.EXPLAIN:
            raise UsageError(f"{request.do} is not an order")
        case unknown:
            assert_never(unknown)
    with _as_they_stand(partitions, requests):
        span = read_span(partitions.directory)
        done = [deliver(member_directory(partitions.directory, number), each, span) for number, each in requests.items()]
    return list(dict.fromkeys(done))


def _dealt(partitions: Partitions, request: Request) -> dict[int, Request]:
    """Return an addition of seeds as one for each partition that owns the host of some."""
    dealt: dict[int, list[str]] = {}
    for seed in read_seeds(request.seeds):
        dealt.setdefault(partitions.owner_of(host_of(seed)), []).append(seed)
    return {number: msgspec.structs.replace(request, seeds=tuple(seeds)) for number, seeds in sorted(dealt.items())}


@contextmanager
def _as_they_stand(partitions: Partitions, numbers: Iterable[int]) -> Iterator[None]:
    """Keep a crawl that does not run from being gone on with; of one that runs, see that these partitions do."""
    try:
        lock = DirectoryLock(partitions.directory)
    except StateLocked:
        at_rest = [number for number in numbers if not is_held(member_directory(partitions.directory, number))]
        if at_rest:
            raise StateError(f"partition {at_rest[0]} of {partitions.directory} is being started or ended; try again") from None
        yield
    else:
        with lock:
            yield
