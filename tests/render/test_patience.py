"""The time of a page stands still while it waits aside, up to a bound."""

import asyncio

from crawlkit.render import patience
from crawlkit.render.patience import Patience


async def _runs_out(aside_s: float, within_s: float) -> bool:
    """Whether the time of 0.1 s is over `within_s` after so many seconds aside, twice at once."""
    found = Patience(0.1)
    try:
        with found.aside(), found.aside():
            await asyncio.sleep(aside_s)
            if found.run_out.is_set():
                return True
        try:
            await asyncio.wait_for(found.run_out.wait(), within_s)
        except TimeoutError:
            return False
        return True
    finally:
        found.close()


def test_what_is_spent_aside_does_not_count() -> None:
    assert not asyncio.run(_runs_out(0.2, 0.01))
    assert asyncio.run(_runs_out(0.2, 60))


def test_there_is_a_bound_to_it() -> None:
    assert asyncio.run(_runs_out(0.1 * patience.LONGEST + 0.1, 0))
