"""Orders to a crawl that does not run: its directory is opened for them."""

from collections.abc import Sequence
from pathlib import Path

from crawlkit.engine.network import seeds_private_addresses
from crawlkit.engine.runner import run_async
from crawlkit.engine.session import read_seeds
from crawlkit.engine.steering import steering_stopped
from crawlkit.surfaces.control.messages import Do, Request
from crawlkit.surfaces.control.orders import note_added, steer


def carry_out(directory: Path, request: Request, now: float, span: Sequence[str] | None = None) -> str:
    """Do what is asked for, and return what was done, which is on disk then; UsageError, StateError and its kinds.

    `span` is there for a partition: the seeds that span the scope of the whole crawl.
    """
    with steering_stopped(directory, span) as (state, config, steering):
        if request.do is not Do.ADD:
            return steer(steering, None, request, now)
        seeds = read_seeds(request.seeds)
        state.allow_private(run_async(seeds_private_addresses(seeds, config)))
        return note_added(steering, seeds, steering.add(seeds), now)
