"""Ends of the process at any step that reaches the disk: before and after each batch that is written and each file replaced."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from crawlkit import durable
from crawlkit.state import store

_STEPS: tuple[tuple[Any, str], ...] = ((store, "_write_synced"), (durable, "_sync"), (durable, "_rename"))


class Killed(BaseException):
    """The end: nothing after it reaches the disk."""


class Steps:
    """Counts steps; at the one with the number `fatal` (from 0), and from then on, all end in Killed."""

    def __init__(self, fatal: int | None) -> None:
        self.count = 0
        self._fatal = fatal

    def hit(self) -> None:
        self.count += 1
        if self._fatal is not None and self.count > self._fatal:
            raise Killed


@contextmanager
def killed_at(fatal: int | None) -> Iterator[Steps]:
    """Count the steps of the block, and end it at one of them, if that is reached."""
    steps = Steps(fatal)
    originals = [(owner, name, getattr(owner, name)) for owner, name in _STEPS]
    for owner, name, original in originals:
        setattr(owner, name, _around(steps, original))
    try:
        yield steps
    except Killed:
        pass
    finally:
        for owner, name, original in originals:
            setattr(owner, name, original)


def _around(steps: Steps, original: Callable[..., Any]) -> Callable[..., Any]:
    def step(*arguments: Any) -> Any:
        steps.hit()
        result = original(*arguments)
        steps.hit()
        return result

    return step
