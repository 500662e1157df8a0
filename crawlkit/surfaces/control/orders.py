"""Orders to a crawl, whether it runs or not: what each does, and what is said of it."""

from collections.abc import Sequence
from typing import assert_never

from crawlkit.config_units import format_duration
from crawlkit.engine.coordinator import Coordinator
from crawlkit.engine.steering import Added, Steering, read_host
from crawlkit.errors import StateError, UsageError
from crawlkit.state.checkpoint import Action
from crawlkit.surfaces.control.messages import Do, Request


def steer(steering: Steering, coordinator: Coordinator | None, request: Request, now: float) -> str:
    """Carry out an order about a host, or a pause of `coordinator` (None where nothing runs); return what was done.

    UsageError for a host that is none, StateError for a pause of nothing.
    """
    match request.do:
        case Do.PAUSE | Do.CONTINUE:
            return _pause(steering, coordinator, now, paused=request.do is Do.PAUSE)
        case Do.HOLD:
            host = read_host(request.host)
            steering.hold(host, request.for_s, now)
            return f"{host} is held {'until it is released' if request.for_s is None else format_duration(request.for_s)}"
        case Do.RELEASE:
            host = read_host(request.host)
            steering.release(host, now)
            return f"{host} is released"
        case Do.DROP:
            host = read_host(request.host)
            steering.drop(host, now)
            return f"{host} is dropped: its URLs that wait, and those that are found later, end as host.dropped"
        case Do.STATUS | Do.READ | Do.WATCH | Do.EXPLAIN | Do.ADD:
            raise UsageError(f"{request.do} is not an order about a host")
        case unknown:
            assert_never(unknown)


def _pause(steering: Steering, coordinator: Coordinator | None, now: float, *, paused: bool) -> str:
    if coordinator is None:
        raise StateError("no crawl runs there, so there is nothing to pause or to continue; crawlkit resume goes on with it")
    if coordinator.paused is paused:
        return "it is paused already" if paused else "it was not paused"
    coordinator.paused = paused
    steering.note(Action.PAUSE if paused else Action.CONTINUE, None, now)
    return "paused: no new fetches until crawlkit continue, or until the run ends" if paused else "going on"


def note_added(steering: Steering, seeds: Sequence[str], added: Added, now: float) -> str:
    """Enter an addition of seeds into the ledger; return what was done."""
    more = f" and {len(seeds) - 1} more" if len(seeds) > 1 else ""
    steering.note(Action.ADD, f"{seeds[0]}{more}", now)
    known = len(seeds) - added.new
    return "".join(
        (
            f"added {added.new} of {len(seeds)} seeds",
            f"; {known} were seeds already" if known else "",
            f"; {added.outside} are outside of the scope, which they do not extend" if added.outside else "",
        )
    )
