"""The time of a page stands still while it waits aside, up to a bound."""

import asyncio

from crawlkit.render import patience
from crawlkit.render.patience import Patience

TIMEOUT_S = 0.05


async def _runs_out(found: Patience, within_s: float) -> bool:
    try:
        await asyncio.wait_for(found.run_out.wait(), within_s)
    except TimeoutError:
        return False
    return True


def test_what_is_spent_aside_by_several_at_once_does_not_count() -> None:
    async def main() -> None:
        found = Patience(TIMEOUT_S)
        with found.aside():
            with found.aside():
                assert not await _runs_out(found, TIMEOUT_S * 2)
            assert not await _runs_out(found, TIMEOUT_S * 2)
        assert await _runs_out(found, 60)
        found.close()

    asyncio.run(main())


def test_there_is_a_bound_to_it() -> None:
    async def main() -> None:
        began_s = asyncio.get_running_loop().time()
        found = Patience(TIMEOUT_S)
        with found.aside():
            assert await _runs_out(found, 60)
        assert asyncio.get_running_loop().time() - began_s >= TIMEOUT_S * patience.LONGEST
        found.close()

    asyncio.run(main())
