"""Figures: one line of JSON each, on standard output."""

import json
import os
import platform
import statistics
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Unit:
    """What one figure of a part is called on its line, and its unit."""

    what: str
    unit: str


def emit(bench: str, what: str, value: float, unit: str, **context: Any) -> None:
    """Print one figure with what it depends on."""
    line = {"bench": bench, "what": what, "value": round(value, 4), "unit": unit, **context}
    print(json.dumps(line, ensure_ascii=False), flush=True)


def emit_medians(bench: str, units: Mapping[str, Unit], runs: Sequence[Mapping[str, float]], **context: Any) -> None:
    """Print the median of each figure over `runs`, with the least and the greatest where there are several."""
    for key, unit in units.items():
        values = [run[key] for run in runs if key in run]
        if values:
            spread = {"least": round(min(values), 4), "greatest": round(max(values), 4)} if len(values) > 1 else {}
            emit(bench, unit.what, statistics.median(values), unit.unit, runs=len(values), **spread, **context)


def emit_machine() -> None:
    """Print what machine this is, as the first line of a run: figures of two machines do not compare."""
    emit(
        "machine",
        "cores",
        os.cpu_count() or 1,
        "1",
        system=platform.platform(),
        python=platform.python_version(),
        load_1min=round(os.getloadavg()[0], 2),
    )


def note(text: str) -> None:
    """Say on standard error what is going on."""
    print(f"bench: {text}", file=sys.stderr, flush=True)
