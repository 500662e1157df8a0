"""One timer for many deadlines: each passes as that of `asyncio.timeout` would."""

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from crawlkit.net.deadline import Deadline, Deadlines
from tests.net.client import BOTH_LOOPS, LONG_S, LoopFactory

SOON_S = 0.01


def _run(loop_factory: LoopFactory, main: Coroutine[Any, Any, None]) -> None:
    with asyncio.Runner(loop_factory=loop_factory) as runner:
        runner.run(main)


async def _never(deadlines: Deadlines) -> float:
    """Wait for ever in a block; return how long that took."""
    loop = asyncio.get_running_loop()
    began_s = loop.time()
    with pytest.raises(TimeoutError), Deadline(deadlines) as deadline:
        await asyncio.Event().wait()
    assert deadline.passed
    task = asyncio.current_task()
    assert task is not None
    assert not task.cancelling()
    return loop.time() - began_s


@BOTH_LOOPS
def test_each_block_ends_in_its_time_after_it_began(loop_factory: LoopFactory) -> None:
    async def several() -> None:
        deadlines = Deadlines(SOON_S)
        first = asyncio.create_task(_never(deadlines))
        await _never(Deadlines(SOON_S / 2))
        second = asyncio.create_task(_never(deadlines))
        took_s = [*await asyncio.gather(first, second), await _never(deadlines)]
        assert min(took_s) > SOON_S * 0.8  # the loop's clock has milliseconds

    _run(loop_factory, several())


@BOTH_LOOPS
def test_one_that_is_done_in_time_is_left_alone_and_the_next_are_kept_watch_on(loop_factory: LoopFactory) -> None:
    async def some() -> None:
        deadlines = Deadlines(SOON_S)
        with Deadline(deadlines) as done:
            pass
        await _never(deadlines)
        await _never(deadlines)
        assert not done.passed

    _run(loop_factory, some())


def test_a_timeout_of_the_blocks_own_is_not_that_of_the_deadline() -> None:
    async def fail() -> None:
        with pytest.raises(TimeoutError, match="mine"), Deadline(Deadlines(LONG_S)) as deadline:
            raise TimeoutError("mine")
        assert not deadline.passed

    asyncio.run(fail())


@pytest.mark.parametrize("within_s", [SOON_S, LONG_S])
def test_a_cancellation_from_outside_goes_on_also_where_the_deadline_passes_with_it(within_s: float) -> None:
    async def cancelled() -> None:
        task = asyncio.current_task()
        assert task is not None
        with Deadline(Deadlines(within_s)) as deadline:
            if within_s == LONG_S:
                task.cancel()
            try:
                await asyncio.Event().wait()
            finally:
                assert deadline.passed == (within_s == SOON_S)
                if deadline.passed:
                    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(cancelled())
