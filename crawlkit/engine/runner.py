"""From synchronous code into asyncio: on uvloop where there is one (it saves about a tenth of the CPU a page)."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

Result = TypeVar("Result")


def run_async(main: Coroutine[Any, Any, Result]) -> Result:
    """Run `main` in a new event loop to its end; RuntimeError inside a running one."""
    if asyncio._get_running_loop() is not None:
        main.close()
        raise RuntimeError("this call waits, which it cannot within a running event loop; await its async twin there")
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        return runner.run(main)


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop]:
    try:
        import uvloop  # noqa: PLC0415  (not on every platform)
    except ImportError:
        return asyncio.new_event_loop
    return uvloop.new_event_loop
