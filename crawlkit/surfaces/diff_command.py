"""`crawlkit diff`: what differs between two crawls."""

from collections import Counter
from pathlib import Path

import click
import msgspec

from crawlkit.errors import UsageError
from crawlkit.surfaces.diff.changes import Change, ChangeKind, changes
from crawlkit.surfaces.diff.sides import COMPARED, open_side
from crawlkit.surfaces.speech import say
from crawlkit.surfaces.standard_output import standard_output


@click.command("diff")
@click.argument("before", metavar="A", type=click.Path(path_type=Path))
@click.argument("after", metavar="B", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")
@click.option("--summary", is_flag=True, help="Count at the end, on standard error.")
def diff_command(before: Path, after: Path, as_json: bool, summary: bool) -> None:
    """Say what differs in B from A, each a crawl directory or a report of one with --format jsonl.

    Ends with 0 whether or not there is a difference.
    """
    if _are_one(before, after):
        raise UsageError(f"{before} and {after} are the same crawl")
    counts: Counter[str] = Counter()
    with open_side(before) as old, open_side(after) as new, standard_output() as out:
        for change in changes(old, new):
            counts[change.change] += 1
            if change.change is ChangeKind.SAME:
                continue
            if change.change is ChangeKind.CHANGED:
                counts.update(list(change.after or ()))
            out.write(_json_line(change) if as_json else change.text().encode() + b"\n")
    if summary:
        say(_summary(counts))


def _are_one(before: Path, after: Path) -> bool:
    """Whether both are the same place; no where one cannot be looked at, which opening it will say."""
    try:
        return before.samefile(after)
    except OSError:
        return False


_encode = msgspec.json.Encoder().encode


def _json_line(change: Change) -> bytes:
    return _encode(change) + b"\n"


def _summary(counts: Counter[str]) -> str:
    kinds = ", ".join(f"{counts[kind]} {'the same' if kind is ChangeKind.SAME else kind.value}" for kind in ChangeKind)
    fields = ", ".join(f"{name} {counts[name]}" for name in COMPARED if counts[name])
    return f"{kinds} ({fields})" if fields else kinds
