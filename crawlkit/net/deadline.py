"""Deadlines of many requests, each as long after its beginning as every other: one timer serves them all."""

import asyncio
from types import TracebackType
from typing import Any

Task = asyncio.Task[Any]


class Deadlines:
    """Ends blocks that are not done `within_s` after they began. To be made in the loop that they run in.

    What begins first is due first, so a timer is set for that one alone; `asyncio.timeout` sets one for each, which takes 4 us
    where a whole request takes 50.
    """

    def __init__(self, within_s: float) -> None:
        self._within_s = within_s
        self.loop = asyncio.get_running_loop()
        self._open: dict[Deadline, float] = {}  # when they are due, soonest first
        self._timer: asyncio.TimerHandle | None = None

    def begin(self, deadline: "Deadline") -> None:
        """Keep watch on a block that begins."""
        due_s = self._open[deadline] = self.loop.time() + self._within_s
        if self._timer is None:
            self._timer = self.loop.call_at(due_s, self._end_what_is_due)

    def done(self, deadline: "Deadline") -> None:
        """Forget a block that has ended."""
        self._open.pop(deadline, None)

    def _end_what_is_due(self) -> None:
        self._timer = None
        now_s = self.loop.time()
        while self._open:
            deadline, due_s = next(iter(self._open.items()))
            if due_s > now_s:
                self._timer = self.loop.call_at(due_s, self._end_what_is_due)
                return
            del self._open[deadline]
            deadline.pass_by()


class Deadline:
    """The deadline of one block, as `asyncio.timeout` is: TimeoutError out of a block that was not done, `passed` set."""

    __slots__ = ("_among", "_cancelling", "_task", "passed")

    def __init__(self, among: Deadlines) -> None:
        self._among = among
        self.passed = False

    def __enter__(self) -> "Deadline":
        task = asyncio.current_task(self._among.loop)  # half the time of looking for the loop, too
        assert task is not None
        self._task: Task = task
        self._cancelling = task.cancelling()
        self._among.begin(self)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _traceback: TracebackType | None) -> None:
        self._among.done(self)
        # Cancelled from outside as well: that goes on.
        if self.passed and self._task.uncancel() <= self._cancelling and kind is asyncio.CancelledError:
            raise TimeoutError from error

    def pass_by(self) -> None:
        """Cancel what the block waits for."""
        self.passed = True
        self._task.cancel()
