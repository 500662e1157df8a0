"""The differences of two crawls: a merge of two sorted streams."""

from collections.abc import Iterator
from enum import StrEnum
from typing import assert_never

import msgspec

from crawlkit.surfaces.diff.sides import COMPARED, Known
from crawlkit.surfaces.terminal import printable

Values = dict[str, str | int | None]


class ChangeKind(StrEnum):
    """What happened to a URL."""

    ADDED = "added"
    REMOVED = "removed"
    CHANGED = "changed"
    SAME = "same"


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """One URL: all that is compared on the side that has it, or what differs on both. Null is a side without it."""

    url: str
    change: ChangeKind
    before: Values | None
    after: Values | None

    def text(self) -> str:
        """Return the change for people: one line."""
        match self.change:
            case ChangeKind.ADDED:
                return f"+ {self.url}{_outcome(self.after or {})}"
            case ChangeKind.REMOVED:
                return f"- {self.url}{_outcome(self.before or {})}"
            case ChangeKind.CHANGED:
                before, after = self.before or {}, self.after or {}
                return f"~ {self.url} " + "; ".join(_difference(name, before[name], after[name]) for name in after)
            case ChangeKind.SAME:
                return f"  {self.url}"
            case unknown:
                assert_never(unknown)


def changes(before: Iterator[Known], after: Iterator[Known]) -> Iterator[Change]:
    """Yield what became of every URL of either side, in the order of URLs, those that are the same too."""
    old, new = next(before, None), next(after, None)
    while old is not None or new is not None:
        if new is None or (old is not None and old.url < new.url):
            assert old is not None
            yield Change(url=old.url, change=ChangeKind.REMOVED, before=_values(old), after=None)
            old = next(before, None)
        elif old is None or new.url < old.url:
            yield Change(url=new.url, change=ChangeKind.ADDED, before=None, after=_values(new))
            new = next(after, None)
        else:
            yield _compare(old, new)
            old, new = next(before, None), next(after, None)


def _compare(old: Known, new: Known) -> Change:
    was, now = _values(old), _values(new)
    differing = [name for name in was.keys() & now.keys() if was[name] != now[name]]
    differing.sort(key=COMPARED.index)
    return Change(
        url=old.url,
        change=ChangeKind.CHANGED if differing else ChangeKind.SAME,
        before={name: was[name] for name in differing},
        after={name: now[name] for name in differing},
    )


def _values(known: Known) -> Values:
    pairs = ((name, getattr(known, name)) for name in COMPARED)
    return {name: value for name, value in pairs if value is not msgspec.UNSET}


def _outcome(values: Values) -> str:
    outcome = next((values[name] for name in ("status", "reason", "kind") if values.get(name) is not None), None)
    return "" if outcome is None else f" {outcome}"


def _difference(name: str, before: str | int | None, after: str | int | None) -> str:
    if name == "digest":
        return "content"
    return f"{name} {_shown(before)} -> {_shown(after)}"


def _shown(value: str | int | None) -> str:
    return "none" if value is None else f'"{printable(value)}"' if isinstance(value, str) else str(value)
